//! The instants a TAT may take, so that "add a token" and "remove it again" are exact inverses.
//!
//! Token `j` starts at `g(j) = ⌈j·P/n⌉` and lasts `m = ⌊P/n⌋` or `m + 1` ns. The lattice is the set of
//! instants `g(j) + o` with `0 ≤ o < m`: the extra nanosecond of the long tokens is left out, because
//! pushing it up by a token and pushing up its predecessor would meet. On the lattice,
//! `n·g(j) = j·P + d` with `0 ≤ d < n`; the rounding `d` of an instant `x` follows from `x` alone and
//! its true, rational value is `x − d/n`. Adding `c` tokens adds exactly `c·T` to the true value, so
//! nothing drifts, over any number of requests.
//!
//! If a token takes a whole number of nanoseconds, or less than one, every instant is on the lattice
//! and `d` is 0.

use crate::rate::Rate;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Lattice {
    snapping: Snapping,
    /// `m = ⌊P/n⌋`, the nanoseconds of a short token; 0 if a token takes less than one.
    short_token_ns: u64,
    /// `P mod n`: from a rounding below it, the next token is a long one.
    long_tokens: u64,
}

/// How the rounding of an instant is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Snapping {
    /// There is none: every instant is on the lattice.
    None,
    /// By multiplying with reciprocals computed once; needs `P < 2^63`.
    Reciprocal {
        /// `m·n`: a remainder at or above it lies in the extra nanosecond of a long token.
        short_part: u64,
        /// `⌊2^64·n/P⌋`.
        per_ns: u64,
        /// `⌊2^64/n⌋`.
        per_token: u64,
    },
    /// By dividing.
    Division,
}

/// An instant on the lattice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Point {
    pub(super) ns: u64,
    /// `d`, in `0..n`.
    pub(super) fraction: u64,
}

impl Lattice {
    #[allow(clippy::cast_possible_truncation)] // n < P and n > 1, so both reciprocals are below 2^64
    pub(super) const fn new(rate: Rate) -> Self {
        let Rate { n, p } = rate;
        let short_token_ns = p / n;
        let snapping = if n == 1 || n > p {
            Snapping::None
        } else if p < 1 << 63 {
            Snapping::Reciprocal {
                short_part: short_token_ns * n,
                per_ns: (((n as u128) << 64) / p as u128) as u64,
                per_token: ((1u128 << 64) / n as u128) as u64,
            }
        } else {
            Snapping::Division
        };
        Self {
            snapping,
            short_token_ns,
            long_tokens: p % n,
        }
    }

    /// The lattice as words; see [`Plain`](crate::algorithm::Plain). The first number is small.
    pub(super) const fn into_words(self) -> (u8, [u64; 5]) {
        let Self {
            snapping,
            short_token_ns,
            long_tokens,
        } = self;
        let (kind, [short_part, per_ns, per_token]) = match snapping {
            Snapping::None => (0, [0; 3]),
            Snapping::Reciprocal {
                short_part,
                per_ns,
                per_token,
            } => (1, [short_part, per_ns, per_token]),
            Snapping::Division => (2, [0; 3]),
        };
        let words = [short_part, per_ns, per_token, short_token_ns, long_tokens];
        (kind, words)
    }

    #[inline(always)] // as the bucket's
    pub(super) const fn from_words(kind: u8, words: [u64; 5]) -> Self {
        let [short_part, per_ns, per_token, short_token_ns, long_tokens] = words;
        let snapping = match kind {
            0 => Snapping::None,
            1 => Snapping::Reciprocal {
                short_part,
                per_ns,
                per_token,
            },
            _ => Snapping::Division,
        };
        Self {
            snapping,
            short_token_ns,
            long_tokens,
        }
    }

    /// Whether instants carry a rounding at all.
    #[inline]
    pub(super) const fn is_trivial(&self) -> bool {
        matches!(self.snapping, Snapping::None)
    }

