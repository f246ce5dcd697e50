//! Stores that can only read and compare-and-swap, made stores for every algorithm.

mod driver;
mod jitter;
mod retry;

use core::time::Duration;

pub use self::driver::{CasAction, CasDriver};
pub use self::jitter::Jitter;
pub use self::retry::CasLoop;
use super::blocking::cannot_forget;
use super::error::StoreError;
use super::key_kind::KeyKind;
use super::wire::StateBytes;
use crate::time::Timestamp;

/// What a backend holds for a key.
#[derive(Clone, Copy, Debug)]
pub struct Loaded<V> {
    /// The value; `None` if there is none.
    pub state: Option<StateBytes>,
    /// What [`compare_exchange`](CasStore::compare_exchange) compares: the backend's version number, or `()` if it compares
    /// the value itself. Absence is a version too.
    pub version: V,
    /// The backend's clock, in nanoseconds since the Unix epoch, one for all processes, read no earlier than the value; `None` if
    /// the backend has none. Then the clock of each process counts, and values carry the instant of their write (see
    /// [`CasLoop`]). A backend either always has one or never.
    pub now: Option<Timestamp>,
}

/// How an exchange went.
#[derive(Clone, Copy, Debug)]
pub enum Swap<V> {
    /// The new value is in place.
    Done,
    /// Somebody else was faster and nothing was written. The fresh value, if the backend gave it away with the refusal.
    Conflict(Option<Loaded<V>>),
}

/// A backend that reads and compare-and-swaps, synchronously. [`CasLoop`] makes it a [`Store`](super::Store).
///
/// # Contract
/// * A key is the pair of `key` and `kind`: what limits of one kind leave, others never see. Where the backend's keys are bytes,
///   `Namespace::key_of_kind` makes them (feature `remote`).
/// * `compare_exchange` writes if and only if the key's value is still the one in `seen`, and sets its time to live to at
///   least `keep` in the same atomic step; rounded up, never endless, and never shorter than what is left of it.
/// * Comparing by value suffices: equal bytes mean equal future behaviour.
/// * An exchange is under way for less than a minute; give it a deadline.
/// * A value that has expired is absent.
///
/// # Errors
/// As [`Store`](super::Store): after [`Unknown`](super::ErrorKind::Unknown) nothing is tried again.
pub trait CasStore<K: ?Sized> {
    /// What tells one value of a key from another.
    type Version;

    /// Reads a key.
    ///
    /// # Errors
    /// Nothing was read.
    fn load(&self, key: &K, kind: &KeyKind) -> Result<Loaded<Self::Version>, StoreError>;

    /// Writes `new`, to be kept for at least `keep`, if the key has not changed since `seen`.
    ///
    /// # Errors
    /// [`NotExecuted`](super::ErrorKind::NotExecuted) if nothing was written, [`Unknown`](super::ErrorKind::Unknown) if
    /// that is not certain.
    fn compare_exchange(
        &self,
        key: &K,
        kind: &KeyKind,
        seen: &Loaded<Self::Version>,
        new: &StateBytes,
        keep: Duration,
    ) -> Result<Swap<Self::Version>, StoreError>;

    /// Deletes a key; fine if it is not there.
    ///
    /// # Errors
    /// [`Unsupported`](super::ErrorKind::Unsupported) unless the store says otherwise.
    fn remove(&self, key: &K, kind: &KeyKind) -> Result<(), StoreError> {
        let _ = (key, kind);
        Err(cannot_forget())
    }
}

/// A backend that reads and compare-and-swaps, asynchronously. [`CasLoop`] makes it an [`AsyncStore`](super::AsyncStore).
///
/// The contract is that of [`CasStore`].
pub trait AsyncCasStore<K: ?Sized + Sync>: Send + Sync {
    /// What tells one value of a key from another.
    type Version: Send + Sync;

    /// Reads a key.
    ///
    /// # Errors
    /// Nothing was read.
    fn load_async(
        &self,
        key: &K,
        kind: &KeyKind,
    ) -> impl Future<Output = Result<Loaded<Self::Version>, StoreError>> + Send;

    /// Writes `new`, to be kept for at least `keep`, if the key has not changed since `seen`.
    ///
    /// # Errors
    /// As [`CasStore::compare_exchange`].
    fn compare_exchange_async(
        &self,
        key: &K,
        kind: &KeyKind,
        seen: &Loaded<Self::Version>,
        new: &StateBytes,
        keep: Duration,
    ) -> impl Future<Output = Result<Swap<Self::Version>, StoreError>> + Send;

    /// Deletes a key; fine if it is not there.
    ///
    /// # Errors
    /// [`Unsupported`](super::ErrorKind::Unsupported) unless the store says otherwise.
    fn remove_async(
        &self,
        key: &K,
        kind: &KeyKind,
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        let _ = (key, kind);
        core::future::ready(Err(cannot_forget()))
    }
}

/// Pointers to backends are backends.
macro_rules! forward {
    ($($pointer:ty),+) => {
        $(
            impl<K: ?Sized, S: CasStore<K> + ?Sized> CasStore<K> for $pointer {
                type Version = S::Version;

                fn load(&self, key: &K, kind: &KeyKind) -> Result<Loaded<Self::Version>, StoreError> {
                    (**self).load(key, kind)
                }

                fn compare_exchange(
                    &self,
                    key: &K,
                    kind: &KeyKind,
                    seen: &Loaded<Self::Version>,
                    new: &StateBytes,
                    keep: Duration,
                ) -> Result<Swap<Self::Version>, StoreError> {
                    (**self).compare_exchange(key, kind, seen, new, keep)
                }

                fn remove(&self, key: &K, kind: &KeyKind) -> Result<(), StoreError> {
                    (**self).remove(key, kind)
                }
            }

            impl<K: ?Sized + Sync, S: AsyncCasStore<K> + ?Sized> AsyncCasStore<K> for $pointer {
                type Version = S::Version;

                fn load_async(&self, key: &K, kind: &KeyKind) -> impl Future<Output = Result<Loaded<Self::Version>, StoreError>> + Send {
                    (**self).load_async(key, kind)
                }

                fn compare_exchange_async(
                    &self,
                    key: &K,
                    kind: &KeyKind,
                    seen: &Loaded<Self::Version>,
                    new: &StateBytes,
                    keep: Duration,
                ) -> impl Future<Output = Result<Swap<Self::Version>, StoreError>> + Send {
                    (**self).compare_exchange_async(key, kind, seen, new, keep)
                }

                fn remove_async(&self, key: &K, kind: &KeyKind) -> impl Future<Output = Result<(), StoreError>> + Send {
                    (**self).remove_async(key, kind)
                }
            }
        )+
    };
}
forward!(&S);
#[cfg(feature = "alloc")]
forward!(alloc::boxed::Box<S>);
#[cfg(all(feature = "alloc", target_has_atomic = "ptr"))]
forward!(alloc::sync::Arc<S>);
