//! Rate limits shared between servers through Redis or Valkey: [ratekeeper]'s exact algorithms, one round trip a decision.
//!
//! ```no_run
//! use ratekeeper::store::Namespace;
//! use ratekeeper::{KeyedLimiter, TokenBucket};
//! use ratekeeper_redis::{RedisLimiter, RedisStore};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let store = RedisStore::connect("redis://127.0.0.1/", Namespace::new("api")?)?;
//! let users: RedisLimiter = KeyedLimiter::with_store(TokenBucket::per_minute(100).with_burst(20), store);
//!
//! let decision = users.check_async("alice").await?; // `Err`: no decision was made
//! if !decision.is_allowed() {
//!     println!("429, Retry-After: {:?}", ratekeeper::headers::retry_after(&decision));
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Which limits
//! [`TokenBucket`](ratekeeper::TokenBucket), [`SlidingWindow`](ratekeeper::SlidingWindow),
//! [`FixedWindow`](ratekeeper::FixedWindow), [`AnyAlgorithm`](ratekeeper::AnyAlgorithm), [`All`](ratekeeper::All) of up to four
//! buckets, and [`SlidingLog`](ratekeeper::SlidingLog) (as a sorted set, up to [`MOST_LOG_ENTRIES`] tokens), with every kind of
//! request: costs, partial grants, reservations, charges, refunds. One [`RedisStore`] serves any of them, each limiter under a
//! [`Namespace`](ratekeeper::store::Namespace) of its own. Everything else with a wire form, such as `All` of different algorithms
//! or one of your own, goes through [`RedisCas`] in a [`CasLoop`](ratekeeper::store::CasLoop), or brings its script
//! ([`RedisAlgorithm`]).
//!
//! Lua counts in doubles, exact up to 2^53. Limits whose numbers do not fit are refused before anything is sent
//! ([`Unsupported`](ratekeeper::store::ErrorKind::Unsupported)), and by
//! [`try_with_async_store`](ratekeeper::KeyedLimiter::try_with_async_store) when the limiter is built: buckets that take longer
//! than 52 days to refill (104 if a token takes whole nanoseconds), windows longer than 34 days. [`RedisCas`] takes them.
//! [`UNLIMITED`](ratekeeper::TokenBucket::UNLIMITED) and [`BLOCKED`](ratekeeper::TokenBucket::BLOCKED) ask nobody.
//!
//! # Keys and values
//! `rl:NAME:KEY` for token buckets, `rl:NAME/KIND:KEY` for other limits, such as `rl:api/sliding-60s:alice`
//! ([`KeyKind`](ratekeeper::store::KeyKind)): algorithm and window belong to a key, counts, bursts and rates do not. The forms of
//! values are those of [`StateBytes`](ratekeeper::store::StateBytes), 17 to 65 bytes; a `SlidingLog` is a sorted set. Bucket values
//! that earlier versions of this crate left are honoured as debt, and get the new form with the next take; windows start
//! afresh under their new keys.
//!
//! # Changing limits
//! Whatever limits meet on a bucket's key, in any order, none forgives what another one has counted: the value is a debt in
//! time. So processes with an old and a new configuration may run side by side. What that costs, and what to use:
//!
//! * *Nothing special*: a key that goes from a slow limit to a fast one waits until its debt in time is paid, once, at most
//!   one refill of the slow one.
//! * *A shared limit that changes*: [`with_version`](ratekeeper::TokenBucket::with_version), or `100/min burst 20 v2` in a file.
//!   The highest version that a key has met decides for it in every process, also in those that do not know it yet; the key keeps
//!   its tokens, and a raise holds from its next request. The first process to bring a newer version exchanges the value (two
//!   more round trips for that call); one with an older version calls twice on such keys until it is restarted. The key's
//!   expiry is never shortened. Two limits with one number are [`Config`](ratekeeper::store::ErrorKind::Config).
//! * *One key that moves to another tier*: [`change_async`](ratekeeper::store::AsyncStore::change_async), once, by the
//!   application.
//! * *A limit that changes within a process* and is not shared: `Live`, over a store in memory.
//! * *Starting afresh*: another [`Namespace`](ratekeeper::store::Namespace).
//!
//! Versions are for single buckets; windows change their counts in place, and of several limits on one key none can have a
//! version.
//!
//! # Consistency
//! A decision is one script on one key: atomic, in the order in which the server runs them. The script repeats the machine's
//! arithmetic in exact integers, and this process repeats the script's step: if they disagreed by one bit, the answer would be
//! an error. Allowed requests write one value of 17 to 65 bytes with an expiry; refusals and
//! peeks write nothing, not even an expiry, so they are not replicated either. (Two refusals do, once each: one that finds the
//! proof that the clock was set back, and one that brings a newer version of a limit.)
//!
//! Only primaries are asked; a replica answers [`NotExecuted`](ratekeeper::store::ErrorKind::NotExecuted).
//!
//! # Loss tolerated
//! A lost state is a key never seen: it forgives that key at most one burst (or window).
//!
//! * *Failover*: replication is asynchronous, so a promoted replica lacks the last writes: per key and failover at most
//!   what was admitted within the lag. `WAIT` does not change that.
//! * *Restart*: as the server's persistence says; without any, every key is new.
//! * *A full server*: as `maxmemory-policy` says. On a server of its own use `volatile-ttl`: what is nearest to its reset goes
//!   first, and owes least. `noeviction` forgets nothing, and new keys are errors. With the LRU, LFU and random policies a
//!   flood of new keys resets the limits of others: do not use them.
//!
//! # Time
//! The server's: the clocks of the processes do not matter. After a failover it may jump back. What proves that is repaired, by
//! the first request other than a peek: a bucket's value says how far ahead its last taker could book, so a bucket that lies
//! further ahead, or a window that begins after now, comes from a clock that was ahead. Nobody then waits longer than that
//! reach, or that window, and a step back gives nobody anything. The exact log carries no such proof: it waits the step out. A step
//! forwards gives a refill at most.
//!
//! For tests and replays, [`RedisStore::with_clock`], with one clock for all.
//!
//! # Errors
//! | what happened | kind |
//! |---|---|
//! | connection refused, loading, read-only, out of memory, part of the cluster down | `NotExecuted` |
//! | no answer within the deadline, connection broken while waiting | `Unknown` |
//! | the stored value is no state of this limit, or has another Redis type | `Corrupt` |
//! | credentials, rights, wrong kind of server | `Config` |
//! | the limit's numbers do not fit | `Unsupported` |
//!
//! Every call ends within its deadline, a tenth of a second by default. Nothing is sent twice, but for two cases in which the
//! server says that it did not run it: an unknown script, and a key that has moved in the cluster. What to do on errors is a
//! wrapper's business: [`FailOpen`](ratekeeper::store::FailOpen), [`FailClosed`](ratekeeper::store::FailClosed),
//! [`Fallback`](ratekeeper::store::Fallback), behind a [`Breaker`](ratekeeper::store::Breaker).
//!
//! # Servers
//! Redis 6.2 and later, Valkey 8 and later, alone, with replicas or (feature `cluster`) as a cluster. A user needs the rights
//! `+evalsha +eval +get +set +del +pttl +time ~rl:*`, and for `SlidingLog` `+zadd +zcard +zcount +zrange +zrangebyscore
//! +zremrangebyrank +pexpire`.
//!
//! # Versions
//! The interface shows types of [`redis`], so version 1 of this crate is for version 1 of that one.
#![forbid(unsafe_code)]

mod algorithm;
mod batch;
mod cas;
mod connect;
mod error;
mod pack;
mod script;
mod store;
mod versions;

pub use crate::algorithm::{Call, MOST_LOG_ENTRIES, RedisAlgorithm, Reply};
pub use crate::cas::RedisCas;
pub use crate::script::Script;
pub use crate::store::RedisStore;

/// A [`KeyedLimiter`](ratekeeper::KeyedLimiter) over Redis.
///
/// The defaults help in type annotations: `RedisLimiter` limits keys of type `str` with token buckets.
pub type RedisLimiter<K = str, A = ratekeeper::TokenBucket> =
    ratekeeper::KeyedLimiter<K, A, RedisStore>;
