//! A bucket as words.

use super::TokenBucket;
use super::extreme::Extent;
use super::lattice::Lattice;
use crate::algorithm::Plain;
use crate::rate::Rate;

/// Whoever adds a field is told by the compiler, here and there.
impl Plain for TokenBucket {
    fn put(&self, put: &mut impl FnMut(u64)) {
        let Self {
            tokens,
            period_ns,
            burst,
            max_wait_ns,
            rate: Rate { n, p },
            capacity_ns,
            reach_ns,
            lattice,
            all_but_one: (quotient, remainder),
            extent,
            version,
        } = *self;
        let (kind, lattice) = lattice.into_words();
        let extent: u8 = match extent {
            Extent::Finite => 0,
            Extent::Unlimited => 1,
            Extent::Blocked => 2,
        };
        // Fields smaller than a word share this one; bits 32..64 are free.
        let small = u64::from(version) << 16 | u64::from(extent) << 8 | u64::from(kind);
        let numbers = [
            small,
            tokens,
            period_ns,
            burst,
            max_wait_ns,
            n,
            p,
            capacity_ns,
            reach_ns,
            quotient,
            remainder,
        ];
        numbers.into_iter().chain(lattice).for_each(put);
    }

    #[inline(always)] // or the words are copied once more
    #[allow(clippy::cast_possible_truncation)] // takes the word apart
    fn take(next: &mut impl FnMut() -> u64) -> Self {
        let small = next();
        Self {
            tokens: next(),
            period_ns: next(),
            burst: next(),
            max_wait_ns: next(),
            rate: Rate {
                n: next(),
                p: next(),
            },
            capacity_ns: next(),
            reach_ns: next(),
            all_but_one: (next(), next()),
            lattice: Lattice::from_words(small as u8, core::array::from_fn(|_| next())),
            extent: match (small >> 8) as u8 {
                0 => Extent::Finite,
                1 => Extent::Unlimited,
                _ => Extent::Blocked,
            },
            version: (small >> 16) as u16,
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;
    use core::time::Duration;

    use super::*;

    fn there_and_back(limit: TokenBucket) -> Vec<u64> {
        let mut words = Vec::new();
        limit.put(&mut |word| words.push(word));
        assert!(words.len() <= 16, "a slot of `Record` has no room for more");
        let mut next = words.iter().copied();
        let again = TokenBucket::take(&mut || next.next().expect("a word"));
        assert_eq!(again, limit);
        assert_eq!(next.next(), None);
        words
    }

    #[test]
    fn every_bucket_is_what_its_words_say() {
        let numbers = [1, 2, 3, 7, 1_000, 999_999_937, u64::MAX / 3, u64::MAX];
        let waits = [0, 5, u64::MAX].map(Duration::from_nanos);
        let extremes = [TokenBucket::UNLIMITED, TokenBucket::BLOCKED];
        let mut seen: Vec<_> = extremes.map(|limit| (limit, there_and_back(limit))).into();
        for tokens in numbers {
            for period in numbers.map(Duration::from_nanos) {
                for burst in [1, 2, 20, u64::MAX] {
                    for wait in waits {
                        let limit = TokenBucket::per(tokens, period);
                        let limit = limit.with_burst(burst).with_max_wait(wait);
                        let limit = limit.with_version((burst % 3) as u16 * 30_000);
                        seen.push((limit, there_and_back(limit)));
                    }
                }
            }
        }
        // And the other way: other limits have other words.
        seen.sort_by(|a, b| a.1.cmp(&b.1));
        let mut neighbours = seen.windows(2);
        assert!(neighbours.all(|pair| (pair[0].0 == pair[1].0) == (pair[0].1 == pair[1].1)));
    }
}
