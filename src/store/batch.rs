//! Several requests in one call.

use super::error::{ErrorKind, StoreError};
use crate::algorithm::Algorithm;
use crate::decision::Decision;
use crate::request::{Asked, Request};

/// One of several requests for [`Store::apply_batch`](super::Store::apply_batch): what is asked, and then the answer.
///
#[cfg_attr(feature = "std", doc = "```")]
#[cfg_attr(not(feature = "std"), doc = "```ignore")]
/// use ratekeeper::store::{Item, Ready, Store};
/// use ratekeeper::{Request, TableStore, TokenBucket};
///
/// let store = TableStore::<_, TokenBucket>::for_keys(100)?;
/// let limit = TokenBucket::per_minute(1);
/// let mut items = ["alice", "bob", "alice"].map(|key| Item::new(key, &limit, Request::ONE));
/// store.apply_batch(&mut items);
/// let allowed: Vec<bool> =
///     items.into_iter().map(|item| Ok(item.into_result()?.is_allowed())).collect::<Result<_, ratekeeper::store::StoreError>>()?;
/// assert_eq!(allowed, [true, true, false]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Item<'a, K: ?Sized, A> {
    key: &'a K,
    algorithm: &'a A,
    asked: Asked,
    request: Option<Request>,
    result: Option<Result<Decision, StoreError>>,
}

impl<'a, K: ?Sized, A: Algorithm> Item<'a, K, A> {
    /// A question that has no answer yet.
    pub const fn new(key: &'a K, algorithm: &'a A, request: Request) -> Self {
        Self {
            key,
            algorithm,
            asked: request.asked(),
            request: Some(request),
            result: None,
        }
    }

    /// Whom the request is about.
    pub const fn key(&self) -> &'a K {
        self.key
    }

    /// The limit it is asked under.
    pub const fn algorithm(&self) -> &'a A {
        self.algorithm
    }

    /// For stores: the request, once; `None` after that, or if a wrapper has answered already. Skip such an item.
    pub fn take_request(&mut self) -> Option<Request> {
        self.request.take()
    }

    /// For stores: the answer to it.
    pub fn set_result(&mut self, result: Result<Decision, StoreError>) {
        self.result = Some(result);
    }

    /// The answer, once there is one.
    pub const fn result(&self) -> Option<&Result<Decision, StoreError>> {
        self.result.as_ref()
    }

    /// The answer.
    ///
    /// # Errors
    /// No decision was made. An item that no store has answered is [`ErrorKind::NotExecuted`] if it still holds its request,
    /// and [`ErrorKind::Unknown`] if it was given away.
    pub fn into_result(self) -> Result<Decision, StoreError> {
        let kind = self.unanswered();
        self.result
            .unwrap_or_else(|| Err(StoreError::new(kind, "the batch was given up")))
    }

    /// What was asked, also after the request was taken.
    pub(crate) const fn asked(&self) -> Asked {
        self.asked
    }

    /// Whether the request is still there to be taken.
    pub(crate) const fn is_open(&self) -> bool {
        self.request.is_some()
    }

    /// Why there is no decision; `None` if there is one.
    pub(crate) const fn error_kind(&self) -> Option<ErrorKind> {
        match &self.result {
            Some(Ok(_)) => None,
            Some(Err(error)) => Some(error.kind()),
            None => Some(self.unanswered()),
        }
    }

    /// Answers in place of the store, which must not be asked any more.
    pub(crate) fn answer(&mut self, result: Result<Decision, StoreError>) {
        self.request = None;
        self.result = Some(result);
    }

    /// What it means that there is no answer: nothing happened unless a store has taken the request.
    const fn unanswered(&self) -> ErrorKind {
        if self.request.is_some() {
            ErrorKind::NotExecuted
        } else {
            ErrorKind::Unknown
        }
    }
}
