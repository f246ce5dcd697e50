//! Several limits on one key, all of which must allow: one state, one atomic step.
//!
//! Every member steps on a copy of its own part of the state. If all allow, the copies become the state;
//! if one refuses, nothing is charged anywhere. The wait is exactly the longest of the members' waits,
//! because waiting never turns a member's allow into a refusal.

use core::fmt;
use core::time::Duration;

use super::{Algorithm, Carry, StateKind, Step};
use crate::decision::{Decision, Outcome};
use crate::request::{MAX_LIMITS, Receipt, Request};
use crate::state::State;
use crate::time::{Timestamp, duration_ns};

/// All of these limits, at once: an array of up to four equal algorithms, or a tuple of two to four
/// different ones.
///
/// A request passes when every member lets it pass, and is charged to all of them or to none. The
/// decision speaks for the whole: `remaining` is the least, `reset_after` and the waits are the
/// longest, [`index`](Decision::index) and `limit` are those of the member that refused, or of the one
/// with the least left.
///
/// ```
/// use core::time::Duration;
/// use ratekeeper::{All, Limiter, Timestamp, TokenBucket};
///
/// static PAIR: Limiter<All<[TokenBucket; 2]>> =
///     Limiter::new(All([TokenBucket::per_second(1), TokenBucket::per_hour(2)]));
///
/// let at = |s| PAIR.check_at(Timestamp::ZERO + Duration::from_secs(s));
/// assert!(at(0).is_allowed());
/// assert_eq!(at(0).index(), 0); // one per second
/// assert!(at(1).is_allowed());
/// assert_eq!(at(2).index(), 1); // two per hour
/// ```
///
/// Two token buckets share one 128-bit atomic word. Wider combinations live under a mutex and need the
/// feature `std` to be shared between threads. [`SlidingLog`](crate::SlidingLog) cannot be a member: its
/// state is no fixed number of words.
///
/// # Bounds
/// Each member's own. With `max_wait`, a reservation is charged to every member when it is made but runs
/// when the slowest member is ready; counted when requests *run*, a member's window is therefore longer
/// by up to that wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct All<L>(pub L);

impl<A, const N: usize> Algorithm for All<[A; N]>
where
    A: Algorithm<State: Copy>,
    [A::State; N]: State + Copy,
{
    type State = [A::State; N];

    #[inline]
    fn step(&self, now: Timestamp, states: &mut Self::State, request: &Request) -> Step {
        step_each_of::<N, N, A>(&self.0, now, states, request)
    }

    fn change(&self, now: Timestamp, states: &mut Self::State, old: &Self, carry: Carry) -> bool {
        change_each_of(&self.0, now, states, &old.0, carry)
    }

    fn debt_ns(&self, now: Timestamp, states: &Self::State) -> u64 {
        longest_debt_ns(&self.0, now, states)
    }

    fn fingerprint(&self) -> u64 {
        fingerprint_of(self.0.iter().map(Algorithm::fingerprint))
    }

    fn state_kind(&self) -> StateKind {
        kind_of_all(&self.0)
    }

    fn tag(&self) -> u8 {
        tag_of(self.0.iter().map(Algorithm::tag))
    }

    fn wire_len(&self) -> usize {
        self.0.iter().map(Algorithm::wire_len).sum()
    }

    fn open_body(&self, now: Timestamp, body: &[u8]) -> (Self::State, bool) {
        open_bodies(&self.0, now, body)
    }

    fn seal_body(
        &self,
        states: &Self::State,
        before: Option<(&Self::State, &[u8])>,
        takes: bool,
        out: &mut [u8],
    ) {
        let before = before.map(|(states, body)| (&states[..], body));
        seal_bodies(&self.0, states, before, takes, out);
    }

    fn is_stateless(&self) -> bool {
        self.0.iter().all(Algorithm::is_stateless)
    }

    fn write_kind(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        write_kinds(&self.0, out)
    }
}

