//! Token buckets, exact: the arguments of `token_bucket.lua`, and of each member in `all_buckets.lua`.

use std::sync::LazyLock;
use std::time::Duration;

use ratekeeper::store::StoreError;
use ratekeeper::{Request, TokenBucket};

use super::{Call, RedisAlgorithm, unknown_request, unsupported};
use crate::pack::{Double, Packed};
use crate::script::Script;

pub(super) const MULDIV: &str = include_str!("../scripts/muldiv.lua");
pub(super) const LATTICE: &str = include_str!("../scripts/lattice.lua");
pub(super) const REFUND: &str = include_str!("../scripts/refund.lua");

static TAKE: LazyLock<Script> = LazyLock::new(|| {
    Script::after_prologue(&[MULDIV, LATTICE, include_str!("../scripts/token_bucket.lua")])
});
static GIVE_BACK: LazyLock<Script> = LazyLock::new(|| {
    let script = include_str!("../scripts/token_bucket_refund.lua");
    Script::after_prologue(&[MULDIV, LATTICE, REFUND, script])
});

impl RedisAlgorithm for TokenBucket {
    fn call(&self, request: &Request, grace: Duration) -> Result<Call, StoreError> {
        call([self], request, grace, &TAKE, &GIVE_BACK)
    }
}

/// The call for one bucket, or for several in one value.
pub(super) fn call<'l>(
    limits: impl IntoIterator<Item = &'l TokenBucket>,
    request: &Request,
    grace: Duration,
    take: &'static Script,
    give_back: &'static Script,
) -> Result<Call, StoreError> {
    let Some(op) = Op::of(request)? else {
        return Ok(Call::look());
    };
    let (script, packed) = match op.code() {
        Some(code) => (take, Packed::new().byte(code)),
        None => (give_back, Packed::new()),
    };
    let mut packed = packed.grace(grace);
    for (index, limit) in limits.into_iter().enumerate() {
        let numbers = Numbers::of(limit)?;
        packed = numbers.pack_op(numbers.pack(packed), &op, index);
    }
    Ok(Call::new(script, vec![packed.into_argument()]))
}

/// What a request asks of a bucket, as the scripts number it.
enum Op<'r> {
    /// All or nothing, up to `wait_ns` later.
    Take { cost: u64, wait_ns: u128 },
    /// As much as there is, at least `least`.
    UpTo {
        cost: u64,
        least: u64,
        wait_ns: u128,
    },
    /// For work already done: never refused.
    Charge { cost: u64 },
    Refund {
        cost: u64,
        receipt: &'r ratekeeper::Receipt,
    },
}

impl<'r> Op<'r> {
    /// `None` for what changes nothing.
    fn of(request: &'r Request) -> Result<Option<Self>, StoreError> {
        Ok(match request {
            Request::Take { cost: 0, .. } => None,
            Request::Take {
                cost,
                at_least,
                max_wait,
                ..
            } => Some(match *at_least {
                0 if *max_wait == Duration::MAX => Self::Charge { cost: *cost },
                least if least >= *cost => Self::Take {
                    cost: *cost,
                    wait_ns: max_wait.as_nanos(),
                },
                least => Self::UpTo {
                    cost: *cost,
                    least: least.max(1),
                    wait_ns: max_wait.as_nanos(),
                },
            }),
            Request::Refund { cost, receipt, .. } => match (*cost).min(receipt.charged()) {
                0 => None,
                cost => Some(Self::Refund { cost, receipt }),
            },
            _ => return Err(unknown_request()),
        })
    }

    /// The number of a kind of take; a refund has a script of its own.
    const fn code(&self) -> Option<u8> {
        match self {
            Self::Take { .. } => Some(0),
            Self::UpTo { .. } => Some(1),
            Self::Charge { .. } => Some(2),
            Self::Refund { .. } => None,
        }
    }
}

/// A bucket's numbers, as doubles hold them.
struct Numbers {
    /// Tokens and nanoseconds of the rate, in lowest terms.
    n: u64,
    p: u64,
    burst: u64,
    max_wait_ns: u128,
    /// How far ahead a legal TAT lies at most.
    reach_ns: u64,
    /// `n · ⌊p/n⌋` if tokens take more than a nanosecond but no whole number of them, else 0.
    short: u64,
}

