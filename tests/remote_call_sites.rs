//! How stores outside of the process are used: each test is a call site that must compile as written and do what it says.

use std::error::Error;
use std::hash::Hash;
use std::sync::Arc;

use ratekeeper::store::{
    Breaker, DenyCache, DynStore, ErrorKind, FailClosed, FailOpen, Fallback, Key, Ready, WithLimit,
};
use ratekeeper::{
    Algorithm, AsyncStore, Carry, DashStore, Decision, KeyedLimiter, Request, SlidingWindow, Store,
    StoreError, TableStore, TokenBucket,
};

/// A remote store that a stranger wrote, and that is down.
struct Remote;

impl<K: Key + ?Sized, A: Algorithm<State = u64>> AsyncStore<K, A> for Remote {
    async fn apply_async(
        &self,
        _key: &K,
        _algorithm: &A,
        _request: Request,
    ) -> Result<Decision, StoreError> {
        tokio::task::yield_now().await;
        Err(StoreError::new(ErrorKind::NotExecuted, "down"))
    }
}

/// A middleware that is generic over the store, as a crate of its own would have it.
struct Middleware<K: ?Sized, A: Algorithm, S, F> {
    limiter: Arc<KeyedLimiter<K, A, S>>,
    key: F,
}

impl<K, A, S, F> Middleware<K, A, S, F>
where
    K: Send + Sync + 'static,
    A: Algorithm + 'static,
    S: AsyncStore<K, A> + 'static,
{
    fn call<R>(
        &self,
        request: &R,
    ) -> impl Future<Output = Result<Decision, StoreError>> + Send + 'static + use<R, K, A, S, F>
    where
        F: Fn(&R) -> K,
    {
        let (key, limiter) = ((self.key)(request), Arc::clone(&self.limiter));
        async move { limiter.check_async(&key).await }
    }
}

#[tokio::test]
async fn a_generic_middleware_in_spawned_tasks() {
    let limiter = KeyedLimiter::<String, _>::new(TokenBucket::per_minute(3));
    let middleware = Middleware {
        limiter: Arc::new(limiter),
        key: |request: &u32| format!("user {request}"),
    };
    let tasks: Vec<_> = (0..4).map(|_| tokio::spawn(middleware.call(&7))).collect();
    let mut admitted = 0;
    for task in tasks {
        admitted += u32::from(task.await.unwrap().unwrap().is_allowed());
    }
    assert_eq!(admitted, 3);
}

/// A view borrows, so it is made inside the task that awaits.
#[tokio::test]
async fn tiers_in_spawned_tasks() {
    let free = TokenBucket::per_minute(3);
    let users = Arc::new(KeyedLimiter::<u64, _>::new(TokenBucket::per_minute(100)));
    let tasks: Vec<_> = (0..4)
        .map(|_| {
            let users = Arc::clone(&users);
            tokio::spawn(async move {
                let limit_from_db = free;
                let user = 7;
                let decision = users.under(&limit_from_db).check_async(&user).await?;
                Ok::<_, StoreError>(decision.report())
            })
        })
        .collect();
    let mut admitted = 0;
    for task in tasks {
        admitted += u32::from(task.await.unwrap().unwrap().is_allowed());
    }
    assert_eq!(admitted, 3);
    // For one key, and every verb.
    let id = 8;
    let key = users.under(&free).for_key(&id);
    let (report, receipt) = key.apply_async(Request::take(2)).await.unwrap().split();
    assert_eq!(report.remaining(), 1);
    let back = key.apply_async(Request::refund(2, receipt)).await.unwrap();
    assert_eq!(back.remaining(), 3);
    assert!(users.for_key(&id).check_async().await.unwrap().is_allowed());
    key.forget_async().await.unwrap();
    let paid = TokenBucket::per_minute(50);
    assert!(
        key.apply_async(Request::take(3))
            .await
            .unwrap()
            .is_allowed()
    );
    let report = users
        .change_async(&id, &free, &paid, Carry::Tokens)
        .await
        .unwrap();
    assert_eq!((report.remaining(), report.limit()), (0, 50));
}