/// Buckets alone.
const BUCKETS_TAG: u8 = 0x24;
/// Any others. Which they are is part of the key.
const MIXED_TAG: u8 = 0x27;

/// The tag of limits with these tags together; 0 if one has no value that could stand among others, as a bucket with a version,
/// which would decide for its neighbours as well.
pub(super) fn tag_of(tags: impl IntoIterator<Item = u8>) -> u8 {
    let mut buckets_alone = true;
    for tag in tags {
        match tag {
            0 | 0x31 => return 0,
            0x21 => {}
            _ => buckets_alone = false,
        }
    }
    if buckets_alone {
        BUCKETS_TAG
    } else {
        MIXED_TAG
    }
}

/// Steps the first `N` of `M` limits, each on the state at its place.
#[inline]
pub(super) fn step_each_of<const N: usize, const M: usize, A: Algorithm<State: Copy>>(
    limits: &[A; M],
    now: Timestamp,
    states: &mut [A::State; M],
    request: &Request,
) -> Step {
    const { assert!(N <= M) };
    step_all::<N, _>(states, request, |states, request| {
        core::array::from_fn(|i| limits[i].step(now, &mut states[i], &request.for_limit(i)))
    })
}

/// Changes each state to the limit at its place, or none of them.
pub(super) fn change_each_of<A: Algorithm<State: Copy>, const M: usize>(
    limits: &[A],
    now: Timestamp,
    states: &mut [A::State; M],
    old: &[A],
    carry: Carry,
) -> bool {
    let mut changed = *states;
    let each = limits.iter().zip(old).zip(&mut changed);
    let all = limits.len() == old.len()
        && each.fold(true, |all, ((limit, old), state)| {
            all & limit.change(now, state, old, carry)
        });
    if all {
        *states = changed;
    }
    all
}

/// The longest time until one of the states is as good as new.
pub(super) fn longest_debt_ns<A: Algorithm>(
    limits: &[A],
    now: Timestamp,
    states: &[A::State],
) -> u64 {
    let debts = limits.iter().zip(states);
    let debts = debts.map(|(limit, state)| limit.debt_ns(now, state));
    debts.max().unwrap_or(0)
}

/// The kind of all these states together.
pub(super) fn kind_of_all<A: Algorithm>(limits: &[A]) -> StateKind {
    let kinds = limits.iter().map(Algorithm::state_kind);
    kinds.fold(StateKind::of_tag(MIXED_TAG), StateKind::and)
}

/// The states in the members' bodies, one after the other, and whether any was repaired.
pub(super) fn open_bodies<A: Algorithm, const M: usize>(
    limits: &[A],
    now: Timestamp,
    body: &[u8],
) -> ([A::State; M], bool) {
    let (mut rest, mut is_repaired) = (body, false);
    let states = core::array::from_fn(|i| {
        let Some(limit) = limits.get(i) else {
            return A::State::default();
        };
        let (member, after) = rest.split_at(limit.wire_len());
        rest = after;
        let (state, was_ahead) = limit.open_body(now, member);
        is_repaired |= was_ahead;
        state
    });
    (states, is_repaired)
}

/// Writes the members' bodies, one after the other.
pub(super) fn seal_bodies<A: Algorithm>(
    limits: &[A],
    states: &[A::State],
    before: Option<(&[A::State], &[u8])>,
    takes: bool,
    out: &mut [u8],
) {
    let mut start = 0;
    for (i, limit) in limits.iter().enumerate() {
        let end = start + limit.wire_len();
        let before = before.map(|(states, body)| (&states[i], &body[start..end]));
        limit.seal_body(&states[i], before, takes, &mut out[start..end]);
        start = end;
    }
}

/// The kinds of the members, one after the other.
pub(super) fn write_kinds<A: Algorithm>(limits: &[A], out: &mut dyn fmt::Write) -> fmt::Result {
    for (i, limit) in limits.iter().enumerate() {
        out.write_str(if i == 0 { "all-" } else { "+" })?;
        limit.write_kind(out)?;
    }
    Ok(())
}

