//! A clock that moves only when told to.

use core::time::Duration;

use super::Clock;
use crate::sync::{AtomicU64, Ordering};
use crate::time::{Timestamp, duration_ns};

/// A clock that the test holds: it starts at 0, moves by [`advance`](Self::advance) and jumps, forwards
/// or backwards, by [`set`](Self::set). Share it by reference or in an `Arc`.
///
/// ```
/// use core::time::Duration;
/// use ratekeeper::{Limiter, ManualClock, TokenBucket};
///
/// let clock = ManualClock::new();
/// let limiter = Limiter::with_clock(TokenBucket::per_second(1), &clock);
/// assert!(limiter.check().is_allowed());
/// assert!(!limiter.check().is_allowed());
/// clock.advance(Duration::from_secs(1));
/// assert!(limiter.check().is_allowed());
/// ```
#[derive(Debug, Default)]
pub struct ManualClock {
    now_ns: AtomicU64,
}

impl ManualClock {
    /// A clock that stands at [`Timestamp::ZERO`].
    pub const fn new() -> Self {
        Self {
            now_ns: AtomicU64::new(0),
        }
    }

    /// Moves the clock forwards, at most to the end of time. Concurrent moves add up.
    pub fn advance(&self, by: Duration) {
        let by_ns = duration_ns(by);
        let mut now_ns = self.now_ns.load(Ordering::Acquire);
        // AcqRel, paired with the Acquire in `now`: who sees the new time also sees what the thread
        // that moved the clock did before.
        while let Err(newer) = self.now_ns.compare_exchange_weak(
            now_ns,
            now_ns.saturating_add(by_ns),
            Ordering::AcqRel,
            Ordering::Acquire,
        ) {
            now_ns = newer;
        }
    }

    /// Sets the clock, forwards or backwards. What holds after a step back is on [`Clock`]'s page.
    pub fn set(&self, now: Timestamp) {
        // Release, paired with the Acquire in `now`, as in `advance`.
        self.now_ns.store(now.as_nanos(), Ordering::Release);
    }
}

impl Clock for ManualClock {
    #[inline]
    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(self.now_ns.load(Ordering::Acquire))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moves_both_ways_and_stops_at_the_end() {
        let clock = ManualClock::new();
        clock.advance(Duration::from_nanos(5));
        clock.set(Timestamp::from_nanos(3));
        assert_eq!(clock.now(), Timestamp::from_nanos(3));
        clock.advance(Duration::MAX);
        assert_eq!(clock.now(), Timestamp::from_nanos(u64::MAX));
    }
}
