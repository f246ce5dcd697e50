//! Changing a limit: a key keeps the tokens it had, cut to the new burst; a full bucket stays full.

use proptest::prelude::*;
use ratekeeper::{Algorithm, All, TokenBucket};

use crate::exact::{burst, full_ns, horizon, is_dense, late, on_time, period, tokens};
use crate::support::{
    Amount, Scale, What, amount, any_bucket, at, config, edge, ns, peek, realistic_bucket,
    small_bucket, start, step, what,
};

fn rescaled(new: &TokenBucket, now: u64, state: u64, old: &TokenBucket) -> u64 {
    let mut state = state;
    new.rescale(at(now), &mut state, old);
    state
}

/// The level in units of the bucket's own `1/period` tokens; below zero when booked ahead.
fn level(limit: &TokenBucket, now: u64, state: u64) -> i128 {
    let owed = (late(limit, state) - late(limit, now)).max(0);
    burst(limit) * period(limit) - owed
}

/// A state that `limit` leaves behind.
fn used(limit: &TokenBucket, now: &mut u64, history: &[(Amount, What)]) -> u64 {
    let mut state = 0;
    for (time, what) in history {
        *now += time.short_time(Scale::of_bucket(limit)) / 8;
        let ask = what.ask(limit.burst(), ns(limit.max_wait()));
        let _ = step(limit, *now, &mut state, &ask.request());
    }
    state
}

fn compare(old: &TokenBucket, new: &TokenBucket, mut now: u64, history: &[(Amount, What)]) {
    let state = used(old, &mut now, history);
    let moved = rescaled(new, now, state, old);
    let (before, after) = (peek(old, now, &state), peek(new, now, &moved));
    if before.reset_after().is_zero() {
        assert!(after.reset_after().is_zero(), "full, but no longer");
        return;
    }
    let kept = before.remaining().min(new.burst());
    if is_dense(new) {
        assert!(after.remaining() <= kept);
    } else {
        assert_eq!(
            after.remaining(),
            kept,
            "{old} with {} to {new}",
            before.remaining()
        );
    }
    let legal = u128::from(now) + u128::from(full_ns(new)) + new.max_wait().as_nanos();
    assert!(
        u128::from(moved) <= legal,
        "a state that nobody could have left"
    );

    // Fractions of a token, on the common denominator of both periods: kept to two nanoseconds of either
    // bucket. A debt is cut at the new bucket's deepest.
    let deepest = burst(new) * period(new) - on_time(new, full_ns(new) + ns(new.max_wait()));
    let kept = (level(old, now, state) * period(new))
        .min(burst(new) * period(new) * period(old))
        .max(deepest * period(old));
    let got = level(new, now, moved) * period(old);
    let two_ns = 2 * (tokens(new) * period(old) + tokens(old) * period(new));
    assert!(
        got <= kept + two_ns,
        "{got} of {kept} gained from {old} to {new}"
    );
    if !is_dense(new) && !is_dense(old) {
        assert!(
            got >= kept - two_ns,
            "{got} of {kept} lost from {old} to {new}"
        );
    }
}

fn history() -> impl Strategy<Value = Vec<(Amount, What)>> {
    prop::collection::vec((amount(), what()), 1..8)
}

proptest! {
    #![proptest_config(config(6_000))]

    #[test]
    fn small(old in small_bucket(), new in small_bucket(), now in 0_u64..60, history in history()) {
        compare(&old, &new, now, &history);
    }

    #[test]
    fn realistic(
        old in realistic_bucket(),
        new in realistic_bucket(),
        now in 0_u64..1 << 60,
        history in history(),
    ) {
        compare(&old, &new, now, &history);
    }

    /// Nothing wraps, and no key gains by a change.
    #[test]
    fn any_numbers(old in any_bucket(), new in any_bucket(), now in start(), state in edge()) {
        let moved = rescaled(&new, now, state, &old);
        let (before, after) = (peek(&old, now, &state), peek(&new, now, &moved));
        let was_full = before.reset_after().is_zero();
        if [&old, &new].iter().all(|limit| horizon(limit).is_some_and(|last| now <= last)) {
            assert!(was_full || after.remaining() <= before.remaining());
        }
        assert_eq!(rescaled(&old, now, state, &old), state, "no change at all");
        assert!(!was_full || after.reset_after().is_zero());
        assert!(state > now || moved == state, "a key long forgotten is written");
    }

    /// Several limits are changed one by one.
    #[test]
    fn each_of_several(
        old in [small_bucket(), small_bucket()],
        new in [small_bucket(), small_bucket()],
        now in 0_u64..60,
        states in [0_u64..200, 0_u64..200],
    ) {
        let expected = [0, 1].map(|i| rescaled(&new[i], now, states[i], &old[i]));
        let mut moved = states;
        All(new).rescale(at(now), &mut moved, &All(old));
        assert_eq!(moved, expected);
        let mut moved = (states[0], states[1]);
        All((new[0], new[1])).rescale(at(now), &mut moved, &All((old[0], old[1])));
        assert_eq!(moved, expected.into());
    }
}
