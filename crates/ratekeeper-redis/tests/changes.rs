//! Limits that change and differ, clocks that are set back, versions side by side: against real servers.

use std::sync::Arc;
use std::time::Duration;

use ratekeeper::store::{
    AsyncStore, CasLoop, ErrorKind, FailOpen, Item, Jitter, Namespace, StoreError,
};
use ratekeeper::{
    AnyAlgorithm, Carry, Clock, Decision, InvalidLimit, KeyedLimiter, ManualClock, Request,
    SlidingWindow, Timestamp, TokenBucket,
};
use ratekeeper_redis::{RedisCas, RedisStore};
use ratekeeper_test_servers::{Kind, Server};

const E9: u64 = 1_000_000_000;

fn server_store(kind: Kind, space: &str) -> RedisStore {
    let url = format!("redis://{}/", Server::shared(kind).address());
    RedisStore::connect(url, Namespace::new(space).unwrap())
        .unwrap()
        .with_deadline(Duration::from_secs(10))
}

/// A store on a clock that the test moves, at 1,000,000 s.
fn store(kind: Kind, space: &str) -> (RedisStore, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new());
    clock.set(Timestamp::from_nanos(1_000_000 * E9));
    let store = server_store(kind, space);
    let store = store.with_clock(clock.clone(), Duration::from_secs(3_600));
    (store, clock)
}

async fn ask(store: &RedisStore, limit: &TokenBucket, request: Request) -> Decision {
    store.apply_async("k", limit, request).await.unwrap()
}

fn ttl_ms(server: &Server, key: &str) -> i64 {
    server.command(&["PTTL", key]).unwrap().parse().unwrap()
}

#[tokio::test]
async fn two_limits_in_turn_admit_no_more_than_the_larger() {
    let (store, _) = store(Kind::Redis, "in-turn");
    let limits = [200, 20].map(|burst| TokenBucket::per_second(10).with_burst(burst));
    let mut admitted = 0;
    for limit in limits.iter().cycle().take(2_000) {
        admitted += u32::from(ask(&store, limit, Request::ONE).await.is_allowed());
    }
    assert_eq!(admitted, 200);
}

/// A bucket and a window on one key are two limits, and neither takes the other's value for an outage.
#[tokio::test]
async fn another_kind_of_limit_is_another_key() {
    let store = FailOpen::new(server_store(Kind::Redis, "kinds"));
    let limits = [
        "10/day burst 10",
        "sliding 10/day",
        "fixed 10/day anchored",
        "sliding 10/h",
    ];
    let limits = limits.map(|text| text.parse::<AnyAlgorithm>().unwrap());
    for limit in &limits {
        let mut admitted = 0;
        for _ in 0..30 {
            for other in &limits {
                let decision = store.apply_async("k", other, Request::PEEK).await.unwrap();
                assert!(!decision.is_degraded());
            }
            let decision = store.apply_async("k", limit, Request::ONE).await.unwrap();
            admitted += u32::from(decision.is_allowed());
        }
        assert_eq!(admitted, 10, "{limit}");
    }
}

#[tokio::test]
async fn a_clock_set_back_makes_nobody_wait_beyond_the_reach_and_gives_nothing() {
    let (store, clock) = store(Kind::Redis, "set-back");
    let limit = TokenBucket::per_second(1).with_burst(5);
    assert!(ask(&store, &limit, Request::take(5)).await.is_allowed());
    clock.set(Timestamp::from_nanos(900_000 * E9));
    for _ in 0..2 {
        let refused = ask(&store, &limit, Request::ONE).await;
        assert_eq!(refused.retry_after(), Some(Duration::from_secs(1)));
    }
    // The debt of a larger limit is no such proof.
    let large = TokenBucket::per_second(1).with_burst(1_000);
    assert!(ask(&store, &large, Request::take(900)).await.is_allowed());
    let refused = ask(&store, &limit, Request::ONE).await;
    assert_eq!(refused.retry_after(), Some(Duration::from_secs(901)));
}

