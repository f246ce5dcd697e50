//! How many slots a key may choose from, and which set it falls into.

/// How many slots a set has.
///
/// A key can only be held in its own set, so some keys find it full of debtors before the table is. The share of
/// keys in debt that find no place, by how many keys are in debt for each slot (from the Poisson distribution,
/// checked by simulation):
///
/// | ways | 10 % | 20 % | 25 % | 30 % | 40 % | 50 % | 60 % | 70 % |
/// |---|---|---|---|---|---|---|---|---|
/// | 4 | 0.016 % | 0.2 % | 0.43 % | 0.79 % | 2.0 % | 3.8 % | 6.1 % | 9 % |
/// | 8 | 0.00002 % | 0.0034 % | 0.015 % | 0.047 % | 0.25 % | 0.84 % | 2.0 % | 4.0 % |
///
/// Four ways are right up to 25 % in debt, eight up to 50 %. Keys whose state is as good as new need no slot, so far
/// more keys than that may be active.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Ways {
    /// Four slots: one cache line of 64 bytes.
    #[default]
    Four,
    /// Eight slots: two neighbouring cache lines. Slightly slower, and half the memory for the same share.
    Eight,
}

impl Ways {
    /// The number.
    #[inline]
    pub const fn count(self) -> usize {
        match self {
            Self::Four => 4,
            Self::Eight => 8,
        }
    }
}

/// Bits of the hash that choose the set; the tag uses others.
const SET_BITS: u32 = 24;

/// The most sets a table can address.
pub(super) const MOST_SETS: usize = 1 << SET_BITS;

/// The set of a hash among `sets` (at most `MOST_SETS`): the upper bits, scaled, so that `sets` need not be a power of
/// two.
#[inline]
#[allow(clippy::cast_possible_truncation)] // below `sets`
pub(super) const fn set_of(hash: u64, sets: usize) -> usize {
    (((hash >> (64 - SET_BITS)) * sets as u64) >> SET_BITS) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_set_is_reached_and_none_beyond() {
        for sets in [1, 3, 4, 1000, MOST_SETS] {
            assert_eq!(set_of(0, sets), 0);
            assert_eq!(set_of(u64::MAX, sets), sets - 1);
        }
    }
}
