//! How long memcached is told to keep a value.

use std::time::Duration;

/// More than this is taken for seconds since the Unix epoch.
const LONGEST_RELATIVE_S: u64 = 30 * 24 * 60 * 60;

/// What is added to a time to live.
///
/// memcached counts whole seconds on a clock that it reads once a second. Between two readings the clock shows up to two
/// seconds less than the time (one by rounding down, one by waiting), and a value stored then expires that much early: one
/// told to live for 2 seconds may be gone at once. The third second is for readings that come late on a busy machine.
const GRACE_S: u64 = 3;

/// What is added to an instant of expiry: by so much may the server's clock be ahead of this machine's.
const SKEW_S: u64 = 12 * 60 * 60;

/// The largest number that memcached reads: 19 January 2038.
const LATEST_S: u64 = i32::MAX.unsigned_abs() as u64;

/// The number for memcached's `T` by which a value lives for at least `keep`, at `now_s` seconds since the Unix epoch.
///
/// Never 0, which would be for ever, and never more than memcached understands: keeps that end after [`LATEST_S`] are cut
/// there, and from a month before it to 30 days.
pub(crate) fn time_to_live(keep: Duration, now_s: u64) -> u64 {
    let keep_s = keep
        .as_secs()
        .saturating_add(u64::from(keep.subsec_nanos() > 0));
    let relative_s = keep_s.saturating_add(GRACE_S);
    if relative_s <= LONGEST_RELATIVE_S {
        return relative_s;
    }
    let expiry_s = now_s
        .saturating_add(keep_s)
        .saturating_add(SKEW_S)
        .min(LATEST_S);
    if expiry_s <= now_s.saturating_add(LONGEST_RELATIVE_S) {
        return LONGEST_RELATIVE_S;
    }
    expiry_s
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_S: u64 = 86_400;
    /// 1 January 2026.
    const NOW_S: u64 = 1_767_225_600;

    fn at(now_s: u64, keep: Duration) -> u64 {
        time_to_live(keep, now_s)
    }

    #[test]
    fn seconds_are_rounded_up_and_never_zero() {
        assert_eq!(at(NOW_S, Duration::ZERO), 3);
        assert_eq!(at(NOW_S, Duration::from_nanos(1)), 4);
        assert_eq!(at(NOW_S, Duration::from_secs(1)), 4);
        assert_eq!(at(NOW_S, Duration::from_millis(1_001)), 5);
    }

    #[test]
    fn more_than_thirty_days_is_an_instant() {
        let thirty_days = Duration::from_secs(30 * DAY_S);
        assert_eq!(at(NOW_S, thirty_days - Duration::from_secs(3)), 30 * DAY_S);
        assert_eq!(
            at(NOW_S, thirty_days - Duration::from_secs(2)),
            NOW_S + 30 * DAY_S + DAY_S / 2 - 2
        );
        assert_eq!(
            at(NOW_S, Duration::from_secs(60 * DAY_S)),
            NOW_S + 60 * DAY_S + DAY_S / 2
        );
    }

    #[test]
    fn what_memcached_cannot_count_is_cut() {
        assert_eq!(
            at(NOW_S, Duration::from_secs(20 * 365 * DAY_S)),
            2_147_483_647
        );
        assert_eq!(at(NOW_S, Duration::MAX), 2_147_483_647);
        let month_before_the_end = 2_147_483_647 - 30 * DAY_S;
        let long = Duration::from_secs(60 * DAY_S);
        assert_eq!(at(month_before_the_end - 1, long), 2_147_483_647);
        for now_s in [month_before_the_end, 2_147_483_647, 3_000_000_000, u64::MAX] {
            assert_eq!(at(now_s, long), 30 * DAY_S, "at {now_s}");
        }
    }
}
