//! Giving up on a store that does not answer in time.

use core::fmt;
use core::future::poll_fn;
use core::pin::pin;
use core::task::Poll;
use core::time::Duration;

use super::passed_on::passed_on;
use crate::algorithm::{Algorithm, Carry};
use crate::decision::Decision;
use crate::invalid_limit::InvalidLimit;
use crate::request::{Receipt, Request};
use crate::store::async_store::AsyncStore;
use crate::store::batch::Item;
use crate::store::error::{ErrorKind, StoreError};
use crate::store::memory::InProcess;
use crate::time::Timestamp;

/// Gives the store a time to answer in.
///
/// `sleep` makes the future that waits: `tokio::time::sleep`, or another runtime's.
///
#[cfg_attr(feature = "std", doc = "```")]
#[cfg_attr(not(feature = "std"), doc = "```ignore")]
/// use core::time::Duration;
/// use ratekeeper::store::{AsyncStore, Deadline, ErrorKind, StoreError};
/// use ratekeeper::{Algorithm, Decision, Request, TokenBucket};
///
/// struct Hung;
///
/// impl<A: Algorithm> AsyncStore<str, A> for Hung {
///     async fn apply_async(&self, _: &str, _: &A, _: Request) -> Result<Decision, StoreError> {
///         core::future::pending().await
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// let store = Deadline::new(Hung, Duration::from_millis(50), tokio::time::sleep);
/// let error = store.apply_async("alice", &TokenBucket::per_second(1), Request::ONE).await.unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Unknown);
/// # }
/// ```
///
/// # Bound
/// Never looser than the inner store. A request that was given up may have been counted, once.
///
/// # Errors
/// After the deadline the store's future is dropped and the answer is [`ErrorKind::Unknown`]. In a batch, items that have an
/// answer keep it, and those that the store had not even taken are [`ErrorKind::NotExecuted`]. A
/// [change](AsyncStore::change_async) that was given up may have happened; running it again may forgive the key what the new
/// limit cannot hold a second time.
///
/// # Time
/// The deadline runs from the moment the store first keeps the caller waiting; an answer that is there at once costs no
/// timer. An answer that comes together with the deadline wins. A store that blocks the thread is not interrupted.
pub struct Deadline<S, F> {
    store: S,
    limit: Duration,
    sleep: F,
}

const MESSAGE: &str = "the deadline passed";

impl<S, F> Deadline<S, F> {
    /// Gives `store` `limit` for each call, measured by `sleep`.
    pub const fn new(store: S, limit: Duration, sleep: F) -> Self {
        Self {
            store,
            limit,
            sleep,
        }
    }

    /// The inner store.
    pub const fn get_ref(&self) -> &S {
        &self.store
    }

    /// The future's output, unless the time is over first.
    async fn in_time<T, W>(&self, future: impl Future<Output = T>) -> Option<T>
    where
        F: Fn(Duration) -> W,
        W: Future<Output = ()>,
    {
        let mut future = pin!(future);
        let at_once = poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await;
        if let Poll::Ready(output) = at_once {
            return Some(output);
        }
        let mut expiry = pin!((self.sleep)(self.limit));
        let mut was_just_polled = true;
        poll_fn(|context| {
            if !core::mem::take(&mut was_just_polled) {
                if let Poll::Ready(output) = future.as_mut().poll(context) {
                    return Poll::Ready(Some(output));
                }
            }
            expiry.as_mut().poll(context).map(|()| None)
        })
        .await
    }
}

passed_on!(InProcess for Deadline<S, F>);

impl<K, A, S, F, W> AsyncStore<K, A> for Deadline<S, F>
where
    K: ?Sized + Sync,
    A: Algorithm,
    S: AsyncStore<K, A>,
    F: Fn(Duration) -> W + Send + Sync,
    W: Future<Output = ()> + Send,
{
    async fn apply_async(
        &self,
        key: &K,
        algorithm: &A,
        request: Request,
    ) -> Result<Decision, StoreError> {
        self.in_time(self.store.apply_async(key, algorithm, request))
            .await
            .unwrap_or_else(|| Err(passed(ErrorKind::Unknown)))
    }

    async fn apply_batch_async(&self, items: &mut [Item<'_, K, A>]) {
        let in_time = self.in_time(self.store.apply_batch_async(items)).await;
        if in_time.is_some() {
            return;
        }
        for item in items {
            if item.result().is_none() {
                let kind = item.error_kind().unwrap_or(ErrorKind::Unknown);
                item.answer(Err(passed(kind)));
            }
        }
    }

    async fn forget_async(&self, key: &K, algorithm: &A) -> Result<(), StoreError> {
        self.in_time(self.store.forget_async(key, algorithm))
            .await
            .unwrap_or_else(|| Err(passed(ErrorKind::Unknown)))
    }

    async fn change_async(
        &self,
        key: &K,
        old: &A,
        new: &A,
        carry: Carry,
    ) -> Result<Decision, StoreError> {
        self.in_time(self.store.change_async(key, old, new, carry))
            .await
            .unwrap_or_else(|| Err(passed(ErrorKind::Unknown)))
    }

    /// It keeps nobody waiting.
    fn cancel(&self, key: &K, algorithm: &A, receipt: Receipt) {
        self.store.cancel(key, algorithm, receipt);
    }

    passed_on!(AsyncStore);
}

const fn passed(kind: ErrorKind) -> StoreError {
    StoreError::new(kind, MESSAGE)
}

impl<S: fmt::Debug, F> fmt::Debug for Deadline<S, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deadline")
            .field("store", &self.store)
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}