#[tokio::test]
async fn values_of_the_earlier_version_are_debt_until_a_take() {
    let (store, clock) = store(Kind::Redis, "earlier");
    let server = Server::shared(Kind::Redis);
    let limit = TokenBucket::per_second(1).with_burst(5);
    let bare = [&[0x11][..], &(1_000_500 * E9).to_be_bytes()].concat();
    server
        .command(&[&b"SET"[..], b"rl:earlier:k", &bare[..]])
        .unwrap();
    let refused = ask(&store, &limit, Request::ONE).await;
    assert_eq!(refused.retry_after(), Some(Duration::from_secs(496)));
    assert_eq!(server.command(&["STRLEN", "rl:earlier:k"]).unwrap(), "9");
    clock.set(Timestamp::from_nanos(1_000_499 * E9));
    let receipt = ask(&store, &limit, Request::ONE).await.into_receipt();
    assert_eq!(server.command(&["STRLEN", "rl:earlier:k"]).unwrap(), "17");
    server
        .command(&[&b"SET"[..], b"rl:earlier:k", &bare[..]])
        .unwrap();
    let given = ask(&store, &limit, Request::refund(1, receipt)).await;
    assert_eq!(given.remaining(), 5);
    assert_eq!(server.command(&["STRLEN", "rl:earlier:k"]).unwrap(), "9");
    // A window of that version lies under the bucket's key.
    let window = [&[0x13][..], &[7; 16]].concat();
    server
        .command(&[&b"SET"[..], b"rl:earlier:k", &window[..]])
        .unwrap();
    assert_eq!(ask(&store, &limit, Request::ONE).await.remaining(), 4);
}

#[tokio::test]
async fn a_raise_holds_from_the_next_request() {
    for kind in [Kind::Redis, Kind::Redis62, Kind::Valkey] {
        let (store, clock) = store(kind, "raise");
        let slow = TokenBucket::per_hour(100).with_version(1);
        let fast = TokenBucket::per_hour(10_000).with_version(2);
        assert!(ask(&store, &slow, Request::take(100)).await.is_allowed());
        let refused = ask(&store, &fast, Request::ONE).await;
        assert_eq!(refused.retry_after(), Some(Duration::from_millis(360)));
        // The old process goes by the new limit, and says so.
        let refused = ask(&store, &slow, Request::ONE).await;
        assert_eq!(refused.retry_after(), Some(Duration::from_millis(360)));
        assert_eq!(refused.limit(), 10_000);
        clock.advance(Duration::from_millis(360));
        assert!(ask(&store, &slow, Request::ONE).await.is_allowed());
        // So does one without a version.
        let plain = ask(&store, &TokenBucket::per_hour(7), Request::PEEK).await;
        assert_eq!(plain.limit(), 10_000);
        assert!(
            !ask(&store, &TokenBucket::per_hour(7), Request::ONE)
                .await
                .is_allowed()
        );
    }
}

/// Burst 200 and 5 in turn at 10/s: 200 and what refills, not a burst for each change.
#[tokio::test]
async fn versions_in_turn_keep_to_the_bound_of_the_first() {
    for kind in [Kind::Redis, Kind::Valkey] {
        let (store, clock) = store(kind, "to-and-fro");
        let limits = [(200, 1), (5, 2)];
        let limits = limits.map(|(burst, version)| {
            let limit = TokenBucket::per_second(10).with_burst(burst);
            limit.with_version(version)
        });
        let mut admitted = 0;
        for _ in 0..3_000 {
            for limit in &limits {
                for _ in 0..2 {
                    admitted += u32::from(ask(&store, limit, Request::ONE).await.is_allowed());
                }
            }
            clock.advance(Duration::from_millis(200));
        }
        println!("{admitted} in 600 s on {kind}");
        assert!((5_990..=6_200).contains(&admitted), "{admitted}");
    }
}

