//! Fixed windows, aligned to the Unix epoch or anchored at a key's first request.

use ratekeeper::store::StoreError;
use ratekeeper::{FixedWindow, Request};

use super::sliding_window::asked;
use super::{Call, PostgresAlgorithm, nanos};

impl PostgresAlgorithm for FixedWindow {
    fn call(&self, request: &Request) -> Result<Call, StoreError> {
        let Some([op, cost, last]) = asked(request)? else {
            return Ok(Call::look());
        };
        let (limit, span_ns) = (self.limit().into(), nanos(self.window()));
        let (anchored, shift_ns) = (self.is_anchored().into(), nanos(self.offset()));
        let arguments = [op, limit, span_ns, anchored, shift_ns, cost, last];
        Ok(Call::new("fixed_window_v2", arguments))
    }
}
