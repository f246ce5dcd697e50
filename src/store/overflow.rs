//! What a bounded store does with a new key when it has no room.

use core::error::Error;
use core::fmt;
use core::time::Duration;

use crate::algorithm::{Algorithm, Step};
use crate::decision::{Decision, Outcome};
use crate::request::Request;
use crate::state::State;

/// What happens to a new key when every place it could take holds a key that is still in debt.
///
/// Keys whose state is as good as new always go first, and losing those loses nothing. Only when there
/// are none does one of these answer. There is no policy that lets the newcomer start fresh in a debtor's
/// place: a flood of new keys would then forgive every client that is being limited.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Overflow {
    /// The key with the least debt goes, and what it owed stays in its place for newcomers to *take over*. Debt never
    /// leaves the store, so no key, evicted or not, passes more than its limit.
    ///
    /// Price: while more keys are in debt than the store holds, newcomers are charged for strangers and
    /// may be refused. A key that was evicted and comes back is a newcomer, too.
    ///
    /// This needs debts that can be compared, and only single-word states have those: token buckets, and `u64`s of your
    /// own. For windows and for several limits on one key, it means [`Overflow::Deny`].
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

impl Overflow {
    /// What the policy comes to for states of this kind.
    #[inline]
    pub(crate) const fn for_state<S: State>(self) -> Self {
        match self {
            Self::Inherit if !S::IS_ORDERED => Self::Deny,
            policy => policy,
        }
    }
}

/// Whether a request is content with nothing less than a token: peeks, refunds and `at_least(0)` are not.
pub(crate) const fn wants_tokens(request: &Request) -> bool {
    matches!(
        request,
        Request::Take {
            cost: 1..,
            at_least: 1..,
            ..
        }
    )
}

/// The answer to a new key that finds no place until `wait` from now; `fresh` is what it would be answered if it had
/// one.
pub(crate) fn denied(fresh: &Decision, request: &Request, wait: Duration) -> Decision {
    let outcome = match fresh.outcome() {
        Outcome::Allowed if wants_tokens(request) => Outcome::Denied { retry_after: wait },
        other => other,
    };
    Decision::new(outcome, fresh.limit(), 0, wait)
}

/// The first step of a key that starts with what strangers left in its place, or fresh: the state it leaves, and the step.
/// `S` is a state as the store keeps it; its default is fresh.
///
/// A refund that finds its key gone has nothing to give back to: the debt went to others. A change of limits finds no state to
/// change, and must not change a stranger's: what it brings counts beside the inherited debt, whichever is more.
pub(crate) fn newcomer<A: Algorithm, S: Default>(
    algorithm: &A,
    request: &Request,
    inherited: S,
    step: impl Fn(&mut S, &Request) -> Step,
    debt_ns: impl Fn(&S) -> u64,
) -> (S, Step) {
    let mut state = inherited;
    if algorithm.is_change() {
        let mut own = S::default();
        let changed = step(&mut own, request);
        if changed.keep.is_some() && debt_ns(&own) > debt_ns(&state) {
            state = own;
        }
        return (state, changed);
    }
    let request = match request {
        Request::Refund { .. } => &Request::PEEK,
        Request::Take { .. } => request,
    };
    let step = step(&mut state, request);
    (state, step)
}