#[tokio::test]
async fn one_number_for_two_limits_is_a_mistake_and_two_spellings_of_one_are_none() {
    let (store, _) = store(Kind::Redis, "numbers");
    let limit = TokenBucket::per_second(1).with_burst(60).with_version(3);
    let spelled = TokenBucket::per_minute(60).with_version(3);
    let mut left = 60;
    for limit in [&limit, &spelled].into_iter().cycle().take(10) {
        left -= 1;
        assert_eq!(ask(&store, limit, Request::ONE).await.remaining(), left);
    }
    let other = TokenBucket::per_second(2).with_burst(60).with_version(3);
    let error = store
        .apply_async("k", &other, Request::ONE)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
}

/// Full under the smaller is not full under the larger.
#[tokio::test]
async fn a_newer_version_never_shortens_a_keys_life() {
    for kind in [Kind::Redis, Kind::Redis62, Kind::Valkey] {
        let (store, server) = (server_store(kind, "expiry"), Server::shared(kind));
        let large = TokenBucket::per_second(1).with_burst(200).with_version(1);
        let small = TokenBucket::per_second(1).with_burst(5).with_version(2);
        assert!(ask(&store, &large, Request::take(200)).await.is_allowed());
        for limit in [&small, &large, &small] {
            drop(ask(&store, limit, Request::charge(1)).await);
            assert!(ttl_ms(server, "rl:expiry:k") > 180_000, "{kind}");
        }
        // Also when a value of the version itself is written.
        let fresh = TokenBucket::per_second(1_000).with_version(3);
        drop(ask(&store, &fresh, Request::ONE).await);
        drop(ask(&store, &fresh, Request::charge(1)).await);
        assert!(ttl_ms(server, "rl:expiry:k") > 180_000, "{kind}");
    }
}

/// A batch in which versions meet is answered like its items one after the other.
#[tokio::test]
async fn batches_keep_a_keys_order_where_versions_meet() {
    let (batched, _) = store(Kind::Redis, "batched");
    let (singly, _) = store(Kind::Redis, "singly");
    let limits: Vec<TokenBucket> = (0..4)
        .map(|version| {
            let limit = TokenBucket::per_second(1).with_burst(4 + u64::from(version));
            limit.with_version(version)
        })
        .collect();
    let asked: Vec<(&str, &TokenBucket)> = [0, 1, 0, 2, 1, 3, 0, 2, 3]
        .into_iter()
        .flat_map(|limit: usize| [("a", limit), ("b", 3 - limit), ("c", 1), ("d", 0)])
        .map(|(key, limit)| (key, &limits[limit]))
        .collect();
    let mut expected = Vec::new();
    for (key, limit) in &asked {
        expected.push(
            singly
                .apply_async(*key, *limit, Request::ONE)
                .await
                .unwrap(),
        );
    }
    let items = asked
        .iter()
        .map(|(key, limit)| Item::new(*key, *limit, Request::ONE));
    let mut items: Vec<_> = items.collect();
    batched.apply_batch_async(&mut items).await;
    let answers: Vec<_> = items
        .into_iter()
        .map(|item| item.into_result().unwrap())
        .collect();
    assert_eq!(answers, expected);
}

/// Processes of an old and a new configuration, back and forth, against one server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_deploy_under_load_admits_one_burst() {
    for (space, versions) in [("deploy", [1, 2, 3]), ("without-versions", [0, 0, 0])] {
        let limits: Vec<TokenBucket> = [50_u64, 20, 35]
            .into_iter()
            .zip(versions)
            .map(|(burst, version)| {
                let limit = TokenBucket::per_day(1).with_burst(burst);
                limit.with_version(version)
            })
            .collect();
        let store = server_store(Kind::Redis, space);
        let tasks: Vec<_> = (0..6)
            .map(|task| {
                let (store, limits) = (store.clone(), limits.clone());
                tokio::spawn(async move {
                    let mut admitted = 0;
                    for round in 0..60_usize {
                        // Each process is rolled forward and back on its own.
                        let limit = &limits[(task + round / 7) % limits.len()];
                        let decision = ask(&store, limit, Request::ONE).await;
                        admitted += u32::from(decision.is_allowed());
                    }
                    admitted
                })
            })
            .collect();
        let mut admitted = 0;
        for task in tasks {
            admitted += task.await.unwrap();
        }
        println!("{space}: {admitted} admitted");
        assert!((20..=50).contains(&admitted), "{space}: {admitted}");
    }
}

