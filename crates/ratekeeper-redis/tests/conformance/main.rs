//! The conformance kit against real servers, behind a proxy that can be broken.
#![allow(
    clippy::disallowed_methods,
    reason = "servers and faults live in real time"
)]

mod backend;

use std::sync::Arc;
use std::time::Duration;

use ratekeeper::conformance::{Backend, Need, Repairs, Subject, Work, check_all};
use ratekeeper::store::{CasLoop, DynStore, Jitter, Key, Namespace};
use ratekeeper::{
    Algorithm, All, Clock, FixedWindow, ManualClock, SlidingLog, SlidingWindow, Timestamp,
    TokenBucket,
};
use ratekeeper_redis::{RedisAlgorithm, RedisCas, RedisStore};
use ratekeeper_test_servers::{Kind, Options, Server};
use tokio::runtime::Runtime;

use crate::backend::Redis;

const DEADLINE: Duration = Duration::from_millis(500);

struct Stores {
    runtime: Runtime,
    /// `None` for the server's.
    clock: Option<Arc<ManualClock>>,
    redis: Redis,
}

impl Stores {
    fn new(kind: Kind, clock: Option<Arc<ManualClock>>) -> Self {
        Self {
            runtime: Runtime::new().unwrap(),
            clock,
            redis: Redis::new(Server::start(kind, Options::new())),
        }
    }

    fn store(&self, space: &str) -> RedisStore {
        let _guard = self.runtime.enter();
        let url = format!("redis://{}/", self.redis.proxy.address());
        let store = RedisStore::connect(url, Namespace::new(space).unwrap())
            .unwrap()
            .with_deadline(DEADLINE);
        match &self.clock {
            Some(clock) => store.with_clock(clock.clone(), Duration::from_secs(60)),
            None => store,
        }
    }

    fn open<K: Key + ?Sized + 'static, A: RedisAlgorithm + 'static>(
        &self,
        space: &str,
    ) -> DynStore<K, A> {
        DynStore::new(self.store(space))
    }
}

impl Subject for Stores {
    fn buckets(&self, space: &str) -> DynStore<str, TokenBucket> {
        self.open(space)
    }

    fn clock(&self) -> Option<&ManualClock> {
        self.clock.as_deref()
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

    fn logs(&self, space: &str) -> Option<DynStore<str, SlidingLog>> {
        Some(self.open(space))
    }

    fn tuple_keys(&self, space: &str) -> Option<DynStore<(String, String), TokenBucket>> {
        Some(self.open(space))
    }

    fn byte_keys(&self, space: &str) -> Option<DynStore<[u8], TokenBucket>> {
        Some(self.open(space))
    }

    fn backend(&self) -> Option<&dyn Backend> {
        Some(&self.redis)
    }

    fn block_on(&self, work: Work<'_>) {
        self.runtime.block_on(work);
    }

    fn requests_per_clause(&self) -> u32 {
        1_000
    }

    fn log_tick(&self) -> Duration {
        Duration::from_micros(1)
    }

    fn sends_readings(&self) -> bool {
        self.clock.is_some()
    }

    fn repairs(&self) -> Repairs {
        Repairs::Proven
    }

    fn deadline(&self) -> Option<Duration> {
        Some(DEADLINE)
    }
}

/// The clock of the processes, where it is not the server's.
struct Shared(Arc<ManualClock>);

impl Clock for Shared {
    fn now(&self) -> Timestamp {
        self.0.now()
    }
}

/// The same over compare-and-swap.
struct CasStores(Stores);

impl CasStores {
    fn open<K: Key + ?Sized + 'static, A: Algorithm + 'static>(
        &self,
        space: &str,
    ) -> DynStore<K, A> {
        let clock = Shared(self.0.clock.clone().unwrap_or_default());
        let jitter = Jitter::new(1, Duration::from_millis(1), Duration::from_millis(64));
        let store = RedisCas(self.0.store(space));
        let store = CasLoop::with_clock(store, tokio::time::sleep, clock, jitter);
        DynStore::new(store.with_max_attempts(200))
    }
}

impl Subject for CasStores {
    fn buckets(&self, space: &str) -> DynStore<str, TokenBucket> {
        self.open(space)
    }

    fn clock(&self) -> Option<&ManualClock> {
        self.0.clock()
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
        self.0.backend()
    }

    fn block_on(&self, work: Work<'_>) {
        self.0.block_on(work);
    }

    fn requests_per_clause(&self) -> u32 {
        500
    }

    fn sends_readings(&self) -> bool {
        self.0.sends_readings()
    }

    fn repairs(&self) -> Repairs {
        let max_skew = CasLoop::<(), (), ()>::DEFAULT_MAX_SKEW;
        Repairs::Stamped { max_skew }
    }

    /// Each of a decision's two round trips has its own.
    fn deadline(&self) -> Option<Duration> {
        Some(DEADLINE * 2)
    }
}

macro_rules! servers {
    ($($name:ident: $kind:expr;)+) => {
        $(mod $name {
            use super::*;

            #[test]
            fn with_a_clock_that_is_moved() {
                check_all(&Stores::new($kind, Some(Arc::default())), &[Need::ExtremeLimits, Need::FreshReadings]);
            }

            #[test]
            fn with_the_servers_clock() {
                check_all(&Stores::new($kind, None), &[Need::Clock]);
            }

            /// Exact logs have no wire form; extreme limits have.
            #[test]
            fn by_compare_and_swap() {
                check_all(&CasStores(Stores::new($kind, Some(Arc::default()))), &[Need::Logs, Need::FreshReadings]);
            }
        })+
    };
}
servers! {
    redis: Kind::Redis;
    redis_6_2: Kind::Redis62;
    valkey: Kind::Valkey;
}
