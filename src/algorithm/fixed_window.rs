//! Fixed window: at most `limit` in each of consecutive windows.
//!
//! The oldest and simplest method: one count per window. *Aligned* windows start at whole multiples
//! of their length after the clock's epoch, plus an offset; *anchored* ones at a key's first request.
//!
//! # Bound
//! A full window's requests just before an edge and another just after: a trailing window can hold
//! `2·limit`, never more.

use core::fmt;
use core::time::Duration;

use super::window::{Window, WindowState, window_constructors, with_uncharged};
use super::{Algorithm, Carry, Misfit, StateKind, Step};
use crate::decision::{Decision, Outcome};
use crate::invalid_limit::InvalidLimit;
use crate::request::{Receipt, Request};
use crate::store::{Span, Wire};
use crate::time::{Timestamp, duration_ns, saturate};

/// At most `limit` requests in each window of the clock, or of the key.
///
/// ```
/// use core::time::Duration;
/// use ratekeeper::{FixedWindow, Limiter, Timestamp};
///
/// // 1000 a day; the day turns at 22:00 UTC, if the clock counts from the Unix epoch.
/// let limiter =
///     Limiter::new(FixedWindow::per_day(1000).with_offset(Duration::from_secs(22 * 3600)));
/// let noon = Timestamp::from_nanos(12 * 3_600_000_000_000);
/// assert_eq!(limiter.check_at(noon).reset_after(), Duration::from_secs(10 * 3600));
/// ```
///
/// Aligned windows that should match the calendar need a clock that counts from the Unix epoch, such
/// as [`UnixClock`](crate::UnixClock).
///
/// # Bounds
/// `2 · limit` in a trailing window, reached by a burst on each side of an edge. Where readings of the clock differ by up to
/// `d`, this holds for real windows of `window − d`.
///
/// A window does not queue: [`Request::or_wait`] is answered like a plain request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FixedWindow {
    pub(crate) window: Window,
    pub(crate) edges: Edges,
}

/// Where windows begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Edges {
    /// At `offset_ns` (below the window's length) plus whole multiples of the length.
    Aligned { offset_ns: u64 },
    /// At a key's first request, and again at its first request after that window.
    Anchored,
}

window_constructors!(FixedWindow, Self::from_window);

/// In `WindowState::previous`: a window is open. Tells a key never seen from one that opened its
/// window at instant 0 and gave everything back.
const OPEN: u32 = 1;

impl FixedWindow {
    pub(crate) const fn from_window(window: Window) -> Self {
        Self {
            window,
            edges: Edges::Aligned { offset_ns: 0 },
        }
    }

    /// Starts windows `offset` after whole multiples of their length, counted from the clock's epoch.
    #[must_use]
    pub const fn with_offset(self, offset: Duration) -> Self {
        let offset_ns = duration_ns(offset) % self.window.window_ns;
        Self {
            edges: Edges::Aligned { offset_ns },
            ..self
        }
    }

    /// Starts a key's window at its first request instead of at the clock's multiples.
    #[must_use]
    pub const fn anchored(self) -> Self {
        Self {
            edges: Edges::Anchored,
            ..self
        }
    }

    /// Whether windows start at a key's first request.
    pub const fn is_anchored(&self) -> bool {
        matches!(self.edges, Edges::Anchored)
    }

    /// The offset of aligned windows, below the window's length; zero for anchored ones.
    pub const fn offset(&self) -> Duration {
        match self.edges {
            Edges::Aligned { offset_ns } => Duration::from_nanos(offset_ns),
            Edges::Anchored => Duration::ZERO,
        }
    }

    /// The start of the window that a request at `now` would open.
    #[inline]
    fn opening(&self, now_ns: u64) -> u64 {
        match self.edges {
            Edges::Aligned { offset_ns } => match now_ns.checked_sub(offset_ns) {
                Some(since_ns) => now_ns - since_ns % self.window.window_ns,
                None => 0,
            },
            Edges::Anchored => now_ns,
        }
    }

