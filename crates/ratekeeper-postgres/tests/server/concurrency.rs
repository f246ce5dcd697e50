//! Many callers at once, over many connections: nobody is counted twice, nobody gets too much.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use ratekeeper::store::{AsyncStore, CasLoop, ErrorKind};
use ratekeeper::{All, FixedWindow, Request, SlidingWindow, TokenBucket};
use ratekeeper_postgres::{PostgresAlgorithm, PostgresCas};

use crate::common::{Draw, database, sql, store};

const TASKS: u64 = 64;

/// Next to nothing comes back while a test runs.
fn slow(burst: u64) -> TokenBucket {
    TokenBucket::per(1, Duration::from_secs(864_000)).with_burst(burst)
}

/// 64 tasks over 8 connections ask for 1 to 3 tokens, more than there are; then what is left is taken one by one.
async fn grants_exactly<A, S>(store: S, limit: A, capacity: u64)
where
    A: PostgresAlgorithm + Clone + 'static,
    S: AsyncStore<str, A> + Clone + 'static,
{
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let (store, limit) = (store.clone(), limit.clone());
            tokio::spawn(async move {
                let (mut draw, mut granted) = (Draw(task), 0);
                for _ in 0..10 {
                    let request = Request::take(1 + draw.below(3));
                    match store.apply_async("hot", &limit, request).await {
                        Ok(decision) => granted += decision.granted(),
                        // Rolled back, in favour of others.
                        Err(error) => assert_eq!(error.kind(), ErrorKind::NotExecuted, "{error:?}"),
                    }
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
        .apply_async("hot", &limit, Request::PEEK)
        .await
        .unwrap()
        .remaining();
    assert_eq!(granted + left, capacity);
    assert!(granted > 100, "{granted}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn under_every_isolation() {
    let url = database("isolation").await;
    for level in ["read committed", "repeatable read", "serializable"] {
        sql(
            &url,
            &format!("ALTER DATABASE isolation SET default_transaction_isolation = '{level}'"),
        );
        let store = store(&url, 8);
        grants_exactly(store.clone(), slow(500), 500).await;
        store.forget_async("hot", &slow(500)).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn under_every_limit() {
    let day = Duration::from_secs(86_400);
    let stores = ["s", "f", "a", "c"].map(crate::common::namespace);
    let url = database("limits").await;
    let [sliding, fixed, all, swaps] = stores.map(|name| store(&url, 8).with_namespace(name));
    grants_exactly(sliding, SlidingWindow::per(500, 10 * day), 500).await;
    grants_exactly(fixed, FixedWindow::per(500, 10 * day).anchored(), 500).await;
    grants_exactly(all, All([slow(700), slow(500), slow(600)]), 500).await;
    let swaps = CasLoop::new(PostgresCas(swaps), tokio::time::sleep).with_max_attempts(1_000);
    grants_exactly(std::sync::Arc::new(swaps), slow(500), 500).await;
}

/// While others forget the key and sweep, what is there is still counted exactly: after all, nobody has more than there is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_that_come_and_go() {
    let url = database("come_and_go").await;
    let store = store(&url, 8);
    let limit = slow(3);
    let forgetting = tokio::spawn({
        let store = store.clone();
        async move {
            for _ in 0..200 {
                store.forget_async("hot", &limit).await.unwrap();
                store.sweep(10).await.unwrap();
            }
        }
    });
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move {
                let mut granted = 0;
                for _ in 0..100 {
                    granted += store
                        .apply_async("hot", &limit, Request::ONE)
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
    forgetting.await.unwrap();
    // At most a burst for each time that the key was forgotten.
    assert!((3..=3 * 201).contains(&granted), "{granted}");
}

/// Requests that are given up at any moment count once or not at all, and later answers are not mixed up.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropped_requests() {
    let store = store(&database("dropped").await, 2);
    let limit = slow(10_000);
    let mut draw = Draw(1);
    let (mut completed, mut started) = (0, 0);
    for _ in 0..400 {
        started += 1;
        let asked = store.apply_async("hot", &limit, Request::ONE);
        if let Some(decision) = up_to_polls(draw.below(6), asked).await {
            assert!(decision.unwrap().is_allowed());
            completed += 1;
        }
        let other = store.apply_async("other", &limit, Request::PEEK).await;
        assert_eq!(other.unwrap().remaining(), 10_000);
    }
    // What was sent over either connection before has been executed when that has answered once more.
    for _ in 0..2 {
        let _ = store
            .apply_async("other", &limit, Request::PEEK)
            .await
            .unwrap();
    }
    let left = store
        .apply_async("hot", &limit, Request::PEEK)
        .await
        .unwrap()
        .remaining();
    let counted = 10_000 - left;
    assert!(
        (completed..=started).contains(&counted),
        "{completed} {counted} {started}"
    );
    // Some were given up before they were sent, some after, and some not at all.
    assert!(
        0 < completed && completed < counted && counted < started,
        "{completed} {counted} {started}"
    );
}

/// Polls a future so often, and drops it if that was not enough.
async fn up_to_polls<T>(polls: u64, future: impl Future<Output = T>) -> Option<T> {
    let (mut future, mut polled) = (Box::pin(future), 0);
    poll_fn(|context| {
        if polled == polls {
            return Poll::Ready(None);
        }
        polled += 1;
        let answer = future.as_mut().poll(context).map(Some);
        if polled == polls && answer.is_pending() {
            return Poll::Ready(None);
        }
        answer
    })
    .await
}