#[tokio::test]
async fn a_change_of_one_key_keeps_its_tokens() {
    let (store, _) = store(Kind::Redis, "change");
    let free = TokenBucket::per_hour(10);
    let premium = TokenBucket::per_second(1_000);
    drop(ask(&store, &free, Request::take(4)).await);
    let moved = store
        .change_async("k", &free, &premium, Carry::Tokens)
        .await
        .unwrap();
    assert_eq!(moved.remaining(), 6);
    assert!(ask(&store, &premium, Request::take(6)).await.is_allowed());
    let refused = ask(&store, &premium, Request::ONE).await;
    assert_eq!(refused.retry_after(), Some(Duration::from_millis(1)));
    let moved = store
        .change_async("k", &premium, &free, Carry::Full)
        .await
        .unwrap();
    assert_eq!(moved.remaining(), 10);
    let sliding = |limit| AnyAlgorithm::from(SlidingWindow::per_hour(limit));
    let bucket = AnyAlgorithm::from(free);
    let moved: Result<Decision, StoreError> = store
        .change_async("w", &bucket, &sliding(9), Carry::Tokens)
        .await;
    assert!(!moved.unwrap().is_allowed());
}

#[tokio::test]
async fn limits_that_do_not_fit_are_refused_when_the_limiter_is_built() {
    let store = server_store(Kind::Redis, "fit");
    let year = Duration::from_secs(365 * 86_400);
    let build = |limit| KeyedLimiter::<String, _, _>::try_with_async_store(limit, store.clone());
    let error = build(TokenBucket::per(1, year)).unwrap_err();
    assert!(
        matches!(error, InvalidLimit::DoesNotFitStore { bound } if bound.contains("52 days")),
        "{error}"
    );
    assert!(build(TokenBucket::per_second(5)).is_ok());
    assert!(build(TokenBucket::UNLIMITED).is_ok());
}

#[tokio::test]
async fn limits_that_do_not_count_ask_nobody() {
    // Nobody listens there.
    let store = RedisStore::connect("redis://127.0.0.1:1/", Namespace::new("n").unwrap()).unwrap();
    assert!(
        ask(&store, &TokenBucket::UNLIMITED, Request::ONE)
            .await
            .is_allowed()
    );
    assert!(
        !ask(&store, &TokenBucket::BLOCKED, Request::ONE)
            .await
            .is_allowed()
    );
    let mut items = [Item::new("k", &TokenBucket::UNLIMITED, Request::ONE)];
    store.apply_batch_async(&mut items).await;
    assert!(items[0].result().unwrap().as_ref().unwrap().is_allowed());
}

struct Shared(Arc<ManualClock>);

impl Clock for Shared {
    fn now(&self) -> Timestamp {
        self.0.now()
    }
}

/// Processes that tell the time themselves, by compare-and-swap.
#[tokio::test]
async fn clocks_of_processes_may_differ() {
    let limit = TokenBucket::per_second(1).with_burst(5);
    let process = |seconds: u64| {
        let (store, clock) = store(Kind::Redis, "clocks");
        clock.set(Timestamp::from_nanos(seconds * E9));
        let jitter = Jitter::new(seconds, Duration::from_millis(1), Duration::from_millis(8));
        CasLoop::with_clock(RedisCas(store), tokio::time::sleep, Shared(clock), jitter)
    };
    let (ahead, behind) = (process(107), process(100));
    let mut admitted = 0;
    for _ in 0..10 {
        for one in [&ahead, &behind] {
            let decision = one.apply_async("k", &limit, Request::ONE).await.unwrap();
            admitted += u32::from(decision.is_allowed());
        }
    }
    assert_eq!(admitted, 5);
    let refused = behind.apply_async("k", &limit, Request::ONE).await.unwrap();
    assert_eq!(refused.retry_after(), Some(Duration::from_secs(1)));
}
