//! Laws that every algorithm obeys, whatever its state, the instant and the request: an answer is
//! complete and honest, and nothing but a charge or a give-back moves the state: a refusal or a peek never does, however far
//! the state lies ahead of the caller, because that is debt under another limit or another clock, and not a fault.

use std::time::Duration;

use proptest::prelude::*;
use ratekeeper::{
    Algorithm, All, AnyAlgorithm, FixedWindow, Outcome, Receipt, Request, SlidingWindow, State,
    Step, TokenBucket,
};

use crate::support::{
    Amount, Ask, Scale, What, amount, any_bucket, config, edge, fixed_window, ns, passes, peek,
    same, sliding_log, sliding_window, start, step, what,
};

/// What a law-abiding algorithm is tried with.
#[derive(Clone, Copy, Debug)]
struct Trial {
    scale: Scale,
    max_wait_ns: u64,
    /// Whether `limit()` is the same in every answer; several limits name the one that spoke.
    alone: bool,
}

impl Trial {
    fn bucket(bucket: &TokenBucket) -> Self {
        Self {
            scale: Scale::of_bucket(bucket),
            max_wait_ns: ns(bucket.max_wait()),
            alone: true,
        }
    }

    fn window(limit: u32, window: Duration) -> Self {
        Self {
            scale: Scale::of_window(limit, window),
            max_wait_ns: 0,
            alone: true,
        }
    }

    fn among_others(self) -> Self {
        Self {
            alone: false,
            ..self
        }
    }
}

/// One event in a history.
#[derive(Clone, Copy, Debug)]
struct Event {
    time: Amount,
    back: bool,
    what: What,
    /// Gives back instead of taking, when there is a receipt.
    refund: Option<(usize, Amount)>,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let refund = prop_oneof![3 => Just(None), 1 => (any::<usize>(), amount()).prop_map(Some)];
    let back = prop_oneof![5 => Just(false), 1 => Just(true)];
    let event = (amount(), back, what(), refund).prop_map(|(time, back, what, refund)| Event {
        time,
        back,
        what,
        refund,
    });
    prop::collection::vec(event, 1..24)
}

/// Runs a history and checks every law after every event.
fn obey<A: Algorithm>(limit: &A, trial: Trial, begin: u64, mut state: A::State, events: &[Event]) {
    let mut now = begin;
    let mut receipts: Vec<Receipt> = Vec::new();
    for event in events {
        let move_by = event.time.time(trial.scale);
        now = if event.back {
            now.saturating_sub(move_by)
        } else {
            now.saturating_add(move_by)
        };
        let refund = event.refund.filter(|_| !receipts.is_empty());
        let ask = event.what.ask(trial.scale.limit, trial.max_wait_ns);
        let request = match refund {
            Some((which, cost)) => {
                let receipt = receipts.swap_remove(which % receipts.len());
                Request::refund(cost.cost(trial.scale.limit), receipt)
            }
            None => ask.request(),
        };
        let before = state.clone();
        let answer = step(limit, now, &mut state, &request);
        again(limit, now, &before, &state, &request, &answer);
        unchanged_means_untouched(&before, &state, &answer);
        numbers(limit, trial, now, &state, &answer);
        remaining(limit, now, &state, event.what);
        forgetting(limit, trial, now, &state, &answer);
        if refund.is_none() {
            grant(trial, ask, &answer);
            promise(limit, trial, now, &state, ask, &answer);
        } else {
            assert_eq!(answer.decision.outcome(), Outcome::Allowed);
        }
        if answer.decision.is_allowed() && refund.is_none() {
            receipts.push(answer.decision.into_receipt());
        }
    }
}

/// The same arguments give the same answer.
fn again<A: Algorithm>(
    limit: &A,
    now: u64,
    before: &A::State,
    after: &A::State,
    request: &Request,
    answer: &Step,
) {
    let mut copy = before.clone();
    let second = step(limit, now, &mut copy, request);
    assert_eq!(second.decision, answer.decision);
    assert_eq!(second.keep, answer.keep);
    assert!(same(&copy, after));
}

fn unchanged_means_untouched<S: State>(before: &S, after: &S, answer: &Step) {
    if answer.keep.is_none() {
        assert!(same(before, after), "moved {before:?} to {after:?}, unsaid");
    } else {
        assert!(!same(before, after), "{before:?} is to be stored again");
    }
    assert!(
        answer.decision.is_allowed() || answer.keep.is_none(),
        "a refusal moved {before:?} to {after:?}"
    );
}

