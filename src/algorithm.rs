//! Pure machines: a limit decides from the instant, the key's state and the request, and nothing
//! else.
//!
//! One file per algorithm, each with its derivation and source at the top. [`Algorithm`] is the seam
//! for your own.

mod all;
mod any;
mod change;
mod fixed_window;
mod limits;
mod live;
mod sliding_log;
mod sliding_window;
mod state_kind;
mod token_bucket;
mod window;

use core::fmt::{self, Debug};
use core::time::Duration;

pub use self::all::All;
pub use self::any::AnyAlgorithm;
pub use self::change::{Carry, Change};
pub use self::fixed_window::FixedWindow;
pub use self::limits::Limits;
pub use self::live::{Changeable, Live};
pub(crate) use self::live::{LiveWord, Plain};
#[cfg(feature = "alloc")]
pub use self::sliding_log::LogRing;
pub use self::sliding_log::{SliceLog, SlidingLog};
pub use self::sliding_window::SlidingWindow;
pub(crate) use self::state_kind::StateKind;
pub use self::token_bucket::TokenBucket;
pub(crate) use self::window::WindowState;

use crate::decision::Decision;
use crate::request::Request;
use crate::state::State;
use crate::store::{Opened, StateBytes, StoreError, StoredStep, Wire, step_under};
use crate::time::{Timestamp, duration_ns};

/// A rate-limiting algorithm together with its parameters.
///
/// # Contract
/// * **Pure.** The answer depends on the arguments only; the same arguments give the same answer. A
///   step may run several times for one request (a lost compare-exchange repeats it).
/// * **Fresh is the default.** `State::default()` is a key never seen.
/// * **Unchanged means untouched.** If the returned [`Step`] does not write, the state must be as it
///   was. Refusals and peeks do not write.
/// * **A state ahead of `now` is honest**: readings may be a little older than the state they meet, and another limit may
///   have left it. It is neither cut nor forgotten.
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

    /// Moves a state from the limit `old` to this one, at the instant `now`. Returns whether the two share states; otherwise
    /// nothing is changed. By default, what `carry` needs no arithmetic for.
    ///
    /// It must be pure, like [`step`](Self::step). Each key goes through it once for each change: see [`Change`].
    fn change(&self, now: Timestamp, state: &mut Self::State, old: &Self, carry: Carry) -> bool
    where
        Self: Sized,
    {
        let _ = (now, old);
        match carry {
            Carry::Debt => true,
            Carry::Full => {
                *state = Self::State::default();
                true
            }
            Carry::Tokens | Carry::Empty => false,
        }
    }

    /// How long until `state` is as good as new, whichever limit of this kind left it.
    #[doc(hidden)]
    #[inline]
    fn debt_ns(&self, now: Timestamp, state: &Self::State) -> u64 {
        let peek = self.step(now, &mut state.clone(), &Request::PEEK);
        duration_ns(peek.decision.reset_after())
    }

    /// A number that tells limits apart, for receipts; 0 if there is none, as for a limit that changes.
    #[doc(hidden)]
    fn fingerprint(&self) -> u64 {
        0
    }

    /// Whether a step moves the state from another limit, whatever the request is: [`Change`].
    #[doc(hidden)]
    #[inline]
    fn is_change(&self) -> bool {
        false
    }

    /// What limits must have in common to share states.
    #[doc(hidden)]
    #[inline]
    fn state_kind(&self) -> StateKind {
        StateKind::of_tag(self.tag())
    }

    /// The first byte of the state's wire form: format version in the upper half, kind in the lower.
    /// 0, the default, for algorithms that are not stored remotely. Below `0x80` they are this crate's; choose one from there
    /// on for an algorithm of your own, and another when the meaning of its state changes.
    fn tag(&self) -> u8 {
        0
    }

    /// Bytes of a stored value without the tag. 0 if there are no such values.
    #[doc(hidden)]
    fn wire_len(&self) -> usize {
        <Self::State as Wire>::LEN
    }

    /// The state in a value's bytes after the tag, `wire_len` of them; and whether it had to be repaired.
    #[doc(hidden)]
    fn open_body(&self, now: Timestamp, body: &[u8]) -> (Self::State, bool) {
        let _ = now;
        (<Self::State as Wire>::read(body), false)
    }

    /// Writes `state` as a value's bytes after the tag. `before` is the state that was opened, and its bytes, if there was one;
    /// `takes`: the change is a take's, not a give-back's.
    #[doc(hidden)]
    fn seal_body(
        &self,
        state: &Self::State,
        before: Option<(&Self::State, &[u8])>,
        takes: bool,
        out: &mut [u8],
    ) {
        let _ = (before, takes);
        state.write(out);
    }

    /// The state of a value; `None` if it counts as absent.
    #[doc(hidden)]
    fn open_value(
        &self,
        now: Timestamp,
        found: &StateBytes,
    ) -> Result<Option<Opened<Self::State>>, StoreError>
    where
        Self: Sized,
    {
        let body = found.body_of(self)?;
        let (state, must_write) = self.open_body(now, body);
        Ok(Some(Opened { state, must_write }))
    }

    /// The value of a state; see [`seal_body`](Self::seal_body).
    #[doc(hidden)]
    fn seal_value(
        &self,
        state: &Self::State,
        before: Option<(&Self::State, &StateBytes)>,
        takes: bool,
    ) -> Result<StateBytes, StoreError>
    where
        Self: Sized,
    {
        let before = before.map(|(state, value)| (state, value.body()));
        StateBytes::of(self, |out| self.seal_body(state, before, takes, out))
    }

    /// A step on a stored value: [`step_stored`](crate::store::step_stored).
    #[doc(hidden)]
    fn step_value(
        &self,
        now: Timestamp,
        found: Option<&StateBytes>,
        request: &Request,
    ) -> Result<StoredStep, StoreError>
    where
        Self: Sized,
    {
        step_under(self, now, found, request)
    }

    /// The limit of a value, if that is a newer version of this one.
    #[doc(hidden)]
    fn adopted(&self, found: &StateBytes) -> Result<Option<Self>, StoreError>
    where
        Self: Sized,
    {
        let _ = found;
        Ok(None)
    }

    /// The number of an ordered change on shared stores; 0 for none.
    #[doc(hidden)]
    fn version(&self) -> u16 {
        0
    }

    /// Whether no step ever reads or writes a state.
    #[doc(hidden)]
    fn is_stateless(&self) -> bool {
        false
    }

    /// What of this limit belongs to a stored key: see [`KeyKind`](crate::store::KeyKind).
    #[doc(hidden)]
    fn write_kind(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        match self.tag() {
            0 => Ok(()),
            tag => write!(out, "{tag:02x}"),
        }
    }

    /// The same limit for a clock that counts in steps of `tick_ns`, if every duration in it is a whole number of
    /// those and no count in its state exceeds `most`: what a store needs that packs states. The error says what is in
    /// the way.
    #[doc(hidden)]
    fn in_ticks(&self, tick_ns: u64, most: u32) -> Result<Self, Misfit>
    where
        Self: Sized,
    {
        let _ = (tick_ns, most);
        Err(Misfit::Algorithm)
    }

    /// [`step`](Self::step) of the limit [`in_ticks`](Self::in_ticks).
    #[doc(hidden)]
    #[inline]
    fn step_in_ticks(
        &self,
        ticks: (u64, u32),
        now: Timestamp,
        state: &mut Self::State,
        request: &Request,
    ) -> Option<Step>
    where
        Self: Sized,
    {
        let limit = self.in_ticks(ticks.0, ticks.1).ok()?;
        Some(limit.step(now, state, request))
    }
}

