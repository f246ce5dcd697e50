//! Moving a state from one bucket to another at a known instant: the available tokens stay, the debt in time changes.

use super::TokenBucket;
use crate::algorithm::Carry;
use crate::time::saturate;

impl TokenBucket {
    /// The TAT in this bucket for a key that was at `tat_ns` in `old`.
    pub(crate) fn changed(&self, now_ns: u64, tat_ns: u64, old: &Self, carry: Carry) -> u64 {
        match carry {
            Carry::Tokens => self.keeping_tokens(now_ns, tat_ns, old),
            Carry::Debt => tat_ns,
            Carry::Full => tat_ns.min(now_ns),
            // A bucket that does not count is never empty.
            Carry::Empty if !self.is_finite() => tat_ns,
            Carry::Empty => self.empty_at(now_ns),
        }
    }

    /// The TAT of a bucket without a token.
    fn empty_at(&self, now_ns: u64) -> u64 {
        let start = self.base(now_ns, now_ns);
        let charge_ns = self.rate.charge_ns(self.burst, start.fraction);
        start.ns.saturating_add(saturate(charge_ns))
    }

    /// The TAT that leaves as many tokens as `tat_ns` leaves in `old`, or a full bucket if this one holds fewer. A bucket
    /// that was full stays full. Debts beyond this bucket's reach are cut to it: 5 s beyond a burst of 1000/s would be
    /// 16 days of 10/h. To or from a bucket that is unlimited or blocked, the state stays as it is.
    fn keeping_tokens(&self, now_ns: u64, tat_ns: u64, old: &Self) -> u64 {
        let same =
            self.rate == old.rate && self.burst == old.burst && self.max_wait_ns == old.max_wait_ns;
        // Neither of the two writes, so what a key owed before is still owed afterwards: nobody is forgiven by being
        // blocked and unblocked.
        let comparable = self.is_finite() && old.is_finite();
        if tat_ns <= now_ns || same || !comparable {
            return tat_ns;
        }
        // What is owed in the old bucket, in units of 1/P tokens.
        let from = old.base(now_ns, tat_ns);
        let debt_ns = from.ns.saturating_sub(now_ns);
        let owed = (u128::from(old.rate.n) * u128::from(debt_ns))
            .saturating_sub(u128::from(from.fraction));
        if owed == 0 {
            return now_ns;
        }
        let top_ns = self.latest_tat(now_ns);
        let old_p = u128::from(old.rate.p);
        let (n, p) = (u128::from(self.rate.n), u128::from(self.rate.p));
        let part = owed % old_p;
        // Whole tokens owed; a larger burst comes in empty, a smaller one takes the difference off.
        let Some(tokens) =
            (owed / old_p + u128::from(self.burst)).checked_sub(u128::from(old.burst))
        else {
            return now_ns;
        };
        if tokens > u128::from(u64::MAX) * n / p {
            return top_ns;
        }
        let start = self.base(now_ns, now_ns);
        let after = |tokens: u128| {
            let product = (tokens * p).saturating_add(n - 1 - u128::from(start.fraction));
            saturate(u128::from(start.ns) + product / n)
        };
        let part_ns = (part * p).div_ceil(old_p).div_ceil(n);
        let mut new_ns = after(tokens).saturating_add(saturate(part_ns));
        if self.lattice.snap(self.rate, new_ns).ns != new_ns {
            new_ns = new_ns.saturating_add(1);
        }
        // Not before now: without it, a debt of less than a token may end up 1 ns in the past.
        let most_ns = after(tokens + u128::from(part > 0)).min(top_ns);
        new_ns.min(most_ns).max(now_ns)
    }
}
