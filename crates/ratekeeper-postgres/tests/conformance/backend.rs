//! The database, as an operator has it.

use std::time::Duration;

use ratekeeper::conformance::{Backend, Fault, Stored};
use ratekeeper::store::{KeyKind, Namespace};
use ratekeeper_postgres::tokio_postgres::types::{ToSql, Type};
use ratekeeper_postgres::tokio_postgres::{Client, Row};
use ratekeeper_postgres::{Clients as _, Connections};
use tokio::runtime::Runtime;

use crate::proxy::Proxy;

pub(crate) struct Database {
    /// Its own, because the kit may be inside of the stores'.
    runtime: Runtime,
    client: Client,
    proxy: Proxy,
    /// The stores'.
    connections: Connections,
}

impl Database {
    pub(crate) fn new(
        runtime: Runtime,
        client: Client,
        proxy: Proxy,
        connections: Connections,
    ) -> Self {
        Self {
            runtime,
            client,
            proxy,
            connections,
        }
    }

    fn query(&self, sql: &str, parameters: &[(&(dyn ToSql + Sync), Type)]) -> Vec<Row> {
        self.runtime
            .block_on(self.client.query_typed(sql, parameters))
            .unwrap()
    }
}

fn name(space: &str, key: &str) -> Vec<u8> {
    Namespace::new(space).unwrap().key(key)
}

fn name_of_kind(space: &str, key: &str, kind: &KeyKind) -> Vec<u8> {
    Namespace::new(space).unwrap().key_of_kind(key, kind)
}

impl Backend for Database {
    /// Who wrote a row last is its version, together with who locked it.
    fn read(&self, space: &str, key: &str, kind: &KeyKind) -> Option<Stored> {
        const SQL: &str = "SELECT state, (extract(epoch FROM expires - clock_timestamp()) * 1000000)::bigint, \
            xmin::text::bigint << 32 | xmax::text::bigint FROM ratekeeper.states_v1 WHERE key = $1";
        let rows = self.query(SQL, &[(&name_of_kind(space, key, kind), Type::BYTEA)]);
        let row = rows.first()?;
        let left_us = u64::try_from(row.get::<_, i64>(1)).ok()?;
        Some(Stored {
            bytes: row.get(0),
            time_to_live: Some(Duration::from_micros(left_us)),
            version: Some(row.get::<_, i64>(2).cast_unsigned()),
        })
    }

    fn write(&self, space: &str, key: &str, value: &[u8]) -> bool {
        const SQL: &str = "INSERT INTO ratekeeper.states_v1 VALUES ($1, $2, now() + interval '10 minutes') \
            ON CONFLICT (key) DO UPDATE SET state = excluded.state, expires = excluded.expires";
        self.query(
            SQL,
            &[(&name(space, key), Type::BYTEA), (&value, Type::BYTEA)],
        );
        true
    }

    /// What the server does to an unlogged table when it comes up after a crash.
    fn lose(&self, _space: &str) -> bool {
        self.query("TRUNCATE ratekeeper.states_v1", &[]);
        true
    }

    /// Rather than the clock, the rows are moved.
    fn pass(&self, time: Duration) -> bool {
        let time_us = i64::try_from(time.as_micros()).unwrap();
        const SQL: &str =
            "UPDATE ratekeeper.states_v1 SET expires = expires - $1 * interval '1 microsecond'";
        self.query(SQL, &[(&time_us, Type::INT8)]);
        self.query("SELECT ratekeeper.sweep_v1(1000000)", &[]);
        true
    }

    /// A request over a connection that is broken without the store's knowledge may have arrived, as far as that can tell:
    /// so where it is to be certain, it is given the time to notice.
    fn break_with(&self, fault: Fault) -> bool {
        self.proxy.break_with(fault);
        while fault == Fault::Refuse && self.runtime.block_on(self.connections.get()).is_ok() {
            std::thread::sleep(Duration::from_millis(1));
        }
        true
    }

    /// A session may still be at work on what had arrived when its connection was cut, so its end is waited for.
    fn heal(&self) {
        const BEFORE: &str = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() \
            AND application_name = 'ratekeeper' AND backend_start < $1::text::timestamptz";
        self.proxy.heal();
        let now = self.query("SELECT clock_timestamp()::text", &[]);
        let now: &str = now[0].get(0);
        while !self.query(BEFORE, &[(&now, Type::TEXT)]).is_empty() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
