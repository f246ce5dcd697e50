//! Four threads and a frozen clock.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use ratekeeper::{Algorithm, FixedWindow, Overflow, Request, SlidingWindow, TokenBucket, Ways};

use crate::support::{Bounded, Random, START, at, limiter, map, table, tiny};

const THREADS: u64 = 4;

/// Tokens granted to each key, by four threads that all bring all keys.
fn granted<A: Algorithm, S: Bounded<A>>(limit: A, store: S, keys: u64, asks: u64) -> Vec<u64> {
    let limiter = limiter(limit, store);
    let granted: Vec<_> = (0..keys).map(|_| AtomicU64::new(0)).collect();
    let start = Barrier::new(usize::try_from(THREADS).unwrap());
    thread::scope(|scope| {
        for thread in 1..=THREADS {
            let (limiter, granted, start) = (&limiter, &granted, &start);
            scope.spawn(move || {
                let mut random = Random(thread);
                start.wait();
                for ask in 0..asks {
                    // In step at times, so that threads bring the same new key together.
                    let key = if ask % 2 == 0 {
                        ask / 2 % keys
                    } else {
                        random.below(keys)
                    };
                    let request = Request::up_to(1 + ask % 2);
                    let tokens = limiter.apply_at(&key, request, at(START)).granted();
                    granted[usize::try_from(key).unwrap()].fetch_add(tokens, Ordering::Relaxed);
                }
            });
        }
    });
    granted.into_iter().map(AtomicU64::into_inner).collect()
}

const BURST: u64 = 40;

#[test]
fn no_key_gets_more_than_its_burst_from_a_small_store() {
    let bucket = TokenBucket::per_second(10).with_burst(BURST);
    let asks = 40_000;
    let keeps = |granted: Vec<u64>, context: &str| {
        assert!(
            granted.iter().all(|granted| *granted <= BURST),
            "{context}: {granted:?}"
        );
        assert!(granted.iter().sum::<u64>() > 0, "{context}");
    };
    for overflow in [Overflow::Inherit, Overflow::Deny] {
        for ways in [Ways::Four, Ways::Eight] {
            for _ in 0..5 {
                keeps(
                    granted(bucket, tiny(ways, overflow), 24, asks),
                    "tiny table",
                );
                keeps(
                    granted(bucket, table(64, ways, overflow), 500, asks),
                    "small table",
                );
            }
        }
    }
    for _ in 0..5 {
        keeps(
            granted(bucket, map(16, Overflow::Deny), 500, asks),
            "small map that denies",
        );
    }
    // Debt never leaves a set: all that it has to give is its slots' bursts.
    for ways in [Ways::Four, Ways::Eight] {
        let total: u64 = granted(bucket, tiny(ways, Overflow::Inherit), 24, asks)
            .iter()
            .sum();
        assert_eq!(total, 8 * BURST, "{ways:?}");
    }
}

#[test]
fn no_key_gets_more_than_its_burst_from_a_small_map_that_inherits() {
    let bucket = TokenBucket::per_second(10).with_burst(BURST);
    for _ in 0..5 {
        let granted = granted(bucket, map(16, Overflow::Inherit), 500, 40_000);
        assert!(
            granted.iter().all(|granted| *granted <= BURST),
            "{granted:?}"
        );
    }
}

#[test]
fn every_key_gets_exactly_its_burst_from_a_large_store() {
    fn exactly<A: Algorithm, S: Bounded<A>>(limit: A, store: S) {
        const KEYS: u64 = 300;
        let granted = granted(limit, store, KEYS, KEYS * BURST * 2);
        assert_eq!(granted, vec![BURST; 300]);
    }
    let per_hour = u32::try_from(BURST).unwrap();
    for ways in [Ways::Four, Ways::Eight] {
        for overflow in [Overflow::Inherit, Overflow::Deny] {
            let bucket = TokenBucket::per_hour(BURST);
            exactly(bucket, table(1 << 14, ways, overflow));
            exactly(
                SlidingWindow::per_hour(per_hour),
                table(1 << 14, ways, overflow),
            );
            exactly(
                FixedWindow::per_hour(per_hour),
                table(1 << 14, ways, overflow),
            );
        }
    }
    exactly(
        TokenBucket::per_hour(BURST),
        map(1 << 14, Overflow::Inherit),
    );
    exactly(TokenBucket::per_hour(BURST), map(1 << 14, Overflow::Deny));
}
