//! The conformance kit, against a real server behind a proxy that can be broken.
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
    Algorithm, All, Clock, FixedWindow, ManualClock, SlidingWindow, TokenBucket, UnixClock,
};
use ratekeeper_memcached::{MemcachedCas, MemcachedStore};
use ratekeeper_test_servers::{Options, Server};
use tokio::runtime::Runtime;

use crate::backend::Memcached;

const DEADLINE: Duration = Duration::from_millis(500);
const WAIT: Duration = Duration::from_millis(1);

struct Stores {
    runtime: Runtime,
    /// `None` for the system's clock.
    clock: Option<Arc<ManualClock>>,
    decides: By,
    memcached: Memcached,
}

/// Who makes decisions of loads and exchanges.
#[derive(Clone, Copy)]
enum By {
    MemcachedStore,
    CasLoop,
}

impl Stores {
    fn new(clock: Option<Arc<ManualClock>>, decides: By) -> Self {
        Self {
            runtime: Runtime::new().unwrap(),
            clock,
            decides,
            memcached: Memcached::new(Server::memcached(Options::new())),
        }
    }

    fn open<K: Key + ?Sized + 'static, A: Algorithm + Sync + 'static>(
        &self,
        space: &str,
    ) -> DynStore<K, A> {
        let address = self.memcached.proxy.address();
        let cas = MemcachedCas::connect(address, Namespace::new(space).unwrap()).unwrap();
        let cas = cas.with_deadline(DEADLINE);
        // The kit's callers do not pause.
        const MAX_ATTEMPTS: u32 = 1_000;
        // A clock that is moved stands still while the server's goes on.
        let cas = match &self.clock {
            Some(_) => cas.with_grace(Duration::from_secs(60)),
            None => cas,
        };
        let clock: Arc<dyn Clock + Send + Sync> = match &self.clock {
            Some(clock) => Arc::<ManualClock>::clone(clock),
            None => Arc::new(UnixClock),
        };
        match self.decides {
            By::MemcachedStore => DynStore::new(
                MemcachedStore::new(cas)
                    .with_clock(clock)
                    .with_max_attempts(MAX_ATTEMPTS),
            ),
            By::CasLoop => DynStore::new(
                CasLoop::with_clock(
                    cas,
                    tokio::time::sleep,
                    clock,
                    Jitter::new(7, WAIT, WAIT * 16),
                )
                .with_max_attempts(MAX_ATTEMPTS),
            ),
        }
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

    fn tuple_keys(&self, space: &str) -> Option<DynStore<(String, String), TokenBucket>> {
        Some(self.open(space))
    }

    fn byte_keys(&self, space: &str) -> Option<DynStore<[u8], TokenBucket>> {
        Some(self.open(space))
    }

    fn backend(&self) -> Option<&dyn Backend> {
        Some(&self.memcached)
    }

    fn block_on(&self, work: Work<'_>) {
        self.runtime.block_on(work);
    }

    fn requests_per_clause(&self) -> u32 {
        500
    }

    fn repairs(&self) -> Repairs {
        Repairs::Stamped {
            max_skew: MemcachedStore::DEFAULT_MAX_SKEW,
        }
    }

    fn deadline(&self) -> Option<Duration> {
        Some(match self.decides {
            By::MemcachedStore => DEADLINE,
            // Each of two requests has its own.
            By::CasLoop => DEADLINE * 2,
        })
    }
}

/// Exact logs have no wire form, and memcached has one type of value.
const NEVER: [Need; 2] = [Need::Logs, Need::OtherTypes];

#[test]
fn with_a_clock_that_is_moved() {
    check_all(
        &Stores::new(Some(Arc::default()), By::MemcachedStore),
        &NEVER,
    );
}

#[test]
fn with_the_systems_clock() {
    let [logs, other_types] = NEVER;
    let stores = Stores::new(None, By::MemcachedStore);
    check_all(&stores, &[Need::Clock, logs, other_types]);
}

#[test]
fn in_a_loop_of_ones_own() {
    check_all(&Stores::new(Some(Arc::default()), By::CasLoop), &NEVER);
}
