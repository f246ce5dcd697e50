//! Changing a limiter's limit at run time.

use super::Limiter;
use crate::algorithm::{Changeable, Live};
use crate::clock::Clock;
use crate::invalid_limit::InvalidLimit;
use crate::time::Timestamp;

/// Changing the limit while it is in force: see [`Live`].
impl<A: Changeable, C> Limiter<Live<A>, C> {
    /// Puts `new` in force, now. What is left of the old limit's tokens stays, and so do windows' counts: [`Live`] says what
    /// changes.
    ///
    /// ```
    /// use ratekeeper::{Limiter, Live, TokenBucket};
    ///
    /// static LIMIT: Limiter<Live> = Limiter::new(Live::new(TokenBucket::per_second(10)));
    ///
    /// # #[cfg(feature = "std")]
    /// LIMIT.set("20/s".parse()?)?;
    /// # #[cfg(feature = "std")]
    /// assert_eq!(LIMIT.get(), TokenBucket::per_second(20));
    /// # Ok::<(), ratekeeper::InvalidLimit>(())
    /// ```
    ///
    /// # Errors
    /// [`InvalidLimit`] that says which part of a limit in force cannot change; the old one stays.
    pub fn set(&self, new: A) -> Result<(), InvalidLimit>
    where
        C: Clock,
    {
        self.set_at(new, self.clock.now())
    }

    /// [`set`](Self::set) as of `now`; needs no clock.
    ///
    /// # Errors
    /// As there.
    pub fn set_at(&self, new: A, now: Timestamp) -> Result<(), InvalidLimit> {
        self.algorithm.set_at(new, now)
    }

    /// The limit in force.
    pub fn get(&self) -> A {
        self.algorithm.get()
    }
}
