//! Pure machines: a limit decides from the instant, the key's state and the request, and nothing
//! else.
//!
//! One file per algorithm, each with its derivation and source at the top. [`Algorithm`] is the seam
//! for your own.

mod all;
mod any;
mod fixed_window;
mod sliding_log;
mod sliding_window;
mod token_bucket;
mod window;

use core::fmt::Debug;
use core::time::Duration;

pub use self::all::All;
pub use self::any::AnyAlgorithm;
pub use self::fixed_window::FixedWindow;
#[cfg(feature = "alloc")]
pub use self::sliding_log::LogRing;
pub use self::sliding_log::{SliceLog, SlidingLog};
pub use self::sliding_window::SlidingWindow;
pub use self::token_bucket::TokenBucket;
pub(crate) use self::window::WindowState;

use crate::decision::Decision;
use crate::request::Request;
use crate::state::State;
use crate::store::Wire;
use crate::time::Timestamp;

/// A rate-limiting algorithm together with its parameters.
///
/// # Contract
/// * **Pure.** The answer depends on the arguments only; the same arguments give the same answer. A
///   step may run several times for one request (a lost compare-exchange repeats it).
/// * **Fresh is the default.** `State::default()` is a key never seen.
/// * **Unchanged means untouched.** If the returned [`Step`] does not write, the state must be as it
///   was. Refusals do not write; the only exception is [`Step::repair`].
/// * **Nothing panics**, whatever the instant, the state and the request are.
/// * **`reset_after` is zero exactly when the state behaves like a fresh one**: stores forget such
///   keys. If the state is a single `u64`, a longer `reset_after` means a state that is at least as strict at every
///   instant: full stores let a new key take over the smallest.
///
/// # Example
/// A cooldown: one request, then none for a while.
///
/// ```
/// use core::time::Duration;
/// use ratekeeper::{Algorithm, Decision, Limiter, Outcome, Request, Step, Timestamp};
///
/// #[derive(Debug)]
/// struct Cooldown(Duration);
///
/// impl Algorithm for Cooldown {
///     type State = u64; // when it is over, in nanoseconds
///
///     fn step(&self, now: Timestamp, until: &mut u64, request: &Request) -> Step {
///         let left = Timestamp::from_nanos(*until).saturating_since(now);
///         let answer = |outcome, remaining, left| Decision::new(outcome, 1, remaining, left);
///         match request {
///             Request::Take { cost: 0, .. } => {
///                 let remaining = u64::from(left.is_zero());
///                 Step::unchanged(answer(Outcome::Allowed, remaining, left))
///             }
///             Request::Take { cost: 1, .. } if left.is_zero() => {
///                 *until = (now + self.0).as_nanos();
///                 Step::write(answer(Outcome::Allowed, 0, self.0), self.0)
///             }
///             Request::Take { cost: 1, .. } => {
///                 Step::unchanged(answer(Outcome::Denied { retry_after: left }, 0, left))
///             }
///             Request::Take { .. } => Step::unchanged(answer(Outcome::TooLarge, 0, left)),
///             _ => Step::unchanged(answer(Outcome::Unsupported, 0, left)),
///         }
///     }
/// }
///
/// let limiter = Limiter::new(Cooldown(Duration::from_secs(5)));
/// assert!(limiter.check_at(Timestamp::from_nanos(1)).is_allowed());
/// assert!(!limiter.check_at(Timestamp::from_nanos(2)).is_allowed());
/// ```
pub trait Algorithm: Debug + Send + Sync {
    /// What is remembered per key.
    type State: State;

    /// Decides, and moves the state if the decision says so.
    fn step(&self, now: Timestamp, state: &mut Self::State, request: &Request) -> Step;

    /// Translates a state from the limit `old` to this one, so that the key keeps its available
    /// *tokens* rather than its debt in time. Does nothing unless an algorithm defines it.
    fn rescale(&self, now: Timestamp, state: &mut Self::State, old: &Self)
    where
        Self: Sized,
    {
        let _ = (now, state, old);
    }

    /// The first byte of the state's wire form: format version in the upper half, kind in the lower.
    /// 0, the default, for algorithms that are not stored remotely. Below `0x80` they are this crate's; choose one from there
    /// on for an algorithm of your own, and another when the meaning of its state changes.
    fn tag(&self) -> u8 {
        0
    }

    /// Bytes of the state's wire form without the tag: fewer than its words have if the last ones are always zero. 0 if
    /// the state has none.
    #[doc(hidden)]
    fn wire_len(&self) -> usize {
        <Self::State as Wire>::LEN
    }

    /// The same limit for a clock that counts in steps of `tick_ns`, if every duration in it is a whole number of
    /// those and no count in its state exceeds `most`: what a store needs that packs states. `None` if that cannot
    /// be, or for algorithms that do not know it.
    #[doc(hidden)]
    fn in_ticks(&self, tick_ns: u64, most: u32) -> Option<Self>
    where
        Self: Sized,
    {
        let _ = (tick_ns, most);
        None
    }
}

impl<A: Algorithm> Algorithm for &A {
    type State = A::State;

    #[inline]
    fn step(&self, now: Timestamp, state: &mut Self::State, request: &Request) -> Step {
        (**self).step(now, state, request)
    }

    fn rescale(&self, now: Timestamp, state: &mut Self::State, old: &Self) {
        (**self).rescale(now, state, old);
    }

    fn tag(&self) -> u8 {
        (**self).tag()
    }

    fn wire_len(&self) -> usize {
        (**self).wire_len()
    }
}

/// What [`Algorithm::step`] decided, and whether the state must be stored.
#[non_exhaustive]
#[derive(Debug)]
pub struct Step {
    /// The answer for the caller.
    pub decision: Decision,
    /// `Some` if the state changed and must be stored: for at least this long, after which it equals
    /// a fresh one.
    pub keep: Option<Duration>,
    /// Whether the change assumes that the clock had been stepped back. Before such a change is
    /// stored, the clock must be read again and the step repeated: the reading may merely have been
    /// older than the state.
    pub repaired: bool,
}

impl Step {
    /// The state changed; store it for at least `keep`.
    #[inline]
    pub const fn write(decision: Decision, keep: Duration) -> Self {
        Self {
            decision,
            keep: Some(keep),
            repaired: false,
        }
    }

    /// The state did not change.
    #[inline]
    pub const fn unchanged(decision: Decision) -> Self {
        Self {
            decision,
            keep: None,
            repaired: false,
        }
    }

    /// The state lay further in the future than any clock that only moves forward could have put it,
    /// and was cut back. Stored even when the request is refused; see [`repaired`](Self::repaired).
    #[inline]
    pub const fn repair(decision: Decision, keep: Duration) -> Self {
        Self {
            decision,
            keep: Some(keep),
            repaired: true,
        }
    }
}
