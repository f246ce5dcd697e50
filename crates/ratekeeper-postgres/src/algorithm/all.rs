//! Several token buckets on one key.

use ratekeeper::store::StoreError;
use ratekeeper::{Algorithm, All, Request, TokenBucket};

use super::bucket::Asked;
use super::{Call, PostgresAlgorithm, unsupported};

impl<const N: usize> PostgresAlgorithm for All<[TokenBucket; N]>
where
    Self: Algorithm,
{
    fn call(&self, request: &Request) -> Result<Call, StoreError> {
        all_buckets(self.0.iter(), request)
    }
}

/// A call for these buckets on one key.
pub(super) fn all_buckets<'a>(
    limits: impl Iterator<Item = &'a TokenBucket> + Clone,
    request: &Request,
) -> Result<Call, StoreError> {
    if limits.clone().any(|limit| limit.version() > 0) {
        return Err(unsupported(
            "a limit with a version stands alone on its key",
        ));
    }
    let Some(asked) = Asked::of(request)? else {
        return Ok(Call::look());
    };
    let each = limits.enumerate();
    let buckets = each.flat_map(|(index, limit)| asked.of_bucket(limit, index));
    let arguments = asked.numbers().into_iter().chain(buckets);
    Ok(Call::new("all_buckets_v2", arguments))
}
