//! Many keys, many threads.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use ratekeeper::{
    Algorithm, DashStore, FixedWindow, InvalidCapacity, KeyedLimiter, Limiter, MemoryStore,
    Overflow, Request, SlidingLog, SlidingWindow, StdClock, TableStore, TokenBucket,
};

use super::Row::{self, Check};
use super::{assert_allowed, assert_denied, s};

pub(crate) const ROWS: &[Row] = &[
    Check(
        "S33",
        "a store for two, and a flood: the drained key stays drained",
        || {
            for overflow in [Overflow::Inherit, Overflow::Deny] {
                let map =
                    DashStore::<_, TokenBucket, _>::with_capacity(2, StdClock::new()).unwrap();
                flooded(map.with_overflow(overflow));
                let table = TableStore::<_, TokenBucket>::with_clock(2, StdClock::new()).unwrap();
                flooded(table.with_overflow(overflow));
            }
        },
    ),
    Check(
        "F24",
        "a store without room is an error, not a limit that nobody meets",
        || {
            let map = DashStore::<u64>::with_capacity(0, StdClock::new());
            assert_eq!(map.unwrap_err(), InvalidCapacity::Zero);
            let table = TableStore::<_, TokenBucket>::with_clock(0, StdClock::new());
            assert_eq!(table.unwrap_err(), InvalidCapacity::Zero);
        },
    ),
    Check(
        "S15",
        "exactly ten of a counter, whether the key is new or known",
        || {
            let limiter = KeyedLimiter::<u8, _>::new(SlidingWindow::per_minute(10));
            for key in [1, 2] {
                let admitted = (0..30)
                    .filter(|_| limiter.check_at(&key, s(5)).is_allowed())
                    .count();
                assert_eq!(admitted, 10);
            }
        },
    ),
    Check("S16", "a reset forgets both windows", || {
        let limiter = KeyedLimiter::<u8, _>::new(SlidingWindow::per_second(4));
        assert_allowed(&limiter.apply_at(&1, Request::take(4), s(10)), 0);
        assert!(
            limiter
                .apply_at(&1, Request::up_to(4), s(11) + Duration::from_millis(500))
                .is_allowed()
        );
        assert!(limiter.remove(&1));
        assert_allowed(
            &limiter.apply_at(&1, Request::take(4), s(11) + Duration::from_millis(500)),
            0,
        );
    }),
    Check(
        "S31",
        "a sweep forgets full buckets only, and changes no decision",
        || {
            let limiter =
                KeyedLimiter::<&'static str>::new(TokenBucket::per_second(1).with_burst(10));
            assert_allowed(&limiter.apply_at(&"K", Request::take(7), s(0)), 3);
            assert_allowed(&limiter.apply_at(&"F", Request::take(2), s(0)), 8);
            assert_eq!(limiter.store().prune_at(limiter.algorithm(), s(2)), 1);
            assert_eq!(limiter.len(), 1);
            assert_allowed(&limiter.apply_at(&"K", Request::PEEK, s(2)), 5);
            assert_allowed(&limiter.apply_at(&"F", Request::PEEK, s(2)), 10);
        },
    ),
    Check("S32", "two limiters do not disturb each other", || {
        let second = KeyedLimiter::<u8>::new(TokenBucket::per_second(1));
        let hour = KeyedLimiter::<u8>::new(TokenBucket::per_hour(5));
        assert_allowed(&hour.check_at(&1, s(0)), 4);
        for i in 0..10 {
            assert_allowed(&second.check_at(&1, s(i)), 0);
        }
        assert_allowed(&hour.apply_at(&1, Request::PEEK, s(10)), 4);
    }),
    Check("S37", "a state nobody swept is as good as none", || {
        let limiter = KeyedLimiter::<u8>::new(TokenBucket::per_second(1));
        assert_allowed(&limiter.check_at(&1, s(0)), 0);
        let late = limiter.apply_at(&1, Request::PEEK, s(11));
        assert_allowed(&late, 1);
        assert_eq!(late.reset_after(), Duration::ZERO);
    }),
    Check(
        "S43",
        "parts of a composite key do not run together",
        || {
            let limiter = KeyedLimiter::<(String, String)>::new(TokenBucket::per_hour(1));
            let key = |a: &str, b: &str| (a.to_owned(), b.to_owned());
            assert_allowed(&limiter.check_at(&key("ab", "c"), s(0)), 0);
            assert_allowed(&limiter.check_at(&key("a", "bc"), s(0)), 0);
            assert!(!limiter.check_at(&key("ab", "c"), s(0)).is_allowed());
        },
    ),
    Check(
        "S46",
        "eight threads on a frozen clock: exactly the burst, round after round",
        || {
            let limiter = Limiter::new(TokenBucket::per_second(1000).with_burst(50));
            for round in 0..3 {
                assert_eq!(
                    admitted_by_threads(8, || limiter.check_at(s(round)).is_allowed()),
                    50
                );
            }
        },
    ),
    Check("F13", "3000 new keys, three threads: each key once", || {
        let limiter = KeyedLimiter::<u64>::new(TokenBucket::per_hour(1));
        let admitted = AtomicU64::new(0);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for key in 0..3000 {
                        let passed = limiter.check_at(&key, s(0)).is_allowed();
                        admitted.fetch_add(u64::from(passed), Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(admitted.into_inner(), 3000);
        let fast = Limiter::new(TokenBucket::per_second(2000));
        assert_eq!(
            (0..5000)
                .filter(|_| fast.check_at(s(0)).is_allowed())
                .count(),
            2000
        );
    }),
    Check(
        "F20",
        "check and charge are one step, for every algorithm",
        || {
            fn exact<A: Algorithm>(limit: A, capacity: u64) {
                let limiter = Limiter::new(limit);
                assert_eq!(
                    admitted_by_threads(4, || limiter.check_at(s(7)).is_allowed()),
                    capacity
                );
            }
            exact(SlidingWindow::per_hour(100), 100);
            exact(FixedWindow::per_hour(100), 100);
            exact(SlidingLog::per_hour(100), 100);
        },
    ),
    Check("F22", "a state is kept as long as it is read", || {
        let limit = SlidingWindow::per_second(2);
        let mut state = 0;
        let keep = limit.step(s(5), &mut state, &Request::ONE).keep;
        assert_eq!(keep, Some(Duration::from_secs(2))); // both windows
        assert_denied(
            &limit.step(s(6), &mut { state }, &Request::take(2)).decision,
            Duration::from_secs(1),
        );
    }),
];

/// How many of 20,000 asks a thread pass, over all threads.
fn admitted_by_threads(threads: usize, ask: impl Fn() -> bool + Sync) -> u64 {
    thread::scope(|scope| {
        let handles: Vec<_> = (0..threads)
            .map(|_| scope.spawn(|| (0..20_000).filter(|_| ask()).count() as u64))
            .collect();
        handles
            .into_iter()
            .map(|handle| handle.join().unwrap())
            .sum()
    })
}

/// One key uses its burst up, then strangers come, and it never gets more than its limit allows.
fn flooded<S: MemoryStore<u64, TokenBucket>>(store: S) {
    let limiter = KeyedLimiter::<u64, _, S>::with_store(TokenBucket::per_minute(5), store);
    assert_eq!(limiter.apply_at(&0, Request::take(5), s(0)).granted(), 5);
    let mut granted = 0;
    for stranger in 1..=100_000 {
        let now = s(0) + Duration::from_micros(stranger * 600); // a minute in all
        let _ = limiter.check_at(&stranger, now);
        granted += limiter.check_at(&0, now).granted();
    }
    assert!(granted <= 5, "the drained key got {granted} in a minute");
}
