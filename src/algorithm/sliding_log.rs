//! Sliding log: never more than `limit` requests in any window, exactly.
//!
//! The state is the instants of the last `limit` admitted tokens, oldest first. A request for `c` tokens
//! passes when there is free room, or when the instants it would push out have all left the half-open
//! window `(now − window, now]`. So the bound holds for every window, not only for aligned ones, and the
//! wait is read off directly: it ends when the last instant in the way leaves.
//!
//! # Cost
//! Eight bytes per remembered token, up to `limit` of them per key; a decision takes a binary search,
//! and a charge of `c` writes `c` instants. Use a [`SlidingWindow`](crate::SlidingWindow) where twice the
//! limit in the worst window is acceptable.

mod ring;

#[cfg(feature = "alloc")]
use core::fmt;
use core::time::Duration;

#[cfg(feature = "alloc")]
pub use self::ring::LogRing;
use self::ring::{Ring, SliceRing};
use super::Step;
use super::window::{Window, window_constructors, with_uncharged};
#[cfg(feature = "alloc")]
use super::{Algorithm, Carry, StateKind};
use crate::decision::{Decision, Outcome};
use crate::invalid_limit::InvalidLimit;
use crate::request::{Receipt, Request};
#[cfg(feature = "alloc")]
use crate::store::Span;
use crate::time::{Timestamp, saturate};

/// Never more than `limit` requests in any window, at the price of remembering each of them.
///
/// As an [`Algorithm`] it needs the feature `alloc`, and for [`Limiter`](crate::Limiter) to be shared
/// between threads, `std`; without, [`SliceLog`] keeps the log in memory of yours.
///
#[cfg_attr(feature = "std", doc = "```")]
#[cfg_attr(not(feature = "std"), doc = "```ignore")]
/// use core::time::Duration;
/// use ratekeeper::{Limiter, SlidingLog, Timestamp};
///
/// let limiter = Limiter::new(SlidingLog::per_second(2));
/// let at = |ms| limiter.check_at(Timestamp::ZERO + Duration::from_millis(ms));
/// assert!(at(0).is_allowed());
/// assert!(at(900).is_allowed());
/// assert_eq!(at(950).retry_after(), Some(Duration::from_millis(50)));
/// assert!(at(1000).is_allowed()); // the first one is a whole second old
/// ```
///
/// # Bounds
/// At most `limit` in any half-open window `(t − window, t]`. Where readings of the clock differ by up to `d`, twice that in a
/// window, and `limit` in one of `window − d`.
///
/// A log does not queue: [`Request::or_wait`] is answered like a plain request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SlidingLog {
    pub(crate) window: Window,
}

window_constructors!(SlidingLog, Self::from_window);

impl SlidingLog {
    pub(crate) const fn from_window(window: Window) -> Self {
        Self { window }
    }

    fn step_on(&self, now: Timestamp, ring: &mut impl Ring, request: &Request) -> Step {
        let now_ns = now.as_nanos();
        let newest_ns = ring.len().checked_sub(1).map_or(0, |last| ring.get(last));
        let view = View {
            now_ns,
            // A reading older than the newest instant counts as that.
            effective_ns: now_ns.max(newest_ns),
            window: self.window,
        };
        match request {
            Request::Take { cost, at_least, .. } => {
                with_uncharged(view.take(ring, *cost, *at_least), request)
            }
            Request::Refund { cost, receipt } => view.refund(ring, *cost, receipt),
        }
    }
}

/// The log as one request sees it.
#[derive(Clone, Copy)]
struct View {
    now_ns: u64,
    /// When it is decided: now, or the newest instant if that is later.
    effective_ns: u64,
    window: Window,
}

impl View {
    /// Whether the token at `index` has left the window.
    fn is_gone(self, ring: &impl Ring, index: usize) -> bool {
        self.effective_ns.saturating_sub(ring.get(index)) >= self.window.window_ns
    }

    /// From now until the token at `index` leaves the window; 0 if it has left.
    fn until_gone_ns(self, ring: &impl Ring, index: usize) -> u64 {
        if self.is_gone(ring, index) {
            return 0;
        }
        let gone_at_ns = u128::from(ring.get(index)) + u128::from(self.window.window_ns);
        saturate(gone_at_ns.saturating_sub(u128::from(self.now_ns)))
    }

    fn remaining(self, ring: &impl Ring) -> u64 {
        let gone = partition_point(ring.len(), |index| self.is_gone(ring, index));
        u64::from(self.window.limit).saturating_sub((ring.len() - gone) as u64)
    }

    fn reset_after(self, ring: &impl Ring) -> Duration {
        let reset_ns = ring
            .len()
            .checked_sub(1)
            .map_or(0, |last| self.until_gone_ns(ring, last));
        Duration::from_nanos(reset_ns)
    }

    fn decision(self, outcome: Outcome, ring: &impl Ring) -> Decision {
        let limit = u64::from(self.window.limit);
        Decision::new(outcome, limit, self.remaining(ring), self.reset_after(ring))
    }

