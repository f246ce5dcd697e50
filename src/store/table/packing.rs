//! How a state fits a slot.
//!
//! | state | tag | lap | state | holds |
//! |---|---|---|---|---|
//! | `u64` | 40 | 24 | 64 | as it is |
//! | `u128`, a window's | 32 | 16 | 80 | start in ms 42, previous 19, current 19 |
//!
//! A window's 128 bits do not fit beside a tag. Packed into 96 bits they would leave tags of 24 bits and laps of 8:
//! at a million keys one key in 40 shares its bucket with another in the course of a day's churn, and a lap returns
//! after a thousand inserts into a set. A second word per slot would cost half as much memory again and the
//! protocol's lock-freedom. So the window gives up what nobody needs: it runs on whole milliseconds and counts to
//! 524,287. The machine itself runs on that clock, so nothing is rounded twice and every wait stays exact to the
//! nanosecond.

use core::time::Duration;

use crate::algorithm::{Algorithm, LiveWord, Misfit, Step, WindowState};
use crate::decision::{Decision, Outcome};
use crate::invalid_limit::InvalidLimit;
use crate::request::Request;
use crate::state::State;
use crate::store::cell::SingleWord;
use crate::time::{Timestamp, duration_ns};

/// A slot's word. Models checked by loom, which knows no wider atomics, halve every field.
#[cfg(not(all(test, loom)))]
pub(super) type Word = u128;
#[cfg(all(test, loom))]
pub(super) type Word = u64;

/// How a word is divided; the state takes the rest.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    pub(super) tag_bits: u32,
    pub(super) lap_bits: u32,
}

impl Layout {
    #[inline]
    pub(super) const fn state_bits(self) -> u32 {
        Word::BITS - self.tag_bits - self.lap_bits
    }

    #[inline]
    pub(super) const fn state_mask(self) -> Word {
        (1 << self.state_bits()) - 1
    }

    #[inline]
    pub(super) const fn lap_mask(self) -> u64 {
        (1 << self.lap_bits) - 1
    }
}

/// A state that fits a slot of a [`TableStore`](crate::TableStore): `u64`, and the `u128` of a window.
#[diagnostic::on_unimplemented(
    message = "the state `{Self}` does not fit a slot of a `TableStore`",
    note = "slots hold the state of a token bucket, of a sliding or fixed window, or a `u64` of your own; use a `DashStore` for others"
)]
pub trait SlotState: State {
    #[doc(hidden)]
    const LAYOUT: Layout;

    /// Runs a step on a packed state; all zero is a fresh one, before and after.
    #[doc(hidden)]
    fn step_packed<A: Algorithm<State = Self>>(
        algorithm: &A,
        now: Timestamp,
        packed: &mut Word,
        request: &Request,
    ) -> Step;

    /// How long until a packed state is as good as new.
    #[doc(hidden)]
    fn debt_packed<A: Algorithm<State = Self>>(algorithm: &A, now: Timestamp, packed: Word) -> u64;

    /// Whether the limit fits.
    #[doc(hidden)]
    fn accepts<A: Algorithm<State = Self>>(algorithm: &A) -> Result<(), InvalidLimit>;
}

/// A key's tag: the low bits of its hash, but never 0, which marks an empty slot.
#[inline]
pub(super) fn tag_of<S: SlotState>(hash: u64) -> u64 {
    (hash & ((1 << S::LAYOUT.tag_bits) - 1)).max(1)
}

