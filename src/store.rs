//! Homes for states: one per limiter, or one per key.

pub(crate) mod cell;
mod counters;
#[cfg_attr(feature = "dashmap", path = "store/dash/enabled.rs")]
#[cfg_attr(not(feature = "dashmap"), path = "store/dash/disabled.rs")]
mod dash;
mod hash;
mod memory;
mod overflow;
mod prefetch;
mod table;

pub use self::dash::DashStore;
pub use self::memory::MemoryStore;
pub use self::overflow::{InvalidCapacity, Overflow};
pub use self::table::{Slot, SlotState, TableStore, Ways};
