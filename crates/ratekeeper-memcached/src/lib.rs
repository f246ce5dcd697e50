//! Rate limits shared between servers through memcached: [`ratekeeper`]'s exact algorithms, by compare-and-swap.
//!
//! ```no_run
//! use ratekeeper::store::Namespace;
//! use ratekeeper::{KeyedLimiter, TokenBucket};
//! use ratekeeper_memcached::{MemcachedLimiter, MemcachedStore};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let store = MemcachedStore::connect("127.0.0.1:11211", Namespace::new("api")?)?;
//! let users: MemcachedLimiter = KeyedLimiter::with_store(TokenBucket::per_minute(100), store);
//!
//! let decision = users.check_async("alice").await?;
//! if let Some(wait) = decision.retry_after() {
//!     println!("try again in {wait:?}");
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # When to use it
//! If memcached is there already, and a limit may be forgiven now and then. Otherwise Redis (`ratekeeper-redis`) is the
//! better choice: it decides on the server in one round trip, is not slowed down by many callers of one key, has one clock
//! for all, and can be told what to do when it is full. Limits that must outlive a restart are a matter for
//! `ratekeeper-postgres`.
//!
//! | | memcached | Redis |
//! |---|---|---|
//! | round trips: refused / allowed | 1 / 2 | 1 / 1 |
//! | many callers of one key, mostly allowed | one at a time; processes race each other | no loss |
//! | whose clock | each caller's | the server's |
//! | full memory | forgets keys | as configured |
//! | restart | forgets everything | as configured |
//!
//! # Consistency
//! Decisions on a key are those of some serial order, whoever asks: a state is written only if it is still the one that was
//! read. Everything is on one server; there is no replication, so no replica lags behind. Versions are compared only on the
//! connection that they were read on, because a restarted server counts them anew. That is no longer true behind a proxy
//! which moves requests between servers: connect to the server itself.
//!
//! # Loss tolerated
//! A lost state is a key never seen: each loss forgives a key at most one burst (or window). memcached loses
//! * *all states when it restarts*, or when somebody says `flush_all`;
//! * *states that it evicts* when its memory is full: roughly those of the keys that were asked about least recently.
//!   Refusals count as asking, so a client who is refused all the time is not forgotten first. But who can make up keys
//!   can push out others, and with enough of them his own;
//! * *with `-M` (errors instead of evictions) states that were to be replaced*: where memory is refused for the new value,
//!   memcached drops the old one, too. The decision is an error, and the key is forgotten. Do not use `-M`.
//!
//! So give it memory for all keys that can owe something at a time: a token bucket or a window takes 85 bytes and its
//! [name](MemcachedCas::name_of), a bucket whose limit has a version 111, rounded up to 96, 120, 152, … bytes. The 64 MB of a
//! server that was told nothing hold 559,000 buckets with names of up to 34 bytes, or 441,000 with versions (measured). Watch the
//! statistic `evictions`. Use a server of its own for limits: other values would push them out.
//!
//! # Time
//! memcached tells its clients no time: each process decides by its own clock,
//! [`UnixClock`](ratekeeper::UnixClock), which does not run back inside a process, or [another](MemcachedStore::with_clock). So each
//! value carries the instant of its write, and nobody decides at an earlier one: a process whose clock is behind goes by the value's.
//! Clocks that differ by up to `d` let pass what one clock would in `d` more, once and not once per reading: a token bucket that fills
//! at one token per `T` admits `burst + (W + d)/T` in a time `W`. Windows keep their bound in every real window that is shorter by `d`. A
//! process that is behind is told waits by the value's instant, too short by as much as it is behind.
//!
//! A value from further ahead than [`max_skew`](MemcachedStore::with_max_skew), 10 seconds unless told otherwise, is taken for one of
//! a clock that has been set back since: it is decided on at the process's own time, and what proves that it is ahead (a debt beyond
//! what its last taker could book, a window that begins in the future) is repaired, so nobody is locked out. If clocks really
//! differ by more, whoever is ahead gains a burst for each such repair. Keep them closer than that (NTP does), or allow for
//! more.
//!
//! # How long values are kept
//! Values are kept as long as they can make a difference, a minute longer for exchanges that were delayed, and three seconds
//! more: memcached counts whole seconds, on a clock that may show up to two seconds too little when a value is stored, and
//! then drops it that much too early. No write shortens what is left of a key's time, which memcached says with the value: of two
//! limits on a key, the smaller may be full while the larger is not. Keeps of
//! more than 30 days are sent as an instant, a whole day by this machine's clock, with twelve hours to spare, so it must agree with
//! the server's that far. memcached's own calendar ends on 19 January 2038: what should be kept beyond is dropped then, and
//! in the last month before, nothing is kept for more than 30 days.
//!
//! # Keys and values
//! The stored name is that of [`MemcachedCas::name_of_kind`]: the namespace, the kind of limit (nothing for a token bucket; algorithm
//! and window otherwise) and the key. So a bucket and a window on one key are two keys, and a window whose length changes starts
//! afresh. The value is `0x70` and the instant of the write, followed by the state as all backends store it
//! ([`StateBytes`](ratekeeper::store::StateBytes)): 26 bytes for a bucket or a window, 52 for a bucket with a version.
//!
//! # Limits that change
//! Limits on a token bucket's key may differ, in any order: debts are time, and none of them admits more than it would alone. With a
//! [version](ratekeeper::TokenBucket::with_version) the newest that a key has met decides, and tokens are kept;
//! [`change_async`](ratekeeper::KeyedLimiter::change_async) moves a single key. See
//! [changing limits](ratekeeper::guide::changing_limits).
//!
//! # Upgrading
//! In the first format of this crate, a bucket's value was its TAT alone, and the time of the write stood in the item's
//! flags, cut to 32 bits. Such values are read as honest debt from no known instant: kept in time, never cut, and replaced by the
//! next request that is allowed. Windows and several limits start afresh, because their names changed. While processes of both
//! formats run, those of the old one answer [`Corrupt`](ratekeeper::store::ErrorKind::Corrupt) for keys that the new have written, and leave
//! them alone: they decide nothing wrong, but they do not decide. Upgrade all at once, or have a wrapper answer those errors.
//!
//! # Errors
//! A decision, or a batch of them, has a [deadline](MemcachedCas::with_deadline) of 100 ms, connecting, waiting and lost races
//! included.
//!
//! | what happened | [`ErrorKind`](ratekeeper::store::ErrorKind) |
//! |---|---|
//! | connection refused, too many connections, out of memory | `NotExecuted` |
//! | no answer, or the connection broke, while reading the state | `NotExecuted` |
//! | the same while writing it, or while forgetting a key | `Unknown`: counted at most once |
//! | [16 races](MemcachedStore::with_max_attempts) lost to other processes, or no turn within the deadline | `Contention` |
//! | a value that is no state of this limit; it is left alone | `Corrupt` |
//! | before version 1.6.10, without versions (`-C`), with passwords (`-Y`), outside of a tokio runtime | `Config` |
//!
//! While the server is down, every request tries to connect, so the first one after it is back succeeds. A request that only
//! reads is sent again if the connection breaks under it; nothing else is sent twice. Dropped futures are safe: what was not
//! sent is not sent, and the answers to what was are thrown away. What to do on errors is a wrapper's business:
//! [`FailOpen`](ratekeeper::store::FailOpen), [`FailClosed`](ratekeeper::store::FailClosed),
//! [`Fallback`](ratekeeper::store::Fallback), behind a [`Breaker`](ratekeeper::store::Breaker).
//!
//! # The connection
//! A store has one connection, which all callers share, and so have its clones under other
//! [namespaces](MemcachedCas::with_namespace). Requests are written as they come, without waiting for earlier answers. It
//! belongs to the tokio runtime (with I/O and time) of the first request, and is made again on another one when that ends.
//! Use a store from one runtime at a time. A connection on which nothing has come for a second after a deadline is given up.
//!
//! # Not supported
//! Several servers (put a store for each into an array, and choose by a hash of the key), Unix sockets, TLS, passwords, and
//! the exact log ([`SlidingLog`](ratekeeper::SlidingLog)), which has no wire form.
#![forbid(unsafe_code)]

mod cas;
mod connection;
mod error;
mod expiry;
mod key;
mod store;
mod turns;

pub use crate::cas::{MemcachedCas, Version};
pub use crate::store::MemcachedStore;

/// A [`KeyedLimiter`](ratekeeper::KeyedLimiter) over memcached.
///
/// The defaults help in type annotations: `MemcachedLimiter` limits keys of type `str` with token buckets.
pub type MemcachedLimiter<K = str, A = ratekeeper::TokenBucket> =
    ratekeeper::KeyedLimiter<K, A, MemcachedStore>;
