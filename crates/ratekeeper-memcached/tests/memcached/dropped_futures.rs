//! Futures that are dropped at whatever point.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use ratekeeper::store::{AsyncCasStore, ErrorKind, StateBytes};
use ratekeeper::{Request, TokenBucket};
use ratekeeper_test_servers::{Kind, Options, Server};

use crate::support::{Limiter, Random, bucket, cas, clock, kind, store};

/// Polls a future so often at most, while other tasks run, and drops it then.
async fn abandon<T>(polls: u64, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    for _ in 0..polls {
        if let Poll::Ready(output) =
            poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await
        {
            return Some(output);
        }
        tokio::task::yield_now().await;
    }
    None
}

/// Half of the tasks abandon what they ask, on the connection on which the others compare every answer with the only one
/// that is right.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropped_futures_mix_up_nothing() {
    const TASKS: u64 = 16;
    const REQUESTS: u64 = 100;
    let clock = clock();
    let cas = cas(Server::shared(Kind::Memcached), "dropped");
    let limit = TokenBucket::per_second(10).with_burst(1_000_000);
    let limiter = Arc::new(Limiter::<str>::with_store(
        limit,
        store(cas.clone(), &clock),
    ));

    let mut abandoning = Vec::new();
    let mut checking = Vec::new();
    for task in 0..TASKS {
        let of_all = Arc::clone(&limiter);
        abandoning.push(tokio::spawn(async move {
            let mut random = Random(task);
            let mut completed = 0;
            for _ in 0..REQUESTS {
                let asked = of_all.check_async("all");
                let answer = match random.below(16) {
                    polls @ ..12 => abandon(polls, asked).await,
                    _ => Some(asked.await),
                };
                match answer {
                    Some(Ok(decision)) if decision.is_allowed() => completed += 1,
                    Some(Err(error)) if error.kind() != ErrorKind::Contention => {
                        panic!("{error:?}")
                    }
                    _ => {}
                }
            }
            completed
        }));
        let of_one = Limiter::<str>::with_store(bucket(), store(cas.clone(), &clock));
        checking.push(tokio::spawn(async move {
            for round in 0..REQUESTS / 5 {
                let key = format!("{task} {round}");
                for remaining in [4, 3, 2, 1, 0] {
                    let decision = of_one.check_async(key.as_str()).await.unwrap();
                    assert_eq!(
                        (decision.is_allowed(), decision.remaining()),
                        (true, remaining)
                    );
                }
            }
        }));
    }
    let mut completed = 0;
    for task in abandoning {
        completed += task.await.unwrap();
    }
    for task in checking {
        task.await.unwrap();
    }
    let remaining = limiter
        .apply_async("all", Request::PEEK)
        .await
        .unwrap()
        .remaining();
    let counted = limit.burst() - remaining;
    assert!(completed > 0, "no future was left to its end");
    assert!(
        (completed..=TASKS * REQUESTS).contains(&counted),
        "{completed} completed, {counted} counted"
    );
}

/// A request that was dropped before it was sent is not sent: here because the server hangs, and as many as may be are under
/// way already.
#[tokio::test]
async fn what_was_dropped_in_the_queue_is_not_executed() {
    let mut server = Server::memcached(Options::new());
    let cas = cas(&server, "queue");
    let state = StateBytes::from_stored(b"state").unwrap();
    let absent = cas.load_async("alice", &kind()).await.unwrap();
    server.pause();
    {
        let load = |key: u32| {
            let cas = &cas;
            async move { cas.load_async(&key, &kind()).await }
        };
        let mut loads: Vec<_> = (0..1_500).map(load).map(Box::pin).collect();
        for load in &mut loads {
            assert!(abandon(1, load.as_mut()).await.is_none());
        }
        let minute = Duration::from_secs(60);
        let kind = kind();
        let exchange = cas.compare_exchange_async("alice", &kind, &absent, &state, minute);
        assert!(abandon(10, exchange).await.is_none());
    }
    server.resume();
    server.wait_until_ready();
    for key in 0..100_u32 {
        assert!(cas.load_async(&key, &kind()).await.unwrap().state.is_none());
    }
    assert!(
        cas.load_async("alice", &kind())
            .await
            .unwrap()
            .state
            .is_none()
    );
}
