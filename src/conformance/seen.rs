//! A decision as everybody sees it, and the machine that says what it should have been.

use core::fmt;
use core::time::Duration;

use super::repairs::Repairs;
use crate::algorithm::Algorithm;
use crate::decision::{Decision, Outcome};
use crate::request::{Receipt, Request};
use crate::store::{StateBytes, step_stored};
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
    pub(super) uncharged: u64,
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
            uncharged: decision.uncharged(),
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
        if self.uncharged > 0 {
            write!(f, ", uncharged {}", self.uncharged)?;
        }
        if self.degraded {
            f.write_str(", degraded")?;
        }
        Ok(())
    }
}

/// One key in the pure machine: what a store's answers are compared with.
#[derive(Clone)]
pub(super) struct Machine<A: Algorithm> {
    state: A::State,
    /// The same as a server keeps it, where states may be repaired.
    value: Option<StateBytes>,
    /// The instant of the last write.
    written: Option<Timestamp>,
    repairs: Repairs,
    tick_ns: u64,
}

/// What the machine says to a request.
pub(super) struct Said {
    pub(super) seen: Seen,
    pub(super) receipt: Receipt,
    /// How long the state must be kept, if it was written.
    pub(super) keep: Option<Duration>,
}

/// A step, where it decided.
struct Stepped {
    decision: Decision,
    keep: Option<Duration>,
    now: Timestamp,
}

impl<A: Algorithm> Machine<A> {
    /// A key never seen, of a store that counts time in steps of `tick`.
    pub(super) fn new(repairs: Repairs, tick: Duration) -> Self {
        Self {
            state: A::State::default(),
            value: None,
            written: None,
            repairs,
            tick_ns: duration_ns(tick).max(1),
        }
    }

    /// Forgets everything.
    pub(super) fn forget(&mut self) {
        (self.state, self.value, self.written) = (A::State::default(), None, None);
    }

    /// What a server should hold after the last write; `None` if the state has no wire form.
    pub(super) fn stored(&self, limit: &A) -> Option<StateBytes> {
        match self.repairs {
            Repairs::Nothing => StateBytes::encode(limit, &self.state).ok(),
            Repairs::Proven => self.value,
            Repairs::Stamped { .. } => Some(self.value?.stamped(self.written?)),
        }
    }

    /// Steps under `limit`, which must be a whole number of ticks.
    pub(super) fn step(&mut self, limit: &A, now: Timestamp, request: &Request) -> Said {
        if self.tick_ns > 1 {
            if let Ok(limit) = limit.in_ticks(self.tick_ns, u32::MAX) {
                return self.step_in_ticks(&limit, now, request);
            }
        }
        let stepped = self.stepped(limit, now, request);
        let ahead = stepped.now.saturating_since(now);
        Said {
            seen: Seen::from(&stepped.decision),
            receipt: stepped.decision.into_receipt(),
            keep: stepped.keep.map(|keep| keep.saturating_add(ahead)),
        }
    }

    fn stepped(&mut self, limit: &A, now: Timestamp, request: &Request) -> Stepped {
        let now = self.not_before(now);
        if self.repairs != Repairs::Nothing {
            // Fails if the state has no wire form, and then there is nothing to repair.
            if let Ok(step) = step_stored(limit, now, self.value.as_ref(), request) {
                if let Some(write) = &step.write {
                    (self.value, self.written) = (Some(write.value), Some(now));
                }
                return Stepped {
                    decision: step.decision,
                    keep: step.write.map(|write| write.keep),
                    now,
                };
            }
        }
        let step = limit.step(now, &mut self.state, request);
        Stepped {
            decision: step.decision,
            keep: step.keep,
            now,
        }
    }

    fn not_before(&self, now: Timestamp) -> Timestamp {
        match (self.repairs, self.written) {
            (Repairs::Stamped { max_skew }, Some(written)) if written <= now + max_skew => {
                written.max(now)
            }
            _ => now,
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
        let step = self.stepped(limit, Timestamp::from_nanos(now_ticks), request);
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
