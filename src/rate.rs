//! The exact rational rate `tokens / period`, as integer arithmetic on nanoseconds.
//!
//! A token takes `T = p/n` ns, rarely a whole number. Instants therefore carry a rounding
//! `fraction` `d`, in `0..n`: the true instant behind `x` is `x − d/n`. Every result is rounded so
//! that the limit is never looser than the exact one. Products of two `u64` fit `u128`, so nothing
//! here wraps: `(2^64−1)² + 2·2^64 < 2^128`.

use crate::time::saturate;

/// `n` tokens per `p` nanoseconds in lowest terms; both are above zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Rate {
    /// Tokens.
    pub(crate) n: u64,
    /// Nanoseconds in which they come.
    pub(crate) p: u64,
}

impl Rate {
    /// `tokens` per `period_ns`, reduced; both must be above zero.
    pub(crate) const fn new(tokens: u64, period_ns: u64) -> Self {
        let (mut a, mut b) = (tokens, period_ns);
        while b > 0 {
            (a, b) = (b, a % b);
        }
        Self {
            n: tokens / a,
            p: period_ns / a,
        }
    }

    /// From an instant with rounding `fraction`, how far the TAT moves for `cost` tokens:
    /// `⌈(c·P − d)/n⌉`. May exceed `u64`.
    #[inline]
    pub(crate) const fn charge_ns(self, cost: u64, fraction: u64) -> u128 {
        let product = cost as u128 * self.p as u128;
        if self.n == 1 {
            return product; // the fraction is 0
        }
        divide(product + (self.n - 1 - fraction) as u128, self.n)
    }

    /// The way back: `⌊(c·P + d)/n⌋`.
    #[inline]
    pub(crate) const fn credit_ns(self, cost: u64, fraction: u64) -> u128 {
        let product = cost as u128 * self.p as u128;
        if self.n == 1 {
            return product;
        }
        divide(product + fraction as u128, self.n)
    }

    /// Tokens that are still missing while a debt of `debt_ns` stands: `⌈(n·D − d)/P⌉`.
    #[inline]
    pub(crate) const fn tokens_owed(self, debt_ns: u64, fraction: u64) -> u64 {
        let owed = (self.n as u128 * debt_ns as u128).saturating_sub(fraction as u128);
        saturate(divide(owed + (self.p - 1) as u128, self.p))
    }

    /// Tokens that can be charged before the TAT has moved by more than `span_ns`:
    /// `⌊(n·span + d)/P⌋`.
    #[inline]
    pub(crate) const fn tokens_within(self, span_ns: u64, fraction: u64) -> u64 {
        saturate(divide(
            self.n as u128 * span_ns as u128 + fraction as u128,
            self.p,
        ))
    }
}

/// `a / b`; one 64-bit division where that is enough.
#[inline]
#[allow(clippy::cast_possible_truncation)] // tested
pub(crate) const fn divide(a: u128, b: u64) -> u128 {
    if a <= u64::MAX as u128 {
        (a as u64 / b) as u128
    } else {
        a / b as u128
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reduces() {
        assert_eq!(
            Rate::new(100, 60_000_000_000),
            Rate {
                n: 1,
                p: 600_000_000
            }
        );
        assert_eq!(Rate::new(u64::MAX, u64::MAX), Rate { n: 1, p: 1 });
        assert_eq!(Rate::new(3, 7), Rate { n: 3, p: 7 });
    }

    #[test]
    fn extremes_do_not_wrap() {
        for n in [1, 2, u64::MAX - 1, u64::MAX] {
            for p in [1, 2, u64::MAX - 1, u64::MAX] {
                let rate = Rate { n, p };
                for fraction in [0, n - 1] {
                    let _ = rate.charge_ns(u64::MAX, fraction);
                    let _ = rate.credit_ns(u64::MAX, fraction);
                    let _ = rate.tokens_owed(u64::MAX, fraction);
                    let _ = rate.tokens_within(u64::MAX, fraction);
                }
            }
        }
    }
}
