//! Moving a key to another limit.

use core::borrow::Borrow;

use super::KeyedLimiter;
use crate::algorithm::{Algorithm, Carry};
use crate::decision::Report;
use crate::store::{AsyncStore, MemoryStore, Store, StoreError};

/// Moving a key to another limit.
impl<K: ?Sized, A: Algorithm, S> KeyedLimiter<K, A, S> {
    /// Moves `key` from the limit `old` to `new`, once, when its tier changes: the key keeps its tokens. From then on ask
    /// [`under`](Self::under) the new one.
    ///
    #[cfg_attr(feature = "dashmap", doc = "```")]
    #[cfg_attr(not(feature = "dashmap"), doc = "```ignore")]
    /// use ratekeeper::{KeyedLimiter, TokenBucket};
    ///
    /// const FREE: TokenBucket = TokenBucket::per_hour(10);
    /// const PAID: TokenBucket = TokenBucket::per_second(1000);
    ///
    /// let users = KeyedLimiter::<u64>::new(FREE);
    /// assert!(users.check_n(&7, 10).is_allowed());
    /// let report = users.change(&7, &FREE, &PAID);
    /// assert_eq!(report.remaining(), 0); // as before, but full in a second instead of an hour
    /// assert!(report.reset_after().as_secs() <= 1);
    /// ```
    ///
    /// Whole tokens are kept, at most as many as the new limit holds; a full bucket stays full; a raised burst comes in empty. What
    /// is owed beyond the new limit's reach (its burst and `max_wait`) is cut to it. So call it once for each change, at the instant
    /// of the change: to and fro, it refills. [`change_with`](Self::change_with) carries over something else.
    ///
    /// The answer is a peek under `new`; [`Outcome::Unsupported`](crate::Outcome::Unsupported), and nothing changed, if the two do
    /// not share states (see [`under`](Self::under)) or the store cannot.
    pub fn change<Q: ?Sized>(&self, key: &Q, old: &A, new: &A) -> Report
    where
        K: Borrow<Q>,
        S: MemoryStore<Q, A>,
    {
        self.change_with(key, old, new, Carry::Tokens)
    }

    /// [`change`](Self::change) with a choice of what the key takes along.
    pub fn change_with<Q: ?Sized>(&self, key: &Q, old: &A, new: &A, carry: Carry) -> Report
    where
        K: Borrow<Q>,
        S: MemoryStore<Q, A>,
    {
        self.store.change(key, old, new, carry).report()
    }

    /// [`change_with`](Self::change_with) over stores that may fail.
    ///
    /// # Errors
    /// As [`try_check`](Self::try_check), and [`ErrorKind::Unsupported`](crate::store::ErrorKind::Unsupported) if the store cannot.
    pub fn try_change<Q: ?Sized>(
        &self,
        key: &Q,
        old: &A,
        new: &A,
        carry: Carry,
    ) -> Result<Report, StoreError>
    where
        K: Borrow<Q>,
        S: Store<Q, A>,
    {
        let decision = self.store.try_change(key, old, new, carry)?;
        Ok(decision.report())
    }

    /// [`change_with`](Self::change_with) over async stores.
    ///
    /// # Errors
    /// As [`try_change`](Self::try_change).
    pub async fn change_async<Q: ?Sized + Sync>(
        &self,
        key: &Q,
        old: &A,
        new: &A,
        carry: Carry,
    ) -> Result<Report, StoreError>
    where
        K: Borrow<Q>,
        S: AsyncStore<Q, A>,
    {
        let decision = self.store.change_async(key, old, new, carry).await?;
        Ok(decision.report())
    }
}
