//! The states of keys whose bucket may change at run time.

use core::fmt;

use crate::state::{State, sealed};
use crate::store::Wire;
use crate::store::cell::{PairCell, PairWord, SingleWord, WordCell};

/// The latest TAT a [`LiveWord`] can hold: 2⁶² − 1 ns, in the year 2116 if the clock counts from 1970.
pub(crate) const LATEST_NS: u64 = u64::MAX >> LiveWord::GENERATION_BITS;

/// A bucket's TAT, and under which of its limiter's limits it came about: the state of a key under
/// [`Live`](crate::Live).
///
/// The generation of the limit modulo 4 lies in the upper two bits, the TAT in the lower 62. Words of different generations
/// cannot be compared, and say nothing to any other limit. All zero is a key never seen: a TAT of 0 means the same in every
/// generation.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct LiveWord(u64);

impl LiveWord {
    const GENERATION_BITS: u32 = 2;
    /// Generations that a word tells apart.
    pub(super) const GENERATIONS: u64 = 1 << Self::GENERATION_BITS;

    /// `tat_ns` must be at most [`LATEST_NS`].
    #[inline]
    pub(super) const fn new(generation: u64, tat_ns: u64) -> Self {
        Self(generation << (u64::BITS - Self::GENERATION_BITS) | tat_ns)
    }

    #[inline]
    pub(super) const fn tat_ns(self) -> u64 {
        self.0 & LATEST_NS
    }

    /// How many generations this word is behind `generation`, modulo 4.
    #[inline]
    pub(super) const fn missed(self, generation: u64) -> u64 {
        generation.wrapping_sub(self.0 >> (u64::BITS - Self::GENERATION_BITS))
            & (Self::GENERATIONS - 1)
    }

    /// As a receipt's mark.
    #[inline]
    pub(super) const fn mark(self) -> u64 {
        self.0
    }

    #[inline]
    pub(super) const fn of_mark(mark: u64) -> Self {
        Self(mark)
    }
}

impl fmt::Debug for LiveWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveWord")
            .field(
                "generation",
                &Self(self.0).missed(0).wrapping_neg().rem_euclid(4),
            )
            .field("tat_ns", &self.tat_ns())
            .finish()
    }
}

impl SingleWord for LiveWord {
    #[inline]
    fn into_word(self) -> u64 {
        self.0
    }

    #[inline]
    fn from_word(word: u64) -> Self {
        Self(word)
    }
}

/// Two generations are brought to one before they are compared: by [`Algorithm::debt_ns`](crate::Algorithm), never as words.
impl State for LiveWord {
    type Cell = WordCell<Self>;
    const FRESH: Self = Self(0);
    const IS_ORDERED: bool = true;
}
impl sealed::Sealed for LiveWord {}

/// The state of a key under a [`Live<AnyAlgorithm>`](crate::Live): a [`LiveWord`] above 64 zeros, or a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LivePair(pub(super) u128);

impl LivePair {
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // shifted
    pub(super) const fn word(self) -> LiveWord {
        LiveWord((self.0 >> 64) as u64)
    }

    #[inline]
    pub(super) const fn of_word(word: LiveWord) -> Self {
        Self((word.0 as u128) << 64)
    }
}

impl PairWord for LivePair {
    #[inline]
    fn into_word(self) -> u128 {
        self.0
    }

    #[inline]
    fn from_word(word: u128) -> Self {
        Self(word)
    }
}

impl State for LivePair {
    type Cell = PairCell<Self>;
    const FRESH: Self = Self(0);
}
impl sealed::Sealed for LivePair {}

/// Neither leaves the process: the generations are this process's. [`Live`](crate::Live) has no tag, so nobody calls these.
macro_rules! stays_here {
    ($($state:ty),+) => {
        $(impl Wire for $state {
            const LEN: usize = 0;

            fn write(&self, _out: &mut [u8]) {}

            fn read(_body: &[u8]) -> Self {
                Self::FRESH
            }
        })+
    };
}
stays_here!(LiveWord, LivePair);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_holds_a_generation_modulo_four_and_a_tat() {
        for generation in 0..9 {
            for tat_ns in [0, 1, 105_000_000_000, LATEST_NS] {
                let word = LiveWord::new(generation, tat_ns);
                assert_eq!(word.tat_ns(), tat_ns);
                assert_eq!(word.missed(generation), 0);
                assert_eq!(word.missed(generation + 3), 3);
                assert_eq!(word.missed(generation + 4), 0);
                assert_eq!(LiveWord::of_mark(word.mark()), word);
                assert_eq!(LivePair::of_word(word).word(), word);
                assert_eq!(LiveWord::from_word(word.into_word()), word);
            }
        }
        assert_eq!(LiveWord::new(4, 0), LiveWord::FRESH);
        let shown = std::format!("{:?}", LiveWord::new(7, 5));
        assert_eq!(shown, "LiveWord { generation: 3, tat_ns: 5 }");
    }
}
