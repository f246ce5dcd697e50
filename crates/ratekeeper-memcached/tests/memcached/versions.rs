//! Limits with versions: the newest that a key has met decides.

use std::sync::Arc;
use std::time::Duration;

use ratekeeper::store::ErrorKind;
use ratekeeper::{Request, TokenBucket};
use ratekeeper_test_servers::{Kind, Server};

use crate::support::{Clock, Limiter, Raw, cas, clock, store};

/// A process: it has a connection and a limit of its own.
fn process(namespace: &str, clock: &Clock, limit: TokenBucket) -> Limiter {
    let cas = cas(Server::shared(Kind::Memcached), namespace);
    Limiter::<str>::with_store(limit, store(cas, clock))
}

#[tokio::test]
async fn a_raise_holds_from_the_next_request() {
    let clock = clock();
    let slow = TokenBucket::per_hour(100).with_version(1);
    let fast = TokenBucket::per_hour(10_000).with_version(2);
    let [old, new, plain] =
        [slow, fast, TokenBucket::per_hour(100)].map(|limit| process("raise", &clock, limit));
    let all = old.apply_async("alice", Request::take(100)).await.unwrap();
    assert!(all.is_allowed());
    let wait = Some(Duration::from_millis(360));
    // First the one that brings it, then those that follow it.
    for limiter in [&new, &old, &plain] {
        let refused = limiter.check_async("alice").await.unwrap();
        assert_eq!((refused.retry_after(), refused.limit()), (wait, 10_000));
    }
    clock.advance(Duration::from_nanos(359_999_999));
    assert!(!old.check_async("alice").await.unwrap().is_allowed());
    clock.advance(Duration::from_nanos(1));
    assert!(old.check_async("alice").await.unwrap().is_allowed());
    assert!(!new.check_async("alice").await.unwrap().is_allowed());
}

/// Ten minutes at 10 a second under a burst of 200 and one of 5 in turn, whichever is the newer, or neither.
#[tokio::test]
async fn in_turn_they_admit_no_more_than_the_looser_alone() {
    for (i, versions) in [[1, 2], [2, 1], [0, 0], [0, 1]].into_iter().enumerate() {
        let clock = clock();
        let [wide, narrow] = [200, 5].map(|burst| TokenBucket::per_second(10).with_burst(burst));
        let limiters = [
            wide.with_version(versions[0]),
            narrow.with_version(versions[1]),
        ]
        .map(|limit| process("in-turn", &clock, limit));
        let key = i.to_string();
        let mut granted = 0;
        for i in 0..12_000 {
            let limiter = &limiters[i % 2];
            let decision = limiter.apply_async(key.as_str(), Request::up_to(3)).await;
            granted += decision.unwrap().granted();
            clock.advance(Duration::from_millis(50));
        }
        assert!(
            (5_990..=6_200).contains(&granted),
            "{versions:?}: {granted}"
        );
    }
}

/// Version 2 comes, is taken back and comes again, process by process, while all of them ask at once; and a third at last.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_deploy_back_and_forth_admits_one_burst() {
    let clock = clock();
    let limit = TokenBucket::per_second(10);
    let limits = [20, 50, 80].map(|burst| limit.with_burst(burst));
    let running = [
        [1, 1, 1, 1],
        [2, 1, 1, 1],
        [2, 2, 2, 1],
        [2, 1, 1, 1],
        [1, 1, 1, 1],
        [2, 2, 2, 2],
        [3, 2, 1, 2],
        [3, 3, 3, 3],
    ];
    let mut newest = 1;
    for (phase, versions) in running.into_iter().enumerate() {
        let mut tasks = Vec::new();
        for version in versions {
            let limit = limits[usize::from(version) - 1].with_version(version);
            let limiter = Arc::new(process("rolling", &clock, limit));
            for _ in 0..3 {
                let limiter = Arc::clone(&limiter);
                tasks.push(tokio::spawn(async move {
                    let mut granted = 0;
                    for _ in 0..15 {
                        granted += loop {
                            match limiter.check_async("alice").await {
                                Ok(decision) => break decision.granted(),
                                Err(error) if error.kind() == ErrorKind::Contention => {}
                                Err(error) => panic!("{error:?}"),
                            }
                        };
                    }
                    granted
                }));
            }
        }
        let mut granted = 0;
        for task in tasks {
            granted += task.await.unwrap();
        }
        newest = newest.max(versions.into_iter().max().unwrap());
        // The first burst, and then what a second refills: a raised burst comes in empty.
        let due = if phase == 0 { 20 } else { 10 };
        assert_eq!(granted, due, "phase {phase}");
        let oldest = process("rolling", &clock, limits[0].with_version(1));
        let peek = oldest.apply_async("alice", Request::PEEK).await.unwrap();
        assert_eq!(
            peek.limit(),
            limits[usize::from(newest) - 1].burst(),
            "phase {phase}"
        );
        clock.advance(Duration::from_secs(1));
    }
}

/// It is a mistake in the configuration, and nothing is written.
#[tokio::test]
async fn one_version_of_two_limits_is_an_error() {
    let (server, clock) = (Server::shared(Kind::Memcached), clock());
    let limit = TokenBucket::per_hour(100).with_version(7);
    let name = cas(server, "same-version").name_of("alice");
    let one = process("same-version", &clock, limit);
    let other = process("same-version", &clock, limit.with_burst(99));
    assert!(one.check_async("alice").await.unwrap().is_allowed());
    let mut raw = Raw::new(server);
    let before = raw.ask(format!("mg {name} c v\r\n"));
    let error = other.check_async("alice").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config, "{error}");
    assert_eq!(raw.ask(format!("mg {name} c v\r\n")), before);
}
