//! A limit whose algorithm a configuration file chose.

use std::time::Duration;

use ratekeeper::store::{StoreError, Version};
use ratekeeper::{AnyAlgorithm, Request, TokenBucket};

use super::{Call, RedisAlgorithm, Reply, unsupported};
use crate::error::strange_reply;

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

    fn compare(&self, reply: &Reply) -> Result<Version<TokenBucket>, StoreError> {
        match self {
            Self::TokenBucket(limit) => limit.compare(reply),
            _ => Err(strange_reply()),
        }
    }
}
