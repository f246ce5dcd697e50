//! Every span of time, on the true clock: the bucket is never looser than `burst + W / T` and a known
//! fraction, and never stricter than the exact one seen two nanoseconds late. For every number that fits
//! the types.

use proptest::prelude::*;
use ratekeeper::{Outcome, Request, TokenBucket};

use crate::exact::{Meter, Wide, full_ns, is_dense, is_whole, on_time, period, slack, tokens};
use crate::support::{
    Amount, Ask, Scale, What, amount, any_bucket, bucket, config, edge, peek, small_bucket, start,
    step, what,
};

/// Asks along a clock that moves forwards, without booking ahead.
fn follow(limit: &TokenBucket, begin: u64, mut state: u64, history: &[(Amount, What)]) {
    let scale = Scale::of_bucket(limit);
    let mut loose = Wide::full(limit, begin);
    let mut strict = Wide::full(limit, begin).with_toll();
    let mut now = begin;
    // A state that another limit left is stricter than full, and cut to one refill.
    let fresh = state <= begin;
    for (time, what) in history {
        now = now.saturating_add(time.time(scale));
        loose.advance(now);
        strict.advance(now);
        let ask = Ask {
            wait_ns: 0,
            charge: false,
            ..what.ask(limit.burst(), 0)
        };
        let decision = step(limit, now, &mut state, &ask.request()).decision;
        let granted = decision.granted();
        assert!(loose.may_pass(granted), "{granted} at {now} are too many");
        if granted < ask.cost && fresh && now <= u64::MAX - full_ns(limit) {
            let one_more = granted.saturating_add(1).max(ask.at_least);
            assert!(
                one_more > limit.burst() || !strict.must_pass(one_more),
                "{granted} at {now}"
            );
        }
        if granted > 0 {
            loose.take(granted);
            strict.take(granted);
        }
    }
}

proptest! {
    #![proptest_config(config(4_000))]

    #[test]
    fn neither_looser_nor_stricter_than_exact(
        limit in any_bucket(),
        begin in start(),
        state in prop_oneof![Just(0), edge()],
        history in prop::collection::vec((amount(), what()), 1..60),
    ) {
        follow(&limit, begin, state, &history);
    }
}

proptest! {
    #![proptest_config(config(1_500))]

    /// The documented bound, counted in every closed span between two admissions.
    #[test]
    fn every_span_keeps_the_documented_bound(
        limit in small_bucket(),
        begin in 0_u64..60,
        history in prop::collection::vec((amount(), what()), 1..80),
    ) {
        let scale = Scale::of_bucket(&limit);
        let (mut state, mut now) = (0, begin);
        let mut admitted: Vec<(u64, u64)> = Vec::new();
        for (time, what) in history {
            now += time.short_time(scale);
            let answer = step(&limit, now, &mut state, &what.plain(limit.burst()).request());
            admitted.push((now, answer.decision.granted()));
        }
        assert!(worst_excess(&limit, &admitted) <= i128::from(!is_dense(&limit) && !is_whole(&limit)));
    }

    /// One cost of up to the burst passes a full bucket whatever the rate.
    #[test]
    fn a_full_bucket_passes_any_cost(limit in any_bucket(), now in edge(), cost in amount()) {
        let now = now % (u64::MAX - full_ns(&limit)).max(1);
        let cost = 1 + cost.cost(limit.burst()) % limit.burst();
        let mut state = 0;
        let answer = step(&limit, now, &mut state, &Ask::take(cost).request());
        assert_eq!(answer.decision.outcome(), Outcome::Allowed);
        assert_eq!(answer.decision.granted(), cost);
        let more = step(&limit, now, &mut state, &Ask::take(limit.burst()).request());
        assert!(!more.decision.is_allowed(), "a second burst at once");
    }
}

/// Over all closed spans, how many tokens were admitted above `⌊burst + W / T⌋`.
fn worst_excess(limit: &TokenBucket, admitted: &[(u64, u64)]) -> i128 {
    let mut worst = i128::MIN;
    for (from, &(begin, _)) in admitted.iter().enumerate() {
        let mut count = 0;
        for &(end, granted) in &admitted[from..] {
            count += i128::from(granted);
            let refill = (on_time(limit, end) - on_time(limit, begin)).div_euclid(period(limit));
            worst = worst.max(count - i128::from(limit.burst()) - refill);
        }
    }
    worst
}

/// A consumer that takes whatever there is, every nanosecond, from every phase: the bounds hold and both
/// are attained.
#[test]
fn the_documented_bounds_are_attained() {
    let (mut attained, mut exceeded) = (0, 0);
    for p in 1..=14 {
        for n in 1..=p + 3 {
            for burst in 1..=4 {
                let limit = bucket(n, p, burst, 0);
                let mut worst = i128::MIN;
                for begin in 0..p {
                    let (mut state, mut meter) = (0, Meter::new());
                    let mut admitted = Vec::new();
                    for now in begin..begin + 3 * p {
                        let left = peek(&limit, now, &state).remaining();
                        let answer = step(&limit, now, &mut state, &Ask::take(left).request());
                        let granted = answer.decision.granted();
                        let level =
                            meter.count(on_time(&limit, now), i128::from(granted) * period(&limit));
                        assert!(level <= i128::from(burst) * period(&limit) + slack(&limit));
                        admitted.push((now, granted));
                    }
                    worst = worst.max(worst_excess(&limit, &admitted));
                }
                if is_dense(&limit) {
                    assert!(worst <= 0);
                } else if is_whole(&limit) {
                    assert_eq!(worst, 0, "{n}/{p} B{burst}");
                    attained += 1;
                } else {
                    assert!(worst == 0 || worst == 1, "{n}/{p} B{burst}");
                    exceeded += worst;
                }
            }
        }
    }
    assert!(attained > 0 && exceeded > 0);
}

/// Above one token a nanosecond a request is rounded up to whole nanoseconds, and a full bucket passes
/// `⌊(burst − 1)·T⌋ + 1` single tokens at one instant: as many as its levels can tell apart.
#[test]
fn dense_rates_round_every_request_up() {
    for p in 1..=7 {
        for n in p + 1..=20 {
            for burst in 1..=40 {
                let limit = bucket(n, p, burst, 0);
                let mut state = 5;
                let mut passed = 0;
                while passed <= i128::from(burst)
                    && step(&limit, 5, &mut state, &Request::ONE)
                        .decision
                        .is_allowed()
                {
                    passed += 1;
                }
                let levels = (i128::from(burst) - 1) * period(&limit) / tokens(&limit);
                assert_eq!(passed, levels + 1, "{n}/{p} B{burst}");
            }
        }
    }
}