/// States of one word lie in a slot as they are.
macro_rules! single_words {
    ($($state:ty),+) => {
        $(impl SlotState for $state {
            #[cfg(not(all(test, loom)))]
            const LAYOUT: Layout = Layout {
                tag_bits: 40,
                lap_bits: 24,
            };
            #[cfg(all(test, loom))]
            const LAYOUT: Layout = Layout {
                tag_bits: 16,
                lap_bits: 16,
            };

            #[inline(always)] // as `Set::decide`
            #[allow(clippy::cast_possible_truncation)] // the layout leaves 64 bits; a loom model's times are short
            fn step_packed<A: Algorithm<State = Self>>(
                algorithm: &A,
                now: Timestamp,
                packed: &mut Word,
                request: &Request,
            ) -> Step {
                let mut state = Self::from_word(*packed as u64);
                let step = algorithm.step(now, &mut state, request);
                *packed = state.into_word() as Word;
                step
            }

            #[inline]
            #[allow(clippy::cast_possible_truncation)] // as above
            fn debt_packed<A: Algorithm<State = Self>>(algorithm: &A, now: Timestamp, packed: Word) -> u64 {
                algorithm.debt_ns(now, &Self::from_word(packed as u64))
            }

            fn accepts<A: Algorithm<State = Self>>(_: &A) -> Result<(), InvalidLimit> {
                Ok(())
            }
        })+
    };
}
single_words!(u64, LiveWord);

/// Windows run on whole milliseconds here.
const TICK_NS: u64 = 1_000_000;
/// Milliseconds of a window's start: enough until the year 2109.
const START_BITS: u32 = 42;
const COUNT_BITS: u32 = 19;
const MOST: u32 = (1 << COUNT_BITS) - 1;

impl SlotState for u128 {
    #[cfg(not(all(test, loom)))]
    const LAYOUT: Layout = Layout {
        tag_bits: 32,
        lap_bits: 16,
    };
    #[cfg(all(test, loom))]
    const LAYOUT: Layout = Layout {
        tag_bits: 16,
        lap_bits: 16,
    };

    #[inline]
    fn step_packed<A: Algorithm<State = Self>>(
        algorithm: &A,
        now: Timestamp,
        packed: &mut Word,
        request: &Request,
    ) -> Step {
        let now_ms = now.as_nanos() / TICK_NS;
        let mut state = unpack(*packed).pack();
        let (ticks, at) = ((TICK_NS, MOST), Timestamp::from_nanos(now_ms));
        let step = if now_ms >> START_BITS == 0 {
            algorithm.step_in_ticks(ticks, at, &mut state, request)
        } else {
            None
        };
        let Some(step) = step else {
            return Step::unchanged(Decision::new(Outcome::Unsupported, 0, 0, Duration::ZERO));
        };
        let since_tick_ns = now.as_nanos() % TICK_NS;
        let decision = in_nanos(step.decision, since_tick_ns);
        if step.keep.is_some() {
            *packed = pack(WindowState::unpack(state));
        }
        let keep = step.keep.map(|_| decision.reset_after());
        Step { decision, keep }
    }

    fn debt_packed<A: Algorithm<State = Self>>(algorithm: &A, now: Timestamp, packed: Word) -> u64 {
        let mut state = packed;
        let peek = Self::step_packed(algorithm, now, &mut state, &Request::PEEK);
        duration_ns(peek.decision.reset_after())
    }

    fn accepts<A: Algorithm<State = Self>>(algorithm: &A) -> Result<(), InvalidLimit> {
        algorithm
            .in_ticks(TICK_NS, MOST)
            .map(drop)
            .map_err(|misfit| InvalidLimit::DoesNotFitStore {
                bound: bound(misfit),
            })
    }
}

/// What a `TableStore` asks of a window.
const fn bound(misfit: Misfit) -> &'static str {
    match misfit {
        Misfit::Window => {
            "in a `TableStore`, a window must be a whole number of milliseconds; a `DashStore` takes any"
        }
        Misfit::Offset => {
            "in a `TableStore`, a window's offset must be a whole number of milliseconds; a `DashStore` takes any"
        }
        Misfit::Limit => {
            const { assert!(MOST == 524_287) };
            "in a `TableStore`, a window's limit must be at most 524287; a `DashStore` takes any"
        }
        Misfit::Algorithm => {
            "of 128-bit states, a `TableStore` holds only those of `SlidingWindow` and `FixedWindow`; a `DashStore` holds any"
        }
    }
}

#[cfg(not(all(test, loom)))]
#[inline]
fn pack(state: WindowState) -> Word {
    let WindowState {
        start_ns: start_ms,
        previous,
        current,
    } = state;
    (Word::from(start_ms) << COUNT_BITS | Word::from(previous)) << COUNT_BITS | Word::from(current)
}