/// The numbers describe the state after the decision, and waiting covers it.
fn numbers<A: Algorithm>(limit: &A, trial: Trial, now: u64, state: &A::State, answer: &Step) {
    let seen = peek(limit, now, state);
    let decision = &answer.decision;
    assert_eq!(decision.remaining(), seen.remaining(), "{decision:?}");
    assert_eq!(decision.reset_after(), seen.reset_after(), "{decision:?}");
    if trial.alone {
        assert_eq!((decision.limit(), decision.index()), (trial.scale.limit, 0));
    }
    assert!(!decision.is_degraded());
    if let Some(keep) = answer.keep {
        // A bucket filled to the brim of its debt may carry a nanosecond that its reset leaves out.
        let spare = keep
            .checked_sub(seen.reset_after())
            .expect("kept until it equals a fresh state");
        assert!(spare <= Duration::from_nanos(1), "kept {spare:?} too long");
    }
}

fn grant(trial: Trial, ask: Ask, answer: &Step) {
    let decision = &answer.decision;
    let granted = decision.granted();
    if ask.charge && ask.cost > 0 {
        assert!(decision.is_allowed(), "a charge is never refused");
        assert_eq!(granted + decision.uncharged(), ask.cost, "{decision:?}");
        // Whole tokens, or nothing is written; of several limits, some may be charged where another has no room.
        assert!(answer.keep.is_some() == (granted > 0) || !trial.alone && granted == 0);
    } else {
        assert_eq!(decision.uncharged(), 0);
    }
    if decision.is_allowed() {
        assert!(granted <= ask.cost);
        assert!(granted >= ask.at_least);
        assert!(decision.wait() <= Duration::from_nanos(ask.wait_ns) || ask.charge);
    } else {
        assert!(ask.at_least > 0, "{ask:?} accepts nothing and was refused");
        assert_eq!((granted, decision.wait()), (0, Duration::ZERO));
    }
}

/// `remaining` is the largest cost that passes now, every smaller one passes too, and waiting never turns
/// an allow into a refusal.
fn remaining<A: Algorithm>(limit: &A, now: u64, state: &A::State, what: What) {
    let left = peek(limit, now, state).remaining();
    let random = what.plain(left).cost;
    for cost in [1, random, left / 2, left, left.saturating_add(1), u64::MAX] {
        if cost > 0 {
            let take = Request::take(cost);
            let passed = passes(limit, now, state, &take);
            assert_eq!(
                passed,
                cost <= left,
                "{cost} with {left} left at {now} in {state:?}"
            );
        }
    }
}

/// `retry_after` is exact to the nanosecond, and "never" is meant.
fn promise<A: Algorithm>(
    limit: &A,
    trial: Trial,
    now: u64,
    state: &A::State,
    ask: Ask,
    answer: &Step,
) {
    let outcome_at = |then| {
        step(limit, then, &mut state.clone(), &ask.request())
            .decision
            .outcome()
    };
    match answer.decision.outcome() {
        Outcome::Denied { retry_after } => {
            let retry_ns = ns(retry_after);
            assert!(retry_ns > 0);
            assert_ne!(
                outcome_at(now.saturating_add(retry_ns - 1)),
                Outcome::Allowed
            );
            let Some(then) = now.checked_add(retry_ns).filter(|_| retry_ns < u64::MAX) else {
                return; // past the end of time
            };
            // At the end of time nothing fits a bucket any more; alone, it says so at once.
            let met = outcome_at(then);
            assert!(met == Outcome::Allowed || met == Outcome::TooLarge && !trial.alone);
            let met = outcome_at(then.saturating_add(trial.scale.token_ns / 3 + 1));
            assert!(
                met == Outcome::Allowed || met == Outcome::TooLarge,
                "passed, then not"
            );
        }
        Outcome::TooLarge => {
            for spans in [0, 1, 2, 1_000] {
                let later = now.saturating_add(trial.scale.full_ns.saturating_mul(spans));
                assert!(
                    !passes(limit, later, state, &ask.request()),
                    "{ask:?} did fit"
                );
            }
        }
        outcome => assert_eq!(outcome, Outcome::Allowed),
    }
}

