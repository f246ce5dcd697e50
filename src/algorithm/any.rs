//! One type for limits whose algorithm is chosen at run time, as from a configuration file.

use core::fmt;

use super::window::WindowState;
use super::{Algorithm, Carry, FixedWindow, SlidingWindow, StateKind, Step, TokenBucket};
use crate::request::Request;
use crate::store::{Opened, StateBytes, StoreError, StoredStep};
use crate::time::Timestamp;

/// Any algorithm whose state fits 128 bits; its text form starts with the algorithm's name, except for
/// token buckets.
///
/// ```
/// use ratekeeper::{AnyAlgorithm, Limiter, Timestamp};
///
/// let limits: Result<Vec<AnyAlgorithm>, _> =
///     ["10/s burst 20", "sliding 60/min", "fixed 1000/day"].map(str::parse).into_iter().collect();
/// for limit in limits? {
///     assert!(Limiter::new(limit).check_at(Timestamp::ZERO).is_allowed());
/// }
/// # Ok::<(), ratekeeper::InvalidLimit>(())
/// ```
///
/// [`SlidingLog`](crate::SlidingLog) is not among them: its state has no fixed size. For several limits in one text there is
/// [`Limits`](crate::Limits).
///
/// A limiter's keys keep to its algorithm: a call under another one, or under a window of another length, is
/// [`Unsupported`](crate::Outcome::Unsupported).
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AnyAlgorithm {
    /// `"100/min burst 20"`.
    TokenBucket(TokenBucket),
    /// `"sliding 60/min"`.
    SlidingWindow(SlidingWindow),
    /// `"fixed 1000/day"`.
    FixedWindow(FixedWindow),
}

impl From<TokenBucket> for AnyAlgorithm {
    fn from(limit: TokenBucket) -> Self {
        Self::TokenBucket(limit)
    }
}

impl From<SlidingWindow> for AnyAlgorithm {
    fn from(limit: SlidingWindow) -> Self {
        Self::SlidingWindow(limit)
    }
}

impl From<FixedWindow> for AnyAlgorithm {
    fn from(limit: FixedWindow) -> Self {
        Self::FixedWindow(limit)
    }
}

impl AnyAlgorithm {
    /// Runs `f` on a bucket's TAT, which lies where windows keep their start.
    fn with_tat<T>(state: &mut u128, f: impl FnOnce(&mut u64) -> T) -> T {
        let mut tat_ns = Self::tat_of(*state);
        let before_ns = tat_ns;
        let result = f(&mut tat_ns);
        if tat_ns != before_ns {
            *state = Self::of_tat(tat_ns);
        }
        result
    }

    const fn tat_of(state: u128) -> u64 {
        WindowState::unpack(state).start_ns
    }

    const fn of_tat(tat_ns: u64) -> u128 {
        WindowState {
            start_ns: tat_ns,
            previous: 0,
            current: 0,
        }
        .pack()
    }
}

impl Algorithm for AnyAlgorithm {
    type State = u128;

    #[inline]
    fn step(&self, now: Timestamp, state: &mut u128, request: &Request) -> Step {
        match self {
            Self::TokenBucket(limit) => {
                Self::with_tat(state, |tat_ns| limit.step(now, tat_ns, request))
            }
            Self::SlidingWindow(limit) => limit.step(now, state, request),
            Self::FixedWindow(limit) => limit.step(now, state, request),
        }
    }

    fn change(&self, now: Timestamp, state: &mut u128, old: &Self, carry: Carry) -> bool {
        match (self, old) {
            (Self::TokenBucket(limit), Self::TokenBucket(old)) => {
                Self::with_tat(state, |tat_ns| limit.change(now, tat_ns, old, carry))
            }
            (Self::SlidingWindow(limit), Self::SlidingWindow(old)) => {
                limit.change(now, state, old, carry)
            }
            (Self::FixedWindow(limit), Self::FixedWindow(old)) => {
                limit.change(now, state, old, carry)
            }
            _ => false,
        }
    }

    fn debt_ns(&self, now: Timestamp, state: &u128) -> u64 {
        match self {
            Self::TokenBucket(limit) => limit.debt_ns(now, &Self::tat_of(*state)),
            Self::SlidingWindow(limit) => limit.debt_ns(now, state),
            Self::FixedWindow(limit) => limit.debt_ns(now, state),
        }
    }

    fn fingerprint(&self) -> u64 {
        match self {
            Self::TokenBucket(limit) => limit.fingerprint(),
            Self::SlidingWindow(limit) => limit.fingerprint(),
            Self::FixedWindow(limit) => limit.fingerprint(),
        }
    }

