//! Not asking a store that is down.

mod circuit;

use core::time::Duration;

use self::circuit::Circuit;
use super::passed_on::passed_on;
use crate::algorithm::{Algorithm, Carry};
use crate::clock::{Clock, StdClock};
use crate::decision::Decision;
use crate::invalid_limit::InvalidLimit;
use crate::request::{Receipt, Request};
use crate::store::async_store::AsyncStore;
use crate::store::batch::Item;
use crate::store::blocking::Store;
use crate::store::error::StoreError;
use crate::store::memory::InProcess;
use crate::time::Timestamp;

/// Stops asking the store after a number of outages in a row, and then tries it once in a while.
///
/// While it is *open*, calls fail at once. When its time is over, the next call is the *probe* and goes to the store; the
/// others go on failing. If the probe succeeds, the breaker *closes* and all calls go through again; if not, the next probe
/// is due when the time is over once more, counted from the start of the last.
///
/// ```
/// use core::time::Duration;
/// use ratekeeper::store::{Breaker, BreakerState, ErrorKind, Store, StoreError};
/// use ratekeeper::{Algorithm, Decision, ManualClock, Request, TokenBucket};
///
/// struct Down;
///
/// impl<A: Algorithm> Store<str, A> for Down {
///     fn apply(&self, _: &str, _: &A, _: Request) -> Result<Decision, StoreError> {
///         Err(StoreError::new(ErrorKind::Unknown, "connection lost"))
///     }
/// }
///
/// let clock = ManualClock::new();
/// let store = Breaker::with_clock(Down, 2, Duration::from_secs(5), &clock);
/// let limit = TokenBucket::per_second(10);
/// let ask = || store.apply("alice", &limit, Request::ONE).unwrap_err().kind();
/// assert_eq!([ask(), ask(), ask()], [ErrorKind::Unknown, ErrorKind::Unknown, ErrorKind::NotExecuted]);
/// assert_eq!(store.state(), BreakerState::Open { probe_in: Duration::from_secs(5) });
/// clock.advance(Duration::from_secs(5));
/// assert_eq!(ask(), ErrorKind::Unknown); // the probe
/// ```
///
/// # Bound
/// Never looser than the inner store.
///
/// # Errors
/// [`NotExecuted`](crate::store::ErrorKind::NotExecuted) while it is open. An outage is an error whose kind [is one](crate::store::ErrorKind::is_outage); every other
/// answer, a denial as well as another kind of error, says that the store is alive; only
/// [`Unsupported`](crate::store::ErrorKind::Unsupported) says nothing, for it takes no server to know that. A batch is one call: it is an
/// outage if it brought an outage for some items and an answer for none. [`forget`](Store::forget) and
/// [`try_change`](Store::try_change) are calls like the others. A [cancellation](AsyncStore::cancel) is no call: it goes to the
/// store while the breaker is closed, and is lost otherwise.
///
/// Calls whose futures are dropped say nothing about the store, so put a [`Deadline`](crate::store::Deadline) *inside*, or
/// callers who give up by themselves hide that it hangs. A dropped probe delays the next one, no more.
///
/// # Time
/// `clock` measures how long the breaker stays open. If it is stepped back, the next call is the probe.
///
/// # Concurrency
/// Lock-free. A call reads one word before and two after; calls that were under way when it opened are not interrupted.
#[derive(Debug)]
pub struct Breaker<S, C = StdClock> {
    store: S,
    circuit: Circuit<C>,
}

/// Whether a [`Breaker`] lets calls through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerState {
    /// All of them.
    Closed,
    /// None, but for a probe.
    Open {
        /// Until the next probe; zero if the next call is it.
        probe_in: Duration,
    },
}

impl<S> Breaker<S> {
    /// Opens for `open_for` (at least a nanosecond) after `outages` (at least 1) outages of `store` in a row, by
    /// [`StdClock`].
    pub const fn new(store: S, outages: u32, open_for: Duration) -> Self {
        Self::with_clock(store, outages, open_for, StdClock::new())
    }
}

