//! Several requests in one call.

use super::error::{ErrorKind, StoreError};
use crate::algorithm::Algorithm;
use crate::decision::Decision;
use crate::request::Request;

/// One of several requests for [`Store::apply_batch`](super::Store::apply_batch): what is asked, and then the answer.
///
/// ```
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
    request: Option<Request>,
    result: Option<Result<Decision, StoreError>>,
}

impl<'a, K: ?Sized, A: Algorithm> Item<'a, K, A> {
    /// A question that has no answer yet.
    pub const fn new(key: &'a K, algorithm: &'a A, request: Request) -> Self {
        Self {
            key,
            algorithm,
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

    /// For stores: the request, once; `None` after that.
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
        self.result.unwrap_or_else(|| {
            let kind = if self.request.is_some() {
                ErrorKind::NotExecuted
            } else {
                ErrorKind::Unknown
            };
            Err(StoreError::new(kind, "the batch was given up"))
        })
    }
}
