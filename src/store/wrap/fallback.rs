//! Asking another store while the first one is out of reach.

use alloc::vec::Vec;

use super::fail::{Answered, degraded, fresh};
use super::part::Part;
use crate::algorithm::{Algorithm, Carry};
use crate::decision::{Decision, Outcome};
use crate::invalid_limit::InvalidLimit;
use crate::request::{Asked, Receipt, Request};
use crate::store::async_store::AsyncStore;
use crate::store::batch::Item;
use crate::store::blocking::Store;
use crate::store::error::{ErrorKind, StoreError};
use crate::store::memory::InProcess;
use crate::time::Timestamp;

/// When the first store fails, asks the second: a store of this process, usually.
///
/// The second store is asked under the same limit, so `n` processes without their shared store let pass `n` limits. Where
/// that is too much, give it this process's share, in [`WithLimit`](crate::store::WithLimit):
///
/// ```
/// # #[cfg(feature = "dashmap")] {
/// use ratekeeper::store::{ErrorKind, Fallback, Store, StoreError, WithLimit};
/// use ratekeeper::{Algorithm, DashStore, Decision, Request, TokenBucket};
///
/// struct Down;
///
/// impl<A: Algorithm> Store<str, A> for Down {
///     fn apply(&self, _: &str, _: &A, _: Request) -> Result<Decision, StoreError> {
///         Err(StoreError::new(ErrorKind::NotExecuted, "connection refused"))
///     }
/// }
///
/// let local = WithLimit::new(DashStore::<String>::new(), TokenBucket::per_second(1));
/// let store = Fallback::new(Down, local);
/// let limit = TokenBucket::per_second(10); // of ten processes together
/// let ask = || store.apply("alice", &limit, Request::ONE).unwrap();
/// assert!(ask().is_degraded());
/// assert!(!ask().is_allowed());
/// # }
/// ```
///
/// # Bound
/// What the first store lets pass, plus what the second does while the first fails.
///
/// # Consistency
/// The two know nothing of each other: each outage begins with what the second remembers of the last one, and ends with what
/// the first does. A request that the first may have counted ([`ErrorKind::Unknown`]) is counted by the second as well.
///
/// # Errors
/// If both fail, the first store's error. An [`Unsupported`](ErrorKind::Unsupported) of the first is not answered, for it is a
/// mistake in the program, nor [`Corrupt`](ErrorKind::Corrupt), which does not end by itself, unless
/// [told otherwise](Self::answering_corrupt); a denial is no error and stays. [`forget`](Store::forget) forgets the key in both,
/// and fails when the first does.
///
/// [`try_change`](Store::try_change) changes the key in the first, and if that has done it, in the second: so a change that
/// failed and is repeated is made once in each. What the second cannot change keeps its debt there in time, which breaks no
/// limit's own bound. A limit is [accepted](Store::try_accepts) if both stores accept it.
///
/// The second's answers are [degraded](Decision::is_degraded). Their receipts give nothing back, to either store. A refund that
/// the first cannot take is allowed and lost: the second never charged for it, and the key waits longer than it would have
/// to, at most for what it gave back.
#[derive(Debug)]
pub struct Fallback<P, S> {
    first: P,
    second: S,
    errors: Answered,
}

impl<P, S> Fallback<P, S> {
    /// Asks `second` when `first` fails.
    pub const fn new(first: P, second: S) -> Self {
        Self {
            first,
            second,
            errors: Answered::new(),
        }
    }

    /// Asks the second store also when the first says [`Corrupt`](ErrorKind::Corrupt). The first is well then, and what it holds
    /// for the key makes no sense to this program; that stays so until somebody removes it, and until then each process
    /// counts by itself.
    #[must_use]
    pub const fn answering_corrupt(mut self) -> Self {
        self.errors = self.errors.with_corrupt();
        self
    }

    /// The store that is asked first.
    pub const fn first(&self) -> &P {
        &self.first
    }

    /// The store that is asked when the first fails.
    pub const fn second(&self) -> &S {
        &self.second
    }

    /// How many of the first store's errors were answered in its place.
    pub fn errors_answered(&self) -> u64 {
        self.errors.count()
    }

    /// What kind of error the last of them was; `None` if there was none.
    pub fn last_error(&self) -> Option<ErrorKind> {
        self.errors.last()
    }

    /// What to do about the first store's answer.
    fn after_first<A: Algorithm>(
        &self,
        algorithm: &A,
        asked: Asked,
        result: Result<Decision, StoreError>,
    ) -> Next {
        match (result, asked) {
            (Err(error), Asked::Take { .. }) if self.errors.includes(error.kind()) => {
                Next::AskSecond(asked.request(), error)
            }
            (Err(error), Asked::Refund { .. }) if self.errors.includes(error.kind()) => {
                self.errors.add(error.kind());
                Next::Settled(Ok(degraded(fresh(algorithm, &asked.request()))))
            }
            (settled, _) => Next::Settled(settled),
        }
    }

    fn after_second(
        &self,
        first: StoreError,
        second: Result<Decision, StoreError>,
    ) -> Result<Decision, StoreError> {
        match second {
            Ok(decision) => {
                self.errors.add(first.kind());
                Ok(degraded(decision))
            }
            Err(_) => Err(first),
        }
    }