    fn take(self, ring: &mut impl Ring, cost: u64, at_least: u64) -> Step {
        if cost == 0 {
            return Step::unchanged(self.decision(Outcome::Allowed, ring));
        }
        let cost = if at_least < cost {
            let grant = self.remaining(ring).min(cost);
            if grant == 0 && at_least == 0 {
                return Step::unchanged(self.decision(Outcome::Allowed, ring));
            }
            grant.max(at_least).max(1)
        } else {
            cost
        };
        let Some(fitting) = self.window.fitting(cost) else {
            return Step::unchanged(self.decision(Outcome::TooLarge, ring));
        };
        let cost_len = fitting as usize;
        let pushed_out = (ring.len() + cost_len).saturating_sub(self.window.limit as usize);
        if let Some(last) = pushed_out.checked_sub(1) {
            let wait_ns = self.until_gone_ns(ring, last);
            if wait_ns > 0 {
                let retry_after = Duration::from_nanos(wait_ns);
                let outcome = Outcome::Denied { retry_after };
                return Step::unchanged(self.decision(outcome, ring));
            }
        }
        let at_ns = self.effective_ns;
        ring.pop_oldest(pushed_out);
        ring.push(at_ns, cost_len, self.window.limit as usize);
        let decision = self.decision(Outcome::Allowed, ring);
        let keep = decision.reset_after();
        Step::write(decision.with_receipt(Receipt::new(cost, at_ns)), keep)
    }

    /// Takes back tokens of the receipt's instant, exactly; others' tokens of that same instant are
    /// worth the same.
    fn refund(self, ring: &mut impl Ring, cost: u64, receipt: &Receipt) -> Step {
        let cost = usize::try_from(cost.min(receipt.charged())).unwrap_or(usize::MAX);
        let first = partition_point(ring.len(), |index| ring.get(index) < receipt.mark());
        let end = partition_point(ring.len(), |index| ring.get(index) <= receipt.mark());
        let count = cost.min(end - first);
        if count == 0 || self.is_gone(ring, first) {
            return Step::unchanged(self.decision(Outcome::Allowed, ring));
        }
        ring.remove(first, count);
        // The newest instant may have been the one given back, and be before now, or the next one.
        let newest_ns = ring.len().checked_sub(1).map_or(0, |last| ring.get(last));
        let after = Self {
            effective_ns: self.now_ns.max(newest_ns),
            ..self
        };
        let decision = after.decision(Outcome::Allowed, ring);
        let keep = decision.reset_after();
        Step::write(decision, keep)
    }
}

/// The first index of `0..len` for which `before` is false; it must not become true again.
fn partition_point(len: usize, before: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, len);
    while low < high {
        let middle = low + (high - low) / 2;
        if before(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

#[cfg(feature = "alloc")]
impl Algorithm for SlidingLog {
    type State = LogRing;

    fn step(&self, now: Timestamp, state: &mut LogRing, request: &Request) -> Step {
        self.step_on(now, state, request)
    }

    fn change(&self, now: Timestamp, state: &mut LogRing, old: &Self, carry: Carry) -> bool {
        if self.window.window_ns != old.window.window_ns {
            return false;
        }
        match carry {
            Carry::Tokens | Carry::Debt => {}
            Carry::Full => *state = LogRing::EMPTY,
            Carry::Empty => {
                let limit = self.window.limit as usize;
                *state = LogRing::EMPTY;
                state.push(now.as_nanos(), limit, limit);
            }
        }
        true
    }

    fn tag(&self) -> u8 {
        0x16
    }

    fn write_kind(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        write!(out, "log-{}", Span(self.window()))
    }

    fn fingerprint(&self) -> u64 {
        let limit = StateKind::of_number(self.window.limit.into());
        self.state_kind().and(limit).number()
    }

    fn state_kind(&self) -> StateKind {
        StateKind::window(0x16, self.window.window_ns, 0)
    }
}

/// A [`SlidingLog`] for one owner, in memory that the caller brings; needs no allocator.
///
/// ```
/// use ratekeeper::{SliceLog, SlidingLog, Timestamp};
///
/// let mut instants = [0; 3];
/// let mut log = SliceLog::new(SlidingLog::per_second(3), &mut instants)?;
/// assert_eq!(log.check_at(Timestamp::ZERO).remaining(), 2);
/// # Ok::<(), ratekeeper::InvalidLimit>(())
/// ```
///
/// To share one between threads or with an interrupt, put it behind a lock or a critical section.
#[derive(Debug)]
pub struct SliceLog<'a> {
    limit: SlidingLog,
    ring: SliceRing<'a>,
}

impl<'a> SliceLog<'a> {
    /// An empty log for `limit`, in `buffer`; what the buffer holds is overwritten.
    ///
    /// # Errors
    /// [`InvalidLimit::BufferTooShort`] if there is no room for `limit` instants.
    pub fn new(limit: SlidingLog, buffer: &'a mut [u64]) -> Result<Self, InvalidLimit> {
        if (buffer.len() as u64) < u64::from(limit.limit()) {
            return Err(InvalidLimit::BufferTooShort);
        }
        Ok(Self {
            limit,
            ring: SliceRing::new(buffer),
        })
    }

    /// Asks for one token at `now`.
    pub fn check_at(&mut self, now: Timestamp) -> Decision {
        self.apply_at(Request::ONE, now)
    }

    /// Answers `request` at `now`.
    #[allow(clippy::needless_pass_by_value)] // a request's receipt is spent once
    pub fn apply_at(&mut self, request: Request, now: Timestamp) -> Decision {
        self.limit.step_on(now, &mut self.ring, &request).decision
    }

    /// The limit.
    pub const fn algorithm(&self) -> &SlidingLog {
        &self.limit
    }
}
