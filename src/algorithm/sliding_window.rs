//! Sliding-window counter: two counts approximate "at most `limit` in the last `window`".
//!
//! The state holds the start of the current window, its count, and the count of the window before.
//! `e` into the current window of length `W`, the previous count is weighted by the share of it that
//! the sliding window still covers, and a cost `c` passes while `prev·(W − e)/W + cur + c ≤ limit`. All in
//! integers: both sides are multiplied by `W`, and no product exceeds 98 bits. The method is the one
//! popularised by Cloudflare ("How we built rate limiting capable of scaling to millions of domains",
//! 2017), with the start stored instead of an index, so that a key's windows begin at its first use.
//!
//! # Bound
//! The weighting assumes that the previous window's requests were spread evenly. If they came late, a
//! trailing window can hold up to `2·limit − 2` requests (`max(L, 2L − 1 − ⌈2(L−1)/W⌉)` exactly, `W`
//! in nanoseconds), one more if the request that opened the window is refunded, since the others may then
//! all have come late. Where that is too many, use [`SlidingLog`](crate::SlidingLog).

use core::fmt;
use core::time::Duration;

use super::window::{Window, WindowState, window_constructors, with_uncharged};
use super::{Algorithm, Carry, Misfit, StateKind, Step};
use crate::decision::{Decision, Numbers, Outcome, WindowNumbers};
use crate::invalid_limit::InvalidLimit;
use crate::request::{Receipt, Request};
use crate::store::{Span, Wire};
use crate::time::{Timestamp, saturate};

/// At most `limit` requests in about any `window`: two counters, constant memory.
///
/// ```
/// use ratekeeper::{Limiter, SlidingWindow, Timestamp};
///
/// static SEARCHES: Limiter<SlidingWindow> = Limiter::new(SlidingWindow::per_minute(100));
/// assert_eq!(SEARCHES.check_at(Timestamp::ZERO).remaining(), 99);
/// ```
///
/// # Bounds
/// In the worst case a trailing window holds `2 · limit − 2` requests (`2 · limit − 1` where requests are
/// refunded); with requests spread evenly, `limit`. Where readings of the clock differ by up to `d`, these hold for real
/// windows of `window − d`.
///
/// A window does not queue: [`Request::or_wait`] is answered like a plain request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SlidingWindow {
    pub(crate) window: Window,
}

window_constructors!(SlidingWindow, Self::from_window);

impl SlidingWindow {
    pub(crate) const fn from_window(window: Window) -> Self {
        Self { window }
    }

    /// Moves the state to the window that contains `now`.
    #[inline]
    fn roll(&self, now_ns: u64, state: WindowState) -> Rolled {
        let window_ns = self.window.window_ns;
        let WindowState {
            start_ns,
            previous,
            current,
        } = state;
        let at = |start_ns: u64, previous, current| Rolled {
            state: WindowState {
                start_ns,
                previous,
                current,
            },
            elapsed_ns: now_ns.saturating_sub(start_ns),
        };
        if previous == 0 && current == 0 {
            // Nothing is counted, so the next request opens the window: the bound above needs that
            // also in the first window after the clock's epoch.
            return at(now_ns, 0, 0);
        }
        if now_ns < start_ns {
            // A reading older than the window: it counts as the window's first instant.
            return at(start_ns, previous, current);
        }
        let elapsed_ns = now_ns - start_ns;
        if elapsed_ns < window_ns {
            at(start_ns, previous, current)
        } else if elapsed_ns - window_ns < window_ns && current > 0 {
            at(start_ns + window_ns, current, 0)
        } else {
            at(now_ns, 0, 0)
        }
    }

    #[inline]
    fn numbers(&self, now_ns: u64, rolled: &Rolled) -> WindowNumbers {
        let Window { limit, window_ns } = self.window;
        let WindowState {
            start_ns,
            previous,
            current,
        } = rolled.state;
        let elapsed_ns = rolled.elapsed_ns;
        let until_next_ns = u128::from(start_ns) + u128::from(window_ns) - u128::from(now_ns);
        WindowNumbers {
            limit,
            previous,
            current,
            elapsed_ns,
            window_ns,
            until_next_ns,
        }
    }

    #[inline]
    fn decision(&self, outcome: Outcome, now_ns: u64, rolled: &Rolled) -> Decision {
        Decision::from_numbers(outcome, Numbers::Window(self.numbers(now_ns, rolled)))
    }

