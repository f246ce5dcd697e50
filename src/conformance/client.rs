//! One key of one store, and its answers.

use alloc::format;
use alloc::string::{String, ToString as _};
use core::fmt::{Debug, Display};
use core::time::Duration;

use super::backend::Stored;
use super::finding::{Checked, Finding};
use super::kit::Kit;
use super::need::Need;
use super::seen::Seen;
use crate::algorithm::{Algorithm, Carry};
use crate::decision::{Decision, Outcome};
use crate::request::{Receipt, Request};
use crate::store::{AsyncStore as _, DynStore, ErrorKind, KeyKind, StoreError};

/// A key in a store, under a limit.
#[derive(Clone)]
pub(super) struct Client<'s, A: Algorithm> {
    pub(super) kit: Kit<'s>,
    pub(super) store: DynStore<str, A>,
    pub(super) space: String,
    pub(super) key: String,
    pub(super) limit: A,
}

impl<'s, A: Algorithm> Client<'s, A> {
    pub(super) fn new(kit: Kit<'s>, store: DynStore<str, A>, space: String, limit: A) -> Self {
        Self {
            kit,
            store,
            space,
            key: String::from("client"),
            limit,
        }
    }

    pub(super) fn with_key(&self, key: impl Into<String>) -> Self
    where
        A: Clone,
    {
        Self {
            key: key.into(),
            ..self.clone()
        }
    }

    pub(super) fn with_limit(&self, limit: A) -> Self
    where
        A: Clone,
    {
        Self {
            limit,
            ..self.clone()
        }
    }

    /// What is stored for the key.
    pub(super) fn read(&self) -> Result<Option<Stored>, Finding> {
        let kind = KeyKind::of(&self.limit);
        Ok(self.kit.backend()?.read(&self.space, &self.key, &kind))
    }

    /// What is stored for the key, which must be something.
    pub(super) fn stored(&self, case: impl Display) -> Result<Stored, Finding> {
        let stored = self.read()?;
        stored.ok_or_else(|| self.kit.broken(case, "a stored value", "none"))
    }

    /// What the store says, whatever that is.
    pub(super) fn try_ask(&self, request: Request) -> Result<Decision, StoreError> {
        let future = self.store.apply_async(&self.key, &self.limit, request);
        self.kit.run(future)
    }

    /// What the store decides. That it makes no decision breaks the clause, unless it does not support the kind of request.
    pub(super) fn ask(&self, case: impl Display, request: Request) -> Result<Answer<'s>, Finding> {
        let need = need_of(&request);
        match (self.try_ask(request), need) {
            (Ok(decision), _) => Ok(Answer {
                kit: self.kit,
                case: case.to_string(),
                seen: Seen::from(&decision),
                receipt: decision.into_receipt(),
            }),
            (Err(error), Some(need)) if error.kind() == ErrorKind::Unsupported => {
                Err(self.kit.lacks(need))
            }
            (Err(error), _) => Err(self.kit.broken(case, "a decision", Shown(&error))),
        }
    }

    pub(super) fn take(&self, case: impl Display, cost: u64) -> Result<Answer<'s>, Finding> {
        self.ask(case, Request::take(cost))
    }

    pub(super) fn peek(&self, case: impl Display) -> Result<Answer<'s>, Finding> {
        self.ask(case, Request::PEEK)
    }

    /// Moves the key from this client's limit to another one; what comes back is a client under that.
    pub(super) fn change(
        &self,
        case: impl Display,
        new: A,
        carry: Carry,
    ) -> Result<(Self, Answer<'s>), Finding>
    where
        A: Clone,
    {
        let future = self.store.change_async(&self.key, &self.limit, &new, carry);
        match self.kit.run(future) {
            Ok(decision) if decision.outcome() == Outcome::Unsupported => {
                Err(self.kit.lacks(Need::Changes))
            }
            Ok(decision) => {
                let answer = Answer {
                    kit: self.kit,
                    case: case.to_string(),
                    seen: Seen::from(&decision),
                    receipt: decision.into_receipt(),
                };
                Ok((self.with_limit(new), answer))
            }
            Err(error) if error.kind() == ErrorKind::Unsupported => {
                Err(self.kit.lacks(Need::Changes))
            }
            Err(error) => Err(self.kit.broken(case, "a decision", Shown(&error))),
        }
    }

    /// Takes all there is, which must be `tokens`, and one more in vain.
    pub(super) fn exhaust(&self, tokens: u64) -> Checked {
        self.take("all tokens of a fresh key", tokens)?
            .allowed()?
            .leaves(0)?;
        self.take("one more", 1)?.denied()?.leaves(0)?;
        Ok(())
    }

    /// That the store refuses to decide, as it should.
    pub(super) fn fails(&self, case: impl Display, request: Request, kind: ErrorKind) -> Checked {
        match self.try_ask(request) {
            Err(error) if error.kind() == kind => Ok(()),
            Err(error) => {
                Err(self
                    .kit
                    .broken(case, format!("an error of kind {kind:?}"), Shown(&error)))
            }
            Ok(decision) => Err(self.kit.broken(
                case,
                format!("an error of kind {kind:?}"),
                format!("{decision:?}"),
            )),
        }
    }
}

