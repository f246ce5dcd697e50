//! The exact log, as a sorted set.

use std::sync::LazyLock;
use std::time::Duration;

use ratekeeper::store::StoreError;
use ratekeeper::{Decision, Outcome, Receipt, Request, SlidingLog};

use super::{Call, RedisAlgorithm, Reply, unknown_request, unsupported};
use crate::pack::{Double, Packed};
use crate::script::Script;

static SCRIPT: LazyLock<Script> =
    LazyLock::new(|| Script::after_prologue(&[include_str!("../scripts/sliding_log.lua")]));

/// The most tokens a log may remember: about 1.2 MB of the server's memory per key.
pub const MOST_LOG_ENTRIES: u32 = 10_000;

/// The set's instants are whole microseconds, as the server's clock is; so is the window, rounded up.
///
/// A key takes about 120 bytes of the server's memory for each token, and a charge of `c` tokens adds `c` members, so limits are
/// capped at [`MOST_LOG_ENTRIES`].
impl RedisAlgorithm for SlidingLog {
    fn call(&self, request: &Request, grace: Duration) -> Result<Call, StoreError> {
        const LONGEST_WINDOW_US: u128 = 4_500_000_000_000_000;

        if self.limit() > MOST_LOG_ENTRIES {
            return Err(unsupported(
                "an exact log in Redis holds at most 10000 tokens",
            ));
        }
        let window_us = self.window().as_nanos().div_ceil(1_000);
        if window_us > LONGEST_WINDOW_US {
            return Err(unsupported(
                "a window of 142 years does not fit the numbers of Redis",
            ));
        }
        let packed = Packed::new();
        let (packed, cost) = match request {
            Request::Take { cost, .. } => (packed.byte(0), *cost),
            Request::Refund { cost, receipt, .. } => {
                (packed.byte(1), (*cost).min(receipt.charged()))
            }
            _ => return Err(unknown_request()),
        };
        let packed = packed
            .grace(grace)
            .number(self.limit())
            .number(window_us)
            .number(cost);
        let packed = match request {
            Request::Take { at_least, .. } => packed.number((*at_least).min(cost)),
            // A mark that no log of ours has made is no instant in the set.
            Request::Refund { receipt, .. } if receipt.mark() % 1_000 == 0 => {
                packed.number(receipt.mark() / 1_000)
            }
            _ => packed.double(Double::MINUS_ONE),
        };
        Ok(Call::new(&SCRIPT, vec![packed.into_argument()]))
    }

    fn answer(&self, request: &Request, reply: &Reply) -> Result<Decision, StoreError> {
        let micros = |index| reply.number(index).map(Duration::from_micros);
        let (granted, remaining) = (reply.number(1)?, reply.number(2)?);
        let (reset_after, retry_after) = (micros(3)?, micros(4)?);
        let mark_ns = reply.number(5)?.saturating_mul(1_000);
        let limit = u64::from(self.limit());
        let outcome = match request {
            Request::Take { cost, at_least, .. } if granted < (*at_least).min(*cost) => {
                if (*at_least).min(*cost) > limit {
                    Outcome::TooLarge
                } else {
                    Outcome::Denied { retry_after }
                }
            }
            _ => Outcome::Allowed,
        };
        let decision = Decision::new(outcome, limit, remaining, reset_after);
        Ok(match request {
            Request::Take {
                cost,
                at_least,
                max_wait,
                ..
            } => {
                let is_charge = *at_least == 0 && *max_wait == Duration::MAX;
                let decision = if granted > 0 {
                    decision.with_receipt(Receipt::new(granted, mark_ns))
                } else {
                    decision
                };
                let uncharged = if is_charge { *cost - granted } else { 0 };
                decision.with_uncharged(uncharged)
            }
            _ => decision,
        })
    }
}