#[cfg(not(all(test, loom)))]
#[inline]
#[allow(clippy::cast_possible_truncation)] // masked, or 42 bits
fn unpack(packed: Word) -> WindowState {
    WindowState {
        start_ns: (packed >> (2 * COUNT_BITS)) as u64,
        previous: (packed >> COUNT_BITS) as u32 & MOST,
        current: packed as u32 & MOST,
    }
}

/// The halved words of a loom model have no room for windows.
#[cfg(all(test, loom))]
fn pack(_: WindowState) -> Word {
    unreachable!("no windows in loom models")
}

#[cfg(all(test, loom))]
fn unpack(_: Word) -> WindowState {
    unreachable!("no windows in loom models")
}

/// A decision made on whole ticks, `since_tick_ns` after the last one, in nanoseconds from now.
#[inline]
fn in_nanos(decision: Decision, since_tick_ns: u64) -> Decision {
    // The machine's nanoseconds are our ticks. Something that ends at a tick ends so much earlier than counted
    // from the last tick.
    let scaled = |ticks: Duration| {
        let nanos = duration_ns(ticks).saturating_mul(TICK_NS);
        Duration::from_nanos(nanos.saturating_sub(since_tick_ns))
    };
    let outcome = match decision.outcome() {
        Outcome::Denied { retry_after } => Outcome::Denied {
            retry_after: scaled(retry_after),
        },
        other => other,
    };
    Decision::new(
        outcome,
        decision.limit(),
        decision.remaining(),
        scaled(decision.reset_after()),
    )
    .with_uncharged(decision.uncharged())
    .with_receipt(decision.into_receipt())
}

#[cfg(all(test, not(loom)))]
mod tests {
    use alloc::string::ToString as _;

    use super::*;
    use crate::algorithm::{AnyAlgorithm, FixedWindow, SlidingWindow};

    #[test]
    fn packing_is_lossless() {
        let state = WindowState {
            start_ns: (1 << START_BITS) - 2,
            previous: MOST - 1,
            current: MOST,
        };
        assert_eq!(unpack(pack(state)), state);
        assert!(pack(state) <= u128::LAYOUT.state_mask());
        assert_eq!(
            pack(WindowState {
                start_ns: 0,
                previous: 0,
                current: 0
            }),
            0
        );
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let accepts = <u128 as SlotState>::accepts::<SlidingWindow>;
        assert_eq!(accepts(&SlidingWindow::per_second(MOST)), Ok(()));
        let refusal = |result: Result<(), InvalidLimit>| result.unwrap_err().to_string();
        assert_eq!(
            refusal(accepts(&SlidingWindow::per_second(MOST + 1))),
            "the limit does not fit the store: in a `TableStore`, a window's limit must be at most 524287; a `DashStore` \
             takes any"
        );
        assert_eq!(
            refusal(accepts(&SlidingWindow::per(
                5,
                Duration::from_micros(1_500)
            ))),
            "the limit does not fit the store: in a `TableStore`, a window must be a whole number of milliseconds; a \
             `DashStore` takes any"
        );
        let shifted = FixedWindow::per_second(1).with_offset(Duration::from_micros(1));
        assert_eq!(
            refusal(<u128 as SlotState>::accepts(&shifted)),
            "the limit does not fit the store: in a `TableStore`, a window's offset must be a whole number of \
             milliseconds; a `DashStore` takes any"
        );
        assert_eq!(
            refusal(<u128 as SlotState>::accepts(&AnyAlgorithm::from(shifted))),
            "the limit does not fit the store: of 128-bit states, a `TableStore` holds only those of `SlidingWindow` and \
             `FixedWindow`; a `DashStore` holds any"
        );

        let late = Timestamp::from_nanos(u64::MAX);
        let step = u128::step_packed(&SlidingWindow::per_second(1), late, &mut 0, &Request::ONE);
        assert_eq!(step.decision.outcome(), Outcome::Unsupported);
    }
}