    /// Settles what the first store has answered; the rest is what the second is asked, with the first's errors.
    fn unanswered<'a, K: ?Sized, A: Algorithm>(
        &self,
        first: Part<'a, K, A>,
        items: &mut [Item<'a, K, A>],
    ) -> (Part<'a, K, A>, Vec<StoreError>) {
        let (mut second, mut errors) = (Part::new(), Vec::new());
        for (place, result) in first.into_results() {
            let Some(item) = items.get_mut(place) else {
                continue;
            };
            match self.after_first(item.algorithm(), item.asked(), result) {
                Next::Settled(result) => item.set_result(result),
                Next::AskSecond(request, error) => {
                    second.push(place, item.key(), item.algorithm(), request);
                    errors.push(error);
                }
            }
        }
        (second, errors)
    }

    fn settle<K: ?Sized, A: Algorithm>(
        &self,
        second: Part<'_, K, A>,
        errors: Vec<StoreError>,
        items: &mut [Item<'_, K, A>],
    ) {
        for ((place, result), error) in second.into_results().zip(errors) {
            if let Some(item) = items.get_mut(place) {
                item.set_result(self.after_second(error, result));
            }
        }
    }
}

/// Whether the limits share states, so that there was a change to make.
fn is_changed(decision: &Decision) -> bool {
    decision.outcome() != Outcome::Unsupported
}

enum Next {
    Settled(Result<Decision, StoreError>),
    AskSecond(Request, StoreError),
}

/// The first store's clock.
impl<P: InProcess, S> InProcess for Fallback<P, S> {
    fn now(&self) -> Timestamp {
        self.first.now()
    }
}

impl<K, A, P, S> Store<K, A> for Fallback<P, S>
where
    K: ?Sized,
    A: Algorithm,
    P: Store<K, A>,
    S: Store<K, A>,
{
    fn apply(&self, key: &K, algorithm: &A, request: Request) -> Result<Decision, StoreError> {
        let asked = request.asked();
        let result = self.first.apply(key, algorithm, request);
        match self.after_first(algorithm, asked, result) {
            Next::Settled(result) => result,
            Next::AskSecond(request, error) => {
                self.after_second(error, self.second.apply(key, algorithm, request))
            }
        }
    }

    fn apply_batch(&self, items: &mut [Item<'_, K, A>]) {
        let mut first = Part::all(items);
        self.first.apply_batch(&mut first.items);
        let (mut second, errors) = self.unanswered(first, items);
        if !second.is_empty() {
            self.second.apply_batch(&mut second.items);
            self.settle(second, errors, items);
        }
    }

    fn forget(&self, key: &K, algorithm: &A) -> Result<(), StoreError> {
        let result = self.first.forget(key, algorithm);
        // What the second cannot forget only makes it stricter.
        let _ = self.second.forget(key, algorithm);
        result
    }

    fn try_change(&self, key: &K, old: &A, new: &A, carry: Carry) -> Result<Decision, StoreError> {
        let decision = self.first.try_change(key, old, new, carry)?;
        if is_changed(&decision) {
            // What the second cannot change stays debt in time: strict enough for each of the two limits.
            let _ = self.second.try_change(key, old, new, carry);
        }
        Ok(decision)
    }

    fn try_accepts(&self, algorithm: &A) -> Result<(), InvalidLimit> {
        self.first.try_accepts(algorithm)?;
        self.second.try_accepts(algorithm)
    }

    fn try_fingerprint(&self, key: &K) -> u64 {
        self.first.try_fingerprint(key)
    }
}

impl<K, A, P, S> AsyncStore<K, A> for Fallback<P, S>
where
    K: ?Sized + Sync,
    A: Algorithm,
    P: AsyncStore<K, A>,
    S: AsyncStore<K, A>,
{
    async fn apply_async(
        &self,
        key: &K,
        algorithm: &A,
        request: Request,
    ) -> Result<Decision, StoreError> {
        let asked = request.asked();
        let result = self.first.apply_async(key, algorithm, request).await;
        match self.after_first(algorithm, asked, result) {
            Next::Settled(result) => result,
            Next::AskSecond(request, error) => {
                let second = self.second.apply_async(key, algorithm, request).await;
                self.after_second(error, second)
            }
        }
    }

    async fn apply_batch_async(&self, items: &mut [Item<'_, K, A>]) {
        let mut first = Part::all(items);
        self.first.apply_batch_async(&mut first.items).await;
        let (mut second, errors) = self.unanswered(first, items);
        if !second.is_empty() {
            self.second.apply_batch_async(&mut second.items).await;
            self.settle(second, errors, items);
        }
    }

    async fn forget_async(&self, key: &K, algorithm: &A) -> Result<(), StoreError> {
        let result = self.first.forget_async(key, algorithm).await;
        let _ = self.second.forget_async(key, algorithm).await;
        result
    }

    async fn change_async(
        &self,
        key: &K,
        old: &A,
        new: &A,
        carry: Carry,
    ) -> Result<Decision, StoreError> {
        let decision = self.first.change_async(key, old, new, carry).await?;
        if is_changed(&decision) {
            let _ = self.second.change_async(key, old, new, carry).await;
        }
        Ok(decision)
    }

    fn accepts_async(&self, algorithm: &A) -> Result<(), InvalidLimit> {
        self.first.accepts_async(algorithm)?;
        self.second.accepts_async(algorithm)
    }

    /// The second handed out no receipt that is worth anything.
    fn cancel(&self, key: &K, algorithm: &A, receipt: Receipt) {
        self.first.cancel(key, algorithm, receipt);
    }

    fn fingerprint_of(&self, key: &K) -> u64 {
        self.first.fingerprint_of(key)
    }
}
