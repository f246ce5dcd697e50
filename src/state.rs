//! What is remembered per key, and in what kind of cell a limiter keeps it.

use core::fmt::Debug;

#[cfg(feature = "alloc")]
use crate::algorithm::LogRing;
use crate::store::Wire;
use crate::store::cell::{Cell, LockCell, PairCell, PairWord, SingleWord, WordCell};

/// The state of one key: one or a few machine words, or the exact log's ring.
///
/// Sealed. Implemented for `u64` and `u128`, for arrays and tuples of up to four of them (see
/// [`All`](crate::All)), and for the exact log's ring. `Default`, all zero, is a key never seen.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the state of a rate limit",
    note = "a state is `u64`, `u128`, or an array or tuple of up to four of these"
)]
pub trait State:
    Clone + Default + PartialEq + Debug + Wire + Send + Sync + 'static + sealed::Sealed
{
    /// Where a limiter keeps it: one atomic word of 64 or 128 bits, or a lock for wider states.
    #[doc(hidden)]
    type Cell: Cell<Self>;
    /// A key never seen.
    #[doc(hidden)]
    const FRESH: Self;
    /// Whether states are ordered by how much they restrict, at every instant alike: of two states, the one with more
    /// time left until it is as good as new never lets pass what the other refuses. True for a single word such as a
    /// TAT, false for windows, whose counts and starts say different things.
    #[doc(hidden)]
    const IS_ORDERED: bool = false;
}

/// Limits whose states are the same type: only those may take turns on one key.
///
/// Sealed; each [`State`] for itself, but for those of [`Live`](crate::Live) buckets, which only their own limit can read.
#[diagnostic::on_unimplemented(
    message = "the limiter's states are `{S}`, and this limit's are `{Self}`",
    note = "a limit for single calls must have the state of the limiter's own; for several algorithms in one limiter use `AnyAlgorithm`",
    note = "nobody but a `Live` limit itself can read its keys: to lend one, make the limiter of a plain limit and lend `live.get()`"
)]
pub trait SameState<S> {}

pub(crate) mod sealed {
    pub trait Sealed {}
}

macro_rules! state {
    ($($state:ty, $cell:ty, $fresh:expr $(, ordered: $ordered:expr)?;)+) => {
        $(
            impl sealed::Sealed for $state {}
            impl SameState<Self> for $state {}
            impl State for $state {
                type Cell = $cell;
                const FRESH: Self = $fresh;
                $(const IS_ORDERED: bool = $ordered;)?
            }
        )+
    };
}
state! {
    u64, WordCell<Self>, 0, ordered: true;
    u128, PairCell<u128>, 0;
}
#[cfg(feature = "alloc")]
state! { LogRing, LockCell<Self>, LogRing::EMPTY; }

/// States of several limits: two words share an atomic, more live under a lock.
macro_rules! states {
    (@pair $($state:ty, $fresh:expr;)+) => { state! { $($state, PairCell<Self>, $fresh;)+ } };
    (@lock $($state:ty, $fresh:expr;)+) => { state! { $($state, LockCell<Self>, $fresh;)+ } };
}
states! { @pair
    [u64; 1], [0; 1];
    [u64; 2], [0; 2];
    [u128; 1], [0; 1];
    (u64, u64), (0, 0);
}
states! { @lock
    [u64; 3], [0; 3];
    [u64; 4], [0; 4];
    [u128; 2], [0; 2];
    [u128; 3], [0; 3];
    [u128; 4], [0; 4];
    (u64, u128), (0, 0);
    (u128, u64), (0, 0);
    (u128, u128), (0, 0);
    (u64, u64, u64), (0, 0, 0);
    (u64, u64, u128), (0, 0, 0);
    (u64, u128, u64), (0, 0, 0);
    (u64, u128, u128), (0, 0, 0);
    (u128, u64, u64), (0, 0, 0);
    (u128, u64, u128), (0, 0, 0);
    (u128, u128, u64), (0, 0, 0);
    (u128, u128, u128), (0, 0, 0);
    (u64, u64, u64, u64), (0, 0, 0, 0);
    (u64, u64, u64, u128), (0, 0, 0, 0);
    (u64, u64, u128, u64), (0, 0, 0, 0);
    (u64, u64, u128, u128), (0, 0, 0, 0);
    (u64, u128, u64, u64), (0, 0, 0, 0);
    (u64, u128, u64, u128), (0, 0, 0, 0);
    (u64, u128, u128, u64), (0, 0, 0, 0);
    (u64, u128, u128, u128), (0, 0, 0, 0);
    (u128, u64, u64, u64), (0, 0, 0, 0);
    (u128, u64, u64, u128), (0, 0, 0, 0);
    (u128, u64, u128, u64), (0, 0, 0, 0);
    (u128, u64, u128, u128), (0, 0, 0, 0);
    (u128, u128, u64, u64), (0, 0, 0, 0);
    (u128, u128, u64, u128), (0, 0, 0, 0);
    (u128, u128, u128, u64), (0, 0, 0, 0);
    (u128, u128, u128, u128), (0, 0, 0, 0);
}

impl SingleWord for u64 {
    #[inline]
    fn into_word(self) -> u64 {
        self
    }

    #[inline]
    fn from_word(word: u64) -> Self {
        word
    }
}

impl PairWord for u128 {
    #[inline]
    fn into_word(self) -> u128 {
        self
    }

    #[inline]
    fn from_word(word: u128) -> Self {
        word
    }
}

impl PairWord for [u64; 1] {
    #[inline]
    fn into_word(self) -> u128 {
        u128::from(self[0])
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation)] // takes the word apart
    fn from_word(word: u128) -> Self {
        [word as u64]
    }
}

impl PairWord for [u64; 2] {
    #[inline]
    fn into_word(self) -> u128 {
        u128::from(self[0]) << 64 | u128::from(self[1])
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation)] // takes the word apart
    fn from_word(word: u128) -> Self {
        [(word >> 64) as u64, word as u64]
    }
}

impl PairWord for [u128; 1] {
    #[inline]
    fn into_word(self) -> u128 {
        self[0]
    }

    #[inline]
    fn from_word(word: u128) -> Self {
        [word]
    }
}

impl PairWord for (u64, u64) {
    #[inline]
    fn into_word(self) -> u128 {
        [self.0, self.1].into_word()
    }

    #[inline]
    fn from_word(word: u128) -> Self {
        <[u64; 2]>::from_word(word).into()
    }
}
