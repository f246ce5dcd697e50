//! Windows: only the count changes, in place; and limits read from files.

use core::time::Duration;

use ratekeeper::{
    AnyAlgorithm, FixedWindow, InvalidLimit, KeyedLimiter, Limiter, Live, ManualClock, Outcome,
    SlidingLog, SlidingWindow, TableStore, Timestamp, TokenBucket,
};

fn at(seconds: u64) -> Timestamp {
    Timestamp::ZERO + Duration::from_secs(seconds)
}

fn clock_at(seconds: u64) -> ManualClock {
    let clock = ManualClock::new();
    clock.set(at(seconds));
    clock
}

#[test]
fn a_sliding_window_keeps_its_counts() {
    let limiter = Limiter::new(Live::new(SlidingWindow::per_hour(10)));
    assert!(
        limiter
            .apply_at(ratekeeper::Request::take(8), at(100))
            .is_allowed()
    );
    limiter
        .set_at(SlidingWindow::per_hour(20), at(110))
        .unwrap();
    assert_eq!(limiter.check_at(at(120)).remaining(), 11);
    limiter.set_at(SlidingWindow::per_hour(5), at(130)).unwrap();
    assert_eq!(limiter.get(), SlidingWindow::per_hour(5));
    // Nine are counted: the first of five passes when five have slid out.
    let denied = limiter.check_at(at(140));
    assert_eq!((denied.remaining(), denied.limit()), (0, 5));
    let wait = denied.retry_after().unwrap();
    assert!(limiter.check_at(at(140) + wait).is_allowed());

    let other = limiter.set_at(SlidingWindow::per_minute(5), at(150));
    assert_eq!(other, Err(InvalidLimit::WindowMustStay));
    assert_eq!(limiter.get(), SlidingWindow::per_hour(5));
}

#[test]
fn a_fixed_window_keeps_its_counts_and_its_edges() {
    let limiter = Limiter::new(Live::new(FixedWindow::per_day(3)));
    for _ in 0..3 {
        assert!(limiter.check_at(at(100)).is_allowed());
    }
    limiter.set_at(FixedWindow::per_day(5), at(100)).unwrap();
    assert_eq!(limiter.check_at(at(100)).remaining(), 1);
    let shifted = FixedWindow::per_day(9).with_offset(Duration::from_secs(1));
    assert_eq!(
        limiter.set_at(shifted, at(100)),
        Err(InvalidLimit::EdgesMustStay)
    );
    let anchored = FixedWindow::per_day(9).anchored();
    assert_eq!(
        limiter.set_at(anchored, at(100)),
        Err(InvalidLimit::EdgesMustStay)
    );
    let shorter = FixedWindow::per_hour(9);
    assert_eq!(
        limiter.set_at(shorter, at(100)),
        Err(InvalidLimit::WindowMustStay)
    );
    assert_eq!(limiter.get(), FixedWindow::per_day(5));
}

#[test]
fn an_exact_log_keeps_its_instants() {
    let limiter = Limiter::new(Live::new(SlidingLog::per_second(3)));
    for ms in [0, 100, 200] {
        assert!(
            limiter
                .check_at(Timestamp::from_nanos(ms * 1_000_000))
                .is_allowed()
        );
    }
    limiter.set_at(SlidingLog::per_second(4), at(0)).unwrap();
    assert!(
        limiter
            .check_at(Timestamp::from_nanos(300_000_000))
            .is_allowed()
    );
    limiter.set_at(SlidingLog::per_second(2), at(0)).unwrap();
    let denied = limiter.check_at(Timestamp::from_nanos(400_000_000));
    assert_eq!(denied.retry_after(), Some(Duration::from_millis(800))); // when that of 200 ms has left
}

#[test]
fn limits_from_a_file_change_within_their_algorithm() {
    let limit = |text: &str| text.parse::<AnyAlgorithm>().unwrap();
    let clock = clock_at(1_000);
    let users = KeyedLimiter::<u64, _, _>::with_clock(Live::new(limit("10/h")), &clock);
    assert!(users.check_n(&1, 10).is_allowed());
    users.set(limit("1000/s")).unwrap();
    assert_eq!(users.peek(&1).remaining(), 0);
    clock.advance(Duration::from_millis(1));
    assert_eq!(users.peek(&1).remaining(), 1); // a raised burst comes in empty, and fills at its own rate
    clock.advance(Duration::from_secs(1));
    assert_eq!(users.peek(&1).remaining(), 1_000);
    for other in ["sliding 10/h", "fixed 10/h"] {
        assert_eq!(
            users.set(limit(other)),
            Err(InvalidLimit::AlgorithmMustStay)
        );
    }
    assert_eq!(users.get(), limit("1000/s"));

    let users = KeyedLimiter::<u64, _, _>::with_clock(Live::new(limit("sliding 10/h")), &clock);
    assert!(users.check_n(&1, 10).is_allowed());
    users.set(limit("sliding 12/h")).unwrap();
    assert_eq!(users.check(&1).remaining(), 1);
    assert_eq!(
        users.set(limit("sliding 12/min")),
        Err(InvalidLimit::WindowMustStay)
    );
    assert_eq!(
        users.set(limit("12/h")),
        Err(InvalidLimit::AlgorithmMustStay)
    );
}

#[test]
fn in_a_table_windows_change_too_and_a_limit_that_does_not_fit_leaves_the_old_one() {
    let clock = clock_at(1_000);
    let store = TableStore::<_, Live<SlidingWindow>>::with_seed(64, 7, &clock).unwrap();
    let limit = Live::new(SlidingWindow::per_hour(10));
    let users = KeyedLimiter::<u64, _, _>::try_with_store(limit, store).unwrap();
    assert!(users.check_n(&1, 10).is_allowed());
    assert!(!users.check(&1).is_allowed());
    users.set(SlidingWindow::per_hour(12)).unwrap();
    assert_eq!(users.check(&1).remaining(), 1);
    let large = users.set(SlidingWindow::per_hour(600_000));
    assert!(matches!(large, Err(InvalidLimit::DoesNotFitStore { .. })));
    assert_eq!(users.get(), SlidingWindow::per_hour(12));
    assert!(users.check(&1).is_allowed());
    assert!(matches!(users.check(&1).outcome(), Outcome::Denied { .. }));
}

#[test]
fn a_bucket_changes_in_a_table() {
    let clock = clock_at(1_000);
    let store = TableStore::<_, Live>::with_seed(64, 7, &clock).unwrap();
    let users =
        KeyedLimiter::<u64, Live, _>::with_store(Live::new(TokenBucket::per_hour(10)), store);
    assert!(users.check_n(&1, 9).is_allowed());
    users.set(TokenBucket::per_second(10)).unwrap();
    assert_eq!(users.peek(&1).remaining(), 1);
    clock.advance(Duration::from_millis(100));
    assert_eq!(users.check(&1).remaining(), 1);
}
