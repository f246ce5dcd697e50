//! A store as another crate would write it, from the documentation alone: the kit's verdict on it, and what becomes of it in
//! spawned tasks and in wrappers.
//!
//! Time is tokio's paused time and a manual clock: nothing sleeps.

mod server;
mod store;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use ratekeeper::conformance::{Backend, Fault, Need, Repairs, Subject, Work, check_all};
use ratekeeper::store::{
    Breaker, BreakerState, Deadline, DenyCache, DynStore, ErrorKind, Fallback, Key, Leased,
    WithLimit,
};
use ratekeeper::{
    All, DashStore, FixedWindow, KeyedLimiter, ManualClock, SlidingWindow, TokenBucket,
};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

use crate::server::Server;
use crate::store::{DEADLINE, custom_store};
use crate::wire::Remote;

struct CustomStores {
    server: Arc<Server>,
    runtime: Arc<Runtime>,
    _until_dropped: oneshot::Sender<()>,
}

impl CustomStores {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build();
        let runtime = Arc::new(runtime.expect("a runtime needs no permission"));
        // Some clauses poll without ever giving their thread up; the server needs one that turns its wheels meanwhile.
        let (_until_dropped, dropped) = oneshot::channel();
        let wheels = Arc::clone(&runtime);
        std::thread::spawn(move || wheels.block_on(dropped));
        Self {
            server: Arc::default(),
            runtime,
            _until_dropped,
        }
    }

    fn open<K: Key + ?Sized + 'static, A: Remote + 'static>(&self, space: &str) -> DynStore<K, A> {
        DynStore::new(custom_store(&self.server, space))
    }
}

impl Subject for CustomStores {
    fn buckets(&self, space: &str) -> DynStore<str, TokenBucket> {
        self.open(space)
    }
    fn clock(&self) -> Option<&ManualClock> {
        Some(&self.server.clock)
    }
    fn windows(&self, space: &str) -> Option<DynStore<str, SlidingWindow>> {
        Some(self.open(space))
    }
    fn fixed_windows(&self, space: &str) -> Option<DynStore<str, FixedWindow>> {
        Some(self.open(space))
    }
    fn several(&self, space: &str) -> Option<DynStore<str, All<[TokenBucket; 3]>>> {
        Some(self.open(space))
    }
    fn tuple_keys(&self, space: &str) -> Option<DynStore<(String, String), TokenBucket>> {
        Some(self.open(space))
    }
    fn byte_keys(&self, space: &str) -> Option<DynStore<[u8], TokenBucket>> {
        Some(self.open(space))
    }
    fn backend(&self) -> Option<&dyn Backend> {
        Some(&*self.server)
    }
    fn block_on(&self, work: Work<'_>) {
        self.runtime.block_on(work);
    }
    fn requests_per_clause(&self) -> u32 {
        1_000
    }
    fn repairs(&self) -> Repairs {
        Repairs::Proven
    }
    fn deadline(&self) -> Option<Duration> {
        Some(DEADLINE)
    }
}

#[test]
fn a_custom_store_keeps_the_contract() {
    check_all(&CustomStores::new(), &[Need::Logs, Need::Changes]);
}

#[tokio::test(start_paused = true)]
async fn spawned_tasks_share_a_custom_store() {
    let server = Arc::new(Server::default());
    let store: DynStore<str> = DynStore::new(custom_store(&server, "users"));
    let limit = TokenBucket::per_minute(30);
    let users = Arc::new(KeyedLimiter::<str, _, _>::with_store(limit, store));
    let ask = |tasks: usize| {
        let asked: Vec<_> = (0..tasks)
            .map(|i| {
                let users = Arc::clone(&users);
                tokio::spawn(async move {
                    users
                        .check_async(if i % 2 == 0 { "even" } else { "odd" })
                        .await
                })
            })
            .collect();
        async move {
            let mut results = Vec::new();
            for task in asked {
                results.push(task.await.expect("no task panics"));
            }
            results
        }
    };
    let allowed = ask(100)
        .await
        .into_iter()
        .filter(|result| result.as_ref().unwrap().is_allowed())
        .count();
    assert_eq!(allowed, 60);
    for (fault, kind) in [
        (Fault::Refuse, ErrorKind::NotExecuted),
        (Fault::LoseAnswer, ErrorKind::Unknown),
        (Fault::Hang, ErrorKind::Unknown),
    ] {
        server.break_with(fault);
        for result in ask(10).await {
            assert_eq!(result.unwrap_err().kind(), kind, "{fault:?}");
        }
    }
    server.heal();
    users.forget_async("even").await.unwrap();
    let allowed = ask(100)
        .await
        .into_iter()
        .filter(|result| result.as_ref().unwrap().is_allowed())
        .count();
    assert_eq!(allowed, 30, "only one of the two keys was forgotten");
}

#[tokio::test(start_paused = true)]
async fn the_recommended_nest_outlasts_an_outage() {
    let server = Arc::new(Server::default());
    let clock = &server.clock;
    let leased = Leased::with_clock(custom_store(&server, "nest"), 5, clock);
    let deadline = Deadline::new(leased, Duration::from_millis(50), tokio::time::sleep);
    let breaker = Breaker::with_clock(deadline, 2, Duration::from_secs(5), clock);
    let local = WithLimit::new(
        DashStore::<String, TokenBucket, _>::with_clock(clock),
        TokenBucket::per_minute(3),
    );
    let nest = DenyCache::with_clock(Fallback::new(breaker, local), clock);
    let users = KeyedLimiter::<str, _, _>::with_store(TokenBucket::per_minute(10), nest);
    let breaker = users.store().get_ref().first();
    let leased = breaker.get_ref().get_ref();

    let mut decisions = Vec::new();
    for _ in 0..14 {
        decisions.push(users.check_async("alice").await.unwrap());
    }
    let allowed = decisions
        .iter()
        .filter(|decision| decision.is_allowed() && !decision.is_degraded())
        .count();
    assert_eq!((allowed, leased.hits(), users.store().hits()), (10, 8, 3));

    for (fault, opened) in [(Fault::Hang, 1), (Fault::LoseAnswer, 2), (Fault::Refuse, 3)] {
        server.break_with(fault);
        let began = tokio::time::Instant::now();
        let mut allowed = 0;
        for _ in 0..6 {
            let decision = users.check_async("bob").await.unwrap();
            assert!(decision.is_degraded(), "{fault:?}");
            allowed += u64::from(decision.is_allowed());
        }
        assert_eq!(allowed, 3, "{fault:?}: this process's share");
        assert!(
            began.elapsed() <= Duration::from_millis(100),
            "{fault:?}: two calls met the outage"
        );
        assert_eq!(
            (breaker.times_opened(), users.store().get_ref().last_error()),
            (opened, Some(ErrorKind::NotExecuted))
        );
        assert!(matches!(breaker.state(), BreakerState::Open { .. }));

        server.heal();
        clock.advance(Duration::from_secs(60));
        let decision = users.check_async("bob").await.unwrap();
        assert!(
            decision.is_allowed() && !decision.is_degraded(),
            "{fault:?}"
        );
        assert_eq!(breaker.state(), BreakerState::Closed);
        clock.advance(Duration::from_secs(60));
    }
}
