//! Homes for states: one per limiter, or one per key; in this process, or elsewhere.
//!
//! | trait | for | asked with |
//! |---|---|---|
//! | [`MemoryStore`] | stores of this process, which cannot fail | [`KeyedLimiter::check`](crate::KeyedLimiter::check) |
//! | [`Store`] | stores that may fail, synchronous | [`KeyedLimiter::try_check`](crate::KeyedLimiter::try_check) |
//! | [`AsyncStore`] | stores that may fail, async | [`KeyedLimiter::check_async`](crate::KeyedLimiter::check_async) |
//! | [`CasStore`], [`AsyncCasStore`] | backends that only read and compare-and-swap; [`CasLoop`] makes them stores | |
//!
//! [`DashStore`] and [`TableStore`] implement the first three. [`Store`]'s page is the contract, [`StateBytes`] the form in
//! which states leave the process, [`Key`] that of keys.

mod async_store;
mod batch;
mod blocking;
mod cas;
pub(crate) mod cell;
mod counters;
#[cfg_attr(feature = "dashmap", path = "store/dash/enabled.rs")]
#[cfg_attr(not(feature = "dashmap"), path = "store/dash/disabled.rs")]
mod dash;
#[cfg(feature = "alloc")]
mod dyn_store;
mod error;
mod hash;
mod key;
mod memory;
#[cfg(feature = "remote")]
mod namespace;
mod overflow;
mod prefetch;
mod ready;
mod table;
mod wire;

pub use self::async_store::AsyncStore;
pub use self::batch::Item;
pub use self::blocking::Store;
pub use self::cas::{AsyncCasStore, CasAction, CasDriver, CasLoop, CasStore, Jitter, Loaded, Swap};
pub use self::dash::DashStore;
#[cfg(feature = "alloc")]
pub use self::dyn_store::DynStore;
pub use self::error::{ErrorKind, StoreError};
pub use self::key::Key;
pub use self::memory::MemoryStore;
#[cfg(feature = "remote")]
pub use self::namespace::{InvalidNamespace, Namespace};
pub use self::overflow::{InvalidCapacity, Overflow};
pub use self::ready::Ready;
pub use self::table::{Slot, SlotState, TableStore, Ways};
pub use self::wire::StateBytes;
pub(crate) use self::wire::Wire;
