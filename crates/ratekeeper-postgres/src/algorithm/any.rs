//! A limit whose algorithm a configuration file chose.

use ratekeeper::store::StoreError;
use ratekeeper::{AnyAlgorithm, Request};

use super::{Call, PostgresAlgorithm, unsupported};

impl PostgresAlgorithm for AnyAlgorithm {
    fn call(&self, request: &Request) -> Result<Call, StoreError> {
        match self {
            Self::TokenBucket(limit) => limit.call(request),
            Self::SlidingWindow(limit) => limit.call(request),
            Self::FixedWindow(limit) => limit.call(request),
            _ => Err(unsupported(
                "this algorithm is not known to the PostgreSQL store",
            )),
        }
    }
}
