//! Giving tokens back: a refund of a charge, and the cancellation of a reservation. They differ on
//! purpose: giving part of a reservation back while others stand behind it over-admits after two
//! such steps.

use super::TokenBucket;
use crate::algorithm::Step;
use crate::decision::Outcome;
use crate::request::Receipt;
use crate::time::saturate;

/// What a receipt proves. Passed by value: a pointer into the request would keep that in memory on every path,
/// and a plain check would no longer be folded into a few instructions.
#[derive(Clone, Copy)]
pub(super) struct Charge {
    tokens: u64,
    run_at_ns: u64,
    /// The TAT it left.
    after_ns: u64,
}

impl From<&Receipt> for Charge {
    #[inline]
    fn from(receipt: &Receipt) -> Self {
        Self {
            tokens: receipt.charged(),
            run_at_ns: receipt.run_at_ns(),
            after_ns: receipt.mark(),
        }
    }
}

impl TokenBucket {
    #[inline(never)]
    pub(super) fn refund(&self, now_ns: u64, tat: &mut u64, cost: u64, charge: Charge) -> Step {
        if !self.is_finite() {
            return self.extreme(now_ns, *tat, 0, 0, false);
        }
        let cost = cost.min(charge.tokens);
        let new_ns = if cost == 0 {
            *tat
        } else if now_ns < charge.run_at_ns {
            self.cancelled(*tat, cost, charge)
        } else {
            self.refunded(now_ns, *tat, cost, charge.after_ns)
        };
        let decision = self.decision(Outcome::Allowed, now_ns, self.base(now_ns, new_ns));
        self.store(now_ns, tat, new_ns, decision)
    }

    /// The exact state before the reservation, or before a part of it, if nothing happened to the bucket since.
    fn cancelled(&self, tat_ns: u64, cost: u64, charge: Charge) -> u64 {
        if tat_ns != charge.after_ns {
            return tat_ns;
        }
        let point = self.lattice.snap(self.rate, tat_ns);
        let credit_ns = if self.lattice.is_trivial() {
            // Charges are rounded up to whole nanoseconds, each as one; what stays charged must stay so.
            self.rate.charge_ns(charge.tokens, 0) - self.rate.charge_ns(charge.tokens - cost, 0)
        } else {
            self.rate.credit_ns(cost, point.fraction)
        };
        point.ns.saturating_sub(saturate(credit_ns))
    }

    /// Gives back at most what has not refilled meanwhile: with `after` the TAT that the charge left,
    /// `after − now` of it is still owed. While others stand in line behind the charge, it gives back nothing:
    /// their instants are promised already, so the tokens would be used a second time beside them.
    fn refunded(&self, now_ns: u64, tat_ns: u64, cost: u64, after_ns: u64) -> u64 {
        if after_ns <= now_ns || tat_ns <= now_ns {
            return tat_ns;
        }
        let point = self.lattice.snap(self.rate, tat_ns);
        if tat_ns != after_ns && self.has_line(now_ns, point) {
            return tat_ns;
        }
        let by_cost = point
            .ns
            .saturating_sub(saturate(self.rate.credit_ns(cost, point.fraction)));
        // Two nanoseconds cover the rounding of two unrelated lattice points.
        let slack_ns = if self.lattice.is_trivial() || tat_ns == after_ns {
            0
        } else {
            2
        };
        let by_age = tat_ns
            .saturating_sub(after_ns - now_ns)
            .saturating_add(slack_ns);
        by_cost.max(by_age).min(tat_ns)
    }
}