impl Numbers {
    /// Where every token takes whole nanoseconds: below 2^53 with room for a clock's lag.
    const MOST_WHOLE: u64 = 9_000_000_000_000_000;
    /// Elsewhere: below 2^52, likewise.
    const MOST_FRACTIONAL: u64 = 4_500_000_000_000_000;

    /// # Errors
    /// `Unsupported` if a number is too large for the scripts' doubles.
    fn of(limit: &TokenBucket) -> Result<Self, StoreError> {
        let tokens = limit.tokens();
        let period_ns = u64::try_from(limit.period().as_nanos()).unwrap_or(u64::MAX);
        let divisor = greatest_common_divisor(tokens, period_ns).max(1);
        let (n, p) = (tokens / divisor, period_ns / divisor);
        let capacity_ns =
            (u128::from(limit.burst()) * u128::from(p)).div_ceil(u128::from(n.max(1)));
        let max_wait_ns = limit.max_wait().as_nanos();
        let reach_ns = capacity_ns.saturating_add(max_wait_ns);
        let owed = (reach_ns.saturating_mul(u128::from(n))).div_ceil(u128::from(p.max(1)));
        let fits = if n == 1 {
            reach_ns <= u128::from(Self::MOST_WHOLE)
        } else {
            let largest = u128::from(n.max(p)).max(reach_ns).max(owed);
            largest <= u128::from(Self::MOST_FRACTIONAL)
        };
        let reach_ns = u64::try_from(reach_ns).ok().filter(|_| fits);
        let Some(reach_ns) = reach_ns else {
            return Err(unsupported(
                "a bucket that takes longer than 52 days to refill, or 104 if its tokens take whole nanoseconds, \
                 does not fit the numbers of Redis",
            ));
        };
        Ok(Self {
            n,
            p,
            burst: limit.burst(),
            max_wait_ns,
            reach_ns,
            short: if n > 1 && n < p { p / n * n } else { 0 },
        })
    }

    /// `d reach, d n, d p, d short`.
    fn pack(&self, packed: Packed) -> Packed {
        packed
            .number(self.reach_ns)
            .number(self.n)
            .number(self.p)
            .number(self.short)
    }

    /// The five numbers of an operation, or nine for a refund under the receipt's mark at `index`.
    fn pack_op(&self, packed: Packed, op: &Op<'_>, index: usize) -> Packed {
        match op {
            Op::Take { cost, wait_ns } => {
                let (charge, charge_rest) = self.span_of(*cost);
                let packed = packed.number(charge).number(charge_rest);
                let packed = match self.burst.checked_sub(*cost) {
                    Some(others) => {
                        let (credit, credit_rest) = self.span_of(others);
                        packed.number(credit).number(credit_rest)
                    }
                    None => packed.double(Double::MINUS_INFINITY).number(0_u64),
                };
                packed.number((*wait_ns).min(self.max_wait_ns))
            }
            Op::UpTo {
                cost,
                least,
                wait_ns,
            } => packed
                .number(self.burst)
                .number(*cost)
                .number(*least)
                .number((*wait_ns).min(self.max_wait_ns))
                .number(0_u64),
            Op::Charge { cost } => {
                let (charge, charge_rest) = self.span_of(*cost);
                let charge_rest = if charge < 1 << 53 { charge_rest } else { 0 };
                let packed = packed.number(charge).number(charge_rest);
                packed.number(0_u64).number(0_u64).number(0_u64)
            }
            Op::Refund { cost, receipt } => {
                let cost = *cost;
                let (credit, rest) = self.span_of(cost);
                let is_dense = self.n > self.p;
                let cancelled = if is_dense {
                    self.charge_of(receipt.charged()) - self.charge_of(receipt.charged() - cost)
                } else {
                    credit
                };
                packed
                    .word(receipt.mark_of(index))
                    .word(receipt.run_at_ns())
                    .word(saturate(credit))
                    .word(saturate(cancelled))
                    .number(if self.short == 0 { 0 } else { rest })
            }
        }
    }

    /// `cost · p / n`, and the remainder.
    fn span_of(&self, cost: u64) -> (u128, u128) {
        let product = u128::from(cost) * u128::from(self.p);
        (product / u128::from(self.n), product % u128::from(self.n))
    }

    fn charge_of(&self, cost: u64) -> u128 {
        (u128::from(cost) * u128::from(self.p)).div_ceil(u128::from(self.n))
    }
}

fn saturate(value: u128) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

const fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}
