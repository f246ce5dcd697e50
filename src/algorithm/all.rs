//! Several limits on one key, all of which must allow: one state, one atomic step.
//!
//! Every member steps on a copy of its own part of the state. If all allow, the copies become the state;
//! if one refuses, nothing is charged anywhere. The wait is exactly the longest of the members' waits,
//! because waiting never turns a member's allow into a refusal.

use core::fmt::Debug;
use core::time::Duration;

use super::{Algorithm, Step};
use crate::decision::{Decision, Outcome};
use crate::request::{MAX_LIMITS, Receipt, Request};
use crate::state::State;
use crate::store::Wire;
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
        step_all(
            states,
            request,
            |states, request| {
                core::array::from_fn(|i| self.0[i].step(now, &mut states[i], &request.for_limit(i)))
            },
            |states, before, kept: &[bool; N]| {
                for ((state, before), kept) in states.iter_mut().zip(before).zip(kept) {
                    if !kept {
                        *state = *before;
                    }
                }
            },
        )
    }

    fn rescale(&self, now: Timestamp, states: &mut Self::State, old: &Self) {
        for ((limit, state), old) in self.0.iter().zip(states).zip(&old.0) {
            limit.rescale(now, state, old);
        }
    }

    fn tag(&self) -> u8 {
        match self.0.first().map_or(0, Algorithm::tag) {
            // Plain buckets; `AnyAlgorithm` keeps them in two words.
            0x11 if <A::State as Wire>::LEN == size_of::<u64>() => 0x14,
            0 => 0,
            _ => MIXED_TAG,
        }
    }
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
                    |states, before, kept| {
                        $(if !kept[$index] {
                            states.$index = before.$index;
                        })+
                    },
                )
            }

            fn rescale(&self, now: Timestamp, states: &mut Self::State, old: &Self) {
                $(self.0.$index.rescale(now, &mut states.$index, &old.0.$index);)+
            }

            fn tag(&self) -> u8 {
                let storable = [$(self.0.$index.tag()),+].iter().all(|tag| *tag != 0);
                if storable { MIXED_TAG } else { 0 }
            }
        }
    };
}
/// The tag of members that are not all plain buckets. A key space has one combination; another one of the same length is
/// not told apart.
const MIXED_TAG: u8 = 0x17;

all_of_tuple!(2: A 0, B 1);
all_of_tuple!(3: A 0, B 1, C 2);
all_of_tuple!(4: A 0, B 1, C 2, D 3);

/// Steps every member and makes one answer of theirs. `restore` puts back the parts of the state whose
/// member is not in `kept`.
#[inline]
fn step_all<const N: usize, S: Copy>(
    states: &mut S,
    request: &Request,
    step_each: impl Fn(&mut S, &Request) -> [Step; N],
    restore: impl Fn(&mut S, &S, &[bool; N]),
) -> Step {
    const { assert!(0 < N && N <= MAX_LIMITS, "All takes one to four limits") };
    let before = *states;
    let mut steps = step_each(states, request);

    if steps.iter().all(|step| step.decision.is_allowed()) {
        let granted = steps
            .iter()
            .map(|step| step.decision.granted())
            .min()
            .unwrap_or(0);
        if !needs_equal_grants(request) || steps.iter().all(|s| s.decision.granted() == granted) {
            return allowed(&steps, granted);
        }
        if granted > 0 {
            // A partial grant is what every member can give. A smaller cost passes wherever a larger
            // one does.
            *states = before;
            steps = step_each(states, &request.with_exact_cost(granted));
            return allowed(&steps, granted);
        }
    }
    uncharged(&steps, request, |kept| {
        restore(states, &before, kept);
        step_each(states, &Request::PEEK)
    })
}

/// The answer when nothing may be charged, refused or granted zero: undoes the charges of members that
/// had allowed. What a member wrote without granting anything was a repair, and stays.
fn uncharged<const N: usize>(
    steps: &[Step; N],
    request: &Request,
    keep_only: impl FnOnce(&[bool; N]) -> [Step; N],
) -> Step {
    let is_take = matches!(request, Request::Take { .. });
    let repairs = steps.each_ref().map(|step| {
        let granted_nothing = is_take && step.decision.granted() == 0;
        step.keep.is_some() && (granted_nothing || !step.decision.is_allowed())
    });
    let repaired = steps
        .iter()
        .zip(repairs)
        .any(|(step, kept)| kept && step.repaired);
    let views = keep_only(&repairs);
    let (tightest, remaining, reset_after) = summary(&views);
    let (index, outcome) = refusal(steps).unwrap_or((tightest, Outcome::Allowed));
    let limit = steps[index].decision.limit();
    let decision = Decision::new(outcome, limit, remaining, reset_after).with_index(index);
    let keep = repairs.contains(&true).then_some(reset_after);
    Step {
        decision,
        keep,
        repaired,
    }
}

/// Whether members that grant different amounts must agree on the least: partial grants do; a charge
/// for work already done goes to each member as far as that allows.
const fn needs_equal_grants(request: &Request) -> bool {
    match request {
        Request::Take {
            at_least, max_wait, ..
        } => !(*at_least == 0 && max_wait.as_nanos() == Duration::MAX.as_nanos()),
        Request::Refund { .. } => false,
    }
}

fn allowed<const N: usize>(steps: &[Step; N], granted: u64) -> Step {
    let (index, remaining, reset_after) = summary(steps);
    let mut marks = [0; MAX_LIMITS];
    let (mut wait, mut run_at_ns) = (Duration::ZERO, 0);
    for (mark, step) in marks.iter_mut().zip(steps) {
        *mark = step.decision.mark();
        wait = wait.max(step.decision.wait());
        run_at_ns = run_at_ns.max(step.decision.run_at_ns());
    }
    let receipt = Receipt::new(granted, 0)
        .with_run_at_ns(run_at_ns)
        .with_marks(marks);
    let decision = Decision::new(
        Outcome::Allowed,
        steps[index].decision.limit(),
        remaining,
        reset_after,
    )
    .with_index(index)
    .with_wait(wait)
    .with_receipt(receipt);
    let keep = steps
        .iter()
        .any(|step| step.keep.is_some())
        .then_some(reset_after);
    Step {
        decision,
        keep,
        repaired: steps.iter().any(|step| step.repaired),
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
