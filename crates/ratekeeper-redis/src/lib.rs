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
//! Lua counts in doubles, exact up to 2^53. Limits whose numbers do not fit are refused
//! ([`Unsupported`](ratekeeper::store::ErrorKind::Unsupported)) before anything is sent: buckets that take longer than 52 days to
//! refill (104 if a token takes whole nanoseconds), windows longer than 34 days. [`RedisCas`] takes them.
//!
//! # Consistency
//! A decision is one script on one key: atomic, in the order in which the server runs them. The script repeats the machine's
//! arithmetic in exact integers, and this process repeats the script's step: if they disagreed by one bit, the answer would be
//! an error. Allowed requests write one value of 9 to 33 bytes with an expiry (64 to 96 bytes of the server's memory with the
//! key's entry); refusals and peeks write nothing, not even an expiry, so they are not replicated either.
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
//! The server's: the clocks of the processes do not matter. After a failover it may jump; no algorithm lets that lock anyone
//! out, or gain more than a burst. For tests, [`RedisStore::with_clock`].
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
//! `+evalsha +eval +get +set +del +time ~rl:*`, and for `SlidingLog` `+zadd +zcard +zcount +zrange +zrangebyscore
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
