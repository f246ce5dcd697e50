//! The balances, and the errands that fill them.

use core::fmt;
use core::hash::Hash;
use core::time::Duration;

use crate::algorithm::Algorithm;
use crate::clock::Clock;
use crate::decision::{Decision, Outcome};
use crate::request::{Receipt, Request};
use crate::store::error::StoreError;
use crate::store::wrap::fail::degraded;
use crate::store::wrap::sets::{Note, Place, Sets};
use crate::time::duration_ns;

pub(super) struct Ledger<C> {
    pub(super) leases: Sets<Lease>,
    pub(super) clock: C,
    pub(super) batch: u64,
    pub(super) expiry_ns: u64,
}

/// What is left of a key's last lease under one limit. Times are in nanoseconds of the local clock.
#[derive(Default)]
pub(super) struct Lease {
    /// Tells limits apart, [`Algorithm::fingerprint`]; never 0 while it is kept.
    under: u64,
    /// At most `batch − 1`, also together with what is under way.
    balance: u64,
    /// Just before the store was asked.
    from_ns: u64,
    expires_ns: u64,
    flight: Option<Flight>,
    /// What the store said then.
    limit: u64,
    index: usize,
    remaining: u64,
    reset_ns: u64,
}

/// A lease that somebody has asked for.
#[derive(Clone, Copy)]
struct Flight {
    /// Of all flights in this set.
    number: u64,
    cost: u64,
    from_ns: u64,
    /// What comes later has expired when it comes.
    until_ns: u64,
}

impl Note for Lease {
    fn ends_ns(&self) -> u64 {
        let flight_ns = self.flight.map_or(0, |flight| flight.until_ns);
        if self.balance > 0 {
            self.expires_ns.max(flight_ns)
        } else {
            flight_ns
        }
    }
}

impl Lease {
    fn is_alive(&self, now_ns: u64) -> bool {
        (self.from_ns..self.expires_ns).contains(&now_ns)
    }

    fn flight(&self, now_ns: u64) -> Option<Flight> {
        self.flight
            .filter(|flight| (flight.from_ns..flight.until_ns).contains(&now_ns))
    }

    /// The store's answer, without what the purchase was for.
    fn bought(purchase: &Purchase, decision: &Decision) -> Self {
        let reset_after_ns = duration_ns(decision.reset_after());
        Self {
            under: purchase.under,
            balance: decision.granted().saturating_sub(purchase.cost),
            from_ns: purchase.from_ns,
            expires_ns: purchase.expires_ns,
            flight: None,
            limit: decision.limit(),
            index: decision.index(),
            remaining: decision.remaining(),
            reset_ns: purchase.from_ns.saturating_add(reset_after_ns),
        }
    }

    fn is_under_way(&self, number: u64) -> bool {
        self.flight.is_some_and(|flight| flight.number == number)
    }

    /// An answer without the store.
    fn allowed(&self, now_ns: u64) -> Decision {
        let reset_after = Duration::from_nanos(self.reset_ns.saturating_sub(now_ns));
        let remaining = self.remaining.max(self.balance);
        Decision::new(Outcome::Allowed, self.limit, remaining, reset_after).with_index(self.index)
    }
}

/// A receipt of tokens that were bought, but not by their taker.
const fn leased(tokens: u64) -> Receipt {
    Receipt::new(tokens, Receipt::LEASED_MARK)
}

pub(super) enum Planned<'a> {
    Answered(Decision),
    Ask(Request, Errand<'a>),
}

/// A request on its way to the store.
pub(super) struct Errand<'a> {
    place: Place<'a, Lease>,
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    /// Buys more than it needs.
    Buys(Purchase),
    PassesOn,
    Forgets,
}

#[derive(Clone, Copy)]
struct Purchase {
    /// Which limit.
    under: u64,
    /// What it needs, below `batch`.
    cost: u64,
    batch: u64,
    /// Of the flight.
    number: u64,
    from_ns: u64,
    expires_ns: u64,
}