macro_rules! all_of_tuple {
    ($count:literal: $($member:ident $index:tt),+) => {
        impl<$($member),+> Algorithm for All<($($member),+)>
        where
            $($member: Algorithm<State: Copy>,)+
            ($($member::State),+): State + Copy,
        {
            type State = ($($member::State),+);

            #[inline]
            fn step(&self, now: Timestamp, states: &mut Self::State, request: &Request) -> Step {
                step_all::<$count, _>(
                    states,
                    request,
                    |states, request| {
                        [$(self.0.$index.step(
                            now,
                            &mut states.$index,
                            &request.for_limit($index),
                        )),+]
                    },
                )
            }

            fn change(&self, now: Timestamp, states: &mut Self::State, old: &Self, carry: Carry) -> bool {
                let mut changed = *states;
                let all = true $(& self.0.$index.change(now, &mut changed.$index, &old.0.$index, carry))+;
                if all {
                    *states = changed;
                }
                all
            }

            fn debt_ns(&self, now: Timestamp, states: &Self::State) -> u64 {
                [$(self.0.$index.debt_ns(now, &states.$index)),+].into_iter().max().unwrap_or(0)
            }

            fn fingerprint(&self) -> u64 {
                fingerprint_of([$(self.0.$index.fingerprint()),+])
            }

            fn state_kind(&self) -> StateKind {
                [$(self.0.$index.state_kind()),+].into_iter().fold(StateKind::of_tag(MIXED_TAG), StateKind::and)
            }

            fn tag(&self) -> u8 {
                tag_of([$(self.0.$index.tag()),+])
            }

            fn wire_len(&self) -> usize {
                0 $(+ self.0.$index.wire_len())+
            }

            fn open_body(&self, now: Timestamp, body: &[u8]) -> (Self::State, bool) {
                let (mut rest, mut is_repaired) = (body, false);
                let states = ($({
                    let (member, after) = rest.split_at(self.0.$index.wire_len());
                    rest = after;
                    let (state, was_ahead) = self.0.$index.open_body(now, member);
                    is_repaired |= was_ahead;
                    state
                }),+);
                let _ = rest;
                (states, is_repaired)
            }

            fn seal_body(
                &self,
                states: &Self::State,
                before: Option<(&Self::State, &[u8])>,
                takes: bool,
                out: &mut [u8],
            ) {
                let mut start = 0;
                $(
                    let end = start + self.0.$index.wire_len();
                    let member = before.map(|(states, body)| (&states.$index, &body[start..end]));
                    self.0.$index.seal_body(&states.$index, member, takes, &mut out[start..end]);
                    start = end;
                )+
                let _ = start;
            }

            fn is_stateless(&self) -> bool {
                true $(&& self.0.$index.is_stateless())+
            }

            fn write_kind(&self, out: &mut dyn fmt::Write) -> fmt::Result {
                out.write_str("all")?;
                $(
                    out.write_str(if $index == 0 { "-" } else { "+" })?;
                    self.0.$index.write_kind(out)?;
                )+
                Ok(())
            }
        }
    };
}

all_of_tuple!(2: A 0, B 1);
all_of_tuple!(3: A 0, B 1, C 2);
all_of_tuple!(4: A 0, B 1, C 2, D 3);

/// Tells combinations from each other, if each of their members has a number that tells it from others.
fn fingerprint_of(members: impl IntoIterator<Item = u64>) -> u64 {
    let all = members
        .into_iter()
        .try_fold(StateKind::of_tag(MIXED_TAG), |all, member| {
            (member != 0).then(|| all.and(StateKind::of_number(member)))
        });
    all.map_or(0, StateKind::number)
}

