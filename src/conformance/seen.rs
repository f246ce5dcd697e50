//! A decision as everybody sees it, and the machine that says what it should have been.

use core::fmt;
use core::time::Duration;

use crate::algorithm::Algorithm;
use crate::decision::{Decision, Outcome};
use crate::request::{Receipt, Request};
use crate::time::{Timestamp, duration_ns};

/// All of a decision but the receipt's marks, in which a store may count as it likes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) outcome: Outcome,
    pub(super) limit: u64,
    pub(super) remaining: u64,
    pub(super) reset_after: Duration,
    pub(super) wait: Duration,
    pub(super) granted: u64,
    pub(super) index: usize,
    pub(super) degraded: bool,
}

impl From<&Decision> for Seen {
    fn from(decision: &Decision) -> Self {
        Self {
            outcome: decision.outcome(),
            limit: decision.limit(),
            remaining: decision.remaining(),
            reset_after: decision.reset_after(),
            wait: decision.wait(),
            granted: decision.granted(),
            index: decision.index(),
            degraded: decision.is_degraded(),
        }
    }
}

impl fmt::Debug for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?}, limit {}, remaining {}, reset after {:?}, wait {:?}, granted {}, index {}",
            self.outcome,
            self.limit,
            self.remaining,
            self.reset_after,
            self.wait,
            self.granted,
            self.index
        )?;
        if self.degraded {
            f.write_str(", degraded")?;
        }
        Ok(())
    }
}

/// One key's state in the pure machine: what a store's answers are compared with.
#[derive(Clone)]
pub(super) struct Machine<A: Algorithm> {
    pub(super) state: A::State,
    tick_ns: u64,
}

/// What the machine says to a request.
pub(super) struct Said {
    pub(super) seen: Seen,
    pub(super) receipt: Receipt,
    /// How long the state must be kept, if it was written.
    pub(super) keep: Option<Duration>,
}

impl<A: Algorithm> Machine<A> {
    /// A key never seen, of a store that counts time in steps of `tick`.
    pub(super) fn new(tick: Duration) -> Self {
        Self {
            state: A::State::default(),
            tick_ns: duration_ns(tick).max(1),
        }
    }

    /// Forgets everything.
    pub(super) fn forget(&mut self) {
        self.state = A::State::default();
    }

    /// Steps under `limit`, which must be a whole number of ticks.
    pub(super) fn step(&mut self, limit: &A, now: Timestamp, request: &Request) -> Said {
        if self.tick_ns > 1 {
            if let Ok(limit) = limit.in_ticks(self.tick_ns, u32::MAX) {
                return self.step_in_ticks(&limit, now, request);
            }
        }
        let step = limit.step(now, &mut self.state, request);
        Said {
            seen: Seen::from(&step.decision),
            receipt: step.decision.into_receipt(),
            keep: step.keep,
        }
    }

    /// What ends at a tick ends at its first nanosecond.
    fn step_in_ticks(&mut self, limit: &A, now: Timestamp, request: &Request) -> Said {
        let (now_ns, tick_ns) = (now.as_nanos(), self.tick_ns);
        let now_ticks = now_ns / tick_ns;
        let scaled = |ticks: Duration| match duration_ns(ticks) {
            0 => Duration::ZERO,
            ticks => Duration::from_nanos(
                now_ticks
                    .saturating_add(ticks)
                    .saturating_mul(tick_ns)
                    .saturating_sub(now_ns),
            ),
        };
        let step = limit.step(Timestamp::from_nanos(now_ticks), &mut self.state, request);
        let mut seen = Seen::from(&step.decision);
        if let Outcome::Denied { retry_after } = &mut seen.outcome {
            *retry_after = scaled(*retry_after);
        }
        seen.reset_after = scaled(seen.reset_after);
        seen.wait = scaled(seen.wait);
        Said {
            seen,
            receipt: step.decision.into_receipt(),
            keep: step.keep.map(scaled),
        }
    }
}
