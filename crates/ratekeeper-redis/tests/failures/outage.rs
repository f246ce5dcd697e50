//! A server that hangs, dies, comes back, forgets its scripts or everything.

use std::time::Instant;

use ratekeeper::store::{ErrorKind, Namespace};
use ratekeeper::{KeyedLimiter, Request};
use ratekeeper_redis::{RedisLimiter, RedisStore};
use ratekeeper_test_servers::{Options, Server};

use crate::support::{
    FIVE_A_DAY, HURRIED, PATIENT, admitted, first_answer, hurried, kind, limiter, store,
};

/// A wait that a busy machine may add to a deadline.
const SLACK: std::time::Duration = std::time::Duration::from_secs(2);

#[tokio::test]
async fn a_hung_server_is_unknown_within_the_deadline_and_counts_at_most_once() {
    let mut server = Server::redis(Options::new());
    let (patient, hurried) = (limiter(&server), hurried(&server));
    assert_eq!(admitted(&hurried, "k", 1).await, 1);

    server.pause();
    let start = Instant::now();
    let calls = futures_util::future::join_all((0..3).map(|_| hurried.check_async("k"))).await;
    let took = start.elapsed();
    server.resume();
    assert!(took >= HURRIED && took < HURRIED + SLACK, "{took:?}");
    for call in calls {
        assert_eq!(kind(call), ErrorKind::Unknown);
    }
    // The calls sit in the server's socket and run when it wakes up, before anything that is asked later.
    let left = first_answer(&hurried, "k").await;
    assert!(left.is_allowed());
    let counted = 5 - patient
        .apply_async("k", Request::PEEK)
        .await
        .unwrap()
        .remaining();
    assert!(
        (2..=5).contains(&counted),
        "{counted} counted: one before, three unknown, one after"
    );
    // And every reply belongs to its own request.
    assert_eq!(patient.check_async("another").await.unwrap().remaining(), 4);
}

#[tokio::test]
async fn a_dead_server_is_an_error_at_once_and_never_a_decision() {
    let mut server = Server::redis(Options::new());
    let limiter = hurried(&server);
    assert_eq!(admitted(&limiter, "k", 5).await, 5);
    server.kill();
    // The first call may be under way when the connection breaks.
    assert!(kind(limiter.check_async("k").await).is_outage());
    for _ in 0..20 {
        let start = Instant::now();
        assert_eq!(kind(limiter.check_async("k").await), ErrorKind::NotExecuted);
        assert!(start.elapsed() < HURRIED + SLACK);
    }

    // Nothing was saved, so the key is one never seen; the script cache is gone as well.
    server.restart();
    let decision = first_answer(&limiter, "k").await;
    assert_eq!(decision.remaining(), 4);
}

#[tokio::test]
async fn a_server_that_is_not_there_yet_is_an_error_of_the_first_request_only() {
    let mut server = Server::redis(Options::new());
    server.kill();
    let limiter = limiter(&server); // construction asks nothing
    assert_eq!(kind(limiter.check_async("k").await), ErrorKind::NotExecuted);
    server.restart();
    assert!(first_answer(&limiter, "k").await.is_allowed());
}

#[tokio::test]
async fn a_saved_state_survives_a_restart() {
    let mut server =
        Server::redis(Options::new().args(["--appendonly", "yes", "--appendfsync", "always"]));
    let limiter = limiter(&server);
    assert_eq!(admitted(&limiter, "k", 9).await, 5);
    server.kill();
    server.restart();
    assert!(!first_answer(&limiter, "k").await.is_allowed());
}

#[tokio::test]
async fn a_flushed_script_cache_is_not_noticed() {
    let server = Server::redis(Options::new());
    let limiter = limiter(&server);
    for used in 1..=5_u64 {
        assert_eq!(
            limiter.check_async("k").await.unwrap().remaining(),
            5 - used
        );
        server.command(&["SCRIPT", "FLUSH"]).unwrap();
    }
    assert!(!limiter.check_async("k").await.unwrap().is_allowed());
}

#[tokio::test]
async fn lost_data_are_keys_never_seen() {
    let server = Server::redis(Options::new());
    let limiter = limiter(&server);
    assert_eq!(admitted(&limiter, "k", 9).await, 5);
    server.command(&["FLUSHALL"]).unwrap();
    assert_eq!(admitted(&limiter, "k", 9).await, 5);
}

/// 400 calls, each dropped after a random number of polls or finished.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropped_futures_count_once_or_not_at_all_and_mix_up_nothing() {
    let server = Server::redis(Options::new());
    let store = store(&server);
    let limiter =
        KeyedLimiter::<str, _, _>::with_store(ratekeeper::TokenBucket::per_day(1_000), store);
    let mut seed = 12345_u64;
    let (mut started, mut completed) = (0_u64, 0_u64);
    for _ in 0..400 {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let patience = std::time::Duration::from_micros(seed >> 54);
        started += 1;
        if let Ok(result) = tokio::time::timeout(patience, limiter.check_async("k")).await {
            assert!(result.unwrap().is_allowed());
            completed += 1;
        }
    }
    // A connection answers in order, so this peek comes after all that was sent.
    let counted = 1_000
        - limiter
            .apply_async("k", Request::PEEK)
            .await
            .unwrap()
            .remaining();
    assert!(
        completed <= counted && counted <= started,
        "{completed} <= {counted} <= {started}"
    );
    assert!(
        completed > 0 && completed < started,
        "{completed} of {started} completed: the patience tests nothing"
    );
    assert_eq!(
        limiter.check_async("another").await.unwrap().remaining(),
        999
    );
}

/// A connection that somebody else closes: the next call may fail, the one after it must not.
#[tokio::test]
async fn closed_connections_are_made_anew() {
    let server = Server::redis(Options::new());
    let limiter = limiter(&server);
    for _ in 0..3 {
        server
            .command(&["CLIENT", "KILL", "TYPE", "normal"])
            .unwrap();
        let _ = first_answer(&limiter, "k").await;
    }
}

/// The default settings of the client library would block for nine seconds here.
#[tokio::test]
async fn the_default_deadline_is_a_tenth_of_a_second() {
    let mut server = Server::redis(Options::new());
    let url = format!("redis://{}/", server.address());
    let store = RedisStore::connect(url, Namespace::new("test").unwrap()).unwrap();
    assert_eq!(store.deadline().as_millis(), 100);
    let limiter: RedisLimiter = KeyedLimiter::with_store(FIVE_A_DAY, store);
    server.pause();
    let start = Instant::now();
    assert_eq!(kind(limiter.check_async("k").await), ErrorKind::Unknown);
    assert!(start.elapsed() < SLACK, "{:?}", start.elapsed());
    server.resume();
    assert!(PATIENT > HURRIED);
}
