//! When a value was written, as a number that memcached keeps beside it.
//!
//! Each process decides by its own clock. A bucket that one of them has emptied looks more than empty to another whose clock
//! is behind, as after a clock was set back; it would be cut to empty, and so the first would find tokens again, and so on:
//! two clocks that disagree by the time of one token take half of all requests through any limit. Therefore a process whose
//! clock is a little behind a value's goes by the value's time.

use std::time::Duration;

use ratekeeper::Timestamp;

/// Stamps count 256 ns, and begin again after 18 minutes: enough to tell which of two clocks is ahead.
const UNIT_BITS: u32 = 8;

/// The largest difference that is safely told from one in the other direction.
pub(crate) const MOST_SKEW: Duration = Duration::from_secs(500);

/// The stamp of a value written at `now`. 0 by accident, once in four thousand million, says nothing.
#[allow(clippy::cast_possible_truncation, reason = "stamps begin again")]
pub(crate) const fn stamp(now: Timestamp) -> u32 {
    (now.as_nanos() >> UNIT_BITS) as u32
}

/// The time to decide by: that of `clock`, or that of the value if the clock is behind it by up to `max_skew`.
pub(crate) fn latest(clock: Timestamp, value: u32, max_skew: Duration) -> Timestamp {
    let ahead = value.wrapping_sub(stamp(clock)).cast_signed();
    let Ok(ahead @ 1..) = u64::try_from(ahead) else {
        return clock;
    };
    let units = (clock.as_nanos() >> UNIT_BITS).saturating_add(ahead);
    let by_stamp = Timestamp::from_nanos(units.saturating_mul(1 << UNIT_BITS));
    if value == 0 || by_stamp.saturating_since(clock) > max_skew.min(MOST_SKEW) {
        clock
    } else {
        by_stamp
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn the_clock_that_is_ahead_counts() {
        // Also where the stamp begins again: 2^40 ns.
        for base_ns in [
            1_767_225_600_000_000_000,
            (1 << 40) + 512,
            (1_000_000 << 40) + 512,
        ] {
            for before_ns in [0, 255, 256, 1_000, 999_999_999] {
                let clock = Timestamp::from_nanos(base_ns - before_ns);
                for skew_ns in [0, 1, 1_000, 1_000_000, 999_999_999] {
                    let writer_ns = base_ns - before_ns + skew_ns;
                    let latest = latest(clock, stamp(Timestamp::from_nanos(writer_ns)), SECOND);
                    let expected = (base_ns - before_ns).max(writer_ns / 256 * 256);
                    assert_eq!(
                        latest.as_nanos(),
                        expected,
                        "{base_ns} - {before_ns}, {skew_ns}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_clock_that_is_not_a_little_behind_is_its_own() {
        let clock = Timestamp::from_nanos(1_767_225_600_000_000_123);
        let seconds = |seconds: i64| {
            let ns = clock.as_nanos().cast_signed() + seconds * 1_000_000_000;
            stamp(Timestamp::from_nanos(ns.cast_unsigned()))
        };
        for (written, max_skew) in [
            (seconds(0), SECOND),
            (seconds(-1), SECOND),
            (seconds(-500), SECOND * 500),
            (seconds(-100_000_000), SECOND),
            (seconds(2), SECOND),
            (seconds(1), Duration::ZERO),
            (seconds(501), Duration::MAX),
            (0, Duration::MAX),
        ] {
            assert_eq!(
                latest(clock, written, max_skew),
                clock,
                "{written} {max_skew:?}"
            );
        }
        assert!(latest(clock, seconds(499), Duration::MAX) > clock);
        let end = Timestamp::from_nanos(u64::MAX);
        assert_eq!(latest(end, stamp(end).wrapping_add(7), SECOND), end);
    }
}
