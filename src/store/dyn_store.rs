//! A store chosen at run time.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;
use core::pin::Pin;

use super::async_store::AsyncStore;
use super::batch::Item;
use super::error::StoreError;
use crate::algorithm::{Algorithm, Carry, TokenBucket};
use crate::decision::Decision;
use crate::invalid_limit::InvalidLimit;
use crate::request::{Receipt, Request};

/// Any [`AsyncStore`] behind one type, so that a configuration file can choose it. Each call costs an allocation.
///
#[cfg_attr(feature = "dashmap", doc = "```")]
#[cfg_attr(not(feature = "dashmap"), doc = "```ignore")]
/// use ratekeeper::store::{DynStore, Ready};
/// use ratekeeper::{DashStore, KeyedLimiter, TableStore, TokenBucket};
///
/// let many_clients = true; // from a file
/// let store: DynStore<str> = if many_clients {
///     DynStore::new(TableStore::<_, TokenBucket>::for_keys(100_000)?)
/// } else {
///     DynStore::new(DashStore::<String>::new())
/// };
/// let users = KeyedLimiter::<str, _, _>::with_store(TokenBucket::per_minute(100), store);
/// let decision = users.check_async("alice"); // .await
/// # drop(decision);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct DynStore<K: ?Sized, A = TokenBucket> {
    store: Arc<dyn Boxed<K, A>>,
}

type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// [`AsyncStore`] with its futures boxed.
trait Boxed<K: ?Sized, A>: Send + Sync {
    fn apply<'a>(
        &'a self,
        key: &'a K,
        algorithm: &'a A,
        request: Request,
    ) -> BoxFuture<'a, Result<Decision, StoreError>>;
    fn apply_batch<'a>(&'a self, items: &'a mut [Item<'_, K, A>]) -> BoxFuture<'a, ()>;
    fn forget<'a>(&'a self, key: &'a K, algorithm: &'a A) -> BoxFuture<'a, Result<(), StoreError>>;
    fn change<'a>(
        &'a self,
        key: &'a K,
        limits: [&'a A; 2],
        carry: Carry,
    ) -> BoxFuture<'a, Result<Decision, StoreError>>;
    fn accepts(&self, algorithm: &A) -> Result<(), InvalidLimit>;
    fn cancel(&self, key: &K, algorithm: &A, receipt: Receipt);
    fn fingerprint(&self, key: &K) -> u64;
}

impl<K: ?Sized + Sync, A: Algorithm, S: AsyncStore<K, A>> Boxed<K, A> for S {
    fn apply<'a>(
        &'a self,
        key: &'a K,
        algorithm: &'a A,
        request: Request,
    ) -> BoxFuture<'a, Result<Decision, StoreError>> {
        Box::pin(self.apply_async(key, algorithm, request))
    }

    fn apply_batch<'a>(&'a self, items: &'a mut [Item<'_, K, A>]) -> BoxFuture<'a, ()> {
        Box::pin(self.apply_batch_async(items))
    }

    fn forget<'a>(&'a self, key: &'a K, algorithm: &'a A) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.forget_async(key, algorithm))
    }

    fn change<'a>(
        &'a self,
        key: &'a K,
        [old, new]: [&'a A; 2],
        carry: Carry,
    ) -> BoxFuture<'a, Result<Decision, StoreError>> {
        Box::pin(self.change_async(key, old, new, carry))
    }

    fn accepts(&self, algorithm: &A) -> Result<(), InvalidLimit> {
        self.accepts_async(algorithm)
    }

    fn cancel(&self, key: &K, algorithm: &A, receipt: Receipt) {
        AsyncStore::cancel(self, key, algorithm, receipt);
    }

    fn fingerprint(&self, key: &K) -> u64 {
        self.fingerprint_of(key)
    }
}

impl<K: ?Sized + Sync, A: Algorithm> DynStore<K, A> {
    /// Hides which store it is.
    pub fn new(store: impl AsyncStore<K, A> + 'static) -> Self {
        Self {
            store: Arc::new(store),
        }
    }
}

impl<K: ?Sized + Sync, A: Algorithm> AsyncStore<K, A> for DynStore<K, A> {
    async fn apply_async(
        &self,
        key: &K,
        algorithm: &A,
        request: Request,
    ) -> Result<Decision, StoreError> {
        self.store.apply(key, algorithm, request).await
    }

    async fn apply_batch_async(&self, items: &mut [Item<'_, K, A>]) {
        self.store.apply_batch(items).await;
    }

    async fn forget_async(&self, key: &K, algorithm: &A) -> Result<(), StoreError> {
        self.store.forget(key, algorithm).await
    }

    async fn change_async(
        &self,
        key: &K,
        old: &A,
        new: &A,
        carry: Carry,
    ) -> Result<Decision, StoreError> {
        self.store.change(key, [old, new], carry).await
    }

    fn accepts_async(&self, algorithm: &A) -> Result<(), InvalidLimit> {
        self.store.accepts(algorithm)
    }

    fn cancel(&self, key: &K, algorithm: &A, receipt: Receipt) {
        self.store.cancel(key, algorithm, receipt);
    }

    fn fingerprint_of(&self, key: &K) -> u64 {
        self.store.fingerprint(key)
    }
}

impl<K: ?Sized, A> Clone for DynStore<K, A> {
    fn clone(&self) -> Self {
        Self {
            store: Arc::clone(&self.store),
        }
    }
}

impl<K: ?Sized, A> fmt::Debug for DynStore<K, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynStore").finish_non_exhaustive()
    }
}