/// Why a limit has no [`in_ticks`](Algorithm::in_ticks).
#[doc(hidden)]
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// The algorithm does not know how.
    Algorithm,
    /// The window is no whole number of ticks.
    Window,
    /// The offset is no whole number of ticks.
    Offset,
    /// The limit is above the largest count.
    Limit,
}

impl<A: Algorithm> Algorithm for &A {
    type State = A::State;

    #[inline]
    fn step(&self, now: Timestamp, state: &mut Self::State, request: &Request) -> Step {
        (**self).step(now, state, request)
    }

    fn change(&self, now: Timestamp, state: &mut Self::State, old: &Self, carry: Carry) -> bool {
        (**self).change(now, state, old, carry)
    }

    #[inline]
    fn debt_ns(&self, now: Timestamp, state: &Self::State) -> u64 {
        (**self).debt_ns(now, state)
    }

    #[inline]
    fn state_kind(&self) -> StateKind {
        (**self).state_kind()
    }

    fn tag(&self) -> u8 {
        (**self).tag()
    }

    fn wire_len(&self) -> usize {
        (**self).wire_len()
    }

    fn open_body(&self, now: Timestamp, body: &[u8]) -> (Self::State, bool) {
        (**self).open_body(now, body)
    }

    fn seal_body(
        &self,
        state: &Self::State,
        before: Option<(&Self::State, &[u8])>,
        takes: bool,
        out: &mut [u8],
    ) {
        (**self).seal_body(state, before, takes, out);
    }

    fn open_value(
        &self,
        now: Timestamp,
        found: &StateBytes,
    ) -> Result<Option<Opened<Self::State>>, StoreError> {
        (**self).open_value(now, found)
    }

    fn seal_value(
        &self,
        state: &Self::State,
        before: Option<(&Self::State, &StateBytes)>,
        takes: bool,
    ) -> Result<StateBytes, StoreError> {
        (**self).seal_value(state, before, takes)
    }

    fn step_value(
        &self,
        now: Timestamp,
        found: Option<&StateBytes>,
        request: &Request,
    ) -> Result<StoredStep, StoreError> {
        (**self).step_value(now, found, request)
    }

    fn version(&self) -> u16 {
        (**self).version()
    }

    fn is_stateless(&self) -> bool {
        (**self).is_stateless()
    }

    fn write_kind(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        (**self).write_kind(out)
    }

    fn fingerprint(&self) -> u64 {
        (**self).fingerprint()
    }

    fn is_change(&self) -> bool {
        (**self).is_change()
    }

    fn step_in_ticks(
        &self,
        ticks: (u64, u32),
        now: Timestamp,
        state: &mut Self::State,
        request: &Request,
    ) -> Option<Step> {
        (**self).step_in_ticks(ticks, now, state, request)
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
}

impl Step {
    /// The state changed; store it for at least `keep`.
    #[inline]
    pub const fn write(decision: Decision, keep: Duration) -> Self {
        Self {
            decision,
            keep: Some(keep),
        }
    }

    /// The state did not change.
    #[inline]
    pub const fn unchanged(decision: Decision) -> Self {
        Self {
            decision,
            keep: None,
        }
    }
}
