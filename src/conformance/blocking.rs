//! Synchronous stores, for the kit.

use crate::algorithm::{Algorithm, Carry};
use crate::decision::Decision;
use crate::invalid_limit::InvalidLimit;
use crate::request::Request;
use crate::store::{AsyncStore, Item, Store, StoreError};

/// Makes a [`Store`] an [`AsyncStore`] that blocks: for tests, where that does no harm.
///
/// ```
/// use ratekeeper::conformance::Blocking;
/// use ratekeeper::store::{DynStore, Ready};
/// use ratekeeper::{TableStore, TokenBucket};
///
/// let store = Ready(TableStore::<_, TokenBucket>::for_keys(100)?);
/// let subject: DynStore<str> = DynStore::new(Blocking(store));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Blocking<S>(pub S);

impl<K, A, S> AsyncStore<K, A> for Blocking<S>
where
    K: ?Sized + Sync,
    A: Algorithm,
    S: Store<K, A> + Send + Sync,
{
    async fn apply_async(
        &self,
        key: &K,
        algorithm: &A,
        request: Request,
    ) -> Result<Decision, StoreError> {
        self.0.apply(key, algorithm, request)
    }

    async fn apply_batch_async(&self, items: &mut [Item<'_, K, A>]) {
        self.0.apply_batch(items);
    }

    async fn forget_async(&self, key: &K, algorithm: &A) -> Result<(), StoreError> {
        self.0.forget(key, algorithm)
    }

    async fn change_async(
        &self,
        key: &K,
        old: &A,
        new: &A,
        carry: Carry,
    ) -> Result<Decision, StoreError> {
        self.0.try_change(key, old, new, carry)
    }

    fn accepts_async(&self, algorithm: &A) -> Result<(), InvalidLimit> {
        self.0.try_accepts(algorithm)
    }

    fn fingerprint_of(&self, key: &K) -> u64 {
        self.0.try_fingerprint(key)
    }
}
