//! The compare-and-swap loop without its input and output.

use core::time::Duration;

use super::{Loaded, Swap};
use crate::algorithm::Algorithm;
use crate::clock::Clock;
use crate::decision::Decision;
use crate::request::Request;
use crate::store::error::{ErrorKind, StoreError};
use crate::store::value::{StoredWrite, answer_at_once, step_stored};
use crate::store::wire::StateBytes;
use crate::time::Timestamp;

/// How long an exchange may be under way.
///
/// States are kept so much longer than they matter. Otherwise those that were written since an absent key was loaded could be
/// over and gone when its exchange arrives, which would find the key absent, as expected, and charge the request to an
/// instant at which others have been served already.
const LONGEST_DELAY: Duration = Duration::from_secs(60);

/// One request on its way through a compare-and-swap backend: says what to do next, and is told what came of it.
///
/// [`CasLoop`](super::CasLoop) runs it. Use it directly where that does not fit: other futures, callbacks, a simulation.
///
/// ```
/// use ratekeeper::store::{CasAction, CasDriver, Loaded, StateBytes, Swap};
/// use ratekeeper::{ManualClock, Request, TokenBucket};
///
/// let (clock, limit) = (ManualClock::new(), TokenBucket::per_second(1));
/// let mut driver = CasDriver::new(&limit, Request::ONE, 16);
/// // Load the key: nothing there.
/// let action = driver.loaded(Loaded { state: None, version: (), now: None }, &clock)?;
/// let CasAction::Exchange { new, keep } = action else { panic!() };
/// // Compare and swap `driver.seen()` for `new`: it went through.
/// let CasAction::Done(decision) = driver.exchanged(Swap::Done, &clock)? else { panic!() };
/// assert!(decision.is_allowed());
/// # let _ = (new, keep);
/// # Ok::<(), ratekeeper::store::StoreError>(())
/// ```
#[derive(Debug)]
pub struct CasDriver<'a, A, V> {
    algorithm: &'a A,
    request: Request,
    attempts_left: u32,
    max_skew: Duration,
    lost: u32,
    seen: Option<Loaded<V>>,
    decision: Option<Decision>,
}

/// What to do next.
#[derive(Debug)]
pub enum CasAction {
    /// Read the key, and tell [`CasDriver::loaded`].
    Load,
    /// Write `new`, kept for at least `keep`, if the key is still as in [`CasDriver::seen`], and tell
    /// [`CasDriver::exchanged`].
    Exchange {
        /// The new value.
        new: StateBytes,
        /// How long it must be kept: as long as it matters, and a minute longer, so that no exchange that was delayed for
        /// less takes a key that is absent again for one that never changed.
        keep: Duration,
    },
    /// Wait a moment, longer after more lost races, and then read the key.
    BackOff {
        /// Races lost so far, at least 2.
        lost: u32,
    },
    /// This is the answer.
    Done(Decision),
}

impl<'a, A: Algorithm, V> CasDriver<'a, A, V> {
    /// A request that gives up after losing `max_attempts` races. The first action is [`CasAction::Load`].
    pub const fn new(algorithm: &'a A, request: Request, max_attempts: u32) -> Self {
        Self {
            algorithm,
            request,
            attempts_left: max_attempts,
            max_skew: Self::DEFAULT_MAX_SKEW,
            lost: 0,
            seen: None,
            decision: None,
        }
    }

    /// By how much the clocks of processes may differ unless told otherwise.
    pub const DEFAULT_MAX_SKEW: Duration = Duration::from_secs(10);

    /// For backends without a clock: by how much the clocks of the processes may differ. See
    /// [`CasLoop::with_max_skew`](super::CasLoop::with_max_skew).
    #[must_use]
    pub const fn with_max_skew(mut self, max_skew: Duration) -> Self {
        self.max_skew = max_skew;
        self
    }

    /// What was loaded last: what an exchange must find.
    pub const fn seen(&self) -> Option<&Loaded<V>> {
        self.seen.as_ref()
    }

    /// The key was read. `clock` is read now if the backend has no clock of its own.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] if the value is no state of this algorithm; [`ErrorKind::Unsupported`] if that has no wire
    /// form.
    pub fn loaded(
        &mut self,
        loaded: Loaded<V>,
        clock: &impl Clock,
    ) -> Result<CasAction, StoreError> {
        if let Some(decision) = answer_at_once(self.algorithm, &self.request) {
            return Ok(CasAction::Done(decision));
        }
        let (found, written) = match &loaded.state {
            Some(value) => {
                let (value, written) = value.unstamped()?;
                (Some(value), written)
            }
            None => (None, None),
        };
        let now = match loaded.now {
            Some(now) => now,
            None => self.not_before(written, clock.now()),
        };
        let step = step_stored(self.algorithm, now, found.as_ref(), &self.request)?;
        let has_own_clock = loaded.now.is_some();
        self.seen = Some(loaded);
        let Some(StoredWrite { value, keep }) = step.write else {
            return Ok(CasAction::Done(step.decision));
        };
        let new = if has_own_clock {
            value
        } else {
            value.stamped(now)
        };
        let keep = keep.saturating_add(LONGEST_DELAY);
        self.decision = Some(step.decision);
        Ok(CasAction::Exchange { new, keep })
    }

    /// The instant to decide at, where each process tells its own time: no earlier than the value's write, unless that lies so
    /// far ahead that it must come from a clock that has been set back since.
    fn not_before(&self, written: Option<Timestamp>, now: Timestamp) -> Timestamp {
        match written {
            Some(written) if written <= now + self.max_skew => written.max(now),
            _ => now,
        }
    }

    /// The exchange was answered.
    ///
    /// # Errors
    /// [`ErrorKind::Contention`] if all attempts are used up; [`ErrorKind::Config`] if no exchange was asked for.
    pub fn exchanged(
        &mut self,
        swap: Swap<V>,
        clock: &impl Clock,
    ) -> Result<CasAction, StoreError> {
        let Some(decision) = self.decision.take() else {
            return Err(StoreError::new(
                ErrorKind::Config,
                "an exchange was answered that nobody had asked for",
            ));
        };
        let fresh = match swap {
            Swap::Done => return Ok(CasAction::Done(decision)),
            Swap::Conflict(fresh) => fresh,
        };
        self.lost += 1;
        self.attempts_left = self.attempts_left.saturating_sub(1);
        if self.attempts_left == 0 {
            return Err(StoreError::new(
                ErrorKind::Contention,
                "every exchange came too late",
            ));
        }
        if self.lost > 1 {
            return Ok(CasAction::BackOff { lost: self.lost });
        }
        // Against one rival, try again at once. A value without the backend's time, where it has one, is not enough:
        // the attempts of one request must not mix clocks.
        let uses_own_clock = self.seen.as_ref().is_some_and(|seen| seen.now.is_none());
        match fresh {
            Some(fresh) if fresh.now.is_some() || uses_own_clock => self.loaded(fresh, clock),
            _ => Ok(CasAction::Load),
        }
    }
}
