//! What a subject may lack.

use core::fmt;

/// Something that a clause needs, and that not every store has.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Need {
    /// [`Subject::clock`](super::Subject::clock).
    Clock,
    /// [`Subject::windows`](super::Subject::windows).
    Windows,
    /// [`Subject::fixed_windows`](super::Subject::fixed_windows).
    FixedWindows,
    /// [`Subject::several`](super::Subject::several).
    Several,
    /// [`Subject::logs`](super::Subject::logs). An exact log has no fixed size and so no wire form: stores that keep bytes
    /// lack it.
    Logs,
    /// [`Subject::tuple_keys`](super::Subject::tuple_keys).
    TupleKeys,
    /// [`Subject::byte_keys`](super::Subject::byte_keys).
    ByteKeys,
    /// [`Subject::backend`](super::Subject::backend).
    Backend,
    /// [`Stored::version`](super::Stored::version).
    Versions,
    /// Values that are [`StateBytes`](crate::store::StateBytes).
    StateBytes,
    /// [`Backend::write`](super::Backend::write).
    ForeignValues,
    /// [`Backend::write_other_type`](super::Backend::write_other_type).
    OtherTypes,
    /// [`Backend::lose`](super::Backend::lose).
    Loss,
    /// [`Backend::pass`](super::Backend::pass).
    Passing,
    /// [`Backend::break_with`](super::Backend::break_with).
    Faults,
    /// [`Subject::deadline`](super::Subject::deadline).
    Deadline,
    /// [`Store::forget`](crate::store::Store::forget).
    Forgetting,
    /// Requests made by [`Request::refund`](crate::Request::refund).
    Refunds,
    /// Requests changed by [`Request::or_wait`](crate::Request::or_wait).
    Reservations,
    /// Requests made by [`Request::up_to`](crate::Request::up_to).
    PartialGrants,
    /// Readings of the clock that nothing overtakes: [`Subject::sends_readings`](super::Subject::sends_readings).
    FreshReadings,
    /// [`Store::try_change`](crate::store::Store::try_change).
    Changes,
    /// [`Subject::repairs`](super::Subject::repairs): stores in this process have nothing to repair.
    Repairs,
    /// Limits at the end of what a [`TokenBucket`](crate::TokenBucket) can be.
    ExtremeLimits,
}

impl Need {
    const fn meaning(self) -> &'static str {
        match self {
            Self::Clock => "the clock cannot be moved",
            Self::Windows => "there are no sliding windows",
            Self::FixedWindows => "there are no fixed windows",
            Self::Several => "there are no combined limits",
            Self::Logs => "there are no exact logs",
            Self::TupleKeys => "keys cannot be tuples",
            Self::ByteKeys => "keys cannot be bytes",
            Self::Backend => "the backend cannot be reached around the store",
            Self::Versions => "the backend does not number its writes",
            Self::StateBytes => "values have a form of their own",
            Self::ForeignValues => "the backend cannot hold foreign values",
            Self::OtherTypes => "the backend has one type of value",
            Self::Loss => "the backend cannot be made to lose data",
            Self::Passing => "time cannot be made to pass for the backend",
            Self::Faults => "the backend cannot be made to fail",
            Self::Deadline => "there is no deadline",
            Self::Forgetting => "the store cannot forget a key",
            Self::Refunds => "the store takes nothing back",
            Self::Reservations => "the store lets nobody stand in line",
            Self::PartialGrants => "the store grants all or nothing",
            Self::FreshReadings => "readings of the clock are sent along with requests",
            Self::Changes => "the store cannot change a key's limit",
            Self::Repairs => "states ahead of the clock are debt, and are not repaired",
            Self::ExtremeLimits => "the store does not support every limit",
        }
    }
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}: {}", self.meaning())
    }
}
