//! The compare-and-swap loop, blocking and async, around one driver.

use core::fmt;
use core::time::Duration;

use super::driver::{CasAction, CasDriver};
use super::jitter::Jitter;
use super::{AsyncCasStore, CasStore, Loaded};
use crate::algorithm::Algorithm;
use crate::clock::Clock;
#[cfg(feature = "std")]
use crate::clock::UnixClock;
use crate::decision::Decision;
use crate::request::Request;
use crate::store::async_store::AsyncStore;
use crate::store::blocking::Store;
use crate::store::error::StoreError;

/// A store for every algorithm with a [wire form](crate::store::StateBytes), over a backend that can compare and swap.
///
/// Each decision that changes a state takes two round trips. A lost race is repeated, at first at once, then after waits
/// that grow and are drawn at random; after [`with_max_attempts`](Self::with_max_attempts) lost races (16 by default) the
/// answer is [`ErrorKind::Contention`](crate::store::ErrorKind::Contention). Refusals write nothing, so a drained key causes
/// no races; the bad case is one hot key whose requests are mostly allowed, where each round trip has one winner. Prefer a
/// backend's own store, if there is one.
///
/// `sleep` waits: `std::thread::sleep` for a [`CasStore`], `tokio::time::sleep` for an [`AsyncCasStore`].
///
/// # Time
/// The backend's, if it has a clock. Otherwise `clock`, by default [`UnixClock`](crate::UnixClock), and then the clocks of all
/// processes must agree to within the time of a token. If they differ by more, a process that is behind takes what one that
/// is ahead has written for the remains of a clock step and cuts it back, again and again: with clocks 100 ms apart, a bucket
/// of 10 a second was seen to grant 102 of 200 requests at one instant. A backend of this kind should keep the
/// latest instant beside the state and decide no earlier than that, as `ratekeeper-memcached` does.
pub struct CasLoop<S, F, C> {
    store: S,
    sleep: F,
    clock: C,
    jitter: Jitter,
    max_attempts: u32,
}

#[cfg(feature = "std")]
impl<S, F> CasLoop<S, F, UnixClock> {
    /// A loop over `store` that waits with `sleep`.
    pub fn new(store: S, sleep: F) -> Self {
        Self::with_clock(store, sleep, UnixClock, Jitter::random())
    }
}

impl<S, F, C> CasLoop<S, F, C> {
    /// The most attempts a request makes unless told otherwise.
    pub const DEFAULT_MAX_ATTEMPTS: u32 = 16;

    /// A loop with a clock for backends that have none, and the waits of `jitter`.
    pub const fn with_clock(store: S, sleep: F, clock: C, jitter: Jitter) -> Self {
        Self {
            store,
            sleep,
            clock,
            jitter,
            max_attempts: Self::DEFAULT_MAX_ATTEMPTS,
        }
    }

    /// Changes how many races a request may lose before it gives up; at least 1.
    #[must_use]
    pub const fn with_max_attempts(mut self, max_attempts: u32) -> Self {
        self.max_attempts = if max_attempts == 0 { 1 } else { max_attempts };
        self
    }

    /// The backend.
    pub const fn get_ref(&self) -> &S {
        &self.store
    }
}

impl<K, A, S, F, C> Store<K, A> for CasLoop<S, F, C>
where
    K: ?Sized,
    A: Algorithm,
    S: CasStore<K>,
    F: Fn(Duration),
    C: Clock,
{
    fn apply(&self, key: &K, algorithm: &A, request: Request) -> Result<Decision, StoreError> {
        let mut driver = CasDriver::new(algorithm, request, self.max_attempts);
        let mut action = CasAction::Load;
        loop {
            action = match action {
                CasAction::Load => driver.loaded(self.store.load(key)?, &self.clock)?,
                CasAction::Exchange { new, keep } => {
                    let seen = seen(&driver)?;
                    let swap = self.store.compare_exchange(key, seen, &new, keep)?;
                    driver.exchanged(swap, &self.clock)?
                }
                CasAction::BackOff { lost } => {
                    (self.sleep)(self.jitter.wait(lost));
                    CasAction::Load
                }
                CasAction::Done(decision) => return Ok(decision),
            };
        }
    }

    fn forget(&self, key: &K, _algorithm: &A) -> Result<(), StoreError> {
        self.store.remove(key)
    }
}

impl<K, A, S, F, W, C> AsyncStore<K, A> for CasLoop<S, F, C>
where
    K: ?Sized + Sync,
    A: Algorithm,
    S: AsyncCasStore<K>,
    F: Fn(Duration) -> W + Send + Sync,
    W: Future<Output = ()> + Send,
    C: Clock + Send + Sync,
{
    async fn apply_async(
        &self,
        key: &K,
        algorithm: &A,
        request: Request,
    ) -> Result<Decision, StoreError> {
        let mut driver = CasDriver::new(algorithm, request, self.max_attempts);
        let mut action = CasAction::Load;
        loop {
            action = match action {
                CasAction::Load => driver.loaded(self.store.load_async(key).await?, &self.clock)?,
                CasAction::Exchange { new, keep } => {
                    let seen = seen(&driver)?;
                    let swap = self
                        .store
                        .compare_exchange_async(key, seen, &new, keep)
                        .await?;
                    driver.exchanged(swap, &self.clock)?
                }
                CasAction::BackOff { lost } => {
                    (self.sleep)(self.jitter.wait(lost)).await;
                    CasAction::Load
                }
                CasAction::Done(decision) => return Ok(decision),
            };
        }
    }

    async fn forget_async(&self, key: &K, _algorithm: &A) -> Result<(), StoreError> {
        self.store.remove_async(key).await
    }
}

/// What an exchange compares; the driver asks for none before it was told of a value.
fn seen<'d, A: Algorithm, V>(driver: &'d CasDriver<'_, A, V>) -> Result<&'d Loaded<V>, StoreError> {
    const MESSAGE: &str = "an exchange before the first load";
    let nothing = || StoreError::new(crate::store::error::ErrorKind::Config, MESSAGE);
    driver.seen().ok_or_else(nothing)
}

impl<S: fmt::Debug, F, C> fmt::Debug for CasLoop<S, F, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CasLoop")
            .field("store", &self.store)
            .field("max_attempts", &self.max_attempts)
            .finish_non_exhaustive()
    }
}
