//! Letting requests pass while the store is out of reach.

use super::fail::{Answered, answer_errors, degraded, fresh};
use super::passed_on::passed_on;
use crate::algorithm::{Algorithm, Carry};
use crate::decision::Decision;
use crate::invalid_limit::InvalidLimit;
use crate::request::{Asked, Receipt, Request};
use crate::store::async_store::AsyncStore;
use crate::store::batch::Item;
use crate::store::blocking::Store;
use crate::store::error::{ErrorKind, StoreError};
use crate::store::memory::InProcess;
use crate::time::Timestamp;

/// When the store fails, lets the request pass as if its key had never been seen.
///
/// ```
/// use ratekeeper::store::{ErrorKind, FailOpen, Store, StoreError};
/// use ratekeeper::{Algorithm, Decision, Outcome, Request, TokenBucket};
///
/// struct Down;
///
/// impl<A: Algorithm> Store<str, A> for Down {
///     fn apply(&self, _: &str, _: &A, _: Request) -> Result<Decision, StoreError> {
///         Err(StoreError::new(ErrorKind::NotExecuted, "connection refused"))
///     }
/// }
///
/// let store = FailOpen::new(Down);
/// let limit = TokenBucket::per_second(10);
/// let decision = store.apply("alice", &limit, Request::take(3))?;
/// assert!(decision.is_allowed() && decision.is_degraded());
/// let too_much = store.apply("alice", &limit, Request::take(11))?;
/// assert_eq!(too_much.outcome(), Outcome::TooLarge); // whoever is asked
/// assert_eq!(store.errors_answered(), 2);
/// assert_eq!(store.last_error(), Some(ErrorKind::NotExecuted));
/// # Ok::<(), StoreError>(())
/// ```
///
/// # Bound
/// None while the store fails: every request that the limit could ever let pass does. Where that is too much, use
/// [`Fallback`](crate::store::Fallback) with a store of this process.
///
/// # Errors
/// [`Unsupported`](ErrorKind::Unsupported), which is a mistake in the program, and [`Corrupt`](ErrorKind::Corrupt), which does
/// not end by itself, unless [told otherwise](Self::answering_corrupt). Every other error is answered and counted
/// ([`errors_answered`](Self::errors_answered)); a denial is no error and stays. [`forget`](Store::forget) and
/// [`try_change`](Store::try_change) fail when the store does: nobody can say that a key was changed but the store.
///
/// Answers in place of the store are [degraded](Decision::is_degraded). They say what the limit would say to a key never
/// seen, so what is too large stays so. Their receipts give nothing back to the store, which was not charged; refunds are
/// allowed and lost.
///
/// In a batch, every item without a decision is answered.
///
/// # Time
/// No clock is read. That a receipt gives nothing back holds where the store's clock counts from the Unix epoch, as shared
/// stores' do, and no window is longer than that ago.
#[derive(Debug)]
pub struct FailOpen<S> {
    store: S,
    errors: Answered,
}

impl<S> FailOpen<S> {
    /// Answers the errors of `store`.
    pub const fn new(store: S) -> Self {
        Self {
            store,
            errors: Answered::new(),
        }
    }

    fn in_place_of_store<A: Algorithm>(&self, algorithm: &A, asked: Asked) -> Decision {
        degraded(fresh(algorithm, &asked.request()))
    }
}

answer_errors!(FailOpen);
