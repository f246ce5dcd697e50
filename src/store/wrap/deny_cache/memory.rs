//! The refusals, and what is learned from each answer.

use core::fmt;
use core::hash::Hash;
use core::time::Duration;

use crate::algorithm::Algorithm;
use crate::clock::Clock;
use crate::decision::{Decision, Outcome};
use crate::request::Request;
use crate::store::error::StoreError;
use crate::store::wrap::sets::{Note, Place, Sets};
use crate::time::duration_ns;

pub(super) struct Memory<C> {
    pub(super) denials: Sets<Denial>,
    pub(super) clock: C,
    pub(super) max_age_ns: u64,
}

/// A refusal, in nanoseconds of the local clock.
pub(super) struct Denial {
    cost: u64,
    /// Tells limits apart, [`Algorithm::fingerprint`]; never 0.
    limit: u64,
    /// What the decision said; for one of several limits, `index` says which.
    of: u64,
    index: usize,
    remaining: u64,
    /// Just before the store was asked.
    from_ns: u64,
    /// When the wait is over.
    until_ns: u64,
    /// When it is no longer to be trusted, at the latest `until_ns`.
    ends_ns: u64,
    /// When the limit has forgotten everything.
    reset_ns: u64,
}

impl Note for Denial {
    fn ends_ns(&self) -> u64 {
        self.ends_ns
    }
}

impl Denial {
    fn decision(&self, now_ns: u64) -> Decision {
        let left_ns = self.until_ns.saturating_sub(now_ns).max(1);
        let reset_ns = self.reset_ns.saturating_sub(now_ns).max(left_ns);
        let outcome = Outcome::Denied {
            retry_after: Duration::from_nanos(left_ns),
        };
        let reset_after = Duration::from_nanos(reset_ns);
        Decision::new(outcome, self.of, self.remaining, reset_after).with_index(self.index)
    }
}

pub(super) enum Looked<'a> {
    Known(Decision),
    Ask(Question<'a>),
}

/// A request on its way to the store.
pub(super) struct Question<'a> {
    place: Place<'a, Denial>,
    kind: Kind,
}

enum Kind {
    /// A refusal of it is to be remembered.
    Plain {
        cost: u64,
        limit: u64,
        from_ns: u64,
        max_age_ns: u64,
        /// Of the set, when the store was about to be asked.
        version: u64,
    },
    Other,
    /// It may end refusals, whatever becomes of it.
    GivesBack,
}

impl<C: Clock> Memory<C> {
    /// Answers, unless `before` has a question about the same key: its answer comes first and may change this one.
    pub(super) fn look<K, A>(
        &self,
        key: &K,
        algorithm: &A,
        request: &Request,
        before: &[Question<'_>],
    ) -> Looked<'_>
    where
        K: Hash + ?Sized,
        A: Algorithm,
    {
        let place = self.denials.place(key);
        let limit = algorithm.fingerprint();
        let kind = match *request {
            Request::Refund { .. } => Kind::GivesBack,
            Request::Take {
                cost,
                at_least,
                max_wait,
            } if at_least > 0 && max_wait.is_zero() && limit != 0 => {
                let from_ns = self.clock.now().as_nanos();
                let tag = place.tag;
                let is_next = !before.iter().any(|question| question.place.tag == tag);
                let looked = place.with(|set| {
                    let found = set.find(tag, |denial| {
                        denial.cost == at_least
                            && denial.limit == limit
                            && (denial.from_ns..denial.ends_ns).contains(&from_ns)
                    });
                    match found.filter(|_| is_next) {
                        Some(denial) => {
                            let decision = denial.decision(from_ns);
                            set.hits = set.hits.saturating_add(1);
                            Ok(decision)
                        }
                        None => Err(set.version),
                    }
                });
                match looked {
                    Ok(decision) => return Looked::Known(decision),
                    Err(version) if at_least == cost => Kind::Plain {
                        cost,
                        limit,
                        from_ns,
                        max_age_ns: self.max_age_ns,
                        version,
                    },
                    Err(_) => Kind::Other,
                }
            }
            Request::Take { .. } => Kind::Other,
        };
        Looked::Ask(Question { place, kind })
    }

    pub(super) fn forgetting<K: Hash + ?Sized>(&self, key: &K) -> Question<'_> {
        Question {
            place: self.denials.place(key),
            kind: Kind::GivesBack,
        }
    }
}

impl Question<'_> {
    /// What the store's answer says about later requests.
    pub(super) fn answered(&self, result: &Result<Decision, StoreError>) {
        let Ok(decision) = result else { return };
        if decision.is_degraded() {
            return;
        }
        match decision.outcome() {
            Outcome::Denied { retry_after } => self.denied(decision, retry_after),
            Outcome::Allowed if decision.granted() > 0 => {
                self.place.with(|set| set.remove(self.place.tag));
            }
            _ => {}
        }
    }

    fn denied(&self, decision: &Decision, retry_after: Duration) {
        let Kind::Plain {
            cost,
            limit,
            from_ns,
            max_age_ns,
            version,
        } = self.kind
        else {
            return;
        };
        let until_ns = from_ns.saturating_add(duration_ns(retry_after));
        let denial = Denial {
            cost,
            limit,
            of: decision.limit(),
            index: decision.index(),
            remaining: decision.remaining(),
            from_ns,
            until_ns,
            ends_ns: until_ns.min(from_ns.saturating_add(max_age_ns)),
            reset_ns: from_ns.saturating_add(duration_ns(decision.reset_after())),
        };
        self.place.with(|set| {
            // Tokens given back meanwhile may have come after this refusal.
            if set.version == version {
                set.put(self.place.tag, denial, |old| {
                    old.cost == cost && old.limit == limit
                });
            }
        });
    }
}

/// Also when the future is dropped: by then the store may have done it.
impl Drop for Question<'_> {
    fn drop(&mut self) {
        if let Kind::GivesBack = self.kind {
            self.place.with(|set| {
                set.remove(self.place.tag);
                set.version = set.version.wrapping_add(1);
            });
        }
    }
}

impl<C> fmt::Debug for Memory<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory")
            .field("denials", &self.denials)
            .field("max_age_ns", &self.max_age_ns)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::wrap::sets::tests::bytes_per_note;

    #[test]
    fn a_refusal_takes_what_the_documentation_says() {
        let bytes = bytes_per_note::<Denial>();
        assert!((90..=115).contains(&bytes), "{bytes}");
    }
}
