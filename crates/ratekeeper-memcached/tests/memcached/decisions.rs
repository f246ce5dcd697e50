//! Decisions, also of many at once.

use std::sync::Arc;
use std::time::Duration;

use ratekeeper::store::ErrorKind;
use ratekeeper::{All, KeyedLimiter, Request, SlidingWindow, TokenBucket};
use ratekeeper_test_servers::{Kind, Server};

use crate::support::{Limiter, Random, Raw, bucket, cas, clock, kind, shared, store};

#[tokio::test]
async fn a_bucket_is_used_up_and_refills() {
    let clock = clock();
    let store = store(cas(Server::shared(Kind::Memcached), "refills"), &clock);
    let limiter = Limiter::<str>::with_store(bucket(), store);
    for remaining in [4, 3, 2, 1, 0] {
        assert_eq!(
            limiter.check_async("alice").await.unwrap().remaining(),
            remaining
        );
    }
    let refused = limiter.check_async("alice").await.unwrap();
    assert_eq!(refused.retry_after(), Some(Duration::from_millis(100)));
    clock.advance(Duration::from_millis(100));
    assert!(limiter.check_async("alice").await.unwrap().is_allowed());
    assert!(!limiter.check_async("alice").await.unwrap().is_allowed());
}

#[tokio::test]
async fn any_algorithm_with_a_wire_form_is_stored() {
    let limit = All((TokenBucket::per_second(10), SlidingWindow::per_hour(3)));
    let store = store(cas(Server::shared(Kind::Memcached), "several"), &clock());
    let limiter = KeyedLimiter::<str, _, _>::with_store(limit, store);
    for _ in 0..3 {
        assert!(limiter.check_async("alice").await.unwrap().is_allowed());
    }
    assert!(!limiter.check_async("alice").await.unwrap().is_allowed());
}

/// Eight processes' worth of connections, eight tasks each, on one key.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hot_key_grants_exactly_its_burst() {
    const BURST: u64 = 500;
    let limit = TokenBucket::per_second(10).with_burst(BURST);
    let clock = clock();
    let server = Server::shared(Kind::Memcached);
    let mut tasks = Vec::new();
    for process in 0..8 {
        let limiter = Limiter::<str>::with_store(limit, store(cas(server, "hot"), &clock));
        let limiter = Arc::new(limiter);
        for task in 0..8 {
            let limiter = Arc::clone(&limiter);
            tasks.push(tokio::spawn(async move {
                let mut random = Random(process * 8 + task);
                let mut granted = 0;
                for _ in 0..10 {
                    let cost = 1 + random.below(3);
                    loop {
                        match limiter.apply_async("hot", Request::take(cost)).await {
                            Ok(decision) if decision.is_allowed() => granted += cost,
                            Ok(_) => {}
                            Err(error) if error.kind() == ErrorKind::Contention => continue,
                            Err(error) => panic!("{error:?}"),
                        }
                        break;
                    }
                }
                granted
            }));
        }
    }
    let mut granted = 0;
    for task in tasks {
        granted += task.await.unwrap();
    }
    let limiter = Limiter::<str>::with_store(limit, store(cas(server, "hot"), &clock));
    while limiter.check_async("hot").await.unwrap().is_allowed() {
        granted += 1;
    }
    assert_eq!(granted, BURST);
}

/// An exchange finds a value, another value or none, whatever it has seen.
#[tokio::test]
async fn lost_races_are_noticed() {
    use ratekeeper::store::{AsyncCasStore, StateBytes, Swap};
    let server = Server::shared(Kind::Memcached);
    let (cas, mut raw) = (cas(server, "races"), Raw::new(server));
    let state = StateBytes::from_stored(b"\x11\r\n345678").unwrap();
    let minute = Duration::from_secs(60);
    let name = cas.name_of("key");

    let absent = cas.load_async("key", &kind()).await.unwrap();
    assert!(absent.state.is_none());
    raw.set(&name, b"rival");
    let swap = cas
        .compare_exchange_async("key", &kind(), &absent, &state, minute)
        .await
        .unwrap();
    assert!(matches!(swap, Swap::Conflict(None)), "{swap:?}");

    let rival = cas.load_async("key", &kind()).await.unwrap();
    raw.set(&name, b"rival");
    let swap = cas
        .compare_exchange_async("key", &kind(), &rival, &state, minute)
        .await
        .unwrap();
    assert!(
        matches!(swap, Swap::Conflict(None)),
        "the same bytes, another version: {swap:?}"
    );

    let rival = cas.load_async("key", &kind()).await.unwrap();
    assert_eq!(raw.ask(format!("md {name}\r\n")).0, "HD");
    let swap = cas
        .compare_exchange_async("key", &kind(), &rival, &state, minute)
        .await
        .unwrap();
    let Swap::Conflict(Some(fresh)) = swap else {
        panic!("{swap:?}")
    };
    assert!(fresh.state.is_none());
    let swap = cas
        .compare_exchange_async("key", &kind(), &fresh, &state, minute)
        .await
        .unwrap();
    assert!(matches!(swap, Swap::Done), "{swap:?}");
    assert_eq!(
        cas.load_async("key", &kind()).await.unwrap().state,
        Some(state)
    );
}

#[tokio::test]
async fn a_forgotten_key_is_a_new_one() {
    let limiter = shared("forget", bucket());
    limiter.forget_async("alice").await.unwrap();
    let _ = limiter
        .apply_async("alice", Request::take(5))
        .await
        .unwrap();
    let _ = limiter.apply_async("bob", Request::take(5)).await.unwrap();
    limiter.forget_async("alice").await.unwrap();
    assert_eq!(limiter.check_async("alice").await.unwrap().remaining(), 4);
    assert!(!limiter.check_async("bob").await.unwrap().is_allowed());
}

#[tokio::test]
async fn namespaces_do_not_meet() {
    let server = Server::shared(Kind::Memcached);
    let one = cas(server, "one");
    let other = one
        .clone()
        .with_namespace(ratekeeper::store::Namespace::new("other").unwrap());
    let one = Limiter::<str>::with_store(bucket(), store(one, &clock()));
    let other = Limiter::<str>::with_store(bucket(), store(other, &clock()));
    let _ = one.apply_async("alice", Request::take(5)).await.unwrap();
    assert!(!one.check_async("alice").await.unwrap().is_allowed());
    assert_eq!(other.check_async("alice").await.unwrap().remaining(), 4);
}

/// Nothing is asked, so nobody need be there to answer.
#[tokio::test]
async fn limits_that_need_no_state_need_no_server() {
    use ratekeeper::Outcome;
    let nowhere = ratekeeper_memcached::MemcachedStore::connect(
        "127.0.0.1:1",
        ratekeeper::store::Namespace::new("nowhere").unwrap(),
    );
    let limiter = Limiter::<str>::with_store(bucket(), nowhere.unwrap());
    let error = limiter.check_async("alice").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotExecuted);
    let (unlimited, blocked) = (TokenBucket::UNLIMITED, TokenBucket::BLOCKED);
    let unlimited = limiter.under(&unlimited).check_async("alice").await;
    assert!(unlimited.unwrap().is_allowed());
    let blocked = limiter.under(&blocked).check_async("alice").await;
    assert_eq!(blocked.unwrap().outcome(), Outcome::TooLarge);
}
