//! Exact rate limiting: a decision per client in nanoseconds, honest waits, and tests that hold the
//! clock.
//!
#![cfg_attr(feature = "dashmap", doc = "```")]
#![cfg_attr(not(feature = "dashmap"), doc = "```ignore")]
//! use ratekeeper::{KeyedLimiter, TokenBucket, headers};
//!
//! let users = KeyedLimiter::<String>::new(TokenBucket::per_minute(100).with_burst(20));
//! let decision = users.check("alice");
//! if !decision.is_allowed() {
//!     println!("429, Retry-After: {:?}", headers::retry_after(&decision));
//! }
//! ```
//!
//! # Where to look
//!
//! * **One limit for everybody**: [`Limiter`]; it is `const` and fits a `static`.
//! * **One limit per key**: [`KeyedLimiter`], over a [`DashStore`], a [`TableStore`] of fixed size, or your own
//!   [`MemoryStore`]; [which one](guide::stores)? For clients known by address, [`IpKey`].
//! * **One limit for several servers**: [`store`] has the traits, `ratekeeper-redis` and others implement them, and
//!   [this page](guide::shared) says what to wrap around them.
//! * **What to enforce**: [`TokenBucket`], [`SlidingWindow`], [`SlidingLog`], [`FixedWindow`], several at
//!   once with [`All`], one named in a configuration file with [`AnyAlgorithm`] and several with [`Limits`], or an
//!   [`Algorithm`] of your own. Each page states its worst case.
//! * **What to ask**: [`Request`] (costs, partial grants, reservations, refunds), and the complete answer,
//!   [`Decision`].
//! * **What time it is**: [`Clock`], [`StdClock`] by default; in tests, [`ManualClock`]; around a clock of your own that
//!   may run back, [`Monotonic`].
//! * **What to tell the client**: [`headers`], [`Denied`].
//!
//! # Rules that hold everywhere
//!
//! 1. The instant is an argument. A decision reads the clock once; no timer refills anything.
//! 2. Integers only. Nothing wraps and nothing panics, whatever the numbers are.
//! 3. A refusal, a peek and an error change nothing, and write nothing.
//! 4. [`Decision::retry_after`] is a promise: exact to the nanosecond, never zero; what can never pass is
//!    [`Outcome::TooLarge`].
//! 5. Time does not run back inside a process (see [`Clock`]), and a state ahead of the caller is honest debt.
//! 6. A state does not contain its limit. Different limits on one key never forgive each other's debts; a change that keeps
//!    the key's tokens is a step of its own ([`KeyedLimiter::change`]).
//! 7. Of several limits, all are charged or none.
//!
//! # Concurrency
//!
//! States up to 128 bits are single atomic words, and a decision is one compare-exchange on them: no
//! locks, no retry cap, exactly as if requests had come one after the other. Wider states ([`All`] of more
//! than two buckets, [`SlidingLog`]) are guarded by a mutex each. On targets without a native 64- or
//! 128-bit compare-exchange, `portable-atomic` takes a lock around each access instead; there, do not use
//! one limiter both in an interrupt handler and outside of it.
//!
//! # Not here
//!
//! Floating point, background threads, queues (waiting is an instant, see [`Request::or_wait`]), fake
//! clocks as defaults.
//!
//! # Features
//!
//! | feature | default | brings | costs |
//! |---|---|---|---|
//! | `std` | yes | [`StdClock`] as a clock, [`UnixClock`], shared states wider than 128 bits | |
//! | `dashmap` | yes | [`DashStore`], [`KeyedLimiter::new`] | `dashmap` and its dependencies |
//! | `alloc` | with `std` | [`SlidingLog`] as an algorithm | an allocator |
//! | `quanta` | no | `QuantaClock`, about half the price of `StdClock` | `quanta` |
//! | `tokio` | no | `TokioClock`, which obeys paused time | `tokio` (`time` only) |
//! | `serde` | no | limits as text in any format | `serde` |
//! | `remote` | no | `Namespace` and `HashedKeys`, for backends | `hmac`, `sha2` and their dependencies |
//! | `conformance` | no | the test kit for authors of stores | |
//!
//! Without features the crate needs no allocator and, besides the core library, `portable-atomic` alone.
#![no_std]
#![deny(
    clippy::float_arithmetic,
    clippy::std_instead_of_core,
    clippy::std_instead_of_alloc
)]
#![deny(clippy::alloc_instead_of_core, clippy::disallowed_methods)]

#[cfg(any(feature = "alloc", test))]
extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;

mod algorithm;
mod clock;
#[cfg(feature = "conformance")]
pub mod conformance;
mod decision;
pub mod guide;
pub mod headers;
mod invalid_limit;
mod ip;
mod keyed;
mod limiter;
mod rate;
mod request;
mod state;
pub mod store;
mod sync;
mod text;
mod time;

#[cfg(feature = "alloc")]
pub use crate::algorithm::LogRing;
pub use crate::algorithm::{
    Algorithm, All, AnyAlgorithm, Carry, Change, Changeable, FixedWindow, Limits, Live, SliceLog,
    SlidingLog, SlidingWindow, Step, TokenBucket,
};
#[cfg(feature = "quanta")]
pub use crate::clock::QuantaClock;
#[cfg(feature = "tokio")]
pub use crate::clock::TokioClock;
#[cfg(feature = "std")]
pub use crate::clock::UnixClock;
pub use crate::clock::{Clock, ManualClock, Monotonic, StdClock};
pub use crate::decision::{Decision, Denied, Outcome, Report};
pub use crate::invalid_limit::{InvalidLimit, SyntaxError};
pub use crate::ip::IpKey;
pub use crate::keyed::{ForKey, KeyedLimiter, Under};
pub use crate::limiter::Limiter;
pub use crate::request::{Receipt, Request};
pub use crate::state::{SameState, State};
pub use crate::store::{
    AsyncStore, DashStore, InProcess, InvalidCapacity, MemoryStore, Overflow, Slot, SlotState,
    Store, StoreError, TableStore, Ways,
};
pub use crate::time::Timestamp;

/// The README's code is compiled, too.
#[cfg(all(doctest, feature = "dashmap"))]
#[doc = include_str!("../README.md")]
struct Readme;
