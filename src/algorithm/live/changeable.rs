//! Which limits may change at run time, and what of them.

use super::record::Record;
use super::word::{LivePair, LiveWord};
use super::{bucket, sealed};
use crate::algorithm::{Algorithm, AnyAlgorithm, FixedWindow, SlidingWindow, Step, TokenBucket};
#[cfg(feature = "alloc")]
use crate::algorithm::{LogRing, SlidingLog};
use crate::invalid_limit::InvalidLimit;
use crate::request::Request;
use crate::state::State;
use crate::time::Timestamp;

/// Limits that [`Live`](crate::Live) can change at run time.
///
/// | limit | what may change |
/// |---|---|
/// | [`TokenBucket`] | everything |
/// | [`SlidingWindow`], [`SlidingLog`](crate::SlidingLog) | the count, not the window |
/// | [`FixedWindow`] | the count, not the window, its offset and its anchoring |
/// | [`AnyAlgorithm`] | what its algorithm allows, but not the algorithm |
///
/// Sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot change at run time",
    note = "`Live` takes a token bucket, a window, an exact log or `AnyAlgorithm`"
)]
pub trait Changeable: Algorithm + Copy + PartialEq + sealed::Sealed {
    /// A key's state under a limit that may change.
    #[doc(hidden)]
    type LiveState: State;

    /// Whether `new` may follow this limit.
    #[doc(hidden)]
    fn may_become(&self, new: &Self) -> Result<(), InvalidLimit>;

    /// The limit in force; `self` is the first one.
    #[doc(hidden)]
    fn current(&self, record: &Record) -> Self;

    /// Puts `new` in force, which the first one, `self`, may become.
    #[doc(hidden)]
    fn set(&self, record: &Record, now: Timestamp, new: &Self);

    #[doc(hidden)]
    fn step_live(
        &self,
        record: &Record,
        now: Timestamp,
        state: &mut Self::LiveState,
        request: &Request,
    ) -> Step;

    #[doc(hidden)]
    fn debt_live_ns(&self, record: &Record, now: Timestamp, state: &Self::LiveState) -> u64;

    #[doc(hidden)]
    fn step_live_in_ticks(
        &self,
        record: &Record,
        ticks: (u64, u32),
        now: Timestamp,
        state: &mut Self::LiveState,
        request: &Request,
    ) -> Option<Step> {
        let _ = (record, ticks, now, state, request);
        None
    }
}

impl sealed::Sealed for TokenBucket {}
impl Changeable for TokenBucket {
    type LiveState = LiveWord;

    fn may_become(&self, _new: &Self) -> Result<(), InvalidLimit> {
        Ok(())
    }

    #[inline]
    fn current(&self, record: &Record) -> Self {
        record.current(self).1
    }

    fn set(&self, record: &Record, now: Timestamp, new: &Self) {
        record.set(now.as_nanos(), self, new);
    }

    #[inline(always)]
    fn step_live(
        &self,
        record: &Record,
        now: Timestamp,
        word: &mut LiveWord,
        request: &Request,
    ) -> Step {
        bucket::step(record, self, now, word, request)
    }

    #[inline]
    fn debt_live_ns(&self, record: &Record, now: Timestamp, word: &LiveWord) -> u64 {
        bucket::debt_ns(record, self, now, *word)
    }
}

/// Windows count, and a count means the same under another limit: the state stays as it is.
macro_rules! windows {
    ($($(#[$attribute:meta])* $limit:ty, $state:ty;)+) => {
        $($(#[$attribute])* impl sealed::Sealed for $limit {}
        $(#[$attribute])* impl Changeable for $limit {
            type LiveState = $state;

            fn may_become(&self, new: &Self) -> Result<(), InvalidLimit> {
                if self.window.window_ns != new.window.window_ns {
                    return Err(InvalidLimit::WindowMustStay);
                }
                // Otherwise they differ in offset or anchoring, if at all.
                if self.state_kind() == new.state_kind() {
                    Ok(())
                } else {
                    Err(InvalidLimit::EdgesMustStay)
                }
            }

            #[inline]
            fn current(&self, record: &Record) -> Self {
                record.current(self).1
            }

            fn set(&self, record: &Record, now: Timestamp, new: &Self) {
                record.set(now.as_nanos(), self, new);
            }

            #[inline]
            fn step_live(
                &self,
                record: &Record,
                now: Timestamp,
                state: &mut $state,
                request: &Request,
            ) -> Step {
                self.current(record).step(now, state, request)
            }

            #[inline]
            fn debt_live_ns(&self, record: &Record, now: Timestamp, state: &$state) -> u64 {
                self.current(record).debt_ns(now, state)
            }

            #[inline]
            fn step_live_in_ticks(
                &self,
                record: &Record,
                ticks: (u64, u32),
                now: Timestamp,
                state: &mut $state,
                request: &Request,
            ) -> Option<Step> {
                self.current(record).step_in_ticks(ticks, now, state, request)
            }
        })+
    };
}
windows! {
    SlidingWindow, u128;
    FixedWindow, u128;
    #[cfg(feature = "alloc")] SlidingLog, LogRing;
}

impl sealed::Sealed for AnyAlgorithm {}
impl Changeable for AnyAlgorithm {
    type LiveState = LivePair;

    fn may_become(&self, new: &Self) -> Result<(), InvalidLimit> {
        match (self, new) {
            (Self::TokenBucket(first), Self::TokenBucket(new)) => first.may_become(new),
            (Self::SlidingWindow(first), Self::SlidingWindow(new)) => first.may_become(new),
            (Self::FixedWindow(first), Self::FixedWindow(new)) => first.may_become(new),
            _ => Err(InvalidLimit::AlgorithmMustStay),
        }
    }

    #[inline]
    fn current(&self, record: &Record) -> Self {
        match self {
            Self::TokenBucket(first) => first.current(record).into(),
            Self::SlidingWindow(first) => first.current(record).into(),
            Self::FixedWindow(first) => first.current(record).into(),
        }
    }

    fn set(&self, record: &Record, now: Timestamp, new: &Self) {
        match (self, new) {
            (Self::TokenBucket(first), Self::TokenBucket(new)) => first.set(record, now, new),
            (Self::SlidingWindow(first), Self::SlidingWindow(new)) => first.set(record, now, new),
            (Self::FixedWindow(first), Self::FixedWindow(new)) => first.set(record, now, new),
            _ => {}
        }
    }

    #[inline]
    fn step_live(
        &self,
        record: &Record,
        now: Timestamp,
        state: &mut LivePair,
        request: &Request,
    ) -> Step {
        match self {
            Self::TokenBucket(first) => {
                let mut word = state.word();
                let step = first.step_live(record, now, &mut word, request);
                *state = LivePair::of_word(word);
                step
            }
            Self::SlidingWindow(first) => first.step_live(record, now, &mut state.0, request),
            Self::FixedWindow(first) => first.step_live(record, now, &mut state.0, request),
        }
    }

    #[inline]
    fn debt_live_ns(&self, record: &Record, now: Timestamp, state: &LivePair) -> u64 {
        match self {
            Self::TokenBucket(first) => first.debt_live_ns(record, now, &state.word()),
            Self::SlidingWindow(first) => first.debt_live_ns(record, now, &state.0),
            Self::FixedWindow(first) => first.debt_live_ns(record, now, &state.0),
        }
    }
}
