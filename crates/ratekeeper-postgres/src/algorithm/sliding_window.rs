//! Sliding-window counters.

use ratekeeper::store::StoreError;
use ratekeeper::{Request, SlidingWindow};

use super::{Call, PostgresAlgorithm, nanos, unknown_request};

impl PostgresAlgorithm for SlidingWindow {
    fn call(&self, request: &Request) -> Result<Call, StoreError> {
        let Some([op, cost, last]) = asked(request)? else {
            return Ok(Call::look());
        };
        let arguments = [op, self.limit().into(), nanos(self.window()), cost, last];
        Ok(Call::new("sliding_window_v2", arguments))
    }
}

/// `op, cost` and the smallest grant or the receipt's mark; `None` for a peek.
pub(super) fn asked(request: &Request) -> Result<Option<[u64; 3]>, StoreError> {
    Ok(match request {
        Request::Take { cost: 0, .. } => None,
        Request::Take { cost, at_least, .. } => Some([0, *cost, *at_least]),
        Request::Refund { cost, receipt, .. } => {
            Some([1, (*cost).min(receipt.charged()), receipt.mark()])
        }
        _ => return Err(unknown_request()),
    })
}
