//! Instants as plain numbers: nanoseconds since the epoch of whichever clock produced them.

use core::ops::Add;
use core::time::Duration;

const NANOS_PER_SECOND: u128 = 1_000_000_000;

/// An instant: whole nanoseconds since its clock's epoch.
///
/// The epoch is the clock's own affair (process start, boot, 1970); two timestamps can be compared
/// only when one clock made both. The range is 584 years.
///
/// ```
/// use core::time::Duration;
/// use ratekeeper::Timestamp;
///
/// let start = Timestamp::from_nanos(1_000);
/// let later = start + Duration::from_micros(2);
/// assert_eq!(later.saturating_since(start), Duration::from_nanos(2_000));
/// assert_eq!(start.saturating_since(later), Duration::ZERO);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The clock's epoch.
    pub const ZERO: Self = Self(0);

    /// The instant `nanos` nanoseconds after the epoch.
    #[inline]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the epoch.
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The instant at which a counter that runs at `hz` ticks a second shows `ticks`, rounded down
    /// to a whole nanosecond; the last representable instant if that is later.
    ///
    /// ```
    /// # use ratekeeper::Timestamp;
    /// assert_eq!(Timestamp::from_ticks(32_768, 32_768).as_nanos(), 1_000_000_000);
    /// ```
    ///
    /// # Panics
    /// If `hz` is zero; in a constant, that is a compile error.
    pub const fn from_ticks(ticks: u64, hz: u64) -> Self {
        assert!(hz > 0, "a counter needs a frequency above 0 Hz");
        Self(saturate(ticks as u128 * NANOS_PER_SECOND / hz as u128))
    }

    /// How long after `earlier` this instant is; zero if it is not after it.
    #[inline]
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Timestamp {
    type Output = Self;

    /// The instant `duration` later, or the last representable one.
    #[inline]
    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration_ns(duration)))
    }
}

/// A duration in whole nanoseconds, at most `u64::MAX` (584 years).
#[inline]
pub(crate) const fn duration_ns(duration: Duration) -> u64 {
    saturate(duration.as_nanos())
}

/// `value`, or `u64::MAX` if it does not fit.
#[inline]
#[allow(clippy::cast_possible_truncation)] // tested
pub(crate) const fn saturate(value: u128) -> u64 {
    if value > u64::MAX as u128 {
        u64::MAX
    } else {
        value as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_round_down_and_saturate() {
        assert_eq!(Timestamp::from_ticks(1, 3).as_nanos(), 333_333_333);
        assert_eq!(Timestamp::from_ticks(u64::MAX, 1).as_nanos(), u64::MAX);
        assert_eq!(
            Timestamp::from_ticks(u64::MAX, 1_000_000_000).as_nanos(),
            u64::MAX
        );
    }

    #[test]
    fn adding_stops_at_the_end_of_time() {
        assert_eq!(
            Timestamp::from_nanos(5) + Duration::MAX,
            Timestamp::from_nanos(u64::MAX)
        );
    }
}
