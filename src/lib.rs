//! Exact rate limiting: a decision per client in nanoseconds, honest waits, and tests that hold the
//! clock.
#![no_std]
#![deny(
    clippy::float_arithmetic,
    clippy::std_instead_of_core,
    clippy::std_instead_of_alloc
)]
#![deny(clippy::alloc_instead_of_core, clippy::disallowed_methods)]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;

mod algorithm;
mod clock;
mod decision;
pub mod headers;
mod invalid_limit;
mod keyed;
mod limiter;
mod rate;
mod request;
mod state;
mod store;
mod sync;
mod text;
mod time;

#[cfg(feature = "alloc")]
pub use crate::algorithm::LogRing;
pub use crate::algorithm::{
    Algorithm, All, AnyAlgorithm, FixedWindow, SliceLog, SlidingLog, SlidingWindow, Step,
    TokenBucket,
};
#[cfg(feature = "quanta")]
pub use crate::clock::QuantaClock;
#[cfg(feature = "tokio")]
pub use crate::clock::TokioClock;
#[cfg(feature = "std")]
pub use crate::clock::UnixClock;
pub use crate::clock::{Clock, ManualClock, StdClock};
pub use crate::decision::{Decision, Denied, Outcome};
pub use crate::invalid_limit::InvalidLimit;
pub use crate::keyed::KeyedLimiter;
pub use crate::limiter::Limiter;
pub use crate::request::{Receipt, Request};
pub use crate::state::State;
pub use crate::store::{DashStore, MemoryStore};
pub use crate::time::Timestamp;
