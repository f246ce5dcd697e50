//! Changing a keyed limiter's limit at run time.

use super::KeyedLimiter;
use crate::algorithm::{Changeable, Live};
use crate::invalid_limit::InvalidLimit;
use crate::store::{InProcess, MemoryStore};
use crate::time::Timestamp;

/// Changing the limit of all keys while it is in force: see [`Live`].
impl<K: ?Sized, A: Changeable, S> KeyedLimiter<K, Live<A>, S> {
    /// Puts `new` in force for all keys, now, however late each of them comes. What is left of the old limit's tokens stays,
    /// and so do windows' counts: [`Live`] says what changes.
    ///
    #[cfg_attr(feature = "dashmap", doc = "```")]
    #[cfg_attr(not(feature = "dashmap"), doc = "```ignore")]
    /// use ratekeeper::{KeyedLimiter, Live, TokenBucket};
    ///
    /// let users = KeyedLimiter::<u64, Live>::new(Live::new(TokenBucket::per_hour(10)));
    /// assert!(users.check_n(&7, 8).is_allowed());
    /// users.set(TokenBucket::per_second(1000))?;
    /// assert!(users.peek(&7).remaining() >= 2); // and 1000 more each second
    /// # Ok::<(), ratekeeper::InvalidLimit>(())
    /// ```
    ///
    /// # Errors
    /// [`InvalidLimit`] if the store cannot keep the limit ([`MemoryStore::accepts`]), or that says which part of a limit in
    /// force cannot change; the old one stays.
    pub fn set(&self, new: A) -> Result<(), InvalidLimit>
    where
        S: InProcess + MemoryStore<K, Live<A>>,
    {
        self.set_at(new, self.store.now())
    }

    /// [`set`](Self::set) as of `now`; the store's clock is not read.
    ///
    /// # Errors
    /// As there.
    pub fn set_at(&self, new: A, now: Timestamp) -> Result<(), InvalidLimit>
    where
        S: InProcess + MemoryStore<K, Live<A>>,
    {
        self.store.accepts(&Live::new(new))?;
        self.algorithm.set_at(new, now)
    }

    /// The limit in force.
    pub fn get(&self) -> A {
        self.algorithm.get()
    }
}
