//! Token buckets, exact: the arguments of `token_bucket.sql`, and of each member in `all_buckets.sql`.

use std::time::Duration;

use ratekeeper::store::StoreError;
use ratekeeper::{Receipt, Request, TokenBucket};

use super::{Call, PostgresAlgorithm, nanos, unknown_request};

impl PostgresAlgorithm for TokenBucket {
    fn call(&self, request: &Request) -> Result<Call, StoreError> {
        let Some(asked) = Asked::of(request)? else {
            return Ok(Call::look());
        };
        let bucket = asked.of_bucket(self, 0);
        let in_full = self.version() > 0;
        let limit = [
            u64::from(self.version()),
            self.tokens(),
            nanos(self.period()),
            nanos(self.max_wait()),
        ];
        let limit = limit.into_iter().filter(|_| in_full);
        let arguments = asked.numbers().into_iter().chain(bucket).chain(limit);
        Ok(Call::new("token_bucket_v2", arguments).of_version(self.version()))
    }
}

/// What a request asks of buckets, as the functions number it.
pub(super) struct Asked<'r> {
    op: Op<'r>,
    cost: u64,
    accepted: u64,
    run_at_ns: u64,
}

enum Op<'r> {
    Take {
        max_wait: Duration,
    },
    /// For work already done: never refused.
    Charge,
    Refund {
        receipt: &'r Receipt,
    },
}

impl<'r> Asked<'r> {
    /// `None` for what only looks. To give back nothing is no look: it may find a value to be repaired.
    pub(super) fn of(request: &'r Request) -> Result<Option<Self>, StoreError> {
        Ok(Some(match request {
            Request::Take { cost: 0, .. } => return Ok(None),
            Request::Take {
                cost,
                at_least,
                max_wait,
                ..
            } => Self {
                op: if *at_least == 0 && *max_wait == Duration::MAX {
                    Op::Charge
                } else {
                    Op::Take {
                        max_wait: *max_wait,
                    }
                },
                cost: *cost,
                accepted: *at_least,
                run_at_ns: 0,
            },
            Request::Refund { cost, receipt, .. } => Self {
                op: Op::Refund { receipt },
                cost: *cost,
                accepted: 0,
                run_at_ns: receipt.run_at_ns(),
            },
            _ => return Err(unknown_request()),
        }))
    }

    /// `op, cost, accepted, run_at`.
    pub(super) const fn numbers(&self) -> [u64; 4] {
        let op = match self.op {
            Op::Take { .. } => 0,
            Op::Charge => 1,
            Op::Refund { .. } => 2,
        };
        [op, self.cost, self.accepted, self.run_at_ns]
    }

    /// `n, p, burst, reach, extra, charged` for the bucket at `index` of several.
    pub(super) fn of_bucket(&self, limit: &TokenBucket, index: usize) -> [u64; 6] {
        let (tokens, period_ns) = (limit.tokens(), nanos(limit.period()));
        let divisor = greatest_common_divisor(tokens, period_ns).max(1);
        let (n, p) = (tokens / divisor, period_ns / divisor);
        let max_wait_ns = nanos(limit.max_wait());
        let reach_ns = if limit.is_unlimited() || limit.is_blocked() {
            0
        } else {
            let product = u128::from(limit.burst()) * u128::from(p);
            let capacity_ns = product.div_ceil(u128::from(n.max(1)));
            u64::try_from(capacity_ns)
                .unwrap_or(u64::MAX)
                .saturating_add(max_wait_ns)
        };
        let (extra, charged) = match self.op {
            Op::Take { max_wait } => (nanos(max_wait).min(max_wait_ns), 0),
            Op::Charge => (0, 0),
            Op::Refund { receipt } => (receipt.mark_of(index), receipt.charged_to(index)),
        };
        [n, p, limit.burst(), reach_ns, extra, charged]
    }
}

const fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}
