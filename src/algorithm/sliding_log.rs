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

use core::time::Duration;

#[cfg(feature = "alloc")]
pub use self::ring::LogRing;
use self::ring::{Ring, SliceRing};
#[cfg(feature = "alloc")]
use super::Algorithm;
use super::Step;
use super::window::{Window, window_constructors};
use crate::decision::{Decision, Outcome};
use crate::invalid_limit::InvalidLimit;
use crate::request::{Receipt, Request};
use crate::time::Timestamp;

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
/// At most `limit` in any half-open window `(t − window, t]`. After a backward clock step a key waits
/// at most two windows.
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
            window: self.window,
            repaired: newest_ns.saturating_sub(now_ns) > self.window.window_ns,
        };
        match request {
            Request::Take { cost, at_least, .. } => view.take(ring, *cost, *at_least),
            Request::Refund { cost, receipt } => view.refund(ring, *cost, receipt),
        }
    }
}

/// The log as one request sees it.
#[derive(Clone, Copy)]
struct View {
    now_ns: u64,
    window: Window,
    /// The newest instant is more than a window ahead, so the clock was stepped back: instants after
    /// now count as now, and are set to it when something is written.
    repaired: bool,
}

impl View {
    fn instant(self, ring: &impl Ring, index: usize) -> u64 {
        let at_ns = ring.get(index);
        if self.repaired {
            at_ns.min(self.now_ns)
        } else {
            at_ns
        }
    }

    /// Until the token at `index` has left the window; 0 if it has.
    fn until_gone_ns(self, ring: &impl Ring, index: usize) -> u64 {
        let at_ns = self.instant(ring, index);
        match self.now_ns.checked_sub(at_ns) {
            Some(age_ns) => self.window.window_ns.saturating_sub(age_ns),
            None => (at_ns - self.now_ns).saturating_add(self.window.window_ns),
        }
    }

    fn remaining(self, ring: &impl Ring) -> u64 {
        let gone = partition_point(ring.len(), |index| self.until_gone_ns(ring, index) == 0);
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
                return self.refuse(ring, Outcome::Allowed);
            }
            grant.max(at_least).max(1)
        } else {
            cost
        };
        let Some(fitting) = self.window.fitting(cost) else {
            return self.refuse(ring, Outcome::TooLarge);
        };
        let cost_len = fitting as usize;
        let pushed_out = (ring.len() + cost_len).saturating_sub(self.window.limit as usize);
        if let Some(last) = pushed_out.checked_sub(1) {
            let wait_ns = self.until_gone_ns(ring, last);
            if wait_ns > 0 {
                return self.refuse(
                    ring,
                    Outcome::Denied {
                        retry_after: Duration::from_nanos(wait_ns),
                    },
                );
            }
        }
        if self.repaired {
            self.repair(ring);
        }
        let newest_ns = ring.len().checked_sub(1).map_or(0, |last| ring.get(last));
        let at_ns = newest_ns.max(self.now_ns);
        ring.pop_oldest(pushed_out);
        ring.push(at_ns, cost_len, self.window.limit as usize);
        let after = Self {
            repaired: false,
            ..self
        };
        let decision = after.decision(Outcome::Allowed, ring);
        let keep = Some(decision.reset_after());
        let decision = decision.with_receipt(Receipt::new(cost, at_ns));
        Step {
            decision,
            keep,
            repaired: self.repaired,
        }
    }

    /// Takes back tokens of the receipt's instant, exactly; others' tokens of that same instant are
    /// worth the same.
    fn refund(self, ring: &mut impl Ring, cost: u64, receipt: &Receipt) -> Step {
        let cost = usize::try_from(cost.min(receipt.charged())).unwrap_or(usize::MAX);
        let first = partition_point(ring.len(), |index| ring.get(index) < receipt.mark());
        let end = partition_point(ring.len(), |index| ring.get(index) <= receipt.mark());
        let count = cost.min(end - first);
        if count == 0 || self.until_gone_ns(ring, first) == 0 {
            return self.refuse(ring, Outcome::Allowed);
        }
        ring.remove(first, count);
        if self.repaired {
            self.repair(ring);
        }
        let decision = Self {
            repaired: false,
            ..self
        }
        .decision(Outcome::Allowed, ring);
        let keep = Some(decision.reset_after());
        Step {
            decision,
            keep,
            repaired: self.repaired,
        }
    }

    /// Grants nothing: writes nothing but a repair.
    fn refuse(self, ring: &mut impl Ring, outcome: Outcome) -> Step {
        let decision = self.decision(outcome, ring);
        if self.repaired {
            self.repair(ring);
            let keep = decision.reset_after();
            return Step::repair(decision, keep);
        }
        Step::unchanged(decision)
    }

    fn repair(self, ring: &mut impl Ring) {
        let first = partition_point(ring.len(), |index| ring.get(index) <= self.now_ns);
        ring.fill_from(first, self.now_ns);
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

    fn tag(&self) -> u8 {
        0x16
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
