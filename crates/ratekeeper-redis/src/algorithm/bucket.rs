//! Token buckets, exact: the arguments of `token_bucket.lua`, and of each member in `all_buckets.lua`.

use std::sync::LazyLock;
use std::time::Duration;

use ratekeeper::store::{StoreError, Version, compare_versions};
use ratekeeper::{Request, TokenBucket};

use super::{Call, RedisAlgorithm, Reply, stored, unknown_request, unsupported};
use crate::error::strange_reply;
use crate::pack::{Double, Packed};
use crate::script::Script;

pub(super) const MULDIV: &str = include_str!("../scripts/muldiv.lua");
pub(super) const LATTICE: &str = include_str!("../scripts/lattice.lua");
pub(super) const REFUND: &str = include_str!("../scripts/refund.lua");
const VALUE: &str = include_str!("../scripts/bucket_value.lua");

static TAKE: LazyLock<Script> = LazyLock::new(|| {
    let script = include_str!("../scripts/token_bucket.lua");
    Script::after_prologue(&[MULDIV, LATTICE, VALUE, script])
});
static GIVE_BACK: LazyLock<Script> = LazyLock::new(|| {
    let script = include_str!("../scripts/token_bucket_refund.lua");
    Script::after_prologue(&[MULDIV, LATTICE, VALUE, REFUND, script])
});

impl RedisAlgorithm for TokenBucket {
    fn call(&self, request: &Request, grace: Duration) -> Result<Call, StoreError> {
        let Some(op) = Op::of(request)? else {
            return Ok(Call::look());
        };
        let numbers = Numbers::of(self)?;
        let (script, packed) = match (&op, op.code()) {
            (Op::Refund { cost, receipt }, _) => {
                let packed = Packed::new().grace(grace).number(numbers.reach_ns);
                let (charged, mark) = (receipt.charged(), receipt.mark());
                let run_at_ns = receipt.run_at_ns();
                let packed = numbers.pack_refund(packed, *cost, charged, mark, run_at_ns);
                (&GIVE_BACK, packed)
            }
            (_, code) => {
                let packed = Packed::new().byte(code.unwrap_or_default());
                let packed = numbers.pack(packed.grace(grace).number(numbers.reach_ns));
                (&TAKE, numbers.pack_take(packed, &op))
            }
        };
        let argument = pack_record(self, packed, numbers.reach_ns).into_argument();
        let mut call = Call::new(script, vec![argument]);
        call.version = self.version();
        Ok(call)
    }

    fn compare(&self, reply: &Reply) -> Result<Version<Self>, StoreError> {
        let found = stored(reply.bytes(1)?)?.ok_or_else(strange_reply)?;
        match compare_versions(self, reply.now(), &found)? {
            // The same limit, with its numbers given in another way: under those.
            Version::Same => Ok(Version::Newer(limit_in(&found)?)),
            version => Ok(version),
        }
    }
}

/// What stands behind the TAT in a value of this limit: see `bucket_value.lua`.
fn pack_record(limit: &TokenBucket, packed: Packed, reach_ns: u64) -> Packed {
    if limit.version() == 0 {
        return packed.word(reach_ns);
    }
    packed
        .short(limit.version())
        .word(limit.tokens())
        .word(saturate(limit.period().as_nanos()))
        .word(limit.burst())
        .word(saturate(limit.max_wait().as_nanos()))
}

/// The limit in a value with a version.
fn limit_in(value: &[u8]) -> Result<TokenBucket, StoreError> {
    let field = |start: usize| {
        let bytes = value.get(start..)?.first_chunk::<8>()?;
        Some(u64::from_be_bytes(*bytes))
    };
    let version = value.get(9..).and_then(|rest| rest.first_chunk::<2>());
    let limit = || {
        let version = u16::from_be_bytes(*version?);
        let period = Duration::from_nanos(field(19)?);
        let limit = TokenBucket::new(field(11)?, period, field(27)?).ok()?;
        let max_wait = Duration::from_nanos(field(35)?);
        Some(limit.with_max_wait(max_wait).with_version(version))
    };
    limit().ok_or_else(strange_reply)
}

/// What a request asks of a bucket, as the scripts number it.
pub(super) enum Op<'r> {
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
    /// `None` for a peek.
    pub(super) fn of(request: &'r Request) -> Result<Option<Self>, StoreError> {
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
            Request::Refund { cost, receipt, .. } => Some(Self::Refund {
                cost: *cost,
                receipt,
            }),
            _ => return Err(unknown_request()),
        })
    }

    /// The number of a kind of take; a refund has a script of its own.
    pub(super) const fn code(&self) -> Option<u8> {
        match self {
            Self::Take { .. } => Some(0),
            Self::UpTo { .. } => Some(1),
            Self::Charge { .. } => Some(2),
            Self::Refund { .. } => None,
        }
    }
}

/// A bucket's numbers, as doubles hold them.
pub(super) struct Numbers {
    /// Tokens and nanoseconds of the rate, in lowest terms. 0 tokens for a limit that does not count.
    n: u64,
    p: u64,
    burst: u64,
    max_wait_ns: u128,
    /// How far ahead this limit moves a TAT.
    pub(super) reach_ns: u64,
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
    pub(super) fn of(limit: &TokenBucket) -> Result<Self, StoreError> {
        if limit.is_unlimited() || limit.is_blocked() {
            return Ok(Self {
                n: 0,
                p: 0,
                burst: limit.burst(),
                max_wait_ns: 0,
                reach_ns: 0,
                short: 0,
            });
        }
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

    /// `d n, d p, d short`.
    pub(super) fn pack(&self, packed: Packed) -> Packed {
        packed.number(self.n).number(self.p).number(self.short)
    }

    /// The five numbers of a take.
    pub(super) fn pack_take(&self, packed: Packed, op: &Op<'_>) -> Packed {
        match op {
            Op::Take { cost, .. } if self.n == 0 => {
                let passes = *cost <= self.burst;
                packed.number(u64::from(passes)).zeros(4)
            }
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
                .zeros(1),
            Op::Charge { cost } | Op::Refund { cost, .. } => packed.number(*cost).zeros(4),
        }
    }

    /// The 80 bytes of refund.lua: `cost` tokens of the `charged`, which left a TAT of `mark_ns`.
    pub(super) fn pack_refund(
        &self,
        packed: Packed,
        cost: u64,
        charged: u64,
        mark_ns: u64,
        run_at_ns: u64,
    ) -> Packed {
        if self.n == 0 {
            return packed.zeros(10);
        }
        let cost = cost.min(charged);
        let (full, full_rest) = self.span_of(self.burst);
        let (credit, rest) = self.span_of(cost);
        let is_dense = self.n > self.p;
        let cancelled = if is_dense {
            self.charge_of(charged) - self.charge_of(charged - cost)
        } else {
            credit
        };
        self.pack(packed)
            .number(full)
            .number(full_rest)
            .word(mark_ns)
            .word(run_at_ns)
            .word(saturate(credit))
            .word(saturate(cancelled))
            .number(if self.short == 0 { 0 } else { rest })
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
