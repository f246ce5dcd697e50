//! Several limits that a configuration file chose.

use ratekeeper::store::StoreError;
use ratekeeper::{AnyAlgorithm, Limits, Request, TokenBucket};

use super::all::all_buckets;
use super::{Call, PostgresAlgorithm, unsupported};

/// Buckets alone. Others, with windows among them, go through [`PostgresCas`](crate::PostgresCas).
impl PostgresAlgorithm for Limits {
    fn call(&self, request: &Request) -> Result<Call, StoreError> {
        if !self.iter().all(|limit| bucket(limit).is_some()) {
            return Err(unsupported(
                "several limits with windows among them need PostgresCas",
            ));
        }
        all_buckets(self.iter().filter_map(bucket), request)
    }
}

const fn bucket(limit: &AnyAlgorithm) -> Option<&TokenBucket> {
    match limit {
        AnyAlgorithm::TokenBucket(limit) => Some(limit),
        _ => None,
    }
}
