//! Several threads at once.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use ratekeeper::store::{DenyCache, Leased, Store};
use ratekeeper::{DashStore, Decision, ManualClock, Request, TokenBucket};

use crate::support::{NOW, SECOND};

const THREADS: u8 = 8;

/// Tokens granted to threads that start together, each asking `asks` times.
fn granted(asks: u64, ask: impl Fn(u64) -> Decision + Sync) -> u64 {
    let (start, total) = (Barrier::new(THREADS.into()), AtomicU64::new(0));
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (start, total, ask) = (&start, &total, &ask);
            scope.spawn(move || {
                start.wait();
                let granted: u64 = (0..asks)
                    .map(|i| ask(u64::from(thread) * asks + i).granted())
                    .sum();
                total.fetch_add(granted, Ordering::Relaxed);
            });
        }
    });
    total.into_inner()
}

/// The clock stands still while they ask: exactly the burst passes, and after a second exactly what has come back.
#[test]
fn a_deny_cache_costs_no_accuracy() {
    let clock = ManualClock::new();
    clock.set(NOW);
    let exact = DashStore::<String, TokenBucket, _>::with_clock(&clock);
    let store = DenyCache::with_clock(exact, &clock);
    let limit = TokenBucket::per_second(50).with_burst(1_000);
    let ask = |i: u64| {
        let cost = 1 + i % 2;
        store.apply("alice", &limit, Request::take(cost)).unwrap()
    };
    assert_eq!(granted(20_000, ask), 1_000);
    assert!(
        store.hits() > u64::from(THREADS) * 10_000,
        "{}",
        store.hits()
    );
    for _ in 0..20 {
        clock.advance(SECOND);
        assert_eq!(granted(500, ask), 50);
    }
}

/// Whatever is bought is handed out, never more; what is left at the end is in the balance.
#[test]
fn leases_are_exact_between_threads() {
    let clock = ManualClock::new();
    clock.set(NOW);
    let exact = DashStore::<String, TokenBucket, _>::with_clock(&clock);
    let store = Leased::with_clock(exact, 7, &clock);
    let limit = TokenBucket::per_hour(10_000);
    let ask = |i: u64| {
        store
            .apply("alice", &limit, Request::take(1 + i % 3))
            .unwrap()
    };
    // Far fewer tokens than asked for. A cost of 3 may fail while smaller ones pass, but in the end nothing is left.
    assert_eq!(granted(20_000, ask), 10_000);
    assert!(store.hits() > 100);
}

/// Receipts go round between threads: what is given back is handed out again, and no more.
#[test]
fn refunds_between_threads_add_nothing() {
    let clock = ManualClock::new();
    clock.set(NOW);
    let exact = DashStore::<String, TokenBucket, _>::with_clock(&clock);
    let store = Leased::with_clock(exact, 16, &clock);
    let limit = TokenBucket::per_hour(5_000);
    let given_back = AtomicU64::new(0);
    let taken = granted(10_000, |i| {
        let decision = store.apply("alice", &limit, Request::ONE).unwrap();
        let granted = decision.granted();
        if granted == 1 && i % 5 == 0 {
            let refund = Request::refund(1, decision.into_receipt());
            assert!(store.apply("alice", &limit, refund).unwrap().is_allowed());
            given_back.fetch_add(1, Ordering::Relaxed);
            return store.apply("alice", &limit, Request::PEEK).unwrap();
        }
        decision
    });
    assert!(taken <= 5_000, "{taken}");
    assert!(given_back.into_inner() > 100);
    // Lost on the way: what did not fit into the balance.
    assert!(taken > 2_000, "{taken}");
}

/// Many keys in a small map: the sets are fought over, and still nobody gets more than the limit.
#[test]
fn crowded_sets() {
    let clock = ManualClock::new();
    clock.set(NOW);
    let exact = DashStore::<u64, TokenBucket, _>::with_clock(&clock);
    let store = Leased::with_clock(exact, 5, &clock)
        .with_capacity(16)
        .unwrap();
    let store = DenyCache::with_clock(store, &clock)
        .with_capacity(16)
        .unwrap();
    let limit = TokenBucket::per(20, Duration::from_secs(86_400));
    let total = granted(20_000, |i| {
        store.apply(&(i % 100), &limit, Request::ONE).unwrap()
    });
    assert!(total <= 2_000, "{total}");
    assert!(total >= 400, "{total}"); // a fifth of each lease, were all the rests lost
}