/// Steps every member and makes one answer of theirs.
#[inline]
fn step_all<const N: usize, S: Copy>(
    states: &mut S,
    request: &Request,
    step_each: impl Fn(&mut S, &Request) -> [Step; N],
) -> Step {
    const { assert!(0 < N && N <= MAX_LIMITS, "All takes one to four limits") };
    let before = *states;
    let steps = step_each(states, request);

    if steps.iter().all(|step| step.decision.is_allowed()) {
        let granted = least_granted(&steps);
        if !needs_equal_grants(request) || steps.iter().all(|s| s.decision.granted() == granted) {
            return allowed(&steps);
        }
        if granted > 0 {
            // A partial grant is what every member can give. A smaller cost passes wherever a larger
            // one does.
            *states = before;
            return allowed(&step_each(states, &request.with_exact_cost(granted)));
        }
    }
    // Refused, or granted zero: nobody is charged.
    *states = before;
    let views = step_each(states, &Request::PEEK);
    let (tightest, remaining, reset_after) = summary(&views);
    let (index, outcome) = refusal(&steps).unwrap_or((tightest, Outcome::Allowed));
    let limit = steps[index].decision.limit();
    Step::unchanged(Decision::new(outcome, limit, remaining, reset_after).with_index(index))
}

fn least_granted(steps: &[Step]) -> u64 {
    let granted = steps.iter().map(|step| step.decision.granted());
    granted.min().unwrap_or(0)
}

/// Whether members that grant different amounts must agree on the least: partial grants do; a charge
/// for work already done goes to each member as far as that allows.
const fn needs_equal_grants(request: &Request) -> bool {
    matches!(request, Request::Take { .. }) && !request.is_charge()
}

fn allowed<const N: usize>(steps: &[Step; N]) -> Step {
    let (index, remaining, reset_after) = summary(steps);
    let (mut marks, mut charged) = ([0; MAX_LIMITS], [0; MAX_LIMITS]);
    let (mut wait, mut run_at_ns, mut uncharged) = (Duration::ZERO, 0, 0);
    for (i, Step { decision, .. }) in steps.iter().enumerate() {
        marks[i] = decision.mark();
        charged[i] = decision.granted();
        wait = wait.max(decision.wait());
        run_at_ns = run_at_ns.max(decision.run_at_ns());
        uncharged = uncharged.max(decision.uncharged());
    }
    let receipt = Receipt::new(least_granted(steps), 0)
        .with_run_at_ns(run_at_ns)
        .with_marks(marks)
        .with_charges(charged);
    let limit = steps[index].decision.limit();
    let decision = Decision::new(Outcome::Allowed, limit, remaining, reset_after)
        .with_index(index)
        .with_wait(wait)
        .with_uncharged(uncharged)
        .with_receipt(receipt);
    if steps.iter().any(|step| step.keep.is_some()) {
        Step::write(decision, reset_after)
    } else {
        Step::unchanged(decision)
    }
}

/// The member with the least left, how much that is, and the longest time until all is forgotten.
fn summary<const N: usize>(steps: &[Step; N]) -> (usize, u64, Duration) {
    let mut least = (0, u64::MAX);
    let mut reset_after = Duration::ZERO;
    for (index, step) in steps.iter().enumerate() {
        let remaining = step.decision.remaining();
        if remaining < least.1 {
            least = (index, remaining);
        }
        reset_after = reset_after.max(step.decision.reset_after());
    }
    (least.0, least.1, reset_after)
}

/// The refusal that outweighs the others, if there is one: never before later, longer before shorter.
fn refusal<const N: usize>(steps: &[Step; N]) -> Option<(usize, Outcome)> {
    let weight = |outcome| match outcome {
        Outcome::Allowed => 0,
        Outcome::Denied { retry_after } => u128::from(duration_ns(retry_after)) + 1,
        Outcome::TooLarge => u128::MAX - 1,
        Outcome::Unsupported => u128::MAX,
    };
    let mut worst = None;
    let mut worst_weight = 0;
    for (index, step) in steps.iter().enumerate() {
        let outcome = step.decision.outcome();
        if weight(outcome) > worst_weight {
            worst_weight = weight(outcome);
            worst = Some((index, outcome));
        }
    }
    worst
}
