//! The store trait for async code.

use super::batch::Item;
use super::blocking::{cannot_change, cannot_forget};
use super::error::StoreError;
use crate::algorithm::{Algorithm, Carry};
use crate::decision::Decision;
use crate::invalid_limit::InvalidLimit;
use crate::request::{Receipt, Request};

/// A keyed home for states that is asked asynchronously: a server, usually.
///
/// Its contract is that of [`Store`](super::Store), line by line, under the same headings. What async adds:
///
/// # Contract
/// * *Futures are `Send`*, so that limiters work in spawned tasks.
/// * *Dropping a future is safe*: the request is counted once or not at all, and later answers are not mixed up.
/// * *A deadline*: a store that crosses a network answers within a time that it documents, with an error if need be.
///
/// # Consistency
/// # Loss tolerated
/// # Time
/// # Errors
/// As [`Store`](super::Store).
///
/// # Implementing
/// Write `async fn`; the compiler checks that the future is `Send`.
///
/// ```
/// use ratekeeper::store::{AsyncStore, Key, StoreError};
/// use ratekeeper::{Algorithm, Decision, Request};
///
/// struct Remote {/* a connection */}
///
/// impl<K: Key + ?Sized, A: Algorithm<State = u64>> AsyncStore<K, A> for Remote {
///     async fn apply_async(&self, key: &K, algorithm: &A, request: Request) -> Result<Decision, StoreError> {
///         // Send key, limit and request; await the instant and the state that was found, and repeat the step here.
/// #       let _ = key;
/// #       Ok(algorithm.step(ratekeeper::Timestamp::ZERO, &mut 0, &request).decision)
///     }
/// }
/// ```
///
/// # Wrappers
/// As [`Store`](super::Store): for every async store, forwarding every method.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no async store of `{A}` for keys `{K}`",
    note = "a store in this process becomes an `AsyncStore` in `Ready`"
)]
pub trait AsyncStore<K: ?Sized + Sync, A: Algorithm>: Send + Sync {
    /// Answers `request` for `key` under `algorithm`.
    ///
    /// # Errors
    /// No decision was made; see [`ErrorKind`](super::ErrorKind).
    fn apply_async(
        &self,
        key: &K,
        algorithm: &A,
        request: Request,
    ) -> impl Future<Output = Result<Decision, StoreError>> + Send;

    /// Answers several requests, each as [`apply_async`](Self::apply_async) would, in order for each key. There is no
    /// atomicity across them: each has its own result. If the future is dropped, items without a result may have been
    /// counted.
    fn apply_batch_async(&self, items: &mut [Item<'_, K, A>]) -> impl Future<Output = ()> + Send {
        async move {
            for item in items {
                if let Some(request) = item.take_request() {
                    let result = self
                        .apply_async(item.key(), item.algorithm(), request)
                        .await;
                    item.set_result(result);
                }
            }
        }
    }

    /// Forgets `key`, as if it had never been seen; forgetting a key that is not there is fine.
    ///
    /// # Errors
    /// As [`apply_async`](Self::apply_async); [`ErrorKind::Unsupported`](super::ErrorKind::Unsupported) unless the store
    /// says otherwise.
    fn forget_async(
        &self,
        key: &K,
        algorithm: &A,
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        let _ = (key, algorithm);
        core::future::ready(Err(cannot_forget()))
    }

    /// Moves `key` from the limit `old` to `new`, now and once: see [`Change`](crate::Change). The decision is a peek under
    /// `new`.
    ///
    /// # Errors
    /// As [`apply_async`](Self::apply_async); [`ErrorKind::Unsupported`](super::ErrorKind::Unsupported) unless the store says
    /// otherwise.
    fn change_async(
        &self,
        key: &K,
        old: &A,
        new: &A,
        carry: Carry,
    ) -> impl Future<Output = Result<Decision, StoreError>> + Send {
        let _ = (key, old, new, carry);
        core::future::ready(Err(cannot_change()))
    }

    /// Whether the store can enforce `algorithm`.
    ///
    /// # Errors
    /// [`InvalidLimit`] that names the store's bound. Requests under such a limit are
    /// [`ErrorKind::Unsupported`](super::ErrorKind::Unsupported).
    fn accepts_async(&self, algorithm: &A) -> Result<(), InvalidLimit> {
        let _ = algorithm;
        Ok(())
    }

    /// Gives back what `receipt` stands for, without waiting for an answer: what a dropped future can still do. Does nothing
    /// unless the store can, and the charge stays.
    fn cancel(&self, key: &K, algorithm: &A, receipt: Receipt) {
        let _ = (key, algorithm, receipt);
    }

    /// As [`MemoryStore::fingerprint`](super::MemoryStore::fingerprint).
    fn fingerprint_of(&self, key: &K) -> u64 {
        let _ = key;
        0
    }
}

/// Pointers to stores are stores.
macro_rules! forward {
    ($($pointer:ty),+) => {
        $(impl<K: ?Sized + Sync, A: Algorithm, S: AsyncStore<K, A> + ?Sized> AsyncStore<K, A> for $pointer {
            fn apply_async(
                &self,
                key: &K,
                algorithm: &A,
                request: Request,
            ) -> impl Future<Output = Result<Decision, StoreError>> + Send {
                (**self).apply_async(key, algorithm, request)
            }

            fn apply_batch_async(&self, items: &mut [Item<'_, K, A>]) -> impl Future<Output = ()> + Send {
                (**self).apply_batch_async(items)
            }

            fn forget_async(&self, key: &K, algorithm: &A) -> impl Future<Output = Result<(), StoreError>> + Send {
                (**self).forget_async(key, algorithm)
            }

            fn change_async(
                &self,
                key: &K,
                old: &A,
                new: &A,
                carry: Carry,
            ) -> impl Future<Output = Result<Decision, StoreError>> + Send {
                (**self).change_async(key, old, new, carry)
            }

            fn accepts_async(&self, algorithm: &A) -> Result<(), InvalidLimit> {
                (**self).accepts_async(algorithm)
            }

            fn cancel(&self, key: &K, algorithm: &A, receipt: Receipt) {
                (**self).cancel(key, algorithm, receipt);
            }

            fn fingerprint_of(&self, key: &K) -> u64 {
                (**self).fingerprint_of(key)
            }
        })+
    };
}
forward!(&S);
#[cfg(feature = "alloc")]
forward!(alloc::boxed::Box<S>);
#[cfg(all(feature = "alloc", target_has_atomic = "ptr"))]
forward!(alloc::sync::Arc<S>);
