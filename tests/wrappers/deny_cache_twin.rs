//! Random requests to a store with a `DenyCache` and to one without: the same answers, for every algorithm. Only `remaining`
//! may be older.

use std::time::Duration;

use ratekeeper::store::{DenyCache, Store};
use ratekeeper::{
    Algorithm, All, AnyAlgorithm, DashStore, Decision, FixedWindow, ManualClock, Receipt, Request,
    SlidingLog, SlidingWindow, TokenBucket,
};

use crate::support::{Draw, NOW, SECOND};

fn twins<A: Algorithm + Clone>(limit: A, seed: u64) {
    let clock = ManualClock::new();
    clock.set(NOW);
    let store = || DashStore::<String, A, _>::with_clock(&clock);
    let (plain, cached) = (store(), DenyCache::with_clock(store(), &clock));
    // One process, so nothing ends a refusal early but what the cache sees.
    let cached = cached
        .with_max_age(Duration::MAX)
        .with_capacity(64)
        .unwrap();
    let mut draw = Draw(seed);
    let mut receipts: Vec<(String, Receipt, Receipt)> = Vec::new();
    for step in 0..40_000 {
        let key = ["alice", "bob", "carol"][draw.place(3)];
        let request: Box<dyn Fn() -> Request> = match draw.below(40) {
            0 => Box::new(|| Request::PEEK),
            1..4 => {
                let (n, least) = (draw.below(9), draw.below(5));
                Box::new(move || Request::up_to(n).at_least(least))
            }
            4 => {
                let (n, wait) = (draw.below(5), Duration::from_millis(draw.below(400)));
                Box::new(move || Request::take(n).or_wait(wait))
            }
            5 if !receipts.is_empty() => {
                let last = receipts.swap_remove(draw.place(receipts.len()));
                let (key, ours, theirs) = last;
                let n = draw.below(4);
                let ours = plain.apply(key.as_str(), &limit, Request::refund(n, ours));
                let theirs = cached.apply(key.as_str(), &limit, Request::refund(n, theirs));
                assert_eq!(ours.unwrap(), theirs.unwrap(), "step {step}");
                continue;
            }
            6 => {
                Store::<str, _>::forget(&plain, key, &limit).unwrap();
                Store::<str, _>::forget(&cached, key, &limit).unwrap();
                continue;
            }
            _ => {
                let n = [1, 1, 1, 1, 2, 5, 12][draw.place(7)];
                Box::new(move || Request::take(n))
            }
        };
        let hits = cached.hits();
        let ours = plain.apply(key, &limit, request()).unwrap();
        let theirs = cached.apply(key, &limit, request()).unwrap();
        if cached.hits() > hits {
            assert_eq!(
                shown(&ours),
                shown(&theirs),
                "step {step}, {key}, {:?}",
                request()
            );
            assert!(ours.remaining() >= theirs.remaining());
        } else {
            assert_eq!(ours, theirs, "step {step}, {key}, {:?}", request());
        }
        if ours.granted() > 0 && draw.below(3) == 0 {
            receipts.push((key.into(), ours.into_receipt(), theirs.into_receipt()));
        }
        match draw.below(12) {
            0 => clock.advance(Duration::from_nanos(draw.below(3_000_000_000))),
            1..8 => clock.advance(Duration::from_nanos(draw.below(60_000_000))),
            _ => {}
        }
    }
    assert!(cached.hits() > 500, "{limit:?}: {} hits", cached.hits());
}

/// All but `remaining`, and of several limits which one: as time passes, another may have the longest wait left.
fn shown(decision: &Decision) -> impl PartialEq + std::fmt::Debug {
    (
        decision.outcome(),
        decision.reset_after(),
        decision.limit(),
        decision.index(),
    )
}

#[test]
fn answers_from_memory_are_the_stores() {
    twins(TokenBucket::per_second(4).with_burst(6), 1);
    twins(TokenBucket::per(7, SECOND).with_burst(9), 2);
    twins(TokenBucket::per_second(3).with_max_wait(SECOND), 3);
    twins(SlidingWindow::per(6, 2 * SECOND), 4);
    twins(SlidingLog::per(6, 2 * SECOND), 5);
    twins(FixedWindow::per(6, 2 * SECOND), 6);
    twins(FixedWindow::per(6, 2 * SECOND).anchored(), 7);
    twins(AnyAlgorithm::from(SlidingWindow::per_second(5)), 8);
    twins(
        All([TokenBucket::per_second(4), TokenBucket::per(9, 3 * SECOND)]),
        9,
    );
}
