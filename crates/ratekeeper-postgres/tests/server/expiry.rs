//! Rows end in time, and not before.

use std::sync::Arc;
use std::time::Duration;

use ratekeeper::store::{AsyncStore, CasLoop};
use ratekeeper::{Clock, FixedWindow, ManualClock, Request, Timestamp, TokenBucket, UnixClock};
use ratekeeper_postgres::PostgresCas;

use crate::common::{database, sql, store};

const LEFT: &str =
    "SELECT extract(epoch FROM expires - clock_timestamp())::bigint FROM ratekeeper.states_v1";
const EXPIRE: &str = "UPDATE ratekeeper.states_v1 SET expires = clock_timestamp()";

/// Rounded up to the next minute, whatever the length; also that of a thousand years.
#[tokio::test]
async fn states_are_kept_as_long_as_they_matter() {
    let url = database("kept").await;
    let store = store(&url, 1);
    for seconds in [1, 30, 90, 86_400, 4_000_000_000, 16_000_000_000] {
        let limit = TokenBucket::per(1, Duration::from_secs(seconds));
        assert!(
            store
                .apply_async("k", &limit, Request::ONE)
                .await
                .unwrap()
                .is_allowed()
        );
        let left: u64 = sql(&url, LEFT).parse().unwrap();
        assert!(
            (seconds - 1..=seconds + 60).contains(&left),
            "{left} s for {seconds} s"
        );
        store.forget_async("k", &limit).await.unwrap();
    }
    let longest = FixedWindow::per(1, Duration::MAX.min(Duration::from_nanos(u64::MAX))).anchored();
    assert!(
        store
            .apply_async("k", &longest, Request::ONE)
            .await
            .unwrap()
            .is_allowed()
    );
    let years = sql(&url, LEFT).parse::<u64>().unwrap() / 31_556_952;
    assert!((530..=585).contains(&years), "{years}");
}

/// The grace that covers a difference between clocks; and no grace is too long for a timestamp.
#[tokio::test]
async fn states_under_a_clock_of_ones_own_are_kept_longer() {
    let url = database("grace").await;
    let clock = Arc::new(ManualClock::new());
    for (grace, seconds) in [
        (Duration::from_secs(7_200), 7_200),
        (Duration::MAX, 31_556_952_000),
    ] {
        let store = store(&url, 1).with_clock(clock.clone(), grace);
        let limit = TokenBucket::per_second(1);
        assert!(
            store
                .apply_async("k", &limit, Request::ONE)
                .await
                .unwrap()
                .is_allowed()
        );
        let left: u64 = sql(&url, LEFT).parse().unwrap();
        assert!(
            (seconds..=seconds + 61).contains(&left),
            "{left} s for {seconds} s"
        );
        store.forget_async("k", &limit).await.unwrap();
        // The loop itself asks for a minute more.
        let swaps = CasLoop::new(PostgresCas(store.clone()), tokio::time::sleep);
        assert!(
            swaps
                .apply_async("k", &limit, Request::ONE)
                .await
                .unwrap()
                .is_allowed()
        );
        let left: u64 = sql(&url, LEFT).parse().unwrap();
        assert!(
            (seconds..=seconds + 121).contains(&left),
            "{left} s for {seconds} s"
        );
        store.forget_async("k", &limit).await.unwrap();
    }
}

/// What is given back, and what a newer limit owes less of, ends as late as before: by a function and by a swap.
#[tokio::test]
async fn what_is_left_of_a_life_is_never_shortened() {
    let url = database("never_shortened").await;
    let store = store(&url, 1);
    let swaps = CasLoop::new(PostgresCas(store.clone()), tokio::time::sleep);
    let limit = TokenBucket::per(1, Duration::from_secs(86_400)).with_burst(10);
    let ends = || sql(&url, "SELECT expires FROM ratekeeper.states_v1");
    let state = || sql(&url, "SELECT state FROM ratekeeper.states_v1");

    let taken = async || {
        let taken = store.apply_async("k", &limit, Request::take(5)).await;
        taken.unwrap().into_receipt()
    };
    let (first, second) = (taken().await, taken().await);
    let (begun, full) = (ends(), state());
    let given_back = store
        .apply_async("k", &limit, Request::refund(5, second))
        .await;
    assert!(given_back.is_ok());
    let half = state();
    assert_ne!(half, full);
    assert_eq!(ends(), begun);
    let given_back = swaps
        .apply_async("k", &limit, Request::refund(4, first))
        .await;
    assert!(given_back.is_ok());
    assert_ne!(state(), half);
    assert_eq!(ends(), begun);
    let newer = limit.with_burst(2).with_version(1);
    let decision = store.apply_async("k", &newer, Request::ONE).await.unwrap();
    assert_eq!((decision.limit(), decision.granted()), (2, 1));
    assert_eq!(ends(), begun);
}

