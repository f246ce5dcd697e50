//! Several token buckets on one key.

use ratekeeper::store::StoreError;
use ratekeeper::{Algorithm, All, Request, TokenBucket};

use super::bucket::Asked;
use super::{Call, PostgresAlgorithm};

impl<const N: usize> PostgresAlgorithm for All<[TokenBucket; N]>
where
    Self: Algorithm,
{
    fn call(&self, request: &Request) -> Result<Call, StoreError> {
        let Some(asked) = Asked::of(request)? else {
            return Ok(Call::look());
        };
        let each = self.0.iter().enumerate();
        let buckets = each.flat_map(|(index, limit)| asked.of_bucket(limit, index));
        Ok(Call::new(
            "all_buckets_v1",
            asked.numbers().into_iter().chain(buckets),
        ))
    }
}