impl<C: Clock> Ledger<C> {
    pub(super) fn plan<K: Hash + ?Sized, A: Algorithm>(
        &self,
        key: &K,
        algorithm: &A,
        request: Request,
    ) -> Planned<'_> {
        let place = self.leases.place(key);
        let mut kind = Kind::PassesOn;
        let under = algorithm.fingerprint();
        match &request {
            _ if under == 0 => {}
            Request::Take {
                cost,
                at_least,
                max_wait,
            } if (1..self.batch).contains(cost) && at_least == cost && max_wait.is_zero() => {
                match self.spend(&place, under, *cost) {
                    Spent::Yes(decision) => return Planned::Answered(decision),
                    Spent::Buy(purchase) => kind = Kind::Buys(purchase),
                    Spent::No => {}
                }
            }
            Request::Refund { cost, receipt } if is_leased(receipt) => {
                if let Some(decision) = self.give_back(&place, under, receipt.charged().min(*cost))
                {
                    return Planned::Answered(decision);
                }
            }
            _ => {}
        }
        let request = match kind {
            Kind::Buys(purchase) => Request::up_to(self.batch).at_least(purchase.cost),
            _ => request,
        };
        Planned::Ask(request, Errand { place, kind })
    }

    fn spend(&self, place: &Place<'_, Lease>, under: u64, cost: u64) -> Spent {
        let now_ns = self.clock.now().as_nanos();
        let expires_ns = now_ns.saturating_add(self.expiry_ns);
        place.with(|set| {
            let number = set.version;
            let mut new = Lease {
                under,
                ..Lease::default()
            };
            let found = set.find(place.tag, |lease| lease.under == under);
            let is_new = found.is_none();
            let lease = found.unwrap_or(&mut new);
            if !lease.is_alive(now_ns) {
                lease.balance = 0;
            }
            if let Some(left) = lease.balance.checked_sub(cost) {
                lease.balance = left;
                let decision = lease.allowed(now_ns).with_receipt(leased(cost));
                set.hits = set.hits.saturating_add(1);
                return Spent::Yes(decision);
            }
            if lease.flight(now_ns).is_some() {
                return Spent::No;
            }
            lease.flight = Some(Flight {
                number,
                cost,
                from_ns: now_ns,
                until_ns: expires_ns,
            });
            if is_new {
                set.put(place.tag, new, |_| false);
            }
            set.version = number.wrapping_add(1);
            Spent::Buy(Purchase {
                under,
                cost,
                batch: self.batch,
                number,
                from_ns: now_ns,
                expires_ns,
            })
        })
    }

    /// Tokens come back to a lease that is still there; otherwise only the store can say how the key stands.
    fn give_back(&self, place: &Place<'_, Lease>, under: u64, tokens: u64) -> Option<Decision> {
        let now_ns = self.clock.now().as_nanos();
        let batch = self.batch;
        place.with(|set| {
            let lease = set.find(place.tag, |lease| {
                lease.under == under && lease.is_alive(now_ns)
            })?;
            // What is under way may bring all but its own cost.
            let room = lease.flight(now_ns).map_or(batch, |flight| flight.cost);
            let most = room.saturating_sub(1).max(lease.balance);
            lease.balance = lease.balance.saturating_add(tokens).min(most);
            let decision = lease.allowed(now_ns);
            set.hits = set.hits.saturating_add(1);
            Some(decision)
        })
    }

    pub(super) fn forgetting<K: Hash + ?Sized>(&self, key: &K) -> Errand<'_> {
        Errand {
            place: self.leases.place(key),
            kind: Kind::Forgets,
        }
    }
}

enum Spent {
    Yes(Decision),
    Buy(Purchase),
    /// Somebody else is buying.
    No,
}

fn is_leased(receipt: &Receipt) -> bool {
    receipt.mark() == Receipt::LEASED_MARK && receipt.run_at_ns() == 0
}

impl Errand<'_> {
    /// What the caller gets of the store's answer; the rest goes into the balance.
    pub(super) fn answered(
        self,
        result: Result<Decision, StoreError>,
    ) -> Result<Decision, StoreError> {
        let Kind::Buys(purchase) = self.kind else {
            return result;
        };
        let decision = result?;
        let cost = purchase.cost;
        if !decision.is_allowed() || decision.granted() <= cost {
            return Ok(decision);
        }
        if decision.is_degraded() {
            // Nobody has paid for these.
            return Ok(degraded(decision.with_receipt(Receipt::new(cost, 0))));
        }
        let mut lease = Lease::bought(&purchase, &decision);
        let decision = self.place.with(|set| {
            let found = set.find(self.place.tag, |lease| lease.is_under_way(purchase.number));
            let Some(old) = found else {
                // Evicted or forgotten meanwhile. There may be another lease by now, so the rest is lost.
                lease.balance = 0;
                return lease.allowed(purchase.from_ns);
            };
            if old.is_alive(purchase.from_ns) {
                lease.balance = lease.balance.saturating_add(old.balance);
            }
            lease.balance = lease.balance.min(purchase.batch.saturating_sub(1));
            *old = lease;
            old.allowed(purchase.from_ns)
        });
        Ok(decision.with_receipt(leased(cost)))
    }
}

/// Also when the future is dropped: then the next caller asks for a lease.
impl Drop for Errand<'_> {
    fn drop(&mut self) {
        let tag = self.place.tag;
        match self.kind {
            Kind::Buys(Purchase { number, .. }) => self.place.with(|set| {
                if let Some(lease) = set.find(tag, |lease| lease.is_under_way(number)) {
                    lease.flight = None;
                }
            }),
            Kind::Forgets => self.place.with(|set| set.remove(tag)),
            Kind::PassesOn => {}
        }
    }
}

impl<C> fmt::Debug for Ledger<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ledger")
            .field("leases", &self.leases)
            .field("batch", &self.batch)
            .field("expiry_ns", &self.expiry_ns)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::wrap::sets::tests::bytes_per_note;

    #[test]
    fn a_balance_takes_what_the_documentation_says() {
        let bytes = bytes_per_note::<Lease>();
        assert!((90..=115).contains(&bytes), "{bytes}");
    }
}
