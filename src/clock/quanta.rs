//! The CPU's time stamp counter, through `quanta`.

use super::Clock;
use crate::time::Timestamp;

/// Reads the CPU's time stamp counter where it is usable, the operating system's clock elsewhere.
///
/// About half the price of [`StdClock`](crate::StdClock), but counters that disagree between cores or
/// drift have caused trouble; measure on the machines you run on. Where they disagree, time may run back
/// from one thread to the next, unless [`Monotonic`](crate::Monotonic) is put around it. Creating the first one in a process
/// calibrates it, which takes up to 200 ms.
///
/// Each clock counts from its own creation; clones share that epoch.
///
/// ```
/// use ratekeeper::{KeyedLimiter, DashStore, QuantaClock, TokenBucket};
///
/// # #[cfg(feature = "dashmap")] {
/// let store = DashStore::<u64, TokenBucket, _>::with_clock(QuantaClock::new());
/// let limiter = KeyedLimiter::<u64, _, _>::with_store(TokenBucket::per_second(10), store);
/// assert!(limiter.check(&1).is_allowed());
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct QuantaClock {
    clock: quanta::Clock,
    epoch_raw: u64,
}

impl QuantaClock {
    /// A clock that counts from now.
    pub fn new() -> Self {
        Self::from(quanta::Clock::new())
    }
}

impl Default for QuantaClock {
    fn default() -> Self {
        Self::new()
    }
}

/// Counts from now on the given clock, which may be quanta's mock.
impl From<quanta::Clock> for QuantaClock {
    fn from(clock: quanta::Clock) -> Self {
        let epoch_raw = clock.raw();
        Self { clock, epoch_raw }
    }
}

impl Clock for QuantaClock {
    #[inline]
    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(self.clock.delta_as_nanos(self.epoch_raw, self.clock.raw()))
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;

    #[test]
    fn follows_the_clock_it_wraps() {
        let (inner, mock) = quanta::Clock::mock();
        mock.increment(Duration::from_secs(3));
        let clock = QuantaClock::from(inner);
        assert_eq!(clock.now(), Timestamp::ZERO);
        mock.increment(Duration::from_nanos(7));
        assert_eq!(clock.clone().now(), Timestamp::from_nanos(7));
    }
}
