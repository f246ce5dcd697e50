//! Rate limits shared between servers through PostgreSQL: [`ratekeeper`]'s exact algorithms, one function call a decision.
//!
//! ```no_run
//! use ratekeeper::store::Namespace;
//! use ratekeeper::{KeyedLimiter, TokenBucket};
//! use ratekeeper_postgres::{PostgresLimiter, PostgresStore};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let store = PostgresStore::connect("postgres://app@127.0.0.1/app", Namespace::new("api")?)?;
//! store.install().await?; // creates a table and functions, once; or by a migration: `Schema::sql`
//! let users: PostgresLimiter = KeyedLimiter::with_store(TokenBucket::per_minute(100), store);
//!
//! let decision = users.check_async("alice").await?;
//! if let Some(wait) = decision.retry_after() {
//!     println!("try again in {wait:?}");
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Expired rows are deleted by [`PostgresStore::sweep`], which somebody must call now and then. Connections come from
//! [`Connections`] or from your own pool: see [`Clients`]. With the connector of a TLS crate, [`Connections::new`] takes the
//! place of [`PostgresStore::connect`].
//!
//! # When to use it
//! If there is a PostgreSQL already and a few thousand decisions a second are enough, or if limits must outlive a crash. A
//! server of Redis makes about ten times as many (`ratekeeper-redis`).
//!
//! # Limits
//! [`TokenBucket`](ratekeeper::TokenBucket), [`SlidingWindow`](ratekeeper::SlidingWindow),
//! [`FixedWindow`](ratekeeper::FixedWindow), [`AnyAlgorithm`](ratekeeper::AnyAlgorithm) and
//! [`All`](ratekeeper::All) of an array of buckets, and [`Limits`](ratekeeper::Limits) that are all buckets, run on the
//! server, with all kinds of requests and without bounds on their numbers, because PostgreSQL's `numeric` is exact at any size.
//! Other combinations go through [`PostgresCas`], which needs two round trips; algorithms of your own do, or bring a function
//! ([`PostgresAlgorithm`]).
//! [`SlidingLog`](ratekeeper::SlidingLog) is not supported: its state has no fixed size.
//!
//! # Consistency
//! Decisions on a key are those of some serial order, whoever asks. A decision is a transaction of its own; it reads the
//! state without a lock, and writes only over the state that it has read. If somebody was faster, it waits for the row's lock
//! and decides again. This holds under every `default_transaction_isolation`; above `read committed`, requests that meet
//! others on the same key may end as [`NotExecuted`](ratekeeper::store::ErrorKind::NotExecuted).
//!
//! Refused requests and looks write nothing: no row, no lock, no transaction number, no log. But for two refusals that find
//! something to put right: the first after the clock was stepped back, and the first under a newer version.
//!
//! Decisions are made by the primary. On a replica with a [logged](Table::Logged) table, looks and refusals are
//! answered from what it has received; everything else is an error.
//!
//! # Loss tolerated
//! A lost state is a key never seen: each loss forgives a key at most one burst (or window).
//!
//! | | [`Table::Unlogged`], the default | [`Table::Logged`] |
//! |---|---|---|
//! | clean restart | nothing is lost | nothing |
//! | crash, also of the machine | all states | nothing; the last moments (`wal_writer_delay` times 3: 0.6 s) with `synchronous_commit = off` |
//! | failover to a replica | all states | what had not been replicated |
//! | each allowed request waits for | nothing | the disk, and replicas if they are synchronous; nothing with `synchronous_commit = off` |
//! | backups by `pg_dump` | contain it (`--no-unlogged-table-data`) | contain it |
//!
//! `synchronous_commit = off` is a good setting for limits in a logged table: otherwise a connection makes no more decisions
//! than the disk has writes, one after the other. Give it to this store's sessions alone: in the address,
//! `?options=-c%20synchronous_commit%3Doff`, or by `ALTER ROLE`.
//!
//! # Limits that change
//! A bucket's debt is time, so limits of different numbers may share a key in any order: each holds what it promises, whatever the
//! others let pass. Going from a slow to a fast limit, a key waits until the slow one's debt is paid. To spare it that, give the
//! limit a [version](ratekeeper::TokenBucket::with_version): the highest that a key has met decides for it, in every process, and
//! tokens are kept. The function decides on values of its own version only; on any other this process adopts the newer limit, or
//! puts the value that the newer limit makes of it in its place, and asks again, up to 16 times. Two limits of one number are
//! [`Config`](ratekeeper::store::ErrorKind::Config). What a limit without a number left beyond the reach of the first one with a
//! number is cut to that reach.
//!
//! [`AsyncStore::change_async`](ratekeeper::store::AsyncStore::change_async) moves one key, by compare-and-swap. Windows may change
//! their count in place. Another algorithm, or a window of another length, offset or anchoring, has other keys.
//!
//! In a batch, requests on a key are executed in order. While another process puts the first value of a newer version there, one
//! that had to be asked again may come after those behind it.
//!
//! # Time
//! The server's clock counts, in microseconds, one for all callers. It is read after the value, never the transaction's. If it
//! is stepped back, a value may prove it: a bucket's says how far ahead its last taker could book, and a window begins no later
//! than now. Only such a value is repaired, also by a refusal, so that nobody waits longer than that reach; a step back gives
//! nothing, and each step forwards at most one refill. Tests give a [clock of their own](PostgresStore::with_clock).
//!
//! # Errors
//! A decision ends within [a deadline](PostgresStore::with_deadline) of 250 ms. Nothing is sent twice.
//!
//! | kind | when |
//! |---|---|
//! | [`NotExecuted`](ratekeeper::store::ErrorKind::NotExecuted) | no connection; statement timeout, lock timeout; serialization failure, deadlock; read-only server; no memory, disk, connection; shutdown |
//! | [`Unknown`](ratekeeper::store::ErrorKind::Unknown) | the connection broke, or the deadline passed, after the statement was sent |
//! | [`Corrupt`](ratekeeper::store::ErrorKind::Corrupt) | the value is no state of this limit (raised as `RK001`); the function and this process disagree |
//! | [`Config`](ratekeeper::store::ErrorKind::Config) | nothing is installed; no rights; wrong credentials; no such database; two limits of one version |
//! | [`Contention`](ratekeeper::store::ErrorKind::Contention) | 16 times in a row the key had changed its version meanwhile; nothing was counted |
//! | [`Unsupported`](ratekeeper::store::ErrorKind::Unsupported) | there is no function for the limit, as `accepts_async` says beforehand |
//!
//! An error that PostgreSQL reports is certain: its transaction was rolled back. [`Connections`] gives each session a
//! `statement_timeout` of 200 ms, so that most requests that take too long, as behind somebody's lock, are certain, too.
//!
//! # The database
//! *Versions.* PostgreSQL 14 or later; tested with 15.
//!
//! *Rights.* Who installs needs `CREATE` on the database, and owns what is there. The others need, besides `CONNECT`:
//!
//! ```sql
//! GRANT USAGE ON SCHEMA ratekeeper TO app;
//! GRANT SELECT, INSERT, UPDATE, DELETE ON ratekeeper.states_v1 TO app;
//! ```
//!
//! *Names.* `v1`, `v2` are versions of the table's form and of each function's meaning. A later version of this crate installs
//! what it needs next to what is there, and leaves that alone, so that both work on the same table: install first, then deploy.
//! What versions before `v2` of the functions left in buckets is debt until somebody takes, and keeps its form until then. From
//! then on those versions answer [`Corrupt`](ratekeeper::store::ErrorKind::Corrupt) for that key. Their windows and several limits
//! on a key start afresh.
//!
//! *Size.* A key takes about 170 bytes, indexes included, while it owes something and until it is swept. Updates stay on
//! their page and touch no index ("HOT"), because expiry is rounded up to whole minutes; so the table does not grow by
//! being used, and autovacuum has little to do.
//!
//! *Long transactions* hold that up, as they do for every table: while one is open anywhere in the database (or a replication
//! slot lags), old versions of hot rows cannot be removed, and each decision on such a row walks past them.
//!
//! *Sweeping.* One call deletes up to so many rows; 1000 take about 20 ms. Without it, decisions are the same, but the table
//! grows with each new key.
//!
//! *Poolers.* A pooler that gives each transaction another session (PgBouncer's `pool_mode = transaction`) forgets prepared
//! statements and settings: use an `Arc<Client>` ([`Clients`]) and `ALTER ROLE … SET statement_timeout = '200ms'`.
//!
//! *Keys* are stored as they are, up to 128 bytes, with their namespace and the
//! [kind](ratekeeper::store::KeyKind) of limit before them, `rl:api:alice` for a bucket and `rl:api/sliding-60s:alice` for a window:
//! `SELECT convert_from(key, 'UTF8'), expires FROM ratekeeper.states_v1`. Where they are personal data,
//! [`HashedKeys`](ratekeeper::store::HashedKeys) hides them.
#![forbid(unsafe_code)]
#![allow(clippy::doc_markdown)] // PostgreSQL is a name

mod algorithm;
mod batch;
mod cas;
mod clients;
mod connections;
mod error;
mod numeric;
mod query;
mod schema;
mod store;

pub use crate::algorithm::{Call, PostgresAlgorithm, Reply};
pub use crate::cas::PostgresCas;
pub use crate::clients::{Clients, Session};
pub use crate::connections::Connections;
pub use crate::schema::{InvalidSchema, Schema, Table};
pub use crate::store::PostgresStore;
pub use tokio_postgres;

/// A [`KeyedLimiter`](ratekeeper::KeyedLimiter) over PostgreSQL.
///
/// The defaults help in type annotations: `PostgresLimiter` limits keys of type `str` with token buckets.
pub type PostgresLimiter<K = str, A = ratekeeper::TokenBucket> =
    ratekeeper::KeyedLimiter<K, A, PostgresStore>;
