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
const SKEW_S: u64 = DAY_S / 2;

/// Instants of expiry are whole days, so that whoever reads what is left, on a clock that is up to half a day off, can tell
/// which it was: otherwise each write would move it by the difference of two clocks.
const DAY_S: u64 = 24 * 60 * 60;

/// The largest number that memcached reads: 19 January 2038.
const LATEST_S: u64 = i32::MAX.unsigned_abs() as u64;

/// The number for memcached's `T` by which a value lives for at least `keep`, and no shorter than the `left_s` seconds that
/// memcached says are left of it, at `now_s` seconds since the Unix epoch.
///
/// Never 0, which would be for ever, and never more than memcached understands: keeps that end after [`LATEST_S`] are cut
/// there, and from a month before it to 30 days.
pub(crate) fn time_to_live(keep: Duration, left_s: u64, now_s: u64) -> u64 {
    let keep_s = keep
        .as_secs()
        .saturating_add(u64::from(keep.subsec_nanos() > 0));
    let relative_s = keep_s.saturating_add(GRACE_S);
    if relative_s.max(left_s) <= LONGEST_RELATIVE_S {
        return relative_s.max(left_s);
    }
    let own_s = now_s.saturating_add(keep_s).saturating_add(SKEW_S);
    let left_until_s = now_s.saturating_add(left_s);
    let own_days = own_s.div_ceil(DAY_S);
    let left_days = left_until_s.saturating_add(DAY_S / 2) / DAY_S;
    let expiry_s = own_days.max(left_days).saturating_mul(DAY_S);
    // The last of them is no whole day.
    let expiry_s = if expiry_s > LATEST_S - DAY_S / 2 {
        LATEST_S
    } else {
        expiry_s
    };
    if expiry_s <= now_s.saturating_add(LONGEST_RELATIVE_S) {
        return LONGEST_RELATIVE_S;
    }
    expiry_s
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1 January 2026.
    const NOW_S: u64 = 1_767_225_600;

    const DAY: Duration = Duration::from_secs(DAY_S);

    fn at(now_s: u64, keep: Duration) -> u64 {
        time_to_live(keep, 0, now_s)
    }

    #[test]
    fn seconds_are_rounded_up_and_never_zero() {
        assert_eq!(at(NOW_S, Duration::ZERO), 3);
        assert_eq!(at(NOW_S, Duration::from_nanos(1)), 4);
        assert_eq!(at(NOW_S, Duration::from_secs(1)), 4);
        assert_eq!(at(NOW_S, Duration::from_millis(1_001)), 5);
    }

    /// `NOW_S` is a whole number of days.
    #[test]
    fn more_than_thirty_days_is_an_instant() {
        assert_eq!(at(NOW_S, DAY * 30 - Duration::from_secs(3)), 30 * DAY_S);
        let next = at(NOW_S, DAY * 30 - Duration::from_secs(2));
        assert_eq!(next, NOW_S + 31 * DAY_S);
        assert_eq!(at(NOW_S, DAY * 60), NOW_S + 61 * DAY_S);
        assert_eq!(at(NOW_S + DAY_S / 2, DAY * 60), NOW_S + 61 * DAY_S);
        assert_eq!(at(NOW_S + DAY_S / 2 + 1, DAY * 60), NOW_S + 62 * DAY_S);
    }

    #[test]
    fn what_is_left_is_never_shortened() {
        let second = Duration::from_secs(1);
        for left_s in [0, 3, 4] {
            assert_eq!(time_to_live(second, left_s, NOW_S), 4);
        }
        assert_eq!(time_to_live(second, 5, NOW_S), 5);
        assert_eq!(time_to_live(second, 30 * DAY_S, NOW_S), 30 * DAY_S);
        // An instant that a client whose clock is up to half a day off finds again, as often as it likes.
        let expiry_s = at(NOW_S, DAY * 90);
        let mut until_s = expiry_s;
        for (i, off_s) in [0, 1, DAY_S / 2 - 1, DAY_S / 3].into_iter().enumerate() {
            let servers_s = NOW_S + i as u64 * DAY_S;
            let left_s = until_s - servers_s;
            for now_s in [servers_s + off_s, servers_s - off_s] {
                until_s = time_to_live(second, left_s, now_s);
                assert_eq!(until_s, expiry_s, "{off_s} s off");
            }
        }
        assert_eq!(
            time_to_live(DAY * 100, 60 * DAY_S, NOW_S),
            NOW_S + 101 * DAY_S
        );
        // The end of memcached's calendar, too.
        let left_s = LATEST_S - NOW_S;
        for now_s in [NOW_S - DAY_S / 3, NOW_S, NOW_S + DAY_S / 3] {
            assert_eq!(time_to_live(second, left_s, now_s), LATEST_S);
        }
        assert_eq!(time_to_live(second, u64::MAX, NOW_S), LATEST_S);
    }

    #[test]
    fn what_memcached_cannot_count_is_cut() {
        assert_eq!(at(NOW_S, DAY * 20 * 365), 2_147_483_647);
        assert_eq!(at(NOW_S, Duration::MAX), 2_147_483_647);
        let month_before_the_end = 2_147_483_647 - 30 * DAY_S;
        assert_eq!(at(month_before_the_end - 1, DAY * 60), 2_147_483_647);
        for now_s in [month_before_the_end, 2_147_483_647, 3_000_000_000, u64::MAX] {
            assert_eq!(at(now_s, DAY * 60), 30 * DAY_S, "at {now_s}");
        }
    }
}
