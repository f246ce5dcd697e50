//! The compare-and-swap loop, blocking and async, around one driver.

use core::fmt;
use core::time::Duration;

use super::driver::{CasAction, CasDriver};
use super::jitter::Jitter;
use super::{AsyncCasStore, CasStore, Loaded};
use crate::algorithm::{Algorithm, Carry, Change};
use crate::clock::Clock;
#[cfg(feature = "std")]
use crate::clock::UnixClock;
use crate::decision::Decision;
use crate::request::Request;
use crate::store::async_store::AsyncStore;
use crate::store::blocking::Store;
use crate::store::error::StoreError;
use crate::store::key_kind::KeyKind;
use crate::store::value::answer_at_once;

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
/// The backend's, if it has a clock. Otherwise `clock`, by default [`UnixClock`](crate::UnixClock), and then each value carries
/// the instant of its write, before which nobody decides: a process whose clock is behind goes by the value's. Clocks that differ
/// by up to `d` let pass what one clock would in `d` more, once. A value from further ahead than
/// [`max_skew`](Self::with_max_skew) comes from a clock that was set back since, and is repaired.
pub struct CasLoop<S, F, C> {
    store: S,
    sleep: F,
    clock: C,
    jitter: Jitter,
    max_attempts: u32,
    max_skew: Duration,
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
            max_skew: Self::DEFAULT_MAX_SKEW,
        }
    }

    /// By how much the clocks of processes may differ unless told otherwise.
    pub const DEFAULT_MAX_SKEW: Duration = Duration::from_secs(10);

    /// For backends without a clock of their own: by how much the clocks of the processes may differ. A process whose clock is
    /// further behind than that forgives a key up to a burst, once for each value that it finds so far ahead; a clock that was set
    /// back by more makes keys wait no longer than it.
    #[must_use]
    pub const fn with_max_skew(mut self, max_skew: Duration) -> Self {
        self.max_skew = max_skew;
        self
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

impl<S, F, C: Clock> CasLoop<S, F, C> {
    const fn driver<'a, A: Algorithm, V>(
        &self,
        algorithm: &'a A,
        request: Request,
    ) -> CasDriver<'a, A, V> {
        CasDriver::new(algorithm, request, self.max_attempts).with_max_skew(self.max_skew)
    }

    fn run<K: ?Sized, A: Algorithm>(
        &self,
        key: &K,
        algorithm: &A,
        request: Request,
    ) -> Result<Decision, StoreError>
    where
        S: CasStore<K>,
        F: Fn(Duration),
    {
        if let Some(decision) = answer_at_once(algorithm, &request) {
            return Ok(decision);
        }
        let kind = KeyKind::of(algorithm);
        let mut driver = self.driver(algorithm, request);
        let mut action = CasAction::Load;
        loop {
            action = match action {
                CasAction::Load => driver.loaded(self.store.load(key, &kind)?, &self.clock)?,
                CasAction::Exchange { new, keep } => {
                    let seen = seen(&driver)?;
                    let swap = self.store.compare_exchange(key, &kind, seen, &new, keep)?;
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

    async fn run_async<K: ?Sized + Sync, A: Algorithm, W: Future<Output = ()>>(
        &self,
        key: &K,
        algorithm: &A,
        request: Request,
    ) -> Result<Decision, StoreError>
    where
        S: AsyncCasStore<K>,
        F: Fn(Duration) -> W,
    {
        if let Some(decision) = answer_at_once(algorithm, &request) {
            return Ok(decision);
        }
        let kind = KeyKind::of(algorithm);
        let mut driver = self.driver(algorithm, request);
        let mut action = CasAction::Load;
        loop {
            action = match action {
                CasAction::Load => {
                    let loaded = self.store.load_async(key, &kind).await?;
                    driver.loaded(loaded, &self.clock)?
                }
                CasAction::Exchange { new, keep } => {
                    let seen = seen(&driver)?;
                    let swap = self
                        .store
                        .compare_exchange_async(key, &kind, seen, &new, keep)
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
        self.run(key, algorithm, request)
    }

    fn forget(&self, key: &K, algorithm: &A) -> Result<(), StoreError> {
        self.store.remove(key, &KeyKind::of(algorithm))
    }

    fn try_change(&self, key: &K, old: &A, new: &A, carry: Carry) -> Result<Decision, StoreError> {
        self.run(key, &Change { old, new, carry }, Request::PEEK)
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
        self.run_async(key, algorithm, request).await
    }

    async fn forget_async(&self, key: &K, algorithm: &A) -> Result<(), StoreError> {
        self.store.remove_async(key, &KeyKind::of(algorithm)).await
    }

    async fn change_async(
        &self,
        key: &K,
        old: &A,
        new: &A,
        carry: Carry,
    ) -> Result<Decision, StoreError> {
        self.run_async(key, &Change { old, new, carry }, Request::PEEK)
            .await
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
