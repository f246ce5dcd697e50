//! A limit whose algorithm a configuration file chose.

use std::time::Duration;

use ratekeeper::store::StoreError;
use ratekeeper::{AnyAlgorithm, Request};

use super::{Call, RedisAlgorithm, unsupported};

impl RedisAlgorithm for AnyAlgorithm {
    fn call(&self, request: &Request, grace: Duration) -> Result<Call, StoreError> {
        match self {
            Self::TokenBucket(limit) => limit.call(request, grace),
            Self::SlidingWindow(limit) => limit.call(request, grace),
            Self::FixedWindow(limit) => limit.call(request, grace),
            _ => Err(unsupported(
                "this algorithm is not known to the Redis store",
            )),
        }
    }
}
