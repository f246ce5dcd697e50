//! A keyed limiter under another limit.

use core::borrow::Borrow;
use core::fmt;
use core::marker::PhantomData;

use super::for_key::ForKey;
use crate::algorithm::{Algorithm, TokenBucket};
use crate::decision::Decision;
use crate::request::Request;
use crate::store::{AsyncStore, DashStore, ErrorKind, MemoryStore, Store, StoreError};
use crate::time::Timestamp;

/// The keys of a [`KeyedLimiter`](crate::KeyedLimiter) under a limit of the caller's choice, as of a tier: what
/// [`KeyedLimiter::under`](crate::KeyedLimiter::under) lends. It has that limiter's verbs.
///
/// It is two references and a flag: make one for each request.
pub struct Under<'a, K: ?Sized, A = TokenBucket, S = DashStore<K, A>> {
    limit: &'a A,
    store: &'a S,
    /// Whether the limit shares states with the limiter's own.
    fits: bool,
    key: PhantomData<fn() -> *const K>,
}

impl<'a, K: ?Sized, A: Algorithm, S> Under<'a, K, A, S> {
    #[inline]
    pub(super) const fn new(limit: &'a A, store: &'a S, fits: bool) -> Self {
        Self {
            limit,
            store,
            fits,
            key: PhantomData,
        }
    }

    /// The limit.
    pub const fn algorithm(&self) -> &'a A {
        self.limit
    }

    /// The same for one key.
    #[inline]
    pub fn for_key<Q: ?Sized>(self, key: &'a Q) -> ForKey<'a, Q, A, S>
    where
        K: Borrow<Q>,
    {
        ForKey::new(key, self.limit, self.store, self.fits)
    }

    /// [`KeyedLimiter::check`](crate::KeyedLimiter::check).
    #[inline]
    pub fn check<Q: ?Sized>(self, key: &Q) -> Decision
    where
        K: Borrow<Q>,
        S: MemoryStore<Q, A>,
    {
        self.apply(key, Request::ONE)
    }

    /// [`KeyedLimiter::check_n`](crate::KeyedLimiter::check_n).
    #[inline]
    pub fn check_n<Q: ?Sized>(self, key: &Q, n: u64) -> Decision
    where
        K: Borrow<Q>,
        S: MemoryStore<Q, A>,
    {
        self.apply(key, Request::take(n))
    }

    /// [`KeyedLimiter::peek`](crate::KeyedLimiter::peek).
    #[inline]
    pub fn peek<Q: ?Sized>(self, key: &Q) -> Decision
    where
        K: Borrow<Q>,
        S: MemoryStore<Q, A>,
    {
        self.apply(key, Request::PEEK)
    }

    /// [`KeyedLimiter::check_at`](crate::KeyedLimiter::check_at).
    #[inline]
    pub fn check_at<Q: ?Sized>(self, key: &Q, now: Timestamp) -> Decision
    where
        K: Borrow<Q>,
        S: MemoryStore<Q, A>,
    {
        self.apply_at(key, Request::ONE, now)
    }

    /// [`KeyedLimiter::apply`](crate::KeyedLimiter::apply).
    ///
    /// # Panics
    /// In builds with debug assertions, if the request gives back a receipt of another key or another limit.
    #[inline(always)] // or the decision is copied through memory
    pub fn apply<Q: ?Sized>(self, key: &Q, request: Request) -> Decision
    where
        K: Borrow<Q>,
        S: MemoryStore<Q, A>,
    {
        if !self.fits {
            return Decision::unsupported();
        }
        let origin = || (self.store.fingerprint(key), self.limit.fingerprint());
        request.assert_origin(origin);
        let decision = self.store.decide(key, self.limit, request);
        decision.with_origin(origin)
    }

    /// [`KeyedLimiter::apply_at`](crate::KeyedLimiter::apply_at).
    ///
    /// # Panics
    /// As [`apply`](Self::apply).
    #[inline]
    pub fn apply_at<Q: ?Sized>(self, key: &Q, request: Request, now: Timestamp) -> Decision
    where
        K: Borrow<Q>,
        S: MemoryStore<Q, A>,
    {
        if !self.fits {
            return Decision::unsupported();
        }
        let origin = || (self.store.fingerprint(key), self.limit.fingerprint());
        request.assert_origin(origin);
        let decision = self.store.decide_at(key, self.limit, request, now);
        decision.with_origin(origin)
    }
}

