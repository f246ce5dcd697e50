//! All of them together, as their page recommends.

use std::sync::Arc;
use std::time::Duration;

use ratekeeper::store::{
    AsyncStore, Breaker, BreakerState, Deadline, DenyCache, ErrorKind, FailOpen, Fallback, Leased,
    Sharded, StoreError,
};
use ratekeeper::{DashStore, Decision, KeyedLimiter, ManualClock, Request, TokenBucket};
use tokio::time::sleep;

use crate::support::{Answer, LIMIT, SECOND, Script, ms};

/// An exact store behind a network that can go away.
struct Remote<'a> {
    store: DashStore<String, TokenBucket, &'a ManualClock>,
    faults: Script,
}

impl AsyncStore<str, TokenBucket> for Remote<'_> {
    async fn apply_async(
        &self,
        key: &str,
        limit: &TokenBucket,
        request: Request,
    ) -> Result<Decision, StoreError> {
        let _ = AsyncStore::<str, _>::apply_async(&self.faults, key, limit, Request::PEEK).await?;
        self.store.apply_async(key, limit, request).await
    }
}

#[tokio::test(start_paused = true)]
async fn an_outage_from_beginning_to_end() {
    let clock = ManualClock::new();
    clock.set(crate::support::NOW);
    let remote = Remote {
        store: DashStore::with_clock(&clock),
        faults: Script::default(),
    };
    let faults = &remote.faults;
    let leased = Leased::with_clock(&remote, 5, &clock);
    let deadline = Deadline::new(&leased, ms(50), sleep);
    let breaker = Breaker::with_clock(&deadline, 2, SECOND, &clock);
    let open = FailOpen::new(&breaker);
    let store = DenyCache::with_clock(&open, &clock);
    let ask = async |n| {
        store
            .apply_async("alice", &LIMIT, Request::take(n))
            .await
            .unwrap()
    };

    // All is well: two round trips for ten requests, and one that is refused.
    for _ in 0..10 {
        assert!(ask(1).await.is_allowed());
    }
    for _ in 0..5 {
        assert_eq!(ask(1).await.retry_after(), Some(SECOND));
    }
    assert_eq!((faults.count(), store.hits(), leased.hits()), (3, 4, 8));

    // The server hangs. What is known stays known; the others pass after the deadline, then at once.
    faults.then(vec![Answer::Hang; 2]);
    assert_eq!(ask(1).await.retry_after(), Some(SECOND));
    for _ in 0..4 {
        let passed = store
            .apply_async("bob", &LIMIT, Request::ONE)
            .await
            .unwrap();
        assert!(passed.is_allowed() && passed.is_degraded());
    }
    assert_eq!(
        (
            faults.count(),
            breaker.times_opened(),
            breaker.calls_refused()
        ),
        (2, 1, 2)
    );
    assert_eq!(
        (open.errors_answered(), open.last_error()),
        (4, Some(ErrorKind::NotExecuted))
    );

    // It is back: the probe gets the honest answer, and so do all after it.
    clock.advance(SECOND);
    let probe = store
        .apply_async("bob", &LIMIT, Request::ONE)
        .await
        .unwrap();
    assert!(probe.is_allowed() && !probe.is_degraded());
    assert_eq!(breaker.state(), BreakerState::Closed);
    assert!(ask(1).await.is_allowed());
    assert!(!ask(1).await.is_allowed());
}

/// With a breaker for each shard, one that is down takes only its own keys along.
#[tokio::test(start_paused = true)]
async fn one_shard_down() {
    let clock = Arc::new(ManualClock::new());
    let shard = |down: bool| {
        let answers = if down {
            vec![Answer::Hang; 10]
        } else {
            Vec::new()
        };
        let store = Deadline::new(Script::new(answers), ms(20), sleep);
        Breaker::with_clock(store, 1, SECOND, Arc::clone(&clock))
    };
    let sharded = Sharded::new([
        ("redis-a", shard(false)),
        ("redis-b", shard(true)),
        ("redis-c", shard(false)),
    ]);
    let local = DashStore::<String, TokenBucket, _>::with_clock(Arc::clone(&clock));
    let store = DenyCache::with_clock(Fallback::new(sharded.unwrap(), local), Arc::clone(&clock));
    let limiter = KeyedLimiter::<String, _, _>::with_store(LIMIT, store);
    for (key, degraded) in [
        ("alice", true),
        ("bob", false),
        ("carol", false),
        ("erin", true),
    ] {
        let decision = limiter.check_async(key).await.unwrap();
        assert_eq!(
            (decision.is_allowed(), decision.is_degraded()),
            (true, degraded),
            "{key}"
        );
    }
}

fn is_shareable<T: Send + Sync + std::fmt::Debug>(_: &T) {}

/// The types of a service can name them, share them and spawn them.
#[tokio::test]
async fn nested_stores_are_shared_between_tasks() {
    let store = DashStore::<String>::new();
    let store = Leased::new(store, 4);
    let store = Deadline::new(store, Duration::from_secs(5), sleep);
    let store = Breaker::new(store, 3, SECOND);
    let store = DenyCache::new(FailOpen::new(store));
    is_shareable(&store);
    let limiter = Arc::new(KeyedLimiter::<String, _, _>::with_store(LIMIT, store));
    let tasks = [(); 4].map(|()| {
        let limiter = Arc::clone(&limiter);
        tokio::spawn(async move { limiter.check_async("alice").await.unwrap().granted() })
    });
    let mut granted = 0;
    for task in tasks {
        granted += task.await.unwrap();
    }
    assert_eq!(granted, 4);
}
