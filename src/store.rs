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
//!
//! # Wrappers
//! Stores around stores. None is looser than its page says, all pass batches on as batches, and what they answer in place of
//! a store that fails is marked ([`Decision::is_degraded`](crate::Decision::is_degraded)).
//!
//! | wrapper | adds |
//! |---|---|
//! | [`DenyCache`] | refused clients are told again without a round trip |
//! | [`FailOpen`], [`FailClosed`], [`Fallback`] | an answer when the store has none: yes, no, or another store's |
//! | [`Breaker`] | a store that is down is not asked |
//! | [`Deadline`] | an error in time (async) |
//! | [`Leased`] | many requests for one round trip |
//! | [`Sharded`] | several backends as one |
//! | `HashedKeys` (feature `remote`) | the backend does not learn who the clients are |
//! | [`WithLimit`] | a limit of its own, such as this process's share |
//!
//! Nested from the outside in like this, each leaving out what is not needed:
//!
//! ```text
//! DenyCache( FailOpen( Breaker( Deadline( Leased( HashedKeys( store ))))))
//! DenyCache( Fallback( Sharded( [Breaker( Deadline( Leased( store ))), …] ), local ))
//! ```
//!
//! What costs nothing comes first. The deadline lies inside the breaker, which counts what passes it, and around the lease,
//! whose own answers need no timer. Errors are answered outside of the breaker, which must see them, and inside the cache, which
//! does not remember answers in place of the store. Each shard has a breaker of its own, or one that is down would shut all.

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
mod key_kind;
mod memory;
#[cfg(feature = "remote")]
mod namespace;
mod one_kind;
mod overflow;
mod prefetch;
mod ready;
mod table;
mod value;
mod wire;
mod wrap;

pub use self::async_store::AsyncStore;
pub use self::batch::Item;
pub use self::blocking::Store;
pub use self::cas::{AsyncCasStore, CasAction, CasDriver, CasLoop, CasStore, Jitter, Loaded, Swap};
pub use self::dash::DashStore;
#[cfg(feature = "alloc")]
pub use self::dyn_store::DynStore;
pub use self::error::{ErrorKind, StoreError};
pub use self::key::Key;
pub use self::key_kind::KeyKind;
pub(crate) use self::key_kind::{BUCKET, Span};
pub use self::memory::{InProcess, MemoryStore};
#[cfg(feature = "remote")]
pub use self::namespace::{InvalidNamespace, Namespace};
pub use self::overflow::{InvalidCapacity, Overflow};
pub use self::ready::Ready;
pub use self::table::{Slot, SlotState, TableStore, Ways};
pub(crate) use self::value::{Opened, step_under};
pub use self::value::{
    StoredStep, StoredWrite, Version, answer_at_once, compare_versions, step_stored,
};
pub use self::wire::StateBytes;
pub(crate) use self::wire::Wire;
pub use self::wrap::{Breaker, BreakerState, Deadline, FailClosed, FailOpen};
#[cfg(feature = "alloc")]
pub use self::wrap::{DenyCache, Fallback, InvalidShards, Leased, Sharded, WithLimit};
#[cfg(feature = "remote")]
pub use self::wrap::{HashedKey, HashedKeys, InvalidSecret};