    /// From now to the end of the window that started at `start_ns`.
    #[inline]
    fn until_end_ns(&self, now_ns: u64, start_ns: u64) -> u64 {
        let end_ns = match self.edges {
            // The epoch cuts the first window short.
            Edges::Aligned { offset_ns } if start_ns < offset_ns => u128::from(offset_ns),
            _ => u128::from(start_ns) + u128::from(self.window.window_ns),
        };
        saturate(end_ns.saturating_sub(u128::from(now_ns)))
    }

    #[inline]
    fn roll(&self, now_ns: u64, word: u128) -> Rolled {
        let state = WindowState::unpack(word);
        let opening_ns = self.opening(now_ns);
        let at = |start_ns, count| Rolled {
            start_ns,
            count,
            open: true,
        };
        let WindowState {
            start_ns,
            previous,
            current: count,
        } = state;
        // An aligned window without a count is as good as none; an anchored one still ends in time.
        if previous != OPEN || (count == 0 && !self.is_anchored()) {
            return Rolled {
                open: false,
                ..at(opening_ns, 0)
            };
        }
        // A reading older than the window counts as the window's first instant.
        let now_ns = now_ns.max(start_ns);
        let opening_ns = self.opening(now_ns);
        let over = match self.edges {
            Edges::Aligned { .. } => start_ns < opening_ns,
            Edges::Anchored => now_ns - start_ns >= self.window.window_ns,
        };
        if over {
            Rolled {
                open: false,
                ..at(opening_ns, 0)
            }
        } else if self.is_anchored() {
            at(start_ns, count)
        } else {
            at(opening_ns, count)
        }
    }

    #[inline]
    fn decision(&self, outcome: Outcome, now_ns: u64, rolled: &Rolled) -> Decision {
        let remaining = self.window.limit.saturating_sub(rolled.count);
        // An anchored window that is open but empty still differs from none: it ends sooner.
        let pending = rolled.count > 0 || (rolled.open && self.is_anchored());
        let reset_ns = if pending {
            self.until_end_ns(now_ns, rolled.start_ns)
        } else {
            0
        };
        let limit = u64::from(self.window.limit);
        Decision::new(
            outcome,
            limit,
            u64::from(remaining),
            Duration::from_nanos(reset_ns),
        )
    }

    #[inline]
    fn take(&self, now_ns: u64, state: &mut u128, cost: u64, at_least: u64) -> Step {
        let rolled = self.roll(now_ns, *state);
        if cost == 0 {
            return Step::unchanged(self.decision(Outcome::Allowed, now_ns, &rolled));
        }
        let room = self.window.limit.saturating_sub(rolled.count);
        let cost = if at_least < cost {
            let grant = u64::from(room).min(cost);
            if grant == 0 && at_least == 0 {
                return Step::unchanged(self.decision(Outcome::Allowed, now_ns, &rolled));
            }
            grant.max(at_least).max(1)
        } else {
            cost
        };
        let Some(cost) = self.window.fitting(cost) else {
            return Step::unchanged(self.decision(Outcome::TooLarge, now_ns, &rolled));
        };
        if cost > room {
            let wait_ns = self.until_end_ns(now_ns, rolled.start_ns).max(1);
            let outcome = Outcome::Denied {
                retry_after: Duration::from_nanos(wait_ns),
            };
            return Step::unchanged(self.decision(outcome, now_ns, &rolled));
        }
        let after = Rolled {
            count: rolled.count + cost,
            open: true,
            ..rolled
        };
        *state = after.pack();
        let receipt = Receipt::new(u64::from(cost), after.start_ns);
        let decision = self
            .decision(Outcome::Allowed, now_ns, &after)
            .with_receipt(receipt);
        let keep = decision.reset_after();
        Step::write(decision, keep)
    }

