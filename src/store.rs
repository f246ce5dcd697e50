//! Homes for states: one per limiter, or one per key.

pub(crate) mod cell;
#[cfg_attr(feature = "dashmap", path = "store/dash/enabled.rs")]
#[cfg_attr(not(feature = "dashmap"), path = "store/dash/disabled.rs")]
mod dash;
mod memory;

pub use self::dash::DashStore;
pub use self::memory::MemoryStore;
