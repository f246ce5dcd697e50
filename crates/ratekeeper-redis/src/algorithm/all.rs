//! Several token buckets on one key.

use std::sync::LazyLock;
use std::time::Duration;

use ratekeeper::store::StoreError;
use ratekeeper::{Algorithm, All, Request, TokenBucket};

use super::bucket::{self, LATTICE, MULDIV, REFUND};
use super::{Call, RedisAlgorithm};
use crate::script::Script;

static TAKE: LazyLock<Script> = LazyLock::new(|| {
    Script::after_prologue(&[MULDIV, LATTICE, include_str!("../scripts/all_buckets.lua")])
});
static GIVE_BACK: LazyLock<Script> = LazyLock::new(|| {
    let script = include_str!("../scripts/all_buckets_refund.lua");
    Script::after_prologue(&[MULDIV, LATTICE, REFUND, script])
});

impl<const N: usize> RedisAlgorithm for All<[TokenBucket; N]>
where
    Self: Algorithm,
{
    fn call(&self, request: &Request, grace: Duration) -> Result<Call, StoreError> {
        bucket::call(&self.0, request, grace, &TAKE, &GIVE_BACK)
    }
}
