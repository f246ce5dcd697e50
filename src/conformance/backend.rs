//! The way around a store, to what it keeps.

use alloc::vec::Vec;
use core::time::Duration;

use crate::store::KeyKind;

/// Access to a backend as an operator or another program has it, for the clauses that look at what a store leaves there.
///
/// The kit calls these methods outside of [`Subject::block_on`](super::Subject::block_on), so they may block on a runtime of
/// their own.
pub trait Backend {
    /// What is stored for `key` in `space` (as given to [`Subject::buckets`](super::Subject::buckets)); `None` if nothing.
    /// `kind` is the part of the stored key that the limit gives, empty for a bucket.
    fn read(&self, space: &str, key: &str, kind: &KeyKind) -> Option<Stored>;

    /// Whether values are [`StateBytes`](crate::store::StateBytes), as they should be: then other programs can read them.
    fn stores_state_bytes(&self) -> bool {
        true
    }

    /// Stores `value` for a bucket's `key`, for a minute or longer, as a program does that knows nothing of rate limits. Returns
    /// whether the backend can hold such a value at all; a column of numbers cannot.
    fn write(&self, space: &str, key: &str, value: &[u8]) -> bool {
        let _ = (space, key, value);
        false
    }

    /// Stores something for a bucket's `key` that is no value at all to the store: a list, where it expects text. Returns whether
    /// there is such a thing.
    fn write_other_type(&self, space: &str, key: &str) -> bool {
        let _ = (space, key);
        false
    }

    /// Loses all keys of `space`, and whatever else the store has put on the server (scripts), as a restart without
    /// persistence does. Returns whether it can.
    fn lose(&self, space: &str) -> bool {
        let _ = space;
        false
    }

    /// Lets `time` pass for the clock by which the backend drops what has expired: moves the subject's clock if it is that
    /// one, sleeps otherwise. Returns `false` if that takes too long, or cannot be done.
    fn pass(&self, time: Duration) -> bool {
        let _ = time;
        false
    }

    /// From now on, all requests meet `fault`. Returns whether this backend can be made to.
    fn break_with(&self, fault: Fault) -> bool {
        let _ = fault;
        false
    }

    /// Ends the fault; no data is lost.
    fn heal(&self) {}
}

/// What a backend holds for a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The value.
    pub bytes: Vec<u8>,
    /// How much longer it will be kept; `None` if for ever.
    pub time_to_live: Option<Duration>,
    /// A number that changes with each write, where the backend has one; otherwise `None`, and then a write of the value
    /// that is there already goes unnoticed.
    pub version: Option<u64>,
}

/// How a backend can fail.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// Requests do not arrive, and the store can tell: connections are refused.
    Refuse,
    /// Requests arrive and are executed, but the connection breaks before the answer is there.
    LoseAnswer,
    /// Requests arrive and are never answered; perhaps they are executed, perhaps later.
    Hang,
}
