//! Wall-clock time.

use std::time::{SystemTime, UNIX_EPOCH};

use super::Clock;
use crate::time::{Timestamp, duration_ns};

/// Nanoseconds since the Unix epoch: for windows aligned to the calendar, and for states that outlive
/// the process. May be stepped by an administrator or by time synchronisation.
///
/// ```
/// use ratekeeper::{FixedWindow, Limiter, UnixClock};
///
/// static DAILY: Limiter<FixedWindow, UnixClock> =
///     Limiter::with_clock(FixedWindow::per_day(1000), UnixClock);
/// assert!(DAILY.check().is_allowed());
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct UnixClock;

impl Clock for UnixClock {
    #[inline]
    fn now(&self) -> Timestamp {
        Self::timestamp(SystemTime::now())
    }
}

impl UnixClock {
    /// `time` on this clock's scale; times before 1970 count as 1970.
    #[inline]
    pub fn timestamp(time: SystemTime) -> Timestamp {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_nanos(duration_ns(since))
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;

    #[test]
    fn times_before_the_epoch_are_the_epoch() {
        let early = UNIX_EPOCH.checked_sub(Duration::from_secs(1)).unwrap();
        assert_eq!(UnixClock::timestamp(early), Timestamp::ZERO);
        let late = UNIX_EPOCH + Duration::from_secs(7);
        assert_eq!(UnixClock::timestamp(late).as_nanos(), 7_000_000_000);
    }
}
