//! Stores around stores.

mod breaker;
mod deadline;
#[cfg(feature = "alloc")]
mod deny_cache;
mod fail;
mod fail_closed;
mod fail_open;
#[cfg(feature = "alloc")]
mod fallback;
#[cfg(feature = "remote")]
mod hashed_keys;
#[cfg(feature = "alloc")]
mod leased;
#[cfg(feature = "alloc")]
mod part;
mod passed_on;
#[cfg(feature = "alloc")]
mod sets;
#[cfg(feature = "alloc")]
mod sharded;
#[cfg(feature = "alloc")]
mod with_limit;

pub use self::breaker::{Breaker, BreakerState};
pub use self::deadline::Deadline;
#[cfg(feature = "alloc")]
pub use self::deny_cache::DenyCache;
pub use self::fail_closed::FailClosed;
pub use self::fail_open::FailOpen;
#[cfg(feature = "alloc")]
pub use self::fallback::Fallback;
#[cfg(feature = "remote")]
pub use self::hashed_keys::{HashedKey, HashedKeys, InvalidSecret};
#[cfg(feature = "alloc")]
pub use self::leased::Leased;
#[cfg(feature = "alloc")]
pub use self::sharded::{InvalidShards, Sharded};
#[cfg(feature = "alloc")]
pub use self::with_limit::WithLimit;
