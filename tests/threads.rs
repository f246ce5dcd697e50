//! Under a frozen clock, however many threads ask, exactly the capacity is admitted: for every algorithm
//! in every home a state can have.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use ratekeeper::{
    Algorithm, All, AnyAlgorithm, Clock, DashStore, Decision, FixedWindow, KeyedLimiter, Limiter,
    ManualClock, MemoryStore, Request, SlidingLog, SlidingWindow, TableStore, Timestamp,
    TokenBucket,
};

const THREADS: u8 = 8;
const ASKS_PER_THREAD: u64 = 20_000;

/// Tokens granted to eight threads that start together.
fn granted(ask: impl Fn(u64) -> Decision + Sync) -> u64 {
    let start = Barrier::new(THREADS.into());
    let total = AtomicU64::new(0);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (start, total, ask) = (&start, &total, &ask);
            scope.spawn(move || {
                start.wait();
                let asks = (0..ASKS_PER_THREAD).map(|i| u64::from(thread) * ASKS_PER_THREAD + i);
                let granted: u64 = asks.map(|i| ask(i).granted()).sum();
                total.fetch_add(granted, Ordering::Relaxed);
            });
        }
    });
    total.into_inner()
}

/// `capacity` at one instant, and `refill` more after `pause`.
fn exactly<A: Algorithm + Clone>(algorithm: A, capacity: u64, pause: Duration, refill: u64) {
    let start = Timestamp::from_nanos(1_000_000_000_000);
    let limiter = Limiter::new(algorithm.clone());
    assert_eq!(
        granted(|_| limiter.check_at(start)),
        capacity,
        "{algorithm:?}"
    );
    assert_eq!(
        granted(|_| limiter.check_at(start + pause)),
        refill,
        "{algorithm:?}"
    );

    // Mixed costs and partial grants fill it to the last token as well.
    let limiter = Limiter::new(algorithm.clone());
    let mixed = |i| match i % 3 {
        0 => Request::take(3),
        1 => Request::up_to(2),
        _ => Request::ONE,
    };
    assert_eq!(
        granted(|i| limiter.apply_at(mixed(i), start)),
        capacity,
        "{algorithm:?}"
    );

    // Every thread brings every key, so each key's first request is contended too.
    const KEYS: u64 = 10;
    let clock = ManualClock::new();
    clock.set(start);
    let store = DashStore::<u64, A, _>::with_clock(&clock);
    let keyed = KeyedLimiter::<u64, _, _>::with_store(algorithm.clone(), store);
    assert_eq!(
        granted(|i| keyed.check(&(i % KEYS))),
        KEYS * capacity,
        "{algorithm:?}"
    );
    assert_eq!(keyed.len() as u64, KEYS);
    clock.advance(pause);
    assert_eq!(
        granted(|i| keyed.check(&(i % KEYS))),
        KEYS * refill,
        "{algorithm:?}"
    );
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn token_bucket_in_one_word() {
    exactly(TokenBucket::per_second(1000).with_burst(50), 50, SECOND, 50);
    exactly(TokenBucket::per_second(7).with_burst(50), 50, SECOND, 7);
}

#[test]
fn windows_in_two_words() {
    exactly(SlidingWindow::per_second(50), 50, SECOND * 2, 50);
    exactly(FixedWindow::per_second(50), 50, SECOND, 50);
    exactly(FixedWindow::per_second(50).anchored(), 50, SECOND, 50);
    exactly(
        AnyAlgorithm::from(TokenBucket::per_second(50)),
        50,
        SECOND / 2,
        25,
    );
}

#[test]
fn log_under_a_lock() {
    exactly(SlidingLog::per_second(50), 50, SECOND, 50);
}

#[test]
fn several_limits_in_two_words_and_under_a_lock() {
    let bucket = TokenBucket::per_second(50);
    let hourly = TokenBucket::per_hour(70);
    exactly(All([bucket, hourly]), 50, SECOND, 20);
    exactly(All((hourly, bucket)), 50, SECOND, 20);
    exactly(All([bucket, hourly, hourly, bucket]), 50, SECOND, 20);
    exactly(All((bucket, SlidingWindow::per_hour(70))), 50, SECOND, 20);
    exactly(
        All((
            bucket,
            SlidingWindow::per_hour(70),
            hourly,
            FixedWindow::per_day(60),
        )),
        50,
        SECOND,
        10,
    );
}

/// Refunds race with charges; nothing is lost and nothing is invented.
#[test]
fn refunds_race_with_charges() {
    fn balanced<A: Algorithm>(algorithm: A, capacity: u64) {
        let now = Timestamp::from_nanos(5_000_000_000);
        let limiter = Limiter::new(algorithm);
        let start = Barrier::new(THREADS.into());
        let kept = AtomicU64::new(0);
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    start.wait();
                    for i in 0..ASKS_PER_THREAD {
                        if let Ok(receipt) = limiter.check_at(now).into_result() {
                            if i % 4 == 0 {
                                kept.fetch_add(1, Ordering::Relaxed);
                            } else {
                                let refund = Request::refund(1, receipt);
                                limiter.apply_at(refund, now).into_result().unwrap();
                            }
                        }
                    }
                });
            }
        });
        let left = limiter.apply_at(Request::PEEK, now).remaining();
        assert_eq!(kept.into_inner() + left, capacity);
    }
    balanced(TokenBucket::per_hour(1000), 1000);
    balanced(SlidingWindow::per_hour(1000), 1000);
    balanced(FixedWindow::per_hour(1000), 1000);
    balanced(SlidingLog::per_hour(1000), 1000);
    balanced(
        All([TokenBucket::per_hour(1000), TokenBucket::per_hour(2000)]),
        1000,
    );
}