/// Over stores that may fail.
impl<'a, K: ?Sized, A: Algorithm, S> Under<'a, K, A, S> {
    /// [`KeyedLimiter::try_check`](crate::KeyedLimiter::try_check).
    ///
    /// # Errors
    /// As there, and [`ErrorKind::Unsupported`] if the limit does not share states with the limiter's own.
    pub fn try_check<Q: ?Sized>(self, key: &Q) -> Result<Decision, StoreError>
    where
        K: Borrow<Q>,
        S: Store<Q, A>,
    {
        self.try_apply(key, Request::ONE)
    }

    /// [`KeyedLimiter::try_apply`](crate::KeyedLimiter::try_apply).
    ///
    /// # Errors
    /// As [`try_check`](Self::try_check).
    ///
    /// # Panics
    /// As [`apply`](Self::apply).
    pub fn try_apply<Q: ?Sized>(self, key: &Q, request: Request) -> Result<Decision, StoreError>
    where
        K: Borrow<Q>,
        S: Store<Q, A>,
    {
        self.fitting()?;
        let origin = || (self.store.try_fingerprint(key), self.limit.fingerprint());
        request.assert_origin(origin);
        let decision = self.store.apply(key, self.limit, request)?;
        Ok(decision.with_origin(origin))
    }

    /// [`KeyedLimiter::try_forget`](crate::KeyedLimiter::try_forget).
    ///
    /// # Errors
    /// As there.
    pub fn try_forget<Q: ?Sized>(self, key: &Q) -> Result<(), StoreError>
    where
        K: Borrow<Q>,
        S: Store<Q, A>,
    {
        self.fitting()?;
        self.store.forget(key, self.limit)
    }

    /// [`KeyedLimiter::check_async`](crate::KeyedLimiter::check_async).
    ///
    /// # Errors
    /// As [`try_check`](Self::try_check).
    pub fn check_async<Q: ?Sized + Sync>(
        self,
        key: &Q,
    ) -> impl Future<Output = Result<Decision, StoreError>> + Send
    where
        K: Borrow<Q>,
        S: AsyncStore<Q, A>,
    {
        self.apply_async(key, Request::ONE)
    }

    /// [`KeyedLimiter::apply_async`](crate::KeyedLimiter::apply_async).
    ///
    /// # Errors
    /// As [`try_check`](Self::try_check).
    ///
    /// # Panics
    /// As [`apply`](Self::apply).
    pub async fn apply_async<Q: ?Sized + Sync>(
        self,
        key: &Q,
        request: Request,
    ) -> Result<Decision, StoreError>
    where
        K: Borrow<Q>,
        S: AsyncStore<Q, A>,
    {
        self.fitting()?;
        let origin = || (self.store.fingerprint_of(key), self.limit.fingerprint());
        request.assert_origin(origin);
        let decision = self.store.apply_async(key, self.limit, request).await?;
        Ok(decision.with_origin(origin))
    }

    /// [`KeyedLimiter::forget_async`](crate::KeyedLimiter::forget_async).
    ///
    /// # Errors
    /// As there.
    pub async fn forget_async<Q: ?Sized + Sync>(self, key: &Q) -> Result<(), StoreError>
    where
        K: Borrow<Q>,
        S: AsyncStore<Q, A>,
    {
        self.fitting()?;
        self.store.forget_async(key, self.limit).await
    }

    fn fitting(self) -> Result<(), StoreError> {
        const MESSAGE: &str = "this limit does not share states with the limiter's own";
        if self.fits {
            Ok(())
        } else {
            Err(StoreError::new(ErrorKind::Unsupported, MESSAGE))
        }
    }
}

impl<K: ?Sized, A, S> Clone for Under<'_, K, A, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K: ?Sized, A, S> Copy for Under<'_, K, A, S> {}

impl<K: ?Sized, A: fmt::Debug, S> fmt::Debug for Under<'_, K, A, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Under")
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}
