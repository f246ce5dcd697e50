//! What a bounded store does with a new key when it has no room.

use core::error::Error;
use core::fmt;
use core::time::Duration;

use crate::decision::{Decision, Outcome};
use crate::request::Request;

/// What happens to a new key when every place it could take holds a key that is still in debt.
///
/// Keys whose state is as good as new always go first, and losing those loses nothing. Only when there
/// are none does one of these answer. There is no policy that lets the newcomer start fresh in a debtor's
/// place: a flood of new keys would then forgive every client that is being limited.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Overflow {
    /// The key with the least debt goes, and the newcomer *takes over its debt*. Debt never leaves the
    /// store, so no key, evicted or not, passes more than its limit.
    ///
    /// Price: while more keys are in debt than the store holds, newcomers are charged for strangers and
    /// may be refused. A key that was evicted and comes back is a newcomer, too.
    #[default]
    Inherit,
    /// The newcomer is refused until a place is free; nobody is evicted.
    ///
    /// Price: honest clients whose state was forgotten because it was as good as new are shut out during
    /// a flood, although they owe nothing.
    Deny,
    /// The newcomer passes and is not tracked.
    ///
    /// Price: new keys are not limited at all while the store is full. Those in the store still are.
    Admit,
}

/// A store's capacity that cannot be used.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InvalidCapacity {
    /// Room for nothing: a store that could limit nobody.
    Zero,
    /// More than the store can address.
    TooLarge,
}

impl fmt::Display for InvalidCapacity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Zero => "a store's capacity must be above 0",
            Self::TooLarge => "a store's capacity is above what it can address",
        })
    }
}

impl Error for InvalidCapacity {}

/// The answer to a new key that finds no place until `wait` from now; `fresh` is what it would be answered if it had
/// one.
pub(crate) fn denied(fresh: &Decision, request: &Request, wait: Duration) -> Decision {
    // Peeks, refunds and requests content with nothing get just that.
    let wants = matches!(
        request,
        Request::Take {
            cost: 1..,
            at_least: 1..,
            ..
        }
    );
    let outcome = match fresh.outcome() {
        Outcome::Allowed if wants => Outcome::Denied { retry_after: wait },
        other => other,
    };
    Decision::new(outcome, fresh.limit(), 0, wait)
}

/// A new key's request as it may touch a stranger's state. A refund that finds its key gone has nothing to give back
/// to: the debt went to others.
pub(crate) const fn of_newcomer(request: &Request) -> &Request {
    const PEEK: &Request = &Request::PEEK;
    match request {
        Request::Refund { .. } => PEEK,
        Request::Take { .. } => request,
    }
}