impl<S, C> Breaker<S, C> {
    /// Opens for `open_for` (at least a nanosecond) after `outages` (at least 1) outages of `store` in a row.
    pub const fn with_clock(store: S, outages: u32, open_for: Duration, clock: C) -> Self {
        let circuit = Circuit::new(outages, open_for, clock);
        Self { store, circuit }
    }

    /// The inner store.
    pub const fn get_ref(&self) -> &S {
        &self.store
    }

    /// How often it opened. A failed probe does not count: it was open already.
    pub fn times_opened(&self) -> u64 {
        self.circuit.times_opened()
    }

    /// How many calls failed because it was open; a batch is one.
    pub fn calls_refused(&self) -> u64 {
        self.circuit.calls_refused()
    }

    /// Whether it lets calls through now.
    pub fn state(&self) -> BreakerState
    where
        C: Clock,
    {
        match self.circuit.probe_in() {
            None => BreakerState::Closed,
            Some(probe_in) => BreakerState::Open { probe_in },
        }
    }
}

passed_on!(InProcess for Breaker<S, C>);

impl<K: ?Sized, A: Algorithm, S: Store<K, A>, C: Clock> Store<K, A> for Breaker<S, C> {
    fn apply(&self, key: &K, algorithm: &A, request: Request) -> Result<Decision, StoreError> {
        self.circuit.enter()?;
        let result = self.store.apply(key, algorithm, request);
        self.circuit.heard(&result);
        result
    }

    fn apply_batch(&self, items: &mut [Item<'_, K, A>]) {
        if let Some(before) = self.circuit.enter_batch(items) {
            self.store.apply_batch(items);
            self.circuit.heard_batch(before, items);
        }
    }

    fn forget(&self, key: &K, algorithm: &A) -> Result<(), StoreError> {
        self.circuit.enter()?;
        let result = self.store.forget(key, algorithm);
        self.circuit.heard(&result);
        result
    }

    fn try_change(&self, key: &K, old: &A, new: &A, carry: Carry) -> Result<Decision, StoreError> {
        self.circuit.enter()?;
        let result = self.store.try_change(key, old, new, carry);
        self.circuit.heard(&result);
        result
    }

    passed_on!(Store);
}

impl<K, A, S, C> AsyncStore<K, A> for Breaker<S, C>
where
    K: ?Sized + Sync,
    A: Algorithm,
    S: AsyncStore<K, A>,
    C: Clock + Send + Sync,
{
    async fn apply_async(
        &self,
        key: &K,
        algorithm: &A,
        request: Request,
    ) -> Result<Decision, StoreError> {
        self.circuit.enter()?;
        let result = self.store.apply_async(key, algorithm, request).await;
        self.circuit.heard(&result);
        result
    }

    async fn apply_batch_async(&self, items: &mut [Item<'_, K, A>]) {
        if let Some(before) = self.circuit.enter_batch(items) {
            self.store.apply_batch_async(items).await;
            self.circuit.heard_batch(before, items);
        }
    }

    async fn forget_async(&self, key: &K, algorithm: &A) -> Result<(), StoreError> {
        self.circuit.enter()?;
        let result = self.store.forget_async(key, algorithm).await;
        self.circuit.heard(&result);
        result
    }

    async fn change_async(
        &self,
        key: &K,
        old: &A,
        new: &A,
        carry: Carry,
    ) -> Result<Decision, StoreError> {
        self.circuit.enter()?;
        let result = self.store.change_async(key, old, new, carry).await;
        self.circuit.heard(&result);
        result
    }

    /// While it is open, the charge stays: a cancellation is no probe, for nothing is heard of it.
    fn cancel(&self, key: &K, algorithm: &A, receipt: Receipt) {
        if self.circuit.is_closed() {
            self.store.cancel(key, algorithm, receipt);
        }
    }

    passed_on!(AsyncStore);
}
