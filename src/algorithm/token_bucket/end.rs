//! A bucket on a clock that ends before `u64::MAX`: for states that have fewer bits.

use super::TokenBucket;
use crate::algorithm::{Algorithm, Step};
use crate::decision::Outcome;
use crate::request::Request;
use crate::time::Timestamp;

impl TokenBucket {
    /// Whether no step on this state at this instant can leave a TAT after `end_ns`.
    #[inline(always)]
    pub(in crate::algorithm) fn stays_before(
        &self,
        end_ns: u64,
        now: Timestamp,
        tat_ns: u64,
    ) -> bool {
        // A take moves the TAT by the time of a burst at most, a charge no further than a reach from now.
        tat_ns.max(now.as_nanos()) <= end_ns.saturating_sub(self.reach_ns)
    }

    /// The step where that is not so. What would leave a TAT after `end_ns` is too large, whenever it comes; charges take
    /// what fits before.
    #[cold]
    #[inline(never)]
    pub(in crate::algorithm) fn step_near_end(
        &self,
        end_ns: u64,
        now: Timestamp,
        tat: &mut u64,
        request: &Request,
    ) -> Step {
        let Request::Take { cost, at_least, .. } = *request else {
            return self.step(now, tat, request); // a refund moves it back
        };
        if !self.is_finite() {
            return self.step(now, tat, request); // which never writes
        }
        let now_ns = now.as_nanos();
        let base = self.base(now_ns, *tat);
        if request.is_charge() && cost > 0 {
            let room_ns = end_ns.saturating_sub(base.ns);
            let fitting = self.rate.tokens_within(room_ns, base.fraction).min(cost);
            let mut step = self.charge(now_ns, tat, fitting);
            let uncharged = cost - step.decision.granted();
            step.decision = step.decision.with_uncharged(uncharged);
            return step;
        }
        let mut after = *tat;
        let step = self.step(now, &mut after, request);
        let taken = match step.decision.outcome() {
            Outcome::Allowed => step.decision.granted(),
            // What was refused: all, or the least that would have done.
            Outcome::Denied { .. } => at_least.max(1),
            Outcome::TooLarge | Outcome::Unsupported => 0,
        };
        let fits = |charged_ns| charged_ns <= end_ns;
        if taken > 0 && !self.charged(base, taken).is_some_and(fits) {
            return self.refuse(now_ns, *tat, taken);
        }
        *tat = after;
        step
    }
}
