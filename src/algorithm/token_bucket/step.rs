//! The step: room first, then charge.
//!
//! # Speed
//! A plain check is meant to be folded into its caller: a compare or two, an addition, the exchange. Hence the
//! forced inlining of that path, and the opposite for all others, which would otherwise make it too large to be
//! inlined; a `Step` that goes through memory costs three times the decision (13.3 against 4.1 ns for `check_at` over
//! a bare load and exchange of 2.9).

use core::fmt;
use core::time::Duration;

use super::TokenBucket;
use super::lattice::Point;
use super::value::WITH_REACH;
use crate::algorithm::{Algorithm, Carry, StateKind, Step};
use crate::decision::{BucketNumbers, Decision, Numbers, Outcome};
use crate::request::{Receipt, Request};
use crate::store::{BUCKET, Opened, StateBytes, StoreError, StoredStep, step_under};
use crate::time::{Timestamp, duration_ns, saturate};

impl Algorithm for TokenBucket {
    /// The TAT in nanoseconds. 0 lies in the past of every clock: a full bucket.
    type State = u64;

    #[inline(always)]
    fn step(&self, now: Timestamp, tat: &mut u64, request: &Request) -> Step {
        let now_ns = now.as_nanos();
        match request {
            Request::Take {
                cost: 1,
                at_least: 1,
                max_wait,
            } if max_wait.is_zero() => self.take(now_ns, tat, 1, 0),
            Request::Take {
                cost,
                at_least,
                max_wait,
            } => self.take_any(now_ns, tat, *cost, *at_least, *max_wait),
            Request::Refund { cost, receipt } => self.refund(now_ns, tat, *cost, receipt.into()),
        }
    }

    fn change(&self, now: Timestamp, tat: &mut u64, old: &Self, carry: Carry) -> bool {
        *tat = self.changed(now.as_nanos(), *tat, old, carry);
        true
    }

    /// Whichever limit left the state: a TAT that is over is over.
    #[inline]
    fn debt_ns(&self, now: Timestamp, tat: &u64) -> u64 {
        tat.saturating_sub(now.as_nanos())
    }

    fn tag(&self) -> u8 {
        self.value_tag()
    }

    fn wire_len(&self) -> usize {
        self.value_len()
    }

    fn open_body(&self, now: Timestamp, body: &[u8]) -> (u64, bool) {
        Self::opened_body(now, body)
    }

    fn seal_body(&self, tat: &u64, before: Option<(&u64, &[u8])>, takes: bool, out: &mut [u8]) {
        self.sealed_body(*tat, before, takes, out);
    }

    fn open_value(
        &self,
        now: Timestamp,
        found: &StateBytes,
    ) -> Result<Option<Opened<u64>>, StoreError> {
        self.opened(now, found)
    }

    fn seal_value(
        &self,
        tat: &u64,
        before: Option<(&u64, &StateBytes)>,
        takes: bool,
    ) -> Result<StateBytes, StoreError> {
        self.sealed(*tat, before, takes)
    }

    fn step_value(
        &self,
        now: Timestamp,
        found: Option<&StateBytes>,
        request: &Request,
    ) -> Result<StoredStep, StoreError> {
        let newer = found.map_or(Ok(None), |found| self.newer_than_this(found))?;
        step_under(newer.as_ref().unwrap_or(self), now, found, request)
    }

    fn version(&self) -> u16 {
        self.version
    }

    fn is_stateless(&self) -> bool {
        !self.is_finite()
    }

    fn adopted(&self, found: &StateBytes) -> Result<Option<Self>, StoreError> {
        self.newer_than_this(found)
    }

    fn write_kind(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        out.write_str(BUCKET)
    }

    /// All buckets share states, with a version or without.
    #[inline]
    fn state_kind(&self) -> StateKind {
        StateKind::of_tag(WITH_REACH)
    }

    fn fingerprint(&self) -> u64 {
        let numbers = [self.rate.n, self.rate.p, self.burst, self.max_wait_ns];
        let kinds = numbers.into_iter().map(StateKind::of_number);
        kinds.fold(self.state_kind(), StateKind::and).number()
    }
}

