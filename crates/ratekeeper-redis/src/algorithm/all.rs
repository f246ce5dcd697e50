//! Several token buckets on one key.

use std::sync::LazyLock;
use std::time::Duration;

use ratekeeper::store::StoreError;
use ratekeeper::{Algorithm, All, Receipt, Request, TokenBucket};

use super::bucket::{LATTICE, MULDIV, Numbers, Op, REFUND};
use super::{Call, RedisAlgorithm, unsupported};
use crate::pack::Packed;
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
        if self.0.iter().any(|limit| limit.version() > 0) {
            return Err(unsupported(
                "of several limits on one key, none can have a version",
            ));
        }
        let Some(op) = Op::of(request)? else {
            return Ok(Call::look());
        };
        let (script, packed) = match op.code() {
            Some(code) => (&TAKE, Packed::new().byte(code)),
            None => (&GIVE_BACK, Packed::new()),
        };
        let mut packed = packed.grace(grace);
        for (index, limit) in self.0.iter().enumerate() {
            let numbers = Numbers::of(limit)?;
            packed = match &op {
                Op::Refund { cost, receipt } => {
                    let charged = Receipt::charged_to(receipt, index);
                    let mark = receipt.mark_of(index);
                    numbers.pack_refund(packed, *cost, charged, mark, receipt.run_at_ns())
                }
                _ => {
                    let packed = numbers.pack(packed.number(numbers.reach_ns));
                    numbers.pack_take(packed, &op).word(numbers.reach_ns)
                }
            };
        }
        Ok(Call::new(script, vec![packed.into_argument()]))
    }
}