/// To decisions, looks and swaps, whether or not somebody has swept.
#[tokio::test]
async fn an_expired_row_is_absent() {
    let url = database("absent").await;
    let store = store(&url, 1);
    let limit = TokenBucket::per_day(3);
    let swaps = CasLoop::new(PostgresCas(store.clone()), tokio::time::sleep);
    for _ in 0..2 {
        assert_eq!(
            store
                .apply_async("k", &limit, Request::take(3))
                .await
                .unwrap()
                .remaining(),
            0
        );
        sql(&url, EXPIRE);
        assert_eq!(
            store
                .apply_async("k", &limit, Request::PEEK)
                .await
                .unwrap()
                .remaining(),
            3
        );
        assert_eq!(
            swaps
                .apply_async("k", &limit, Request::PEEK)
                .await
                .unwrap()
                .remaining(),
            3
        );
        assert_eq!(
            store
                .apply_async("k", &limit, Request::take(2))
                .await
                .unwrap()
                .remaining(),
            1
        );
        sql(&url, EXPIRE);
        assert_eq!(
            swaps
                .apply_async("k", &limit, Request::take(2))
                .await
                .unwrap()
                .remaining(),
            1
        );
        sql(&url, EXPIRE);
    }
    // Even one that is no state.
    sql(&url, "UPDATE ratekeeper.states_v1 SET state = 'hello'");
    assert_eq!(
        store
            .apply_async("k", &limit, Request::ONE)
            .await
            .unwrap()
            .remaining(),
        2
    );
}

#[tokio::test]
async fn a_sweep_takes_what_has_expired_and_no_more_than_it_should() {
    let url = database("sweep").await;
    let store = store(&url, 2);
    sql(
        &url,
        "INSERT INTO ratekeeper.states_v1 SELECT int4send(i), 's', now() + (i - 25) * interval '1 hour' FROM generate_series(1, 50) i",
    );
    for (most, swept) in [(0, 0), (10, 10), (10, 10), (10, 5), (10, 0)] {
        assert_eq!(store.sweep(most).await.unwrap(), swept);
    }
    let left = sql(
        &url,
        "SELECT count(*), min(expires) > now() FROM ratekeeper.states_v1",
    );
    assert_eq!(left, "25|t");
}

/// A sweep waits for nobody.
#[tokio::test]
async fn a_sweep_leaves_out_what_is_locked() {
    let url = database("sweep_locked").await;
    let store = store(&url, 2);
    sql(
        &url,
        "INSERT INTO ratekeeper.states_v1 SELECT int4send(i), 's', now() FROM generate_series(1, 5) i",
    );
    let other = crate::common::client(&url).await;
    other
        .batch_execute("BEGIN; SELECT FROM ratekeeper.states_v1 WHERE key = int4send(3) FOR UPDATE")
        .await
        .unwrap();
    assert_eq!(store.sweep(100).await.unwrap(), 4);
    other.batch_execute("COMMIT").await.unwrap();
    assert_eq!(store.sweep(100).await.unwrap(), 1);
}

/// The server's clock: now, in nanoseconds.
#[tokio::test]
async fn the_servers_clock_is_the_time() {
    let url = database("clock").await;
    let store = store(&url, 1);
    let limit = TokenBucket::per_day(1);
    let before = UnixClock.now();
    assert!(
        store
            .apply_async("k", &limit, Request::ONE)
            .await
            .unwrap()
            .is_allowed()
    );
    let after = UnixClock.now();
    let bytes = sql(
        &url,
        "SELECT encode(substring(state FROM 2 FOR 8), 'hex') FROM ratekeeper.states_v1",
    );
    let tat = Timestamp::from_nanos(u64::from_str_radix(&bytes, 16).unwrap());
    let now_ns = tat.as_nanos() - 86_400_000_000_000;
    let us = |instant: Timestamp| instant.as_nanos() / 1_000;
    assert!(
        (us(before)..=us(after)).contains(&(now_ns / 1_000)),
        "{before:?} {now_ns} {after:?}"
    );
    assert_eq!(now_ns % 1_000, 0);
}