    #[inline]
    fn take(&self, now_ns: u64, state: &mut u128, cost: u64, at_least: u64) -> Step {
        let rolled = self.roll(now_ns, WindowState::unpack(*state));
        if cost == 0 {
            return Step::unchanged(self.decision(Outcome::Allowed, now_ns, &rolled));
        }
        let cost = if at_least < cost {
            let grant = u64::from(self.numbers(now_ns, &rolled).remaining()).min(cost);
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
        if !self.has_room(&rolled, cost) {
            let retry_after = self.retry_after(now_ns, &rolled, cost);
            let outcome = Outcome::Denied { retry_after };
            return Step::unchanged(self.decision(outcome, now_ns, &rolled));
        }
        let mut rolled = rolled;
        rolled.state.current += cost;
        *state = rolled.state.pack();
        let receipt = Receipt::new(u64::from(cost), rolled.state.start_ns);
        let decision = self
            .decision(Outcome::Allowed, now_ns, &rolled)
            .with_receipt(receipt);
        let keep = decision.reset_after();
        Step::write(decision, keep)
    }

    /// `prev·(W − e) + (cur + c)·W ≤ L·W`.
    #[inline]
    fn has_room(&self, rolled: &Rolled, cost: u32) -> bool {
        let WindowState {
            previous, current, ..
        } = rolled.state;
        let window_ns = u128::from(self.window.window_ns);
        let left_ns = u128::from(self.window.window_ns - rolled.elapsed_ns);
        let carried = u128::from(previous) * left_ns;
        let counted = (u128::from(current) + u128::from(cost)) * window_ns;
        carried + counted <= u128::from(self.window.limit) * window_ns
    }

    /// When a refused cost that fits the limit passes: as soon as enough of the previous count has
    /// slid out, in this window if the current count leaves room for the cost, else in the next.
    fn retry_after(&self, now_ns: u64, rolled: &Rolled, cost: u32) -> Duration {
        let numbers = self.numbers(now_ns, rolled);
        let window_ns = u128::from(self.window.window_ns);
        let free = u128::from(self.window.limit - cost);
        let (edge_ns, slack, sliding) = match free.checked_sub(u128::from(numbers.current)) {
            Some(slack) => (numbers.until_next_ns, slack, numbers.previous),
            None => (numbers.until_next_ns + window_ns, free, numbers.current),
        };
        let early_ns = slack * window_ns / u128::from(sliding.max(1));
        Duration::from_nanos(saturate(edge_ns.saturating_sub(early_ns)).max(1))
    }

    /// Exact while the charge is still counted: counts can simply be taken back.
    fn refund(&self, now_ns: u64, state: &mut u128, cost: u64, receipt: &Receipt) -> Step {
        let mut new = WindowState::unpack(*state);
        let cost = u32::try_from(cost.min(receipt.charged())).unwrap_or(u32::MAX);
        if receipt.mark() == new.start_ns {
            new.current = new.current.saturating_sub(cost);
        } else if Some(receipt.mark()) == new.start_ns.checked_sub(self.window.window_ns) {
            new.previous = new.previous.saturating_sub(cost);
        }
        let changed = cost > 0 && new.pack() != *state;
        if changed {
            *state = new.pack();
        }
        let after = self.roll(now_ns, WindowState::unpack(*state));
        let decision = self.decision(Outcome::Allowed, now_ns, &after);
        let keep = changed.then(|| decision.reset_after());
        Step { decision, keep }
    }
}

impl Algorithm for SlidingWindow {
    /// Start of the current window in nanoseconds (64 bits), previous and current count (32 each).
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
            start_ns: now.as_nanos(),
            previous: 0,
            current: self.window.limit,
        };
        self.window.change(state, &old.window, carry, empty)
    }

    fn tag(&self) -> u8 {
        0x13
    }

    /// A window that begins after now comes from a clock that was ahead.
    fn open_body(&self, now: Timestamp, body: &[u8]) -> (u128, bool) {
        let state = WindowState::unpack(u128::read(body));
        let counts = state.previous > 0 || state.current > 0;
        state.beginning_by(now.as_nanos(), now.as_nanos(), counts)
    }

    fn write_kind(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        write!(out, "sliding-{}", Span(self.window()))
    }

    fn fingerprint(&self) -> u64 {
        let limit = StateKind::of_number(self.window.limit.into());
        self.state_kind().and(limit).number()
    }

    fn state_kind(&self) -> StateKind {
        StateKind::window(0x13, self.window.window_ns, 0)
    }

    #[inline]
    fn in_ticks(&self, tick_ns: u64, most: u32) -> Result<Self, Misfit> {
        self.window.in_ticks(tick_ns, most).map(Self::from_window)
    }
}

/// A state moved to the window that contains the current instant.
#[derive(Clone, Copy)]
struct Rolled {
    state: WindowState,
    /// Nanoseconds since the window's start, below its length; 0 while the clock is behind it.
    elapsed_ns: u64,
}
