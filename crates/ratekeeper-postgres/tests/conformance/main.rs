//! The conformance kit, against a real server behind a proxy that can be broken.
#![allow(
    clippy::disallowed_methods,
    reason = "servers and faults live in real time"
)]

mod backend;
mod proxy;

use std::sync::Arc;
use std::time::Duration;

use ratekeeper::conformance::{Backend, Need, Repairs, Subject, Work, check_all};
use ratekeeper::store::{CasLoop, DynStore, Jitter, Key, Namespace};
use ratekeeper::{All, FixedWindow, ManualClock, SlidingWindow, TokenBucket};
use ratekeeper_postgres::tokio_postgres::{self, NoTls};
use ratekeeper_postgres::{
    Connections, PostgresAlgorithm, PostgresCas, PostgresStore, Schema, Table,
};
use ratekeeper_test_servers::{Kind, Server};
use tokio::runtime::Runtime;

use crate::backend::Database;
use crate::proxy::Proxy;

/// Longer than by default, because other tests use the machine.
const DEADLINE: Duration = Duration::from_secs(1);

/// How decisions are made.
#[derive(Clone, Copy)]
enum By {
    Functions,
    CompareAndSwap,
}

struct Stores {
    runtime: Runtime,
    by: By,
    /// `None` for the server's.
    clock: Option<Arc<ManualClock>>,
    connections: Connections,
    database: Database,
}

impl Stores {
    fn new(database: &str, by: By, clock: Option<Arc<ManualClock>>) -> Self {
        let server = Server::shared(Kind::Postgres);
        let url = server.create_database(database);
        let own = Runtime::new().unwrap();
        let client = own.block_on(async {
            let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
            tokio::spawn(connection);
            Schema::default()
                .install(&client, Table::Unlogged)
                .await
                .unwrap();
            client
        });
        let proxy = Proxy::before(server.address());
        let mut config: tokio_postgres::Config =
            format!("user=postgres dbname={database}").parse().unwrap();
        config
            .host(proxy.address().ip().to_string())
            .port(proxy.address().port());
        let connections = Connections::new(config, NoTls).with_statement_timeout(DEADLINE * 4 / 5);
        Self {
            runtime: Runtime::new().unwrap(),
            by,
            clock,
            connections: connections.clone(),
            database: Database::new(own, client, proxy, connections),
        }
    }

    fn open<K: Key + ?Sized + 'static, A: PostgresAlgorithm + 'static>(
        &self,
        space: &str,
    ) -> DynStore<K, A> {
        let store = PostgresStore::new(self.connections.clone(), Namespace::new(space).unwrap());
        let mut store = store.with_deadline(DEADLINE);
        if let Some(clock) = &self.clock {
            let clock: Arc<ManualClock> = Arc::clone(clock);
            store = store.with_clock(clock, Duration::from_secs(3_600));
        }
        match (self.by, &self.clock) {
            (By::Functions, _) => DynStore::new(store),
            (By::CompareAndSwap, Some(clock)) => {
                let jitter = Jitter::new(1, Duration::from_millis(1), Duration::from_millis(64));
                let clock = Arc::clone(clock);
                let cas = PostgresCas(store);
                let store = CasLoop::with_clock(cas, tokio::time::sleep, clock, jitter);
                DynStore::new(store.with_max_attempts(1_000))
            }
            (By::CompareAndSwap, None) => {
                let store = CasLoop::new(PostgresCas(store), tokio::time::sleep);
                DynStore::new(store.with_max_attempts(1_000))
            }
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
        Some(&self.database)
    }

    fn block_on(&self, work: Work<'_>) {
        self.runtime.block_on(work);
    }

    fn requests_per_clause(&self) -> u32 {
        300
    }

    fn sends_readings(&self) -> bool {
        self.clock.is_some()
    }

    fn repairs(&self) -> Repairs {
        match (self.by, &self.clock) {
            (By::CompareAndSwap, Some(_)) => Repairs::Stamped {
                max_skew: CasLoop::<(), (), ()>::DEFAULT_MAX_SKEW,
            },
            _ => Repairs::Proven,
        }
    }

    fn deadline(&self) -> Option<Duration> {
        Some(match self.by {
            By::Functions => DEADLINE,
            By::CompareAndSwap => 2 * DEADLINE,
        })
    }
}

/// Exact logs have no wire form, and a column has one type of value.
const NEVER: [Need; 2] = [Need::Logs, Need::OtherTypes];

#[test]
fn functions_with_a_clock_that_is_moved() {
    let stores = Stores::new("functions_and_a_clock", By::Functions, Some(Arc::default()));
    check_all(&stores, &[NEVER[0], NEVER[1], Need::FreshReadings]);
}

#[test]
fn functions_with_the_servers_clock() {
    let stores = Stores::new("functions", By::Functions, None);
    check_all(&stores, &[NEVER[0], NEVER[1], Need::Clock]);
}

#[test]
fn compare_and_swap_with_a_clock_that_is_moved() {
    let stores = Stores::new(
        "swaps_and_a_clock",
        By::CompareAndSwap,
        Some(Arc::default()),
    );
    check_all(&stores, &[NEVER[0], NEVER[1], Need::FreshReadings]);
}

#[test]
fn compare_and_swap_with_the_servers_clock() {
    let stores = Stores::new("swaps", By::CompareAndSwap, None);
    check_all(&stores, &[NEVER[0], NEVER[1], Need::Clock]);
}
