//! How many decisions a server makes per second, and how long one takes.
//!
//! ```sh
//! cargo run --release -p ratekeeper-postgres --example load -- postgres://user@host/database
//! ```
//!
//! Without an address it starts a server of its own. In the database it uses the schema `ratekeeper_load`, and drops it
//! afterwards.
#![allow(clippy::disallowed_methods, reason = "measures time")]

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ratekeeper::store::{AsyncStore, Namespace};
use ratekeeper::{Request, TokenBucket};
use ratekeeper_postgres::tokio_postgres::{self, Client, Config, NoTls};
use ratekeeper_postgres::{Clients, Connections, PostgresStore, Schema, Session, Table};
use ratekeeper_test_servers::{Options, Server};

const SECONDS: u64 = 3;
/// Practically always allowed, and practically never.
const WIDE: TokenBucket = TokenBucket::per_second(1_000_000);
const SPENT: TokenBucket = TokenBucket::per_day(1);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (url, _server) = match std::env::args().nth(1) {
        Some(url) => (url, None),
        None => {
            let server = Server::postgres(Options::new());
            (server.create_database("load"), Some(server))
        }
    };
    let schema = Schema::new("ratekeeper_load")?;
    let client = connect(&url).await?;
    println!("table     requests  keys   tasks  connections  decisions/s  p50 us  p99 us");
    for table in [Table::Unlogged, Table::Logged] {
        client
            .batch_execute("DROP SCHEMA IF EXISTS ratekeeper_load CASCADE")
            .await?;
        schema.install(&client, table).await?;
        for (limit, keys, tasks, count) in [
            (&WIDE, 10_000, 1, 1),
            (&WIDE, 10_000, 64, 1),
            (&WIDE, 10_000, 64, 2),
            (&WIDE, 10_000, 64, 4),
            (&WIDE, 10_000, 64, 8),
            (&WIDE, 1, 1, 1),
            (&WIDE, 1, 64, 1),
            (&WIDE, 1, 64, 2),
            (&WIDE, 1, 64, 8),
            (&SPENT, 1, 1, 1),
            (&SPENT, 1, 64, 1),
            (&SPENT, 1, 64, 2),
            (&SPENT, 1, 64, 8),
        ] {
            let config: Config = url.parse()?;
            let connections = Connections::new(config, NoTls).with_count(count);
            let name = format!(
                "{table:?}  {}",
                if limit == &WIDE { "allowed" } else { "refused" }
            );
            measure(&name, &schema, connections, count, limit, keys, tasks).await?;
        }
    }
    let session = Arc::new(Session::new(connect(&url).await?));
    measure(
        "Logged, own session",
        &schema,
        session,
        1,
        &WIDE,
        10_000,
        64,
    )
    .await?;
    let unprepared = Arc::new(connect(&url).await?);
    measure(
        "Logged, unprepared ",
        &schema,
        unprepared,
        1,
        &WIDE,
        10_000,
        64,
    )
    .await?;
    client
        .batch_execute("DROP SCHEMA ratekeeper_load CASCADE")
        .await?;
    Ok(())
}

async fn connect(url: &str) -> Result<Client, tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

async fn measure<C: Clients + 'static>(
    name: &str,
    schema: &Schema,
    clients: C,
    count: usize,
    limit: &'static TokenBucket,
    keys: u64,
    tasks: u64,
) -> Result<(), Box<dyn Error>>
where
    PostgresStore<C>: Clone,
{
    let namespace = Namespace::new(if limit == &WIDE { "wide" } else { "spent" })?;
    let store = PostgresStore::new(clients, namespace)
        .with_schema(schema.clone())
        .with_deadline(Duration::from_secs(10));
    for key in 0..64_u64.min(keys) {
        let _ = store.apply_async(&key, limit, Request::ONE).await?;
    }
    let answered = Arc::new(AtomicU64::new(0));
    let end = Instant::now() + Duration::from_secs(SECONDS);
    let running: Vec<_> = (0..tasks)
        .map(|task| {
            let (store, answered) = (store.clone(), Arc::clone(&answered));
            tokio::spawn(async move {
                let mut random = task;
                let mut times_us = Vec::new();
                while Instant::now() < end {
                    random = random
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1_442_695_040_888_963_407);
                    let begun = Instant::now();
                    let result = store
                        .apply_async(&((random >> 33) % keys), limit, Request::ONE)
                        .await;
                    let _ = result.map_err(|error| error.to_string())?;
                    times_us.push(u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX));
                    answered.fetch_add(1, Ordering::Relaxed);
                }
                Ok::<_, String>(times_us)
            })
        })
        .collect();
    let mut times_us = Vec::new();
    for task in running {
        times_us.extend(task.await??);
    }
    times_us.sort_unstable();
    let at = |percent: usize| {
        times_us
            .get(times_us.len() * percent / 100)
            .copied()
            .unwrap_or(0)
    };
    println!(
        "{name}  {keys:>5}  {tasks:>5}  {count:>11}  {:>11}  {:>6}  {:>6}",
        answered.load(Ordering::Relaxed) / SECONDS,
        at(50),
        at(99),
    );
    Ok(())
}