/// What cannot change a key says so; it does not take another limit for a change.
#[tokio::test]
async fn a_store_that_cannot_change_says_so() {
    let limit = TokenBucket::per_minute(1);
    let users = KeyedLimiter::<str, _, _>::with_store(limit, DynStore::new(Remote));
    let change = users
        .change_async("alice", &limit, &limit, Carry::Tokens)
        .await;
    assert_eq!(change.unwrap_err().kind(), ErrorKind::Unsupported);
}

#[tokio::test]
async fn the_store_is_chosen_at_run_time() {
    let open = |remote: bool| -> DynStore<str> {
        if remote {
            DynStore::new(Remote)
        } else {
            DynStore::new(DashStore::<String>::new())
        }
    };
    let limit = TokenBucket::per_minute(1);
    let local = KeyedLimiter::<str, _, _>::with_store(limit, open(false));
    assert!(local.check_async("alice").await.unwrap().is_allowed());
    let shared = local.store().clone();
    assert!(
        !KeyedLimiter::<str, _, _>::with_store(limit, shared)
            .check_async("alice")
            .await
            .unwrap()
            .is_allowed()
    );
    let remote = KeyedLimiter::<str, _, _>::with_store(limit, open(true));
    assert_eq!(
        remote.check_async("alice").await.unwrap_err().kind(),
        ErrorKind::NotExecuted
    );
}

#[tokio::test]
async fn what_production_wraps_around_a_store() {
    let breaker = Breaker::new(Remote, 3, std::time::Duration::from_secs(60));
    let share = WithLimit::new(DashStore::<String>::new(), TokenBucket::per_minute(1));
    let store = DenyCache::new(Fallback::new(breaker, share));
    let limiter = KeyedLimiter::<str, _, _>::with_store(TokenBucket::per_minute(10), store);
    let first = limiter.check_async("alice").await.unwrap();
    assert!(first.is_allowed() && first.is_degraded());
    let second = limiter.check_async("alice").await.unwrap();
    assert!(!second.is_allowed() && second.is_degraded());

    let open =
        KeyedLimiter::<str, _, _>::with_store(TokenBucket::per_minute(1), FailOpen::new(Remote));
    let closed =
        KeyedLimiter::<str, _, _>::with_store(TokenBucket::per_minute(1), FailClosed::new(Remote));
    for _ in 0..3 {
        assert!(open.check_async("alice").await.unwrap().is_allowed());
        assert!(!closed.check_async("alice").await.unwrap().is_allowed());
    }
}

#[test]
fn a_store_that_may_fail_asked_synchronously() {
    fn serve(
        limiter: &KeyedLimiter<str, TokenBucket, Box<dyn Store<str, TokenBucket>>>,
    ) -> Result<u64, Box<dyn Error + Send + Sync>> {
        // `?` on an outage and on a refusal alike.
        let receipt = limiter.try_check("alice")?.into_result()?;
        Ok(receipt.charged())
    }
    let store: Box<dyn Store<str, TokenBucket>> = Box::new(DashStore::<String>::new());
    let limiter = KeyedLimiter::with_store(TokenBucket::per_minute(1), store);
    assert_eq!(serve(&limiter).unwrap(), 1);
    assert!(
        serve(&limiter)
            .unwrap_err()
            .to_string()
            .starts_with("rate limited")
    );
    limiter.try_forget("alice").unwrap();
    assert_eq!(serve(&limiter).unwrap(), 1);
}

#[tokio::test]
async fn one_store_in_this_process_is_all_three_kinds() {
    async fn three_times<K: Hash + Eq + Sync, S>(
        limiter: &KeyedLimiter<K, SlidingWindow, S>,
        key: &K,
    ) -> [bool; 3]
    where
        S: ratekeeper::MemoryStore<K, SlidingWindow>
            + Store<K, SlidingWindow>
            + AsyncStore<K, SlidingWindow>,
    {
        [
            limiter.check(key).is_allowed(),
            limiter.try_check(key).unwrap().is_allowed(),
            limiter.check_async(key).await.unwrap().is_allowed(),
        ]
    }
    let limit = SlidingWindow::per_minute(2);
    let expected = [true, true, false];
    assert_eq!(
        three_times(&KeyedLimiter::<u64, _>::new(limit), &7).await,
        expected
    );
    let table = TableStore::<_, SlidingWindow>::for_keys(10).unwrap();
    assert_eq!(
        three_times(
            &KeyedLimiter::<u64, _, _>::with_store(limit, Ready(table)),
            &7
        )
        .await,
        expected
    );
}