/// A caller that is delayed between reading its clock and loading the state sees a state ahead of it. That is honest debt: the
/// caller is refused, and nothing of it is forgiven.
#[test]
fn a_stale_reading_forgives_nothing() {
    const LATE: Timestamp = Timestamp::from_nanos(100_000_000_000);

    /// The first reading is old, later ones are right.
    struct Delayed(AtomicU64);

    impl Clock for Delayed {
        fn now(&self) -> Timestamp {
            if self.0.fetch_add(1, Ordering::Relaxed) == 0 {
                Timestamp::ZERO
            } else {
                LATE
            }
        }
    }

    fn keeps_its_state<A: Algorithm + Copy>(algorithm: A) {
        let limiter = Limiter::with_clock(algorithm, Delayed(AtomicU64::new(0)));
        assert_eq!(limiter.apply_at(Request::take(5), LATE).granted(), 5);
        assert!(!limiter.check().is_allowed());
        assert_eq!(
            limiter.apply_at(Request::PEEK, LATE).remaining(),
            0,
            "{algorithm:?}"
        );
    }
    fn store_keeps_its_state<S: MemoryStore<u8, TokenBucket>>(store: S) {
        let limiter = KeyedLimiter::<u8, _, _>::with_store(TokenBucket::per_second(5), store);
        assert_eq!(limiter.apply_at(&1, Request::take(5), LATE).granted(), 5);
        assert!(!limiter.check(&1).is_allowed());
        assert_eq!(limiter.apply_at(&1, Request::PEEK, LATE).remaining(), 0);
    }

    keeps_its_state(TokenBucket::per_second(5));
    keeps_its_state(SlidingWindow::per_second(5));
    keeps_its_state(FixedWindow::per_second(5));
    keeps_its_state(All([TokenBucket::per_second(5), TokenBucket::per_hour(5)]));
    let clock = || Delayed(AtomicU64::new(0));
    store_keeps_its_state(DashStore::<u8, TokenBucket, _>::with_clock(clock()));
    store_keeps_its_state(TableStore::<_, TokenBucket>::with_clock(8, clock()).unwrap());
}
