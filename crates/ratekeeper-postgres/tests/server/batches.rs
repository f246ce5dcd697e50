//! Many requests in one call.

use std::sync::Arc;
use std::time::Duration;

use ratekeeper::store::{AsyncStore, ErrorKind, Item};
use ratekeeper::{
    AnyAlgorithm, ManualClock, Outcome, Request, SlidingWindow, Timestamp, TokenBucket,
};
use ratekeeper_postgres::{Connections, PostgresStore};

use crate::common::{database, namespace, sql, store};

const NOW: Timestamp = Timestamp::from_nanos(1_767_225_600_000_000_000);

/// What is left after each item shows in which order they were executed. Two functions and looks take turns.
#[tokio::test]
async fn items_of_a_key_are_executed_in_order() {
    let store = store(&database("batch_order").await, 3);
    let bucket = AnyAlgorithm::from(TokenBucket::per_day(1_000));
    let window = AnyAlgorithm::from(SlidingWindow::per_day(1_000));
    let asked: Vec<_> = (0..1_000_u64)
        .map(|number| {
            let (key, limit) = if number % 3 == 0 {
                ("b", &bucket)
            } else {
                ("w", &window)
            };
            (key, limit, if number % 10 < 2 { 0 } else { 1 })
        })
        .collect();
    let mut items: Vec<_> = asked
        .iter()
        .map(|(key, limit, cost)| Item::new(*key, *limit, Request::take(*cost)))
        .collect();
    store.apply_batch_async(&mut items).await;
    let (mut in_bucket, mut in_window) = (1_000, 1_000);
    for (item, (key, _, cost)) in items.into_iter().zip(&asked) {
        let left = if *key == "b" {
            &mut in_bucket
        } else {
            &mut in_window
        };
        *left -= cost;
        let decision = item.into_result().unwrap();
        assert!(decision.is_allowed());
        assert_eq!((decision.remaining(), decision.granted()), (*left, *cost));
    }
}

/// A batch that meets a value from before a step of the clock repairs it once, and stays in order.
#[tokio::test]
async fn a_clock_that_was_stepped_back_keeps_the_order() {
    let clock = Arc::new(ManualClock::new());
    clock.set(NOW);
    let grace = Duration::from_secs(3_600);
    let store = store(&database("batch_clock").await, 3).with_clock(clock.clone(), grace);
    let limit = TokenBucket::per_second(10);
    for _ in 0..10 {
        assert!(
            store
                .apply_async("k", &limit, Request::ONE)
                .await
                .unwrap()
                .is_allowed()
        );
    }
    clock.set(Timestamp::from_nanos(NOW.as_nanos() - 60_000_000_000));
    let mut items: Vec<_> = [1, 0, 1, 11]
        .map(|cost| Item::new("k", &limit, Request::take(cost)))
        .into();
    store.apply_batch_async(&mut items).await;
    let denied = Some(Duration::from_millis(100));
    for (item, (retry_after, remaining)) in
        items
            .into_iter()
            .zip([(denied, 0), (None, 0), (denied, 0), (None, 0)])
    {
        let decision = item.into_result().unwrap();
        assert_eq!(
            (decision.retry_after(), decision.remaining()),
            (retry_after, remaining)
        );
    }
}

/// Programs with three versions of a limit, one of them without a number, in one batch on one key: in order, under the newest
/// that the key has met.
#[tokio::test]
async fn items_under_several_versions_are_executed_in_order() {
    let store = store(&database("batch_versions").await, 2);
    let plain = TokenBucket::per_day(100);
    let (first, second) = (plain.with_version(1), plain.with_burst(50).with_version(2));
    let asked = [
        (&first, 10, Some((100, 90))),
        (&first, 1, Some((100, 89))),
        // 89 left of 100 are no more than 50.
        (&second, 1, Some((50, 49))),
        (&first, 2, Some((50, 47))),
        (&plain, 3, Some((50, 44))),
        (&second, 4, Some((50, 40))),
        (&first, 60, None),
        (&plain, 40, Some((50, 0))),
    ];
    let mut items: Vec<_> = asked
        .iter()
        .map(|(limit, cost, _)| Item::new("k", *limit, Request::take(*cost)))
        .collect();
    store.apply_batch_async(&mut items).await;
    for (item, (_, cost, expected)) in items.into_iter().zip(asked) {
        let decision = item.into_result().unwrap();
        let seen = (decision.limit(), decision.remaining());
        match expected {
            Some(expected) => assert_eq!((seen, decision.granted()), (expected, cost)),
            None => assert_eq!(decision.outcome(), Outcome::TooLarge),
        }
    }
}

/// Another limit under the same number is the application's mistake, and spoils no other item.
#[tokio::test]
async fn items_under_one_number() {
    let store = store(&database("batch_one_number").await, 1);
    let limit = TokenBucket::per_day(5).with_version(3);
    let other = TokenBucket::per_day(6).with_version(3);
    let mut items: Vec<_> = [("a", &limit), ("a", &other), ("a", &limit), ("b", &other)]
        .map(|(key, limit)| Item::new(key, limit, Request::ONE))
        .into();
    store.apply_batch_async(&mut items).await;
    let results: Vec<_> = items.into_iter().map(Item::into_result).collect();
    assert_eq!(results[0].as_ref().unwrap().remaining(), 4);
    assert_eq!(results[1].as_ref().unwrap_err().kind(), ErrorKind::Config);
    assert_eq!(results[2].as_ref().unwrap().remaining(), 3);
    assert_eq!(results[3].as_ref().unwrap().remaining(), 5);
}

#[tokio::test]
async fn one_bad_item_spoils_no_other() {
    let url = database("batch_spoilt").await;
    let store = store(&url, 1);
    sql(
        &url,
        "INSERT INTO ratekeeper.states_v1 VALUES ('rl:test:bad', 'hello', 'infinity')",
    );
    let limit = TokenBucket::per_day(5);
    let mut items: Vec<_> = ["a", "bad", "b"]
        .map(|key| Item::new(key, &limit, Request::ONE))
        .into();
    store.apply_batch_async(&mut items).await;
    let results: Vec<_> = items.into_iter().map(Item::into_result).collect();
    assert!(results[0].as_ref().unwrap().is_allowed());
    assert_eq!(results[1].as_ref().unwrap_err().kind(), ErrorKind::Corrupt);
    assert_eq!(results[2].as_ref().unwrap().remaining(), 4);
}

/// Nothing of a batch is sent twice, and what was not sent says so.
#[tokio::test]
async fn without_a_server_nothing_is_counted() {
    let nowhere: Connections = Connections::new(
        "postgres://postgres@127.0.0.1:1/none".parse().unwrap(),
        ratekeeper_postgres::tokio_postgres::NoTls,
    );
    let store = PostgresStore::new(nowhere, namespace("test"));
    let limit = TokenBucket::per_day(5);
    let mut items: Vec<_> = ["a", "b"]
        .map(|key| Item::new(key, &limit, Request::ONE))
        .into();
    store.apply_batch_async(&mut items).await;
    for item in items {
        assert_eq!(
            item.into_result().unwrap_err().kind(),
            ErrorKind::NotExecuted
        );
    }
    store
        .apply_batch_async(&mut Vec::<Item<'_, str, TokenBucket>>::new())
        .await;
}
