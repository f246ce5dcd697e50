//! Refusing requests while the store is out of reach.

use core::time::Duration;

use super::fail::{Answered, answer_errors, degraded, fresh};
use super::passed_on::passed_on;
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

/// When the store fails, refuses the request, and asks the client to come back in a second.
///
/// ```
/// use core::time::Duration;
/// use ratekeeper::store::{ErrorKind, FailClosed, Store, StoreError};
/// use ratekeeper::{Algorithm, Decision, Request, TokenBucket};
///
/// struct Down;
///
/// impl<A: Algorithm> Store<str, A> for Down {
///     fn apply(&self, _: &str, _: &A, _: Request) -> Result<Decision, StoreError> {
///         Err(StoreError::new(ErrorKind::NotExecuted, "connection refused"))
///     }
/// }
///
/// let store = FailClosed::new(Down).with_retry_after(Duration::from_secs(5));
/// let decision = store.apply("alice", &TokenBucket::per_second(10), Request::ONE)?;
/// assert!(decision.is_degraded());
/// assert_eq!(decision.retry_after(), Some(Duration::from_secs(5)));
/// # Ok::<(), StoreError>(())
/// ```
///
/// # Bound
/// Never looser than the inner store.
///
/// # Errors
/// [`Unsupported`](ErrorKind::Unsupported), which is a mistake in the program, and [`Corrupt`](ErrorKind::Corrupt), which does
/// not end by itself, unless [told otherwise](Self::answering_corrupt). Every other error is answered and counted
/// ([`errors_answered`](Self::errors_answered)). [`forget`](Store::forget) and [`try_change`](Store::try_change) fail when the
/// store does.
///
/// Answers in place of the store are [degraded](Decision::is_degraded). `limit` is the limit's own and `remaining` is 0;
/// their `retry_after` is a wish, not a promise. What the limit would never let pass is answered as ever. Requests that are
/// never refused are not refused here, but granted nothing: peeks, refunds (which are lost), and takes with
/// [`at_least(0)`](Request::at_least).
///
/// In a batch, every item without a decision is answered.
#[derive(Debug)]
pub struct FailClosed<S> {
    store: S,
    errors: Answered,
    retry_after: Duration,
}

impl<S> FailClosed<S> {
    /// What clients are told unless [`with_retry_after`](Self::with_retry_after) says otherwise.
    pub const DEFAULT_RETRY_AFTER: Duration = Duration::from_secs(1);

    /// Answers the errors of `store`.
    pub const fn new(store: S) -> Self {
        Self {
            store,
            errors: Answered::new(),
            retry_after: Self::DEFAULT_RETRY_AFTER,
        }
    }

    /// Changes when refused clients are asked to come back; at least a nanosecond, at most `u64::MAX` of them.
    #[must_use]
    pub const fn with_retry_after(mut self, retry_after: Duration) -> Self {
        const LEAST: Duration = Duration::from_nanos(1);
        self.retry_after = if retry_after.is_zero() {
            LEAST
        } else {
            retry_after
        };
        self
    }

    fn in_place_of_store<A: Algorithm>(&self, algorithm: &A, asked: Asked) -> Decision {
        let outcome = match fresh(algorithm, &asked.request()).outcome() {
            never @ (Outcome::TooLarge | Outcome::Unsupported) => never,
            Outcome::Allowed | Outcome::Denied { .. } => match asked {
                Asked::Take { at_least: 0, .. } | Asked::Refund { .. } => Outcome::Allowed,
                Asked::Take { .. } => Outcome::Denied {
                    retry_after: self.retry_after,
                },
            },
        };
        let limit = fresh(algorithm, &Request::PEEK).limit();
        degraded(Decision::new(outcome, limit, 0, self.retry_after))
    }
}

answer_errors!(FailClosed);