    /// Exact while the charge's window lasts; never moves the window.
    fn refund(&self, now_ns: u64, state: &mut u128, cost: u64, receipt: &Receipt) -> Step {
        let rolled = self.roll(now_ns, *state);
        let cost = u32::try_from(cost.min(receipt.charged())).unwrap_or(u32::MAX);
        let ours = rolled.open && receipt.mark() == rolled.start_ns && cost > 0;
        let after = if ours {
            Rolled {
                count: rolled.count.saturating_sub(cost),
                ..rolled
            }
        } else {
            rolled
        };
        let decision = self.decision(Outcome::Allowed, now_ns, &after);
        if !ours || after.pack() == *state {
            return Step::unchanged(decision);
        }
        *state = after.pack();
        let keep = decision.reset_after();
        Step::write(decision, keep)
    }
}

impl Algorithm for FixedWindow {
    /// Start of the window in nanoseconds (64 bits), whether it is open (32), its count (32).
    type State = u128;

    #[inline]
    fn step(&self, now: Timestamp, state: &mut u128, request: &Request) -> Step {
        match request {
            Request::Take { cost, at_least, .. } => {
                with_uncharged(self.take(now.as_nanos(), state, *cost, *at_least), request)
            }
            Request::Refund { cost, receipt } => self.refund(now.as_nanos(), state, *cost, receipt),
        }
    }

    fn change(&self, now: Timestamp, state: &mut u128, old: &Self, carry: Carry) -> bool {
        let empty = || WindowState {
            start_ns: self.opening(now.as_nanos()),
            previous: OPEN,
            current: self.window.limit,
        };
        self.edges == old.edges && self.window.change(state, &old.window, carry, empty)
    }

    fn tag(&self) -> u8 {
        0x15
    }

    /// A window that begins after now comes from a clock that was ahead.
    fn open_body(&self, now: Timestamp, body: &[u8]) -> (u128, bool) {
        let state = WindowState::unpack(u128::read(body));
        let opening_ns = self.opening(now.as_nanos());
        state.beginning_by(now.as_nanos(), opening_ns, state.previous == OPEN)
    }

    fn write_kind(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        write!(out, "fixed-{}", Span(self.window()))?;
        match self.edges {
            Edges::Anchored => out.write_str("-anchored"),
            Edges::Aligned { offset_ns: 0 } => Ok(()),
            Edges::Aligned { .. } => write!(out, "-at-{}", Span(self.offset())),
        }
    }

    fn fingerprint(&self) -> u64 {
        let limit = StateKind::of_number(self.window.limit.into());
        self.state_kind().and(limit).number()
    }

    fn state_kind(&self) -> StateKind {
        let edges = match self.edges {
            Edges::Aligned { offset_ns } => offset_ns,
            Edges::Anchored => u64::MAX,
        };
        StateKind::window(0x15, self.window.window_ns, edges)
    }

    #[inline]
    fn in_ticks(&self, tick_ns: u64, most: u32) -> Result<Self, Misfit> {
        let window = self.window.in_ticks(tick_ns, most)?;
        let edges = match self.edges {
            Edges::Aligned { offset_ns } if offset_ns % tick_ns == 0 => Edges::Aligned {
                offset_ns: offset_ns / tick_ns,
            },
            Edges::Aligned { .. } => return Err(Misfit::Offset),
            Edges::Anchored => Edges::Anchored,
        };
        Ok(Self { window, edges })
    }
}

/// A state moved to the window that contains the current instant.
#[derive(Clone, Copy)]
struct Rolled {
    start_ns: u64,
    count: u32,
    open: bool,
}

impl Rolled {
    #[inline]
    const fn pack(self) -> u128 {
        let previous = if self.open { OPEN } else { 0 };
        WindowState {
            start_ns: self.start_ns,
            previous,
            current: self.count,
        }
        .pack()
    }
}