/// From `reset_after` on, a state answers like a fresh one; before, it does not.
fn forgetting<A: Algorithm>(limit: &A, trial: Trial, now: u64, state: &A::State, answer: &Step) {
    let reset_ns = ns(answer.decision.reset_after());
    let Some(then) = now.checked_add(reset_ns) else {
        return;
    };
    if reset_ns == u64::MAX {
        return; // saturated: twice a window of more than 292 years
    }
    let fresh = A::State::default();
    for later in [then, then.saturating_add(trial.scale.full_ns / 2)] {
        for cost in [0, 1, trial.scale.limit, trial.scale.limit / 2 + 1] {
            let (mut kept, mut forgotten) = (state.clone(), fresh.clone());
            let kept = step(limit, later, &mut kept, &Request::take(cost)).decision;
            let forgotten = step(limit, later, &mut forgotten, &Request::take(cost)).decision;
            assert_eq!(
                kept, forgotten,
                "{state:?} at {later} against a fresh one, cost {cost}"
            );
        }
    }
    if reset_ns > 0 {
        assert_ne!(peek(limit, then - 1, state), peek(limit, then - 1, &fresh));
    }
}

proptest! {
    #![proptest_config(config(700))]

    #[test]
    fn token_bucket(limit in any_bucket(), begin in start(), state in edge(), events in events()) {
        obey(&limit, Trial::bucket(&limit), begin, 0, &events);
        obey(&limit, Trial::bucket(&limit), begin, state, &events);
    }

    #[test]
    fn sliding(limit in sliding_window(), begin in start(), state in garbage(), events in events()) {
        let trial = Trial::window(limit.limit(), limit.window());
        obey(&limit, trial, begin, 0, &events);
        obey(&&limit, trial, begin, state, &events);
    }

    #[test]
    fn fixed(limit in fixed_window(), begin in start(), state in garbage(), events in events()) {
        let trial = Trial::window(limit.limit(), limit.window());
        obey(&limit, trial, begin, 0, &events);
        obey(&limit, trial, begin, state, &events);
    }

    /// Also from the state that another limit left.
    #[test]
    fn log(limit in sliding_log(), other in sliding_log(), begin in start(), events in events()) {
        let trial = Trial::window(limit.limit(), limit.window());
        obey(&limit, trial, begin, Default::default(), &events);
        let mut state = Default::default();
        for event in &events {
            let request = event.what.ask(u64::from(other.limit()), 0).request();
            step(&other, begin.saturating_add(event.time.time(trial.scale)), &mut state, &request);
        }
        obey(&limit, trial, begin, state, &events);
    }

    #[test]
    fn any_algorithm(limit in any_limit(), begin in start(), state in garbage(), events in events()) {
        let (limit, trial) = limit;
        obey(&limit, trial, begin, 0, &events);
        obey(&limit, trial, begin, state, &events);
    }
}

proptest! {
    #![proptest_config(config(400))]

    #[test]
    fn all_of_buckets(
        a in any_bucket(),
        b in any_bucket(),
        begin in start(),
        state in edge(),
        events in events(),
    ) {
        let trial = Trial::bucket(&a).among_others();
        obey(&All([a, b]), trial, begin, [0; 2], &events);
        obey(&All([a, b]), trial, begin, [state, 0], &events);
        obey(&All([b]), Trial::bucket(&b), begin, [begin], &events);
    }

    #[test]
    fn all_of_windows(
        a in fixed_window(),
        b in sliding_window(),
        c in any_bucket(),
        begin in start(),
        events in events(),
    ) {
        let trial = Trial::window(a.limit(), a.window()).among_others();
        obey(&All((a, b, c)), trial, begin, (0, 0, 0), &events);
        let trial = Trial::window(b.limit(), b.window()).among_others();
        obey(&All((c, b)), trial, begin, (0, 0), &events);
        obey(&All([b, b, b]), trial, begin, [0; 3], &events);
    }
}

/// Any 128 bits, with small counts as often as not.
fn garbage() -> impl Strategy<Value = u128> {
    prop_oneof![
        any::<u128>(),
        (edge(), 0_u32..6, 0_u32..6).prop_map(|(begin, previous, current)| {
            u128::from(begin) << 64 | u128::from(previous) << 32 | u128::from(current)
        }),
    ]
}

fn any_limit() -> impl Strategy<Value = (AnyAlgorithm, Trial)> {
    let bucket = |limit: TokenBucket| (limit.into(), Trial::bucket(&limit));
    let sliding = |limit: SlidingWindow| {
        let trial = Trial::window(limit.limit(), limit.window());
        (limit.into(), trial)
    };
    let fixed = |limit: FixedWindow| {
        let trial = Trial::window(limit.limit(), limit.window());
        (limit.into(), trial)
    };
    prop_oneof![
        any_bucket().prop_map(bucket),
        sliding_window().prop_map(sliding),
        fixed_window().prop_map(fixed),
    ]
}
