//! The store trait for backends that may fail.

use super::batch::Item;
use super::error::{ErrorKind, StoreError};
use crate::algorithm::{Algorithm, Carry};
use crate::decision::Decision;
use crate::invalid_limit::InvalidLimit;
use crate::request::Request;

/// A keyed home for states that may fail, called synchronously.
///
/// "Run this algorithm on this key" is the operation, so that a backend which can run code decides in one step on its side.
/// One that can only read and compare-and-swap implements [`CasStore`](super::CasStore) instead, and
/// [`CasLoop`](super::CasLoop) makes it a store.
///
/// # Contract
/// 1. *Linearizable per key*: whatever happens concurrently, the outcomes on one key are those of some serial order of
///    [`Algorithm::step`].
/// 2. *Unchanged means untouched*: a step that does not [write](crate::Step::keep) creates, changes and touches nothing,
///    not even an expiry. Refusals, peeks and requests that are too large are such steps.
/// 3. *Kept long enough*: a state lives at least as long as `keep`, rounded up to the backend's unit. Earlier removal is data
///    loss.
/// 4. *Never immortal*: what nobody asks for again disappears eventually. A state older than `keep` equals an absent one.
/// 5. *A denial is `Ok`.* `Err` means that no decision was made.
/// 6. *Undecodable values are errors* of kind [`Corrupt`](ErrorKind::Corrupt), empty ones and values of another type of the
///    backend's included: neither overwritten nor treated as absent.
/// 7. *Nothing is retried* once it may have been executed: a call counts at most once, also one that ended with
///    [`Unknown`](ErrorKind::Unknown).
/// 8. *Keys do not meet*: distinct keys have distinct states, and so have equal keys in distinct namespaces (`Namespace`,
///    with the feature `remote`).
///
/// # Consistency
/// Between processes, what the backend gives: a store says whether a failover can lose writes, and how many requests too
/// many that may let through.
///
/// # Loss tolerated
/// A lost state is a key never seen: each loss forgives a key at most one burst (or window). A store that may lose states
/// says when.
///
/// # Time
/// The store owns the clock, one for all of a key space; there is no time argument. It may be stepped back, and then a value
/// that proves it is repaired: see [`step_stored`](super::step_stored). Without that proof a state ahead of the clock is debt,
/// left by another limit or a later reading.
///
/// # Errors
/// [`StoreError::kind`] says whether the request was counted. A store never turns an error into a decision; that is for
/// wrappers, which mark what they answer ([`Decision::is_degraded`]).
///
/// # Implementing
/// One method. A backend that decides by itself had better answer with the instant, the state that it found and the one that it
/// left: then [`Algorithm::step`], repeated here on the first two, is the complete decision, and the third must agree with it
/// (or else the answer is [`Corrupt`](ErrorKind::Corrupt)). Take the state's bytes from [`StateBytes`](super::StateBytes) and the key's from [`Key`](super::Key), and run
/// the store through the feature `conformance`'s test kit, which has a function for each clause above.
///
/// # Wrappers
/// A wrapper implements this trait for every store that does, and forwards every method: batches as batches. It may be
/// stricter than its inner store, and looser only by a bound that it documents.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no synchronous store of `{A}` for keys `{K}`",
    note = "a store for async code implements `AsyncStore`: call `check_async`; one in this process becomes a `Store` in `Ready`"
)]
pub trait Store<K: ?Sized, A: Algorithm> {
    /// Answers `request` for `key` under `algorithm`.
    ///
    /// # Errors
    /// No decision was made; see [`ErrorKind`].
    fn apply(&self, key: &K, algorithm: &A, request: Request) -> Result<Decision, StoreError>;

    /// Answers several requests, each as [`apply`](Self::apply) would, in order for each key. There is no atomicity across
    /// them: each has its own result.
    fn apply_batch(&self, items: &mut [Item<'_, K, A>]) {
        for item in items {
            if let Some(request) = item.take_request() {
                item.set_result(self.apply(item.key(), item.algorithm(), request));
            }
        }
    }

    /// Forgets `key`, as if it had never been seen; forgetting a key that is not there is fine.
    ///
    /// # Errors
    /// As [`apply`](Self::apply); [`ErrorKind::Unsupported`] unless the store says otherwise.
    fn forget(&self, key: &K, algorithm: &A) -> Result<(), StoreError> {
        let _ = (key, algorithm);
        Err(cannot_forget())
    }

    /// Moves `key` from the limit `old` to `new`, now and once: see [`Change`](crate::Change). The decision is a peek under
    /// `new`.
    ///
    /// # Errors
    /// As [`apply`](Self::apply); [`ErrorKind::Unsupported`] unless the store says otherwise.
    fn try_change(&self, key: &K, old: &A, new: &A, carry: Carry) -> Result<Decision, StoreError> {
        let _ = (key, old, new, carry);
        Err(cannot_change())
    }

    /// Whether the store can enforce `algorithm`.
    ///
    /// # Errors
    /// [`InvalidLimit`] that names the store's bound. Requests under such a limit are [`ErrorKind::Unsupported`].
    fn try_accepts(&self, algorithm: &A) -> Result<(), InvalidLimit> {
        let _ = algorithm;
        Ok(())
    }

    /// As [`MemoryStore::fingerprint`](super::MemoryStore::fingerprint).
    fn try_fingerprint(&self, key: &K) -> u64 {
        let _ = key;
        0
    }
}

pub(super) const fn cannot_change() -> StoreError {
    StoreError::new(
        ErrorKind::Unsupported,
        "this store cannot change a key's limit",
    )
}

pub(super) const fn cannot_forget() -> StoreError {
    StoreError::new(ErrorKind::Unsupported, "this store cannot forget a key")
}

/// Pointers to stores are stores.
macro_rules! forward {
    ($($pointer:ty),+) => {
        $(impl<K: ?Sized, A: Algorithm, S: Store<K, A> + ?Sized> Store<K, A> for $pointer {
            fn apply(&self, key: &K, algorithm: &A, request: Request) -> Result<Decision, StoreError> {
                (**self).apply(key, algorithm, request)
            }

            fn apply_batch(&self, items: &mut [Item<'_, K, A>]) {
                (**self).apply_batch(items);
            }

            fn forget(&self, key: &K, algorithm: &A) -> Result<(), StoreError> {
                (**self).forget(key, algorithm)
            }

            fn try_change(&self, key: &K, old: &A, new: &A, carry: Carry) -> Result<Decision, StoreError> {
                (**self).try_change(key, old, new, carry)
            }

            fn try_accepts(&self, algorithm: &A) -> Result<(), InvalidLimit> {
                (**self).try_accepts(algorithm)
            }

            fn try_fingerprint(&self, key: &K) -> u64 {
                (**self).try_fingerprint(key)
            }
        })+
    };
}
forward!(&S);
#[cfg(feature = "alloc")]
forward!(alloc::boxed::Box<S>);
#[cfg(all(feature = "alloc", target_has_atomic = "ptr"))]
forward!(alloc::sync::Arc<S>);
