//! Wall-clock time.

mod line;
#[cfg(all(test, loom))]
mod model;
#[cfg(all(test, not(loom)))]
mod promises;
mod slew;
#[cfg(all(test, not(loom)))]
mod threads;

#[cfg(all(test, loom))]
use std::sync::LazyLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use self::slew::Slew;
use super::Clock;
use crate::time::{Timestamp, duration_ns};

/// Nanoseconds since the Unix epoch that never run back in the process: for windows aligned to the
/// calendar, and for states that outlive the process.
///
/// ```
/// use ratekeeper::{FixedWindow, Limiter, UnixClock};
///
/// static DAILY: Limiter<FixedWindow, UnixClock> =
///     Limiter::with_clock(FixedWindow::per_day(1000), UnixClock);
/// assert!(DAILY.check().is_allowed());
/// ```
///
/// # When the wall clock is stepped
/// All readings in the process, by whichever thread and through whichever `UnixClock`, follow one line
/// over the monotonic clock ([`Instant`]):
///
/// * No reading is less than one that ended before it began, as far as `Instant` keeps that promise.
/// * The wall clock is followed: what it does, forwards or backwards, is noticed within 1 ms of the
///   monotonic clock. A step forwards is then shown at once. After a step back this clock runs at half
///   speed until the wall clock has caught up: twice as long as the step was.
/// * It never runs at less than half speed, and never shows more than the wall clock would if it had kept
///   the largest lead over the monotonic clock that was seen in this process.
///
/// So a wall clock that was ahead by years and is set right means years at half speed: every wait is twice
/// as long by real time, and days of a calendar come late, until the process is restarted.
///
/// The instants shown end in 2262. Processes do not know of each other: clocks of several machines, or
/// before and after a restart, may differ (see [`Clock`]).
///
/// # Cost
/// A reading is one of `Instant` and four words that are written about once a millisecond, by a thread that
/// needs the time then; others wait for it for two readings of clocks. Not for signal handlers: the
/// interrupted thread may be that one.
#[derive(Clone, Copy, Debug, Default)]
pub struct UnixClock;

#[cfg(not(all(test, loom)))]
static SHOWN: Slew = Slew::new();
#[cfg(all(test, loom))]
static SHOWN: LazyLock<Slew> = LazyLock::new(Slew::new);

impl Clock for UnixClock {
    #[inline]
    fn now(&self) -> Timestamp {
        let shown_ns = SHOWN.read(
            || signed(Timestamp::from(Instant::now())),
            || signed(Self::timestamp(SystemTime::now())),
        );
        // Negative if the wall clock shows 1970 and this thread slept meanwhile.
        Timestamp::from_nanos(u64::try_from(shown_ns).unwrap_or(0))
    }
}

impl UnixClock {
    /// `time` on this clock's scale; times before 1970 count as 1970.
    ///
    /// Of the wall clock as it is: after a step back, [`now`](Clock::now) shows more than
    /// `timestamp(SystemTime::now())` until the wall clock has caught up.
    #[inline]
    pub fn timestamp(time: SystemTime) -> Timestamp {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_nanos(duration_ns(since))
    }
}

#[inline]
fn signed(time: Timestamp) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
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
