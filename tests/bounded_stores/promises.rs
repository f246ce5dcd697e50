//! The wait that a newcomer is told is a promise as any other: after it the request passes, a nanosecond earlier not.

use std::fmt::Debug;

use ratekeeper::{Algorithm, Decision, Outcome, Overflow, Request, SlotState, TokenBucket, Ways};

use crate::support::{
    Bounded, Random, SECOND, START, at, buckets, fixed, limiter, map, ns, sliding, table, tiny,
};

/// Fills the store with debtors, asks for newcomers, and holds every refusal to its word.
fn keeps_promises<A, S>(limit: A, most: u64, full_ns: u64, store: impl Fn() -> S, context: &str)
where
    A: Algorithm + Copy + Debug,
    S: Bounded<A>,
{
    let mut held = 0;
    for seed in 1..60 {
        let limiter = limiter(limit, store());
        let mut random = Random(seed);
        let mut now = START + random.below(full_ns);
        for key in 0..300 {
            now += random.below(full_ns / 200);
            let request = Request::up_to(1 + random.below(most));
            let _ = limiter.apply_at(&key, request, at(now));
        }
        for newcomer in 1_000..1_010 {
            let cost = 1 + random.below(most);
            let ask =
                |ns: u64| -> Decision { limiter.apply_at(&newcomer, Request::take(cost), at(ns)) };
            let decision = ask(now);
            let Outcome::Denied { retry_after } = decision.outcome() else {
                assert!(decision.is_allowed(), "{context}: {decision:?}");
                continue;
            };
            held += 1;
            let retry_ns = ns(retry_after);
            assert!(retry_ns > 0, "{context}: a refusal must name a wait");
            assert!(
                decision.reset_after() >= retry_after,
                "{context}: {decision:?}"
            );
            // Refusals leave no trace, so it may be asked as often as one likes.
            for early in [1, 2 + random.below(retry_ns), 2 + random.below(retry_ns)] {
                let earlier = ask(now + retry_ns.saturating_sub(early));
                let left = earlier.retry_after().map_or(0, ns);
                assert_eq!(
                    left,
                    early.min(retry_ns),
                    "{context}, {limit:?}: {earlier:?}"
                );
            }
            now += retry_ns;
            assert!(
                ask(now).is_allowed(),
                "{context}, {limit:?}, cost {cost}: {decision:?}"
            );
        }
    }
    assert!(held > 20, "{context}, {limit:?}: too few refusals");
}

fn by_tables<A>(limit: A, most: u64, full_ns: u64)
where
    A: Algorithm<State: SlotState> + Copy + Debug,
{
    for overflow in [Overflow::Inherit, Overflow::Deny] {
        for ways in [Ways::Four, Ways::Eight] {
            let context = format!("table, {ways:?} ways, {overflow:?}");
            keeps_promises(limit, most, full_ns, || tiny(ways, overflow), &context);
        }
    }
}

fn by_maps<A: Algorithm + Copy + Debug>(limit: A, most: u64, full_ns: u64) {
    for overflow in [Overflow::Inherit, Overflow::Deny] {
        for keys in [2, 100] {
            let context = format!("map of {keys}, {overflow:?}");
            keeps_promises(limit, most, full_ns, || map(keys, overflow), &context);
        }
    }
}

#[test]
fn by_tables_of_buckets() {
    for bucket in buckets() {
        let full_ns = ns(bucket.period()) * bucket.burst() / bucket.tokens();
        by_tables(bucket, bucket.burst(), full_ns);
    }
}

#[test]
fn by_tables_of_windows() {
    by_tables(sliding(), sliding().limit().into(), ns(sliding().window()));
    for limit in fixed() {
        by_tables(limit, limit.limit().into(), ns(limit.window()));
    }
}

#[test]
fn by_maps_of_buckets() {
    for bucket in buckets() {
        let full_ns = ns(bucket.period()) * bucket.burst() / bucket.tokens();
        by_maps(bucket, bucket.burst(), full_ns);
    }
}

#[test]
fn by_maps_of_windows() {
    by_maps(sliding(), sliding().limit().into(), ns(sliding().window()));
    for limit in fixed() {
        by_maps(limit, limit.limit().into(), ns(limit.window()));
    }
}

/// Every debt in the store is an hour ahead of the clock. Nobody can know whether the clock was set back or these are right, so
/// they are honest debts, and what a newcomer takes over, or waits for, is paid in time. But every wait that it is told is true,
/// and so it is never told two: one wait, and it passes.
fn a_newcomer_waits_once_after_a_clock_step<S: Bounded<TokenBucket>>(store: S) {
    let limit = TokenBucket::per_second(1).with_burst(5);
    let limiter = limiter(limit, store);
    for stranger in 0..4_000 {
        let _ = limiter.apply_at(&stranger, Request::take(5), at(START));
    }
    let mut refused = 0;
    let back = START - 3_600 * SECOND;
    for newcomer in 0..40 {
        let key = 1_000_000 + newcomer;
        // The clock goes on from there; newcomers come one after the other, so nobody takes what another waits for.
        let now = back + newcomer * 10 * SECOND;
        if let Some(wait) = limiter.check_at(&key, at(now)).retry_after() {
            refused += 1;
            assert!(ns(wait) <= START + 5 * SECOND - now, "{wait:?}");
            let early = at(now + ns(wait) - 1);
            assert!(!limiter.check_at(&key, early).is_allowed());
            assert!(
                limiter.check_at(&key, at(now) + wait).is_allowed(),
                "locked out"
            );
        }
    }
    assert!(refused > 0, "nobody met a debt");
}

#[test]
fn to_newcomers_after_a_clock_step() {
    for overflow in [Overflow::Inherit, Overflow::Deny] {
        a_newcomer_waits_once_after_a_clock_step(map(128, overflow));
        for ways in [Ways::Four, Ways::Eight] {
            a_newcomer_waits_once_after_a_clock_step(table(128, ways, overflow));
        }
    }
}
