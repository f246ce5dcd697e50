//! A step on a stored value: what a server's script does with what it finds, and what this process repeats.

use core::time::Duration;

use super::error::StoreError;
use super::wire::StateBytes;
use crate::algorithm::Algorithm;
use crate::decision::Decision;
use crate::request::Request;
use crate::time::Timestamp;

/// What came of a step on a stored value.
#[derive(Debug)]
pub struct StoredStep {
    /// The answer for the caller.
    pub decision: Decision,
    /// What must be stored; `None` if the value stays.
    pub write: Option<StoredWrite>,
}

/// A value to be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredWrite {
    /// The value.
    pub value: StateBytes,
    /// How long it must be kept at least, after which it equals an absent one. A store never *shortens* what is left of a
    /// key's time: of two versions of a limit, the smaller may be full while the larger is not.
    pub keep: Duration,
}

/// The step of `algorithm` on the value found for a key (`None`: none), at `now` on the clock of the key space.
///
/// It is [`Algorithm::step`] on the value's state, and two things more, which only a value outside of this process can need:
///
/// * **Repair.** A shared clock may be stepped back. A value that *proves* it is repaired, also if the request is refused (a peek
///   still writes nothing): a
///   bucket carries how far ahead its last taker could book (its *reach*), so a TAT beyond `now + reach`, or a window that
///   begins after `now`, can only come from a clock that was ahead. It is cut to `now + reach`, or begins now; counts stay. So a
///   key waits no longer than that reach, and a step back gives nobody anything.
/// * **Versions.** The limit with the highest version that a key has met decides for it; see
///   [`TokenBucket::with_version`](crate::TokenBucket::with_version).
///
/// # Errors
/// [`ErrorKind::Corrupt`](super::ErrorKind::Corrupt) if the value is none of this algorithm's,
/// [`ErrorKind::Unsupported`](super::ErrorKind::Unsupported) if that has no wire form,
/// [`ErrorKind::Config`](super::ErrorKind::Config) if the value was left by another limit of the same version.
///
/// ```
/// use ratekeeper::store::step_stored;
/// use ratekeeper::{Request, Timestamp, TokenBucket};
///
/// let limit = TokenBucket::per_second(1).with_burst(5);
/// let at = |seconds: u64| Timestamp::from_nanos(seconds * 1_000_000_000);
/// let all = step_stored(&limit, at(100), None, &Request::take(5))?;
/// let value = all.write.unwrap().value;
/// // The clock is set back by a minute: full again at 105 would be further ahead than any caller could book.
/// let refused = step_stored(&limit, at(40), Some(&value), &Request::ONE)?;
/// assert_eq!(refused.decision.retry_after().unwrap().as_secs(), 1); // not 61
/// assert!(refused.write.is_some());
/// # Ok::<(), ratekeeper::store::StoreError>(())
/// ```
pub fn step_stored<A: Algorithm>(
    algorithm: &A,
    now: Timestamp,
    found: Option<&StateBytes>,
    request: &Request,
) -> Result<StoredStep, StoreError> {
    algorithm.step_value(now, found, request)
}

/// [`step_stored`] under exactly this limit.
pub(crate) fn step_under<A: Algorithm>(
    algorithm: &A,
    now: Timestamp,
    found: Option<&StateBytes>,
    request: &Request,
) -> Result<StoredStep, StoreError> {
    let mut step = step_and_write(algorithm, now, found, request)?;
    let is_peek = matches!(request, Request::Take { cost: 0, .. }) && !algorithm.is_change();
    if is_peek {
        step.write = None;
    }
    Ok(step)
}

/// The same, where peeks store repairs and newer versions as well.
fn step_and_write<A: Algorithm>(
    algorithm: &A,
    now: Timestamp,
    found: Option<&StateBytes>,
    request: &Request,
) -> Result<StoredStep, StoreError> {
    StateBytes::exist_for(algorithm)?;
    let opened = match found {
        Some(found) => algorithm.open_value(now, found)?,
        None => None,
    };
    let (mut state, must_write) = match &opened {
        Some(opened) => (opened.state.clone(), opened.must_write),
        None => (A::State::default(), false),
    };
    let step = algorithm.step(now, &mut state, request);
    if step.keep.is_none() && !must_write {
        return Ok(StoredStep {
            decision: step.decision,
            write: None,
        });
    }
    let takes = algorithm.is_change() || matches!(request, Request::Take { .. });
    let before = opened.as_ref().map(|opened| &opened.state).zip(found);
    let value = algorithm.seal_value(&state, before, takes)?;
    let keep = Duration::from_nanos(algorithm.debt_ns(now, &state));
    let keep = keep.max(step.keep.unwrap_or_default());
    Ok(StoredStep {
        decision: step.decision,
        write: Some(StoredWrite { value, keep }),
    })
}

/// A value's state.
#[derive(Debug)]
pub struct Opened<S> {
    pub(crate) state: S,
    /// It was repaired, or moved to a newer limit: to be stored whatever the request comes to.
    pub(crate) must_write: bool,
}

/// How a limit's version compares with that of a value.
#[derive(Debug)]
pub enum Version<A> {
    /// The value is this limit's to decide on.
    Same,
    /// The value's limit is newer, and decides: ask again under this.
    Newer(A),
    /// The value's limit is older: put this in the value's place (if that is still the same), then ask again.
    Older(StoredWrite),
}

/// For backends that decide on their side, and leave it to this process when versions differ: how `algorithm` and the value
/// found compare.
///
/// # Errors
/// As [`step_stored`].
pub fn compare_versions<A: Algorithm>(
    algorithm: &A,
    now: Timestamp,
    found: &StateBytes,
) -> Result<Version<A>, StoreError> {
    if let Some(newer) = algorithm.adopted(found)? {
        return Ok(Version::Newer(newer));
    }
    let step = step_and_write(algorithm, now, Some(found), &Request::PEEK)?;
    Ok(step.write.map_or(Version::Same, Version::Older))
}

/// The answer to a request that needs no state, and so no store: that of
/// [`TokenBucket::UNLIMITED`](crate::TokenBucket::UNLIMITED) and [`BLOCKED`](crate::TokenBucket::BLOCKED).
pub fn answer_at_once<A: Algorithm>(algorithm: &A, request: &Request) -> Option<Decision> {
    let step = || algorithm.step(Timestamp::ZERO, &mut A::State::default(), request);
    algorithm.is_stateless().then(|| step().decision)
}
