//! Servers that are down, hang, or come back.

use std::time::{Duration, Instant};

use ratekeeper::store::{AsyncCasStore, AsyncStore, ErrorKind, Item, StateBytes, Swap};
use ratekeeper::{KeyedLimiter, Request};
use ratekeeper_memcached::{MemcachedCas, MemcachedStore};
use ratekeeper_test_servers::{Options, Server};

use crate::support::{Limiter, bucket, cas, clock, kind, store};

const SHORT: Duration = Duration::from_millis(50);
const KEEP: Duration = Duration::from_secs(60);

/// What a busy machine may add to a deadline.
const BUSY: Duration = Duration::from_secs(2);

fn server() -> Server {
    Server::memcached(Options::new())
}

fn limiter(cas: MemcachedCas) -> Limiter {
    Limiter::<str>::with_store(bucket(), store(cas, &clock()))
}

#[tokio::test]
async fn a_server_that_is_down_is_an_error_and_then_comes_back() {
    let mut server = server();
    let limiter = limiter(cas(&server, "down"));
    let _ = limiter
        .apply_async("alice", Request::take(5))
        .await
        .unwrap();
    server.kill();
    for _ in 0..20 {
        let start = Instant::now();
        let error = limiter.check_async("alice").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotExecuted, "{error}");
        assert!(start.elapsed() < BUSY);
        assert_eq!(
            limiter.forget_async("alice").await.unwrap_err().kind(),
            ErrorKind::NotExecuted
        );
    }
    server.restart();
    // All states are lost; nothing else is.
    assert_eq!(limiter.check_async("alice").await.unwrap().remaining(), 4);
}

/// The connection that was there is closed by the server, and nobody notices.
#[tokio::test]
async fn a_restart_between_requests_is_no_error() {
    let mut server = server();
    let limiter = limiter(cas(&server, "restart"));
    for _ in 0..5 {
        assert_eq!(limiter.check_async("alice").await.unwrap().remaining(), 4);
        server.restart();
    }
}

#[tokio::test]
async fn a_server_that_hangs_is_an_error_within_the_deadline() {
    let mut server = server();
    let cas = cas(&server, "hang");
    let limiter = limiter(cas.clone().with_deadline(SHORT));
    let _ = limiter.check_async("alice").await.unwrap();
    server.pause();
    for _ in 0..3 {
        let start = Instant::now();
        let error = limiter.check_async("alice").await.unwrap_err();
        assert_eq!(
            error.kind(),
            ErrorKind::NotExecuted,
            "nothing was written: {error}"
        );
        assert!((SHORT..SHORT + BUSY).contains(&start.elapsed()));
    }
    // One deadline for all of them, also where one waits for another.
    let limit = bucket();
    let mut items = ["alice"; 100].map(|key| Item::new(key, &limit, Request::ONE));
    let start = Instant::now();
    limiter.store().apply_batch_async(&mut items).await;
    assert!((SHORT..SHORT + BUSY).contains(&start.elapsed()));
    assert!(
        items
            .iter()
            .all(|item| item.result().is_some_and(Result::is_err))
    );
    server.resume();
    server.wait_until_ready();
    // Late answers, all of them for `alice`, are nobody's.
    for key in ["bob", "carol", "dave"] {
        assert_eq!(
            limiter.check_async(key).await.unwrap().remaining(),
            4,
            "{key}"
        );
    }
    assert_eq!(limiter.check_async("alice").await.unwrap().remaining(), 3);
}

#[tokio::test]
async fn an_exchange_without_an_answer_is_counted_once_or_not_at_all() {
    let mut server = server();
    let patient = cas(&server, "unknown");
    let hasty = patient.clone().with_deadline(SHORT);
    let state = StateBytes::from_stored(b"state").unwrap();
    let absent = hasty.load_async("alice", &kind()).await.unwrap();
    server.pause();
    let error = hasty
        .compare_exchange_async("alice", &kind(), &absent, &state, KEEP)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unknown, "{error}");
    let error = hasty.remove_async("bob", &kind()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unknown, "{error}");
    server.resume();
    server.wait_until_ready();
    // The request was on its way, and the connection is in order: it was executed before this one.
    assert_eq!(
        patient.load_async("alice", &kind()).await.unwrap().state,
        Some(state)
    );
    assert!(
        patient
            .load_async("bob", &kind())
            .await
            .unwrap()
            .state
            .is_none()
    );
}