impl TokenBucket {
    /// All or nothing, at once or up to `wait_ns` (at most `max_wait`) later.
    #[inline(always)]
    fn take(&self, now_ns: u64, tat: &mut u64, cost: u64, wait_ns: u64) -> Step {
        if cost <= self.burst {
            if *tat <= now_ns {
                // Full: there is room. A branch rather than a maximum, so that in the other case only the
                // last comparison waits for the clock.
                let base = self.lattice.snap(self.rate, now_ns);
                if let Some(charged_ns) = self.charged(base, cost) {
                    *tat = charged_ns;
                    return self.granted(now_ns, base, charged_ns, cost, 0);
                }
            } else {
                let base = self.lattice.snap(self.rate, *tat);
                if let Some(charged_ns) = self.charged(base, cost) {
                    let ready_ns = self.ready(base, cost);
                    let latest_ns = now_ns.saturating_add(wait_ns);
                    if ready_ns <= latest_ns {
                        *tat = charged_ns;
                        return self.granted(now_ns, base, charged_ns, cost, ready_ns);
                    }
                    let numbers = Numbers::Bucket(self.numbers(now_ns, base));
                    return Step::unchanged(Decision::denied(ready_ns - latest_ns, numbers));
                }
            }
        }
        self.refuse(now_ns, *tat, cost)
    }

    /// Every other way of taking: peeks, partial grants, reservations, charges.
    #[inline(never)]
    fn take_any(
        &self,
        now_ns: u64,
        tat: &mut u64,
        cost: u64,
        at_least: u64,
        max_wait: Duration,
    ) -> Step {
        if !self.is_finite() {
            let is_charge = at_least == 0 && max_wait == Duration::MAX;
            return self.extreme(now_ns, *tat, cost, at_least, is_charge);
        }
        let base = self.base(now_ns, *tat);
        if cost == 0 {
            return Step::unchanged(self.decision(Outcome::Allowed, now_ns, base));
        }
        if at_least == 0 && max_wait == Duration::MAX {
            return self.charge(now_ns, tat, cost);
        }
        let wait_ns = duration_ns(max_wait).min(self.max_wait_ns);
        if at_least >= cost {
            return self.take(now_ns, tat, cost, wait_ns);
        }
        let grant = self.numbers(now_ns, base).grantable(wait_ns).min(cost);
        if grant == 0 && at_least == 0 {
            return Step::unchanged(self.decision(Outcome::Allowed, now_ns, base));
        }
        // A grant of fewer tokens than accepted is refused, with the wait for the least acceptable.
        self.take(now_ns, tat, grant.max(at_least).max(1), wait_ns)
    }

    /// Charges work that was already done: never refused, but in whole tokens, and no deeper than `max_wait` into
    /// debt. What finds no room writes nothing; otherwise charges that come often would keep the bucket at its
    /// deepest, whatever fraction of a token each of them added.
    pub(super) fn charge(&self, now_ns: u64, tat: &mut u64, cost: u64) -> Step {
        let base = self.base(now_ns, *tat);
        let room_ns = self.latest_tat(now_ns).saturating_sub(base.ns);
        let charged = self.rate.tokens_within(room_ns, base.fraction).min(cost);
        if charged == 0 {
            let decision = self.decision(Outcome::Allowed, now_ns, base);
            let decision = decision.with_wait_ns(self.overdrawn_ns(now_ns, base));
            return Step::unchanged(decision.with_uncharged(cost));
        }
        // At most the room, so it fits.
        let new_ns = base.ns + saturate(self.rate.charge_ns(charged, base.fraction));
        let after = self.base(now_ns, new_ns);
        *tat = new_ns;
        let decision = self
            .decision(Outcome::Allowed, now_ns, after)
            .with_wait_ns(self.overdrawn_ns(now_ns, after))
            .with_uncharged(cost - charged)
            .with_receipt(Receipt::new(charged, new_ns));
        Step::write(
            decision,
            Duration::from_nanos(new_ns.saturating_sub(now_ns)),
        )
    }

    /// How long until the bucket owes nothing, that is, until it is empty rather than overdrawn.
    fn overdrawn_ns(&self, now_ns: u64, at: Point) -> u64 {
        let credit_ns = saturate(self.rate.credit_ns(self.burst, at.fraction));
        at.ns.saturating_sub(credit_ns).saturating_sub(now_ns)
    }

