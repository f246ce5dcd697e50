//! One key under several limits.

use std::time::Duration;

use ratekeeper::{AnyAlgorithm, Carry, KeyedLimiter, Outcome, Request, SlidingWindow, TokenBucket};
use ratekeeper_memcached::MemcachedStore;
use ratekeeper_test_servers::{Kind, Server};

use crate::support::{Clock, cas, clock, shared, store};

type Any = KeyedLimiter<str, AnyAlgorithm, MemcachedStore>;

fn any(namespace: &str, clock: &Clock, limit: impl Into<AnyAlgorithm>) -> Any {
    let cas = cas(Server::shared(Kind::Memcached), namespace);
    KeyedLimiter::<str, _, _>::with_store(limit.into(), store(cas, clock))
}

/// As tiers, routes or a rolling deploy bring them, at a single instant: the looser one's burst.
#[tokio::test]
async fn limits_in_turn_forgive_nothing() {
    for (key, bursts, due) in [("5", [20, 5], 20), ("20", [200, 20], 200)] {
        let limits = bursts.map(|burst| TokenBucket::per_second(10).with_burst(burst));
        let limiter = shared("turns-of-limits", limits[0]);
        let mut granted = 0;
        for i in 0..4_000 {
            let decision = limiter.under(&limits[i % 2]).check_async(key).await;
            granted += decision.unwrap().granted();
        }
        assert_eq!(granted, due);
    }
}

#[tokio::test]
async fn a_refusal_under_another_limit_forgives_nothing() {
    let (wide, narrow) = (
        TokenBucket::per_minute(1_000),
        TokenBucket::per_minute(10).with_burst(2),
    );
    let limiter = shared("refused", wide);
    let all = limiter.apply_async("alice", Request::take(1_000)).await;
    assert!(all.unwrap().is_allowed());
    assert!(
        !limiter
            .under(&narrow)
            .check_async("alice")
            .await
            .unwrap()
            .is_allowed()
    );
    let peek = limiter.apply_async("alice", Request::PEEK).await.unwrap();
    assert_eq!(peek.remaining(), 0);
}

/// Each has the key's state of its own kind, and its own bound.
#[tokio::test]
async fn a_bucket_and_windows_in_turn_keep_their_own_limits() {
    let clock = clock();
    let limiters = [
        any("kinds", &clock, TokenBucket::per_second(10).with_burst(5)),
        any("kinds", &clock, SlidingWindow::per_minute(7)),
        any("kinds", &clock, SlidingWindow::per_hour(3)),
    ];
    let mut granted = [0; 3];
    for _ in 0..200 {
        for (limiter, granted) in limiters.iter().zip(&mut granted) {
            *granted += limiter.check_async("alice").await.unwrap().granted();
        }
    }
    assert_eq!(granted, [5, 7, 3]);
}

/// Vector 13 of limits that change: drained at 10 an hour, then a second at 1000/s instead of an hour.
#[tokio::test]
async fn a_key_that_is_moved_keeps_its_tokens() {
    let (free, paid) = (TokenBucket::per_hour(10), TokenBucket::per_second(1_000));
    for (key, carry, remaining, reset) in [
        ("tokens", Carry::Tokens, 0, Duration::from_secs(1)),
        ("debt", Carry::Debt, 0, Duration::from_secs(3_600)),
        ("full", Carry::Full, 1_000, Duration::ZERO),
        ("empty", Carry::Empty, 0, Duration::from_secs(1)),
    ] {
        let limiter = shared("moved", free);
        let all = limiter.apply_async(key, Request::take(10)).await.unwrap();
        assert!(all.is_allowed());
        let report = limiter
            .change_async(key, &free, &paid, carry)
            .await
            .unwrap();
        assert_eq!(
            (report.remaining(), report.reset_after()),
            (remaining, reset),
            "{key}"
        );
        // It is stored.
        let peek = limiter
            .under(&paid)
            .apply_async(key, Request::PEEK)
            .await
            .unwrap();
        assert_eq!(
            (peek.remaining(), peek.reset_after()),
            (remaining, reset),
            "{key}"
        );
    }
    // A key never seen stays one, and is not stored.
    let limiter = shared("moved", free);
    let report = limiter
        .change_async("nobody", &free, &paid, Carry::Tokens)
        .await;
    assert_eq!(report.unwrap().remaining(), 1_000);
}

#[tokio::test]
async fn a_key_does_not_move_to_another_kind() {
    let clock = clock();
    let bucket = AnyAlgorithm::from(TokenBucket::per_hour(10));
    let limiter = any("moved-kinds", &clock, bucket);
    let window = SlidingWindow::per_minute(7).into();
    let all = limiter
        .apply_async("alice", Request::take(10))
        .await
        .unwrap();
    assert!(all.is_allowed());
    let report = limiter
        .change_async("alice", &bucket, &window, Carry::Tokens)
        .await;
    assert_eq!(report.unwrap().outcome(), Outcome::Unsupported);
    assert!(!limiter.check_async("alice").await.unwrap().is_allowed());
}
