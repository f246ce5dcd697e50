//! The machine *is* the exact bucket on a clock less than two nanoseconds late: every answer agrees, for
//! every kind of take, as long as a token takes at least a nanosecond.

use proptest::prelude::*;
use ratekeeper::{Outcome, TokenBucket};

use crate::exact::{
    Exact, burst, full_ns, horizon, is_dense, is_whole, late, on_time, slack, tokens,
};
use crate::support::{
    Amount, Ask, RATES, Scale, What, amount, bucket, config, edge, ns, peek, realistic_bucket,
    small_bucket, step, what,
};

/// Follows a history with both buckets; the clock only moves forwards.
fn follow(limit: &TokenBucket, begin: u64, history: &[(Amount, What)]) {
    let Some(horizon) = horizon(limit).filter(|horizon| begin <= *horizon) else {
        return;
    };
    let scale = Scale::of_bucket(limit);
    let mut exact = Exact::full(limit, late(limit, begin));
    let (mut state, mut now) = (0, begin);
    for (time, what) in history {
        now = now.saturating_add(time.short_time(scale));
        if now > horizon {
            return;
        }
        exact.advance(late(limit, now));
        compare(limit, &exact, now, &state);
        let ask = what.ask(limit.burst(), ns(limit.max_wait()));
        if ask.cost == 0 {
            continue;
        }
        if ask.charge {
            charge(limit, &mut exact, now, &mut state, ask);
        } else {
            take(limit, &mut exact, now, &mut state, ask);
        }
        compare(limit, &exact, now, &state);
    }
}

/// The numbers of a peek.
fn compare(limit: &TokenBucket, exact: &Exact, now: u64, state: &u64) {
    let seen = peek(limit, now, state);
    assert_eq!(
        i128::from(seen.remaining()),
        exact.available_at(late(limit, now))
    );
    let reset_ns = ns(seen.reset_after());
    assert!(exact.is_full_at(late(limit, now + reset_ns)));
    assert!(reset_ns == 0 || !exact.is_full_at(late(limit, now + reset_ns - 1)));
}

fn take(limit: &TokenBucket, exact: &mut Exact, now: u64, state: &mut u64, ask: Ask) {
    let wait_ns = ask.wait_ns.min(ns(limit.max_wait()));
    let available = |after_ns| exact.available_at(late(limit, now + after_ns));
    let grant = available(wait_ns).min(i128::from(ask.cost));
    let before = *state;
    let decision = step(limit, now, state, &ask.request()).decision;
    if grant >= i128::from(ask.at_least) {
        assert_eq!(
            decision.outcome(),
            Outcome::Allowed,
            "{ask:?} with {grant} left"
        );
        assert_eq!(i128::from(decision.granted()), grant);
        let turn_ns = ns(decision.wait());
        assert!(available(turn_ns) >= grant);
        assert!(
            turn_ns == 0 || available(turn_ns - 1) < grant,
            "{turn_ns} is too late"
        );
        exact.take(grant);
        return;
    }
    assert_eq!(*state, before, "a refusal writes nothing");
    let least = i128::from(ask.at_least);
    match decision.outcome() {
        Outcome::TooLarge => {
            // Never: it does not fit, or only when the time to fill no longer does.
            let last = late(limit, u64::MAX - full_ns(limit));
            assert!(least > burst(limit) || exact.available_at(last) < least);
        }
        Outcome::Denied { retry_after } => {
            assert!(available(ns(retry_after) + wait_ns) >= least);
            assert!(available(ns(retry_after) + wait_ns - 1) < least);
        }
        outcome => panic!("{outcome:?} for {ask:?} with {grant} left"),
    }
}

/// Whole tokens, as many as fit; what is owed beyond the burst is paid after the stated wait, and not a nanosecond earlier.
fn charge(limit: &TokenBucket, exact: &mut Exact, now: u64, state: &mut u64, ask: Ask) {
    let top = late(limit, now + full_ns(limit) + ns(limit.max_wait()));
    let room = exact.overdraft(top);
    let charged = room.clamp(0, i128::from(ask.cost));
    let before = *state;
    let answer = step(limit, now, state, &ask.request());
    let decision = answer.decision;
    assert_eq!(decision.outcome(), Outcome::Allowed);
    assert_eq!(i128::from(decision.granted()), charged);
    assert_eq!(decision.uncharged(), ask.cost - decision.granted());
    assert_eq!(charged == 0, answer.keep.is_none());
    assert_eq!(charged == 0, *state == before);
    exact.take(charged);
    let overdrawn = |after_ns| exact.level_at(late(limit, now + after_ns)) < 0;
    let wait_ns = ns(decision.wait());
    assert!(!overdrawn(wait_ns) && (wait_ns == 0 || overdrawn(wait_ns - 1)));
}

