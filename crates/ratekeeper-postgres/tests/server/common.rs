//! What the tests share: databases, stores, a source of random numbers.

use std::time::Duration;

use ratekeeper::store::Namespace;
use ratekeeper_postgres::tokio_postgres::{Client, Config, NoTls};
use ratekeeper_postgres::{Connections, PostgresStore, Schema, Table};
use ratekeeper_test_servers::{Kind, Server};

/// Long enough for whatever else this machine does.
pub(crate) const PATIENT: Duration = Duration::from_secs(20);

/// A database of this name with everything installed.
pub(crate) async fn database(name: &str) -> String {
    let url = Server::shared(Kind::Postgres).create_database(name);
    Schema::default()
        .install(&client(&url).await, Table::Unlogged)
        .await
        .unwrap();
    url
}

/// A connection around the store.
pub(crate) async fn client(url: &str) -> Client {
    let (client, connection) = ratekeeper_postgres::tokio_postgres::connect(url, NoTls)
        .await
        .unwrap();
    tokio::spawn(connection);
    client
}

pub(crate) fn namespace(name: &str) -> Namespace {
    Namespace::new(name).unwrap()
}

/// A store that waits for slow machines.
pub(crate) fn store(url: &str, count: usize) -> PostgresStore {
    let config: Config = url.parse().unwrap();
    let connections = Connections::new(config, NoTls)
        .with_count(count)
        .with_statement_timeout(PATIENT / 2);
    PostgresStore::new(connections, namespace("test")).with_deadline(PATIENT)
}

/// `SplitMix64`: G. Steele, D. Lea, C. Flood, *Fast Splittable Pseudorandom Number Generators* (2014).
pub(crate) struct Draw(pub(crate) u64);

impl Draw {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 to `n − 1`.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.next() % n.max(1)
    }

    pub(crate) fn once_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub(crate) fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        let index = usize::try_from(self.below(choices.len() as u64)).unwrap();
        choices[index]
    }

    /// Of any magnitude, above 0.
    pub(crate) fn magnitude(&mut self, bits: u64) -> u64 {
        let shift = 64 - 1 - self.below(bits);
        (self.next() >> shift).max(1)
    }
}

/// Runs the statements over a connection of its own and returns the rows, columns parted by `|`.
pub(crate) fn sql(url: &str, statements: &str) -> String {
    let (_, name) = url.rsplit_once('/').unwrap();
    Server::shared(Kind::Postgres)
        .sql(name, statements)
        .unwrap()
}