    /// Whether somebody stands in line: a reservation, or a charge beyond the burst, is not paid yet.
    pub(super) fn has_line(&self, now_ns: u64, at: Point) -> bool {
        self.overdrawn_ns(now_ns, at) > 0
    }

    /// Writes a TAT if it differs from the one there.
    pub(super) fn store(
        &self,
        now_ns: u64,
        tat: &mut u64,
        new_ns: u64,
        decision: Decision,
    ) -> Step {
        if *tat == new_ns {
            return Step::unchanged(decision);
        }
        *tat = new_ns;
        Step::write(
            decision,
            Duration::from_nanos(new_ns.saturating_sub(now_ns)),
        )
    }

    /// The instant a charge starts from: the TAT, or now if the bucket is full.
    #[inline]
    pub(super) fn base(&self, now_ns: u64, tat_ns: u64) -> Point {
        self.lattice.snap(self.rate, tat_ns.max(now_ns))
    }

    /// The TAT after taking `cost` tokens, unless that is past the end of time.
    #[inline]
    pub(super) fn charged(&self, base: Point, cost: u64) -> Option<u64> {
        let charge_ns = if cost == 1 {
            self.lattice.token_ns(base.fraction)
        } else {
            u64::try_from(self.rate.charge_ns(cost, base.fraction)).ok()?
        };
        base.ns.checked_add(charge_ns)
    }

    /// The first instant at which the bucket holds `cost` tokens; 0 if that was before the epoch.
    #[inline]
    fn ready(&self, base: Point, cost: u64) -> u64 {
        let credit_ns = if cost == 1 {
            let (quotient, remainder) = self.all_but_one;
            // Same as below; the sum of two remainders below n carries at most once.
            quotient.saturating_add(u64::from(remainder >= self.rate.n - base.fraction))
        } else {
            saturate(self.rate.credit_ns(self.burst - cost, base.fraction))
        };
        base.ns.saturating_sub(credit_ns)
    }

    #[inline(always)]
    fn granted(&self, now_ns: u64, base: Point, charged_ns: u64, cost: u64, ready_ns: u64) -> Step {
        // On the lattice, n·(new − old) = c·P + new fraction − old fraction.
        let fraction = (charged_ns - base.ns)
            .wrapping_mul(self.rate.n)
            .wrapping_add(base.fraction)
            .wrapping_sub(cost.wrapping_mul(self.rate.p));
        let fraction = if self.lattice.is_trivial() {
            0
        } else {
            fraction
        };
        let mut decision = self.decision(
            Outcome::Allowed,
            now_ns,
            Point {
                ns: charged_ns,
                fraction,
            },
        );
        let mut receipt = Receipt::new(cost, charged_ns);
        if ready_ns > now_ns {
            receipt = receipt.with_run_at_ns(ready_ns);
            decision = decision.with_wait_ns(ready_ns - now_ns);
        }
        let keep = Duration::from_nanos(charged_ns.saturating_sub(now_ns));
        Step::write(decision.with_receipt(receipt), keep)
    }

    /// Refuses what can never pass: more than the bucket holds, or past the end of time. Also where a bucket that does not count
    /// is recognised.
    #[inline(always)] // a step that a function returns goes through memory, and so would all others that meet it
    pub(super) fn refuse(&self, now_ns: u64, tat_ns: u64, cost: u64) -> Step {
        rare();
        if !self.is_finite() {
            // Whatever else is asked was answered before it came here: this is a plain take.
            return self.extreme(now_ns, tat_ns, cost, cost, false);
        }
        let base = self.base(now_ns, tat_ns);
        Step::unchanged(self.decision(Outcome::TooLarge, now_ns, base))
    }

    #[inline]
    pub(super) fn decision(&self, outcome: Outcome, now_ns: u64, at: Point) -> Decision {
        Decision::from_numbers(outcome, Numbers::Bucket(self.numbers(now_ns, at)))
    }

    #[inline]
    fn numbers(&self, now_ns: u64, at: Point) -> BucketNumbers {
        let Point {
            ns: tat_ns,
            fraction,
        } = at;
        BucketNumbers {
            rate: self.rate,
            burst: self.burst,
            now_ns,
            tat_ns,
            fraction,
        }
    }
}

/// Says that what follows is rare.
#[cold]
#[inline(never)]
const fn rare() {}