fn history() -> impl Strategy<Value = Vec<(Amount, What)>> {
    prop::collection::vec((amount(), what()), 1..60)
}

/// Numbers that still multiply in 128 bits with a sign.
fn large_bucket() -> impl Strategy<Value = TokenBucket> {
    (edge(), edge(), edge(), edge()).prop_map(|(n, p, b, s)| {
        let (n, p) = ((n >> 4).max(1), (p >> 4).max(1));
        bucket(n.min(p), n.max(p), b.max(1), s >> 2)
    })
}

proptest! {
    #![proptest_config(config(3_000))]

    #[test]
    fn small(limit in small_bucket(), begin in 0_u64..60, history in history()) {
        prop_assume!(!is_dense(&limit));
        follow(&limit, begin, &history);
    }

    #[test]
    fn realistic(limit in realistic_bucket(), begin in edge(), history in history()) {
        prop_assume!(!is_dense(&limit));
        follow(&limit, begin, &history);
        follow(&limit, begin % (1 << 61), &history);
    }

    #[test]
    fn large(limit in large_bucket(), begin in edge(), history in history()) {
        follow(&limit, begin, &history);
        follow(&limit, begin >> 2, &history);
    }
}

/// The late clock itself: it never stands still for more than one nanosecond, never runs back, and is
/// never later than stated, which it attains.
#[test]
fn the_late_clock_is_less_than_two_nanoseconds_late() {
    for p in 1..=40 {
        for n in 1..=p {
            let limit = bucket(n, p, 1, 0);
            let mut latest = 0;
            for now in 0..3 * p {
                let lag = on_time(&limit, now) - late(&limit, now);
                assert!(lag >= 0);
                latest = latest.max(lag);
                assert!(late(&limit, now + 1) >= late(&limit, now));
                assert!(late(&limit, now + 2) > late(&limit, now));
                assert_eq!(
                    late(&limit, now + p) - late(&limit, now),
                    on_time(&limit, p)
                );
            }
            assert!(latest <= slack(&limit) && slack(&limit) < 2 * tokens(&limit));
            assert!(is_whole(&limit) || latest > 0, "{n}/{p}");
        }
    }
}

/// At any instant and phase, in any split into costs, a full bucket holds its burst and nothing more.
#[test]
fn a_full_bucket_admits_its_burst_at_every_phase() {
    for p in 1..=13 {
        for n in 1..=p {
            for burst in 1..=5 {
                let limit = bucket(n, p, burst, 0);
                for now in 0..=2 * p {
                    for costs in splits(burst) {
                        let mut state = 0;
                        for cost in costs {
                            let answer = step(&limit, now, &mut state, &Ask::take(cost).request());
                            assert!(answer.decision.is_allowed(), "{n}/{p} B{burst} at {now}");
                        }
                        let more = step(&limit, now, &mut state, &Ask::take(1).request());
                        assert!(!more.decision.is_allowed(), "{n}/{p} B{burst} at {now}");
                    }
                }
            }
        }
    }
}

/// All ordered ways to write `total` as a sum.
fn splits(total: u64) -> Vec<Vec<u64>> {
    if total == 0 {
        return vec![vec![]];
    }
    let mut all = Vec::new();
    for first in 1..=total {
        for mut rest in splits(total - first) {
            rest.push(first);
            all.push(rest);
        }
    }
    all
}

proptest! {
    #![proptest_config(config(600))]

    #[test]
    fn a_full_bucket_admits_its_burst(
        rate in prop::sample::select(&RATES[..]),
        burst in 1_u64..1_000_000_000,
        now in any::<u64>(),
        costs in prop::collection::vec(amount(), 0..12),
    ) {
        let limit = bucket(rate.0, rate.1, burst, 0);
        prop_assume!(!is_dense(&limit));
        let now = now % horizon(&limit).unwrap();
        let (mut state, mut left) = (0, limit.burst());
        for cost in costs {
            let cost = cost.cost(left).min(left);
            assert!(step(&limit, now, &mut state, &Ask::take(cost).request()).decision.is_allowed());
            left -= cost;
        }
        assert_eq!(peek(&limit, now, &state).remaining(), left);
        assert!(step(&limit, now, &mut state, &Ask::take(left).request()).decision.is_allowed());
        assert!(!step(&limit, now, &mut state, &Ask::take(1).request()).decision.is_allowed());
    }
}