    fn state_kind(&self) -> StateKind {
        match self {
            Self::TokenBucket(limit) => limit.state_kind(),
            Self::SlidingWindow(limit) => limit.state_kind(),
            Self::FixedWindow(limit) => limit.state_kind(),
        }
    }

    fn tag(&self) -> u8 {
        match self {
            Self::TokenBucket(limit) => limit.tag(),
            Self::SlidingWindow(limit) => limit.tag(),
            Self::FixedWindow(limit) => limit.tag(),
        }
    }

    fn wire_len(&self) -> usize {
        match self {
            Self::TokenBucket(limit) => limit.wire_len(),
            Self::SlidingWindow(limit) => limit.wire_len(),
            Self::FixedWindow(limit) => limit.wire_len(),
        }
    }

    fn open_body(&self, now: Timestamp, body: &[u8]) -> (u128, bool) {
        match self {
            Self::TokenBucket(limit) => {
                let (tat_ns, is_repaired) = limit.open_body(now, body);
                (Self::of_tat(tat_ns), is_repaired)
            }
            Self::SlidingWindow(limit) => limit.open_body(now, body),
            Self::FixedWindow(limit) => limit.open_body(now, body),
        }
    }

    fn seal_body(&self, state: &u128, before: Option<(&u128, &[u8])>, takes: bool, out: &mut [u8]) {
        match self {
            Self::TokenBucket(limit) => {
                let before_ns = before.map(|(state, _)| Self::tat_of(*state));
                let before = before_ns.as_ref().zip(before.map(|(_, body)| body));
                limit.seal_body(&Self::tat_of(*state), before, takes, out);
            }
            Self::SlidingWindow(limit) => limit.seal_body(state, before, takes, out),
            Self::FixedWindow(limit) => limit.seal_body(state, before, takes, out),
        }
    }

    fn open_value(
        &self,
        now: Timestamp,
        found: &StateBytes,
    ) -> Result<Option<Opened<u128>>, StoreError> {
        match self {
            Self::TokenBucket(limit) => {
                let opened = limit.open_value(now, found)?;
                Ok(opened.map(|Opened { state, must_write }| Opened {
                    state: Self::of_tat(state),
                    must_write,
                }))
            }
            Self::SlidingWindow(limit) => limit.open_value(now, found),
            Self::FixedWindow(limit) => limit.open_value(now, found),
        }
    }

    fn seal_value(
        &self,
        state: &u128,
        before: Option<(&u128, &StateBytes)>,
        takes: bool,
    ) -> Result<StateBytes, StoreError> {
        match self {
            Self::TokenBucket(limit) => {
                let before_ns = before.map(|(state, _)| Self::tat_of(*state));
                let before = before_ns.as_ref().zip(before.map(|(_, value)| value));
                limit.seal_value(&Self::tat_of(*state), before, takes)
            }
            Self::SlidingWindow(limit) => limit.seal_value(state, before, takes),
            Self::FixedWindow(limit) => limit.seal_value(state, before, takes),
        }
    }

    fn step_value(
        &self,
        now: Timestamp,
        found: Option<&StateBytes>,
        request: &Request,
    ) -> Result<StoredStep, StoreError> {
        match self {
            Self::TokenBucket(limit) => limit.step_value(now, found, request),
            Self::SlidingWindow(limit) => limit.step_value(now, found, request),
            Self::FixedWindow(limit) => limit.step_value(now, found, request),
        }
    }

    fn adopted(&self, found: &StateBytes) -> Result<Option<Self>, StoreError> {
        match self {
            Self::TokenBucket(limit) => Ok(limit.adopted(found)?.map(Self::TokenBucket)),
            Self::SlidingWindow(_) | Self::FixedWindow(_) => Ok(None),
        }
    }

    fn version(&self) -> u16 {
        match self {
            Self::TokenBucket(limit) => limit.version(),
            Self::SlidingWindow(_) | Self::FixedWindow(_) => 0,
        }
    }

    fn is_stateless(&self) -> bool {
        match self {
            Self::TokenBucket(limit) => limit.is_stateless(),
            Self::SlidingWindow(_) | Self::FixedWindow(_) => false,
        }
    }

    fn write_kind(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        match self {
            Self::TokenBucket(limit) => limit.write_kind(out),
            Self::SlidingWindow(limit) => limit.write_kind(out),
            Self::FixedWindow(limit) => limit.write_kind(out),
        }
    }
}