/// What a store must support to answer a request; `None` for plain takes, which all support.
pub(super) fn need_of(request: &Request) -> Option<Need> {
    match request {
        Request::Refund { .. } => Some(Need::Refunds),
        Request::Take { max_wait, .. } if !max_wait.is_zero() => Some(Need::Reservations),
        Request::Take { cost, at_least, .. } if at_least < cost => Some(Need::PartialGrants),
        Request::Take { .. } => None,
    }
}

/// An error with its kind and source.
pub(super) struct Shown<'e>(pub(super) &'e StoreError);

impl Display for Shown<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "error of kind {:?}: {}", self.0.kind(), self.0)?;
        match core::error::Error::source(self.0) {
            Some(source) => write!(f, " ({source})"),
            None => Ok(()),
        }
    }
}

/// A decision, and what it should be.
pub(super) struct Answer<'s> {
    kit: Kit<'s>,
    case: String,
    pub(super) seen: Seen,
    pub(super) receipt: Receipt,
}

impl Answer<'_> {
    pub(super) fn allowed(self) -> Result<Self, Finding> {
        self.outcome(Outcome::Allowed)
    }

    pub(super) fn too_large(self) -> Result<Self, Finding> {
        self.outcome(Outcome::TooLarge)?.grants(0)
    }

    pub(super) fn denied_for(self, retry_after: Duration) -> Result<Self, Finding> {
        self.outcome(Outcome::Denied { retry_after })?.grants(0)
    }

    /// Denied for a while, but not for longer than `longest`.
    pub(super) fn denied_up_to(self, longest: Duration) -> Result<Self, Finding> {
        match self.seen.outcome {
            Outcome::Denied { retry_after } if !retry_after.is_zero() && retry_after <= longest => {
                self.grants(0)
            }
            _ => Err(self.wrong(&format!("denied for at most {longest:?}"))),
        }
    }

    pub(super) fn denied(self) -> Result<Self, Finding> {
        self.denied_up_to(Duration::MAX)
    }

    pub(super) fn leaves(self, remaining: u64) -> Result<Self, Finding> {
        let actual = self.seen.remaining;
        self.same("remaining", remaining, actual)
    }

    pub(super) fn resets_in(self, reset_after: Duration) -> Result<Self, Finding> {
        let actual = self.seen.reset_after;
        self.same("reset after", reset_after, actual)
    }

    pub(super) fn waits(self, wait: Duration) -> Result<Self, Finding> {
        let actual = self.seen.wait;
        self.same("wait", wait, actual)
    }

    pub(super) fn grants(self, granted: u64) -> Result<Self, Finding> {
        let actual = self.seen.granted;
        self.same("granted", granted, actual)
    }

    pub(super) fn leaves_uncharged(self, uncharged: u64) -> Result<Self, Finding> {
        let actual = self.seen.uncharged;
        self.same("uncharged", uncharged, actual)
    }

    pub(super) fn names(self, index: usize, limit: u64) -> Result<Self, Finding> {
        let actual = (self.seen.index, self.seen.limit);
        self.same("index and limit", (index, limit), actual)
    }

    fn outcome(self, outcome: Outcome) -> Result<Self, Finding> {
        let actual = self.seen.outcome;
        self.same("outcome", outcome, actual)
    }

    fn same<T: PartialEq + Debug>(
        self,
        what: &str,
        expected: T,
        actual: T,
    ) -> Result<Self, Finding> {
        if expected == actual {
            Ok(self)
        } else {
            Err(self.wrong(&format!("{what}: {expected:?}")))
        }
    }

    fn wrong(&self, expected: &str) -> Finding {
        self.kit
            .broken(&self.case, expected, format!("{:?}", self.seen))
    }
}
