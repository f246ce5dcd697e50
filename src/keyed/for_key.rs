//! A keyed limiter's limit for one key.

use core::fmt;

use super::under::Under;
use crate::algorithm::{Algorithm, TokenBucket};
use crate::decision::Decision;
use crate::request::Request;
use crate::store::{AsyncStore, DashStore, MemoryStore, Store, StoreError};
use crate::time::Timestamp;

/// The limit of one key, without naming the key again: what [`KeyedLimiter::for_key`](crate::KeyedLimiter::for_key) and
/// [`Under::for_key`] lend. It has a [`Limiter`](crate::Limiter)'s verbs.
pub struct ForKey<'a, Q: ?Sized, A = TokenBucket, S = DashStore<Q, A>> {
    key: &'a Q,
    limit: &'a A,
    store: &'a S,
    fits: bool,
}

impl<'a, Q: ?Sized, A: Algorithm, S> ForKey<'a, Q, A, S> {
    #[inline]
    pub(super) const fn new(key: &'a Q, limit: &'a A, store: &'a S, fits: bool) -> Self {
        Self {
            key,
            limit,
            store,
            fits,
        }
    }

    #[inline]
    const fn under(self) -> Under<'a, Q, A, S> {
        Under::new(self.limit, self.store, self.fits)
    }

    /// The limit.
    pub const fn algorithm(&self) -> &'a A {
        self.limit
    }

    /// The key.
    pub const fn key(&self) -> &'a Q {
        self.key
    }
}

/// Over stores of this process.
impl<Q: ?Sized, A: Algorithm, S: MemoryStore<Q, A>> ForKey<'_, Q, A, S> {
    /// Asks for one token.
    #[inline]
    pub fn check(self) -> Decision {
        self.under().check(self.key)
    }

    /// Asks for `n` tokens, all or nothing; 0 is a peek.
    #[inline]
    pub fn check_n(self, n: u64) -> Decision {
        self.under().check_n(self.key, n)
    }

    /// Looks without taking.
    #[inline]
    pub fn peek(self) -> Decision {
        self.under().peek(self.key)
    }

    /// Asks for one token at `now`; the store's clock is not read.
    #[inline]
    pub fn check_at(self, now: Timestamp) -> Decision {
        self.under().check_at(self.key, now)
    }

    /// Answers `request`.
    ///
    /// # Panics
    /// As [`Under::apply`].
    #[inline]
    pub fn apply(self, request: Request) -> Decision {
        self.under().apply(self.key, request)
    }

    /// Answers `request` at `now`; the store's clock is not read.
    ///
    /// # Panics
    /// As [`Under::apply`].
    #[inline]
    pub fn apply_at(self, request: Request, now: Timestamp) -> Decision {
        self.under().apply_at(self.key, request, now)
    }
}

/// Over stores that may fail.
impl<'a, Q: ?Sized, A: Algorithm, S> ForKey<'a, Q, A, S> {
    /// Asks for one token.
    ///
    /// # Errors
    /// As [`Under::try_check`].
    pub fn try_check(self) -> Result<Decision, StoreError>
    where
        S: Store<Q, A>,
    {
        self.under().try_check(self.key)
    }

    /// Answers `request`.
    ///
    /// # Errors
    /// As [`Under::try_check`].
    ///
    /// # Panics
    /// As [`Under::apply`].
    pub fn try_apply(self, request: Request) -> Result<Decision, StoreError>
    where
        S: Store<Q, A>,
    {
        self.under().try_apply(self.key, request)
    }

    /// Forgets the key, as if it had never been seen.
    ///
    /// # Errors
    /// As [`Under::try_forget`].
    pub fn try_forget(self) -> Result<(), StoreError>
    where
        S: Store<Q, A>,
    {
        self.under().try_forget(self.key)
    }

    /// Asks for one token.
    ///
    /// # Errors
    /// As [`Under::try_check`].
    pub fn check_async(
        self,
    ) -> impl Future<Output = Result<Decision, StoreError>> + Send + use<'a, Q, A, S>
    where
        Q: Sync,
        S: AsyncStore<Q, A>,
    {
        self.under().check_async(self.key)
    }

    /// Answers `request`.
    ///
    /// # Errors
    /// As [`Under::try_check`].
    ///
    /// # Panics
    /// As [`Under::apply`].
    pub fn apply_async(
        self,
        request: Request,
    ) -> impl Future<Output = Result<Decision, StoreError>> + Send + use<'a, Q, A, S>
    where
        Q: Sync,
        S: AsyncStore<Q, A>,
    {
        self.under().apply_async(self.key, request)
    }

    /// Forgets the key, as if it had never been seen.
    ///
    /// # Errors
    /// As [`Under::try_forget`].
    pub fn forget_async(
        self,
    ) -> impl Future<Output = Result<(), StoreError>> + Send + use<'a, Q, A, S>
    where
        Q: Sync,
        S: AsyncStore<Q, A>,
    {
        self.under().forget_async(self.key)
    }
}

impl<Q: ?Sized, A, S> Clone for ForKey<'_, Q, A, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<Q: ?Sized, A, S> Copy for ForKey<'_, Q, A, S> {}

impl<Q: ?Sized, A: fmt::Debug, S> fmt::Debug for ForKey<'_, Q, A, S> {
    /// The key stays out of logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ForKey")
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}
