//! Versions of a limit: the newest that a key has met decides, in every process.

use std::time::Duration;

use ratekeeper::store::{AsyncStore, CasLoop, ErrorKind};
use ratekeeper::{AnyAlgorithm, ManualClock, Request, Timestamp, TokenBucket};
use ratekeeper_postgres::PostgresCas;

use crate::common::{Draw, database, sql, store};

const NOW: Timestamp = Timestamp::from_nanos(1_767_225_600_000_000_000);
const DAY: Duration = Duration::from_secs(86_400);

#[tokio::test]
async fn a_raise_holds_from_the_next_request() {
    let clock = std::sync::Arc::new(ManualClock::new());
    clock.set(NOW);
    let url = database("raise").await;
    let store = store(&url, 1).with_clock(clock.clone(), DAY);
    let slow = TokenBucket::per_hour(100).with_version(1);
    let fast = TokenBucket::per_hour(10_000).with_version(2);
    let ask =
        async |limit: &TokenBucket, request| store.apply_async("k", limit, request).await.unwrap();
    assert!(ask(&slow, Request::take(100)).await.is_allowed());
    let before = sql(&url, "SELECT state FROM ratekeeper.states_v1");
    assert_eq!(before.len(), 2 + 2 * 43);
    let wait = Some(Duration::from_millis(360));
    // A look says so, and writes nothing.
    assert_eq!(ask(&fast, Request::PEEK).await.limit(), 10_000);
    assert_eq!(sql(&url, "SELECT state FROM ratekeeper.states_v1"), before);
    let refused = ask(&fast, Request::ONE).await;
    assert_eq!((refused.retry_after(), refused.limit()), (wait, 10_000));
    // It is written though refused, and the old process adopts it: a raise is a raise for everybody on the key.
    let refused = ask(&slow, Request::ONE).await;
    assert_eq!((refused.retry_after(), refused.limit()), (wait, 10_000));
    let peeked = ask(&slow, Request::PEEK).await;
    assert_eq!((peeked.limit(), peeked.remaining()), (10_000, 0));
    clock.set(NOW + Duration::from_millis(360));
    let taken = ask(&slow, Request::ONE).await;
    assert_eq!((taken.granted(), taken.limit()), (1, 10_000));
    // What was taken under the newer limit is given back under it.
    let given_back = ask(&slow, Request::refund(1, taken.into_receipt())).await;
    assert_eq!((given_back.remaining(), given_back.limit()), (1, 10_000));
    // So does a process whose limit has no number, also one whose limit a configuration file chose.
    let plain = TokenBucket::per_hour(100);
    assert_eq!(ask(&plain, Request::ONE).await.limit(), 10_000);
    let any = AnyAlgorithm::from(plain);
    let decision = store.apply_async("k", &any, Request::ONE).await.unwrap();
    assert_eq!((decision.limit(), decision.is_allowed()), (10_000, false));
}

#[tokio::test]
async fn two_limits_of_one_number() {
    let url = database("one_number").await;
    let store = store(&url, 1);
    let limit = TokenBucket::per_hour(100).with_version(2);
    let other = TokenBucket::per_hour(101).with_version(2);
    assert!(
        store
            .apply_async("k", &limit, Request::ONE)
            .await
            .unwrap()
            .is_allowed()
    );
    let row = || sql(&url, "SELECT state, xmin, ctid FROM ratekeeper.states_v1");
    let before = row();
    for request in [Request::ONE, Request::PEEK, Request::charge(3)] {
        let error = store.apply_async("k", &other, request).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config, "{error:?}");
    }
    assert_eq!(row(), before);
    // The same in other words is the same.
    let period = Duration::from_secs(7_200);
    let same = TokenBucket::per(200, period)
        .with_burst(100)
        .with_version(2);
    let decision = store.apply_async("k", &same, Request::ONE).await.unwrap();
    assert_eq!(decision.remaining(), 98);
}

/// Three configurations at once, back and forth, over many connections: tokens are kept, so that the burst is all there is. Half
/// of the processes compare and swap.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn versions_under_load() {
    let url = database("versions_load").await;
    let store = store(&url, 6);
    let cas = CasLoop::new(PostgresCas(store.clone()), tokio::time::sleep);
    let cas = std::sync::Arc::new(cas.with_max_attempts(1_000));
    let limit = |version: u16| {
        let tokens = u64::from(version);
        let limit = TokenBucket::per(tokens, 10 * DAY).with_burst(300);
        limit.with_version(version)
    };
    let tasks: Vec<_> = (0..24_u64)
        .map(|task| {
            let (store, cas) = (store.clone(), cas.clone());
            tokio::spawn(async move {
                let (mut draw, mut granted) = (Draw(task), 0);
                for turn in 0..20_u64 {
                    // The newest comes late, and not to everybody.
                    let newest = 1 + (turn / 7).min(task % 3);
                    let version = 1 + draw.below(newest);
                    let limit = limit(u16::try_from(version).unwrap());
                    let request = Request::take(1);
                    let decision = if task % 4 == 0 {
                        cas.apply_async("k", &limit, request).await
                    } else {
                        store.apply_async("k", &limit, request).await
                    };
                    granted += decision.unwrap().granted();
                }
                granted
            })
        })
        .collect();
    let mut granted = 0;
    for task in tasks {
        granted += task.await.unwrap();
    }
    let left = store
        .apply_async("k", &limit(1), Request::PEEK)
        .await
        .unwrap();
    assert_eq!((granted, left.remaining()), (300, 0));
    // The key has met the third.
    let version = sql(&url, "SELECT get_byte(state, 10) FROM ratekeeper.states_v1");
    assert_eq!(version, "3");
}

/// Two versions of a program without numbers: debts are time, so the wider one bounds both.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_without_versions_under_load() {
    let store = store(&database("plain_load").await, 6);
    let wide = TokenBucket::per(1, 10 * DAY).with_burst(200);
    let tasks: Vec<_> = (0..16)
        .map(|task| {
            let store = store.clone();
            tokio::spawn(async move {
                let limit = if task % 2 == 0 {
                    wide
                } else {
                    wide.with_burst(20)
                };
                let mut granted = 0;
                for _ in 0..30 {
                    granted += store
                        .apply_async("k", &limit, Request::ONE)
                        .await
                        .unwrap()
                        .granted();
                }
                granted
            })
        })
        .collect();
    let mut granted = 0;
    for task in tasks {
        granted += task.await.unwrap();
    }
    assert_eq!(granted, 200);
}