/// What waits for a server that dies is told so, and not left to its deadline.
#[tokio::test]
async fn a_broken_connection_leaves_exchanges_open_and_loads_undone() {
    let mut server = server();
    let cas = cas(&server, "broken");
    let state = StateBytes::from_stored(b"state").unwrap();
    let absent = cas.load_async("alice", &kind()).await.unwrap();
    server.pause();
    let kind = kind();
    let exchange = cas.compare_exchange_async("alice", &kind, &absent, &state, KEEP);
    let load = cas.load_async("bob", &kind);
    let kill = async {
        tokio::time::sleep(SHORT).await;
        server.kill();
    };
    let start = Instant::now();
    let (exchanged, loaded, ()) = tokio::join!(exchange, load, kill);
    assert_eq!(exchanged.unwrap_err().kind(), ErrorKind::Unknown);
    assert_eq!(loaded.unwrap_err().kind(), ErrorKind::NotExecuted);
    assert!(
        start.elapsed() < BUSY,
        "less than the deadline of ten seconds"
    );
}

/// A restarted server counts versions from 1 again.
#[tokio::test]
async fn versions_are_not_compared_across_restarts() {
    let mut server = server();
    let (one, other) = (cas(&server, "versions"), cas(&server, "versions"));
    let [first, second, third] =
        [b"first", b"secnd", b"third"].map(|bytes| StateBytes::from_stored(bytes).unwrap());

    let absent = one.load_async("alice", &kind()).await.unwrap();
    one.compare_exchange_async("alice", &kind(), &absent, &first, KEEP)
        .await
        .unwrap();
    let seen = one.load_async("alice", &kind()).await.unwrap();
    server.restart();
    let absent = other.load_async("alice", &kind()).await.unwrap();
    other
        .compare_exchange_async("alice", &kind(), &absent, &second, KEEP)
        .await
        .unwrap();

    let swap = one
        .compare_exchange_async("alice", &kind(), &seen, &third, KEEP)
        .await
        .unwrap();
    assert!(matches!(swap, Swap::Conflict(None)), "{swap:?}");
    assert_eq!(
        one.load_async("alice", &kind()).await.unwrap().state,
        Some(second)
    );
}

/// A peer that is silent for a second after a deadline is given up, with all that waits in its socket.
#[tokio::test]
async fn a_silent_connection_is_replaced() {
    let mut server = server();
    let cas = cas(&server, "silent").with_deadline(SHORT);
    let state = StateBytes::from_stored(b"state").unwrap();
    let absent = cas.load_async("alice", &kind()).await.unwrap();
    cas.compare_exchange_async("alice", &kind(), &absent, &state, KEEP)
        .await
        .unwrap();
    let before = cas.load_async("alice", &kind()).await.unwrap().version;
    assert_eq!(
        before,
        cas.load_async("alice", &kind()).await.unwrap().version
    );
    server.pause();
    cas.load_async("alice", &kind()).await.unwrap_err();
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    server.resume();
    server.wait_until_ready();
    let after = cas
        .with_deadline(BUSY)
        .load_async("alice", &kind())
        .await
        .unwrap();
    assert_eq!(after.state, Some(state));
    assert_ne!(after.version, before, "the same connection");
}

#[test]
fn a_runtime_may_end_before_the_store() {
    let server = server();
    let limiter = KeyedLimiter::<str, _, _>::with_store(
        bucket(),
        MemcachedStore::new(cas(&server, "runtimes")),
    );
    for remaining in [4, 3, 2] {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let decision = runtime.block_on(limiter.check_async("alice")).unwrap();
        assert_eq!(decision.remaining(), remaining);
    }
    let without = ratekeeper::conformance::block_on(limiter.check_async("alice"));
    assert_eq!(without.unwrap_err().kind(), ErrorKind::Config);
}