    /// The largest lattice point not after `t`: `t` itself or the nanosecond before.
    #[inline]
    pub(super) const fn snap(&self, rate: Rate, t: u64) -> Point {
        match self.snapping {
            Snapping::None => Point { ns: t, fraction: 0 },
            Snapping::Reciprocal {
                short_part,
                per_ns,
                per_token,
            } => {
                // The estimated quotients are exact or one too small, so one correction suffices;
                // `rem` stays below 2·P < 2^64.
                let quotient = high_half(t, per_ns);
                let mut rem = t
                    .wrapping_mul(rate.n)
                    .wrapping_sub(quotient.wrapping_mul(rate.p));
                if rem >= rate.p {
                    rem -= rate.p;
                }
                if rem >= short_part {
                    return Point {
                        ns: t - 1,
                        fraction: rem - short_part,
                    };
                }
                let offset = high_half(rem, per_token);
                let mut fraction = rem - offset * rate.n;
                if fraction >= rate.n {
                    fraction -= rate.n;
                }
                Point { ns: t, fraction }
            }
            Snapping::Division => self.snap_by_division(rate, t),
        }
    }

    #[allow(clippy::cast_possible_truncation)] // remainders of u64 divisors
    #[cold]
    #[inline(never)]
    const fn snap_by_division(&self, rate: Rate, t: u64) -> Point {
        let rem = ((t % rate.p) as u128 * rate.n as u128 % rate.p as u128) as u64;
        let short_part = self.short_token_ns * rate.n;
        if rem >= short_part {
            Point {
                ns: t - 1,
                fraction: rem - short_part,
            }
        } else {
            Point {
                ns: t,
                fraction: rem % rate.n,
            }
        }
    }

    /// `rate.charge_ns(1, fraction)` without a division.
    #[inline]
    pub(super) const fn token_ns(&self, fraction: u64) -> u64 {
        self.short_token_ns + (fraction < self.long_tokens) as u64
    }
}

/// The upper 64 bits of a product.
#[inline]
#[allow(clippy::cast_possible_truncation)] // shifted
const fn high_half(a: u64, b: u64) -> u64 {
    ((a as u128 * b as u128) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instants(rate: Rate) -> impl Iterator<Item = u64> {
        let (p, n) = (rate.p, rate.n);
        let near = |t: u64| (0..40).map(move |i| t.saturating_sub(20).saturating_add(i));
        near(0)
            .chain(near(p))
            .chain(near((p / n).saturating_mul(7)))
            .chain(near(u64::MAX / 3))
            .chain(near(u64::MAX))
    }

    #[test]
    fn reciprocals_agree_with_division() {
        let periods = [
            7,
            1_000,
            999_999_937,
            1_000_000_000,
            86_400_000_000_000,
            (1 << 63) - 25,
        ];
        for p in periods {
            for n in [2, 3, 5, p / 3 + 1, p / 2 + 1, p - 2, p - 1] {
                let rate = Rate::new(n, p);
                let lattice = Lattice::new(rate);
                if lattice.is_trivial() {
                    continue;
                }
                assert!(matches!(lattice.snapping, Snapping::Reciprocal { .. }));
                for t in instants(rate) {
                    let point = lattice.snap(rate, t);
                    assert_eq!(point, lattice.snap_by_division(rate, t), "{n}/{p} at {t}");
                    assert_eq!(lattice.snap(rate, point.ns), point, "idempotent");
                }
            }
        }
    }

    #[test]
    fn one_token_is_the_general_charge() {
        for (n, p) in [
            (1, 1_000),
            (3, 7),
            (7, 3),
            (600_000_001, 1_000_000_000),
            (u64::MAX, 5),
        ] {
            let rate = Rate::new(n, p);
            let lattice = Lattice::new(rate);
            for t in instants(rate) {
                let fraction = lattice.snap(rate, t).fraction;
                assert_eq!(
                    u128::from(lattice.token_ns(fraction)),
                    rate.charge_ns(1, fraction)
                );
            }
        }
    }
}
