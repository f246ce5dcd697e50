//! Moving a key from one limit to another, once and at a known instant.

use core::fmt;
use core::time::Duration;

use super::{Algorithm, StateKind, Step};
use crate::decision::{Decision, Outcome};
use crate::request::Request;
use crate::store::{ErrorKind, Opened, StateBytes, StoreError, StoredStep, step_under};
use crate::time::Timestamp;

/// What a key takes along when its limit changes.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Carry {
    /// The tokens it has: whole tokens stay, at most as many as the new limit holds, and a full bucket stays full. A raised
    /// burst comes in empty. What is owed beyond the new limit's burst and `max_wait` is cut to that. Windows keep their
    /// counts.
    #[default]
    Tokens,
    /// The time it owes: a bucket is full again at the same instant as before. Windows keep their counts.
    Debt,
    /// Nothing: it starts as a key never seen.
    Full,
    /// It starts without a token.
    Empty,
}

/// A change of limits as an algorithm, for authors of stores: whatever a store can run on a key, it can change with this.
///
/// Its step moves the state of [`old`](Self::old) to that of [`new`](Self::new), whatever the request is, and answers with a
/// peek under `new`. Where the two do not share states (another algorithm, a window of another length), the answer is
/// [`Outcome::Unsupported`] and nothing is written.
///
/// Run it once for each change: it forgives what the new limit cannot hold, so running it again, or to and fro, forgives again.
///
/// ```
/// use ratekeeper::{Algorithm, Carry, Change, Request, Timestamp, TokenBucket};
///
/// let (free, paid) = (TokenBucket::per_hour(10), TokenBucket::per_second(1_000));
/// let now = Timestamp::from_nanos(1_000_000_000_000);
/// let mut state = 0;
/// free.step(now, &mut state, &Request::take(10));
/// let change = Change { old: &free, new: &paid, carry: Carry::Tokens };
/// let step = change.step(now, &mut state, &Request::PEEK);
/// assert_eq!(step.decision.remaining(), 0); // still none, but the next comes after a millisecond instead of six minutes
/// assert_eq!(step.decision.reset_after().as_secs(), 1);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Change<'a, A> {
    /// The limit under which the key's state came about.
    pub old: &'a A,
    /// The limit from now on.
    pub new: &'a A,
    /// What the key takes along.
    pub carry: Carry,
}

impl<A: Algorithm> Algorithm for Change<'_, A> {
    type State = A::State;

    fn step(&self, now: Timestamp, state: &mut A::State, _request: &Request) -> Step {
        let mut changed = state.clone();
        if !self.new.change(now, &mut changed, self.old, self.carry) {
            let decision = Decision::new(Outcome::Unsupported, 0, 0, Duration::ZERO);
            return Step::unchanged(decision);
        }
        let decision = self.new.step(now, &mut changed, &Request::PEEK).decision;
        if changed == *state {
            return Step::unchanged(decision);
        }
        *state = changed;
        let keep = Duration::from_nanos(self.new.debt_ns(now, state));
        Step::write(decision, keep)
    }

    fn debt_ns(&self, now: Timestamp, state: &A::State) -> u64 {
        self.new.debt_ns(now, state)
    }

    fn is_change(&self) -> bool {
        true
    }

    fn tag(&self) -> u8 {
        self.new.tag()
    }

    fn wire_len(&self) -> usize {
        self.new.wire_len()
    }

    fn open_body(&self, now: Timestamp, body: &[u8]) -> (A::State, bool) {
        self.new.open_body(now, body)
    }

    fn seal_body(
        &self,
        state: &A::State,
        before: Option<(&A::State, &[u8])>,
        takes: bool,
        out: &mut [u8],
    ) {
        self.new.seal_body(state, before, takes, out);
    }

    fn open_value(
        &self,
        now: Timestamp,
        found: &StateBytes,
    ) -> Result<Option<Opened<A::State>>, StoreError> {
        self.new.open_value(now, found)
    }

    fn seal_value(
        &self,
        state: &A::State,
        before: Option<(&A::State, &StateBytes)>,
        takes: bool,
    ) -> Result<StateBytes, StoreError> {
        self.new.seal_value(state, before, takes)
    }

    /// A version is a change of its own, and would be made twice.
    fn step_value(
        &self,
        now: Timestamp,
        found: Option<&StateBytes>,
        request: &Request,
    ) -> Result<StoredStep, StoreError> {
        const MESSAGE: &str = "a limit with a version changes by a higher version";
        if [self.old.version(), self.new.version()] != [0, 0] {
            return Err(StoreError::new(ErrorKind::Unsupported, MESSAGE));
        }
        step_under(self, now, found, request)
    }

    fn write_kind(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        self.new.write_kind(out)
    }

    fn state_kind(&self) -> StateKind {
        self.new.state_kind()
    }

    fn step_in_ticks(
        &self,
        ticks: (u64, u32),
        now: Timestamp,
        state: &mut A::State,
        request: &Request,
    ) -> Option<Step> {
        let old = self.old.in_ticks(ticks.0, ticks.1).ok()?;
        let new = self.new.in_ticks(ticks.0, ticks.1).ok()?;
        let change = Change {
            old: &old,
            new: &new,
            carry: self.carry,
        };
        Some(change.step(now, state, request))
    }
}
