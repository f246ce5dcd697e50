//! A store that enforces a limit of its own.

use super::part::Part;
use super::passed_on::passed_on;
use crate::algorithm::{Algorithm, Carry};
use crate::decision::Decision;
use crate::invalid_limit::InvalidLimit;
use crate::request::{Receipt, Request};
use crate::store::async_store::AsyncStore;
use crate::store::batch::Item;
use crate::store::blocking::Store;
use crate::store::error::StoreError;
use crate::store::memory::{InProcess, MemoryStore};
use crate::time::Timestamp;

/// Enforces its own limit, whatever it is asked under: as the second store of a
/// [`Fallback`](crate::store::Fallback), this instance's share.
///
/// ```
/// # #[cfg(feature = "dashmap")] {
/// use ratekeeper::store::{Store, WithLimit};
/// use ratekeeper::{DashStore, Request, TokenBucket};
///
/// let limit = TokenBucket::per_second(100);
/// // Ten instances share the limit.
/// let local = WithLimit::new(DashStore::<String>::new(), TokenBucket::per_second(10));
/// let decision = local.apply("alice", &limit, Request::ONE).unwrap();
/// assert_eq!(decision.limit(), 10);
/// # }
/// ```
///
/// # Bound
/// That of its own limit. Its states are those of its own algorithm, so the inner store must not be shared with others. Its
/// limit never changes: a [change](Store::try_change) from one limit to another is answered with a peek.
///
/// # Errors
/// The inner store's.
#[derive(Clone, Copy, Debug)]
pub struct WithLimit<S, B> {
    store: S,
    limit: B,
}

impl<S, B> WithLimit<S, B> {
    /// Enforces `limit` in `store`.
    pub const fn new(store: S, limit: B) -> Self {
        Self { store, limit }
    }

    /// The inner store.
    pub const fn get_ref(&self) -> &S {
        &self.store
    }

    /// The limit it enforces.
    pub const fn limit(&self) -> &B {
        &self.limit
    }

    /// What is asked in the inner store.
    fn part<'s, 'i: 's, K, A>(&'s self, items: &mut [Item<'i, K, A>]) -> Part<'s, K, B>
    where
        K: ?Sized,
        A: Algorithm,
        B: Algorithm,
    {
        let mut part = Part::new();
        for (place, item) in items.iter_mut().enumerate() {
            if let Some(request) = item.take_request() {
                part.push(place, item.key(), &self.limit, request);
            }
        }
        part
    }
}

impl<K, A, B, S> MemoryStore<K, A> for WithLimit<S, B>
where
    K: ?Sized,
    A: Algorithm,
    B: Algorithm,
    S: MemoryStore<K, B>,
{
    fn decide(&self, key: &K, _algorithm: &A, request: Request) -> Decision {
        self.store.decide(key, &self.limit, request)
    }

    fn decide_at(&self, key: &K, _algorithm: &A, request: Request, now: Timestamp) -> Decision {
        self.store.decide_at(key, &self.limit, request, now)
    }

    fn accepts(&self, _algorithm: &A) -> Result<(), InvalidLimit> {
        self.store.accepts(&self.limit)
    }

    fn change(&self, key: &K, _old: &A, _new: &A, _carry: Carry) -> Decision {
        self.store.decide(key, &self.limit, Request::PEEK)
    }

    fn fingerprint(&self, key: &K) -> u64 {
        self.store.fingerprint(key)
    }
}

passed_on!(InProcess for WithLimit<S, B>);

impl<K, A, B, S> Store<K, A> for WithLimit<S, B>
where
    K: ?Sized,
    A: Algorithm,
    B: Algorithm,
    S: Store<K, B>,
{
    fn apply(&self, key: &K, _algorithm: &A, request: Request) -> Result<Decision, StoreError> {
        self.store.apply(key, &self.limit, request)
    }

    fn apply_batch(&self, items: &mut [Item<'_, K, A>]) {
        let mut part = self.part(items);
        self.store.apply_batch(&mut part.items);
        part.settle(items);
    }

    fn forget(&self, key: &K, _algorithm: &A) -> Result<(), StoreError> {
        self.store.forget(key, &self.limit)
    }

    fn try_change(
        &self,
        key: &K,
        _old: &A,
        _new: &A,
        _carry: Carry,
    ) -> Result<Decision, StoreError> {
        self.store.apply(key, &self.limit, Request::PEEK)
    }

    fn try_accepts(&self, _algorithm: &A) -> Result<(), InvalidLimit> {
        self.store.try_accepts(&self.limit)
    }

    fn try_fingerprint(&self, key: &K) -> u64 {
        self.store.try_fingerprint(key)
    }
}

impl<K, A, B, S> AsyncStore<K, A> for WithLimit<S, B>
where
    K: ?Sized + Sync,
    A: Algorithm,
    B: Algorithm,
    S: AsyncStore<K, B>,
{
    async fn apply_async(
        &self,
        key: &K,
        _algorithm: &A,
        request: Request,
    ) -> Result<Decision, StoreError> {
        self.store.apply_async(key, &self.limit, request).await
    }

    async fn apply_batch_async(&self, items: &mut [Item<'_, K, A>]) {
        let mut part = self.part(items);
        self.store.apply_batch_async(&mut part.items).await;
        part.settle(items);
    }

    async fn forget_async(&self, key: &K, _algorithm: &A) -> Result<(), StoreError> {
        self.store.forget_async(key, &self.limit).await
    }

    async fn change_async(
        &self,
        key: &K,
        _old: &A,
        _new: &A,
        _carry: Carry,
    ) -> Result<Decision, StoreError> {
        self.store
            .apply_async(key, &self.limit, Request::PEEK)
            .await
    }

    fn accepts_async(&self, _algorithm: &A) -> Result<(), InvalidLimit> {
        self.store.accepts_async(&self.limit)
    }

    fn cancel(&self, key: &K, _algorithm: &A, receipt: Receipt) {
        self.store.cancel(key, &self.limit, receipt);
    }

    fn fingerprint_of(&self, key: &K) -> u64 {
        self.store.fingerprint_of(key)
    }
}
