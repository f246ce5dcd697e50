//! Several limits at once against each of them alone, on a state of its own.

use proptest::prelude::*;
use ratekeeper::{Algorithm, All, AnyAlgorithm, Decision, Outcome, Receipt, Request, Step};

use crate::support::{
    Amount, Ask, Scale, What, amount, any_bucket, config, fixed_window, ns, peek, realistic_bucket,
    sliding_window, small_bucket, start, step, what,
};

/// One of the limits, alone.
#[derive(Clone, Debug)]
struct Member {
    limit: AnyAlgorithm,
    state: u128,
}

impl Member {
    fn of(limit: impl Into<AnyAlgorithm>) -> Self {
        Self {
            limit: limit.into(),
            state: 0,
        }
    }

    fn step(&mut self, now: u64, request: &Request) -> Step {
        step(&self.limit, now, &mut self.state, request)
    }

    fn peek(&self, now: u64) -> Decision {
        peek(&self.limit, now, &self.state)
    }
}

/// A request of everybody: each alone, then what that makes of the whole.
struct Together {
    outcome: Outcome,
    granted: u64,
    wait_ns: u64,
    members: Vec<Member>,
    refusing: Vec<usize>,
    /// What each was charged, and its receipt's mark.
    parts: Vec<(u64, u64)>,
}

/// All pass, or nobody is charged; a partial grant is what everybody has. A charge goes to each as far as it has room.
fn together(members: &[Member], now: u64, ask: Ask) -> Together {
    let mut alone = members.to_vec();
    let mut steps: Vec<Step> = alone
        .iter_mut()
        .map(|m| m.step(now, &ask.request()))
        .collect();
    let passed = steps.iter().all(|step| step.decision.is_allowed());
    let mut granted = steps
        .iter()
        .map(|step| step.decision.granted())
        .min()
        .unwrap();
    if !passed {
        granted = 0;
        let refusing = (0..steps.len()).filter(|i| !steps[*i].decision.is_allowed());
        let refusing: Vec<usize> = refusing.collect();
        let never = refusing
            .iter()
            .any(|i| steps[*i].decision.outcome() == Outcome::TooLarge);
        let waits = steps.iter().filter_map(|step| step.decision.retry_after());
        let outcome = match waits.max() {
            Some(retry_after) if !never => Outcome::Denied { retry_after },
            _ => Outcome::TooLarge,
        };
        return Together {
            outcome,
            granted,
            wait_ns: 0,
            members: members.to_vec(),
            refusing,
            parts: vec![(0, 0); members.len()],
        };
    }
    if granted == 0 && !ask.charge {
        return Together {
            outcome: Outcome::Allowed,
            granted,
            wait_ns: 0,
            members: members.to_vec(),
            refusing: vec![],
            parts: vec![(0, 0); members.len()],
        };
    }
    let members = if ask.charge || steps.iter().all(|step| step.decision.granted() == granted) {
        alone
    } else {
        let exact = Ask {
            wait_ns: ask.wait_ns,
            ..Ask::take(granted)
        };
        alone = members.to_vec();
        steps = alone
            .iter_mut()
            .map(|m| m.step(now, &exact.request()))
            .collect();
        assert!(steps.iter().all(|step| step.decision.granted() == granted));
        alone
    };
    let waits = steps.iter().map(|step| ns(step.decision.wait()));
    let wait_ns = waits.max().unwrap();
    let parts = steps.into_iter().map(|step| {
        let receipt = step.decision.into_receipt();
        (receipt.charged(), receipt.mark())
    });
    Together {
        outcome: Outcome::Allowed,
        granted,
        wait_ns,
        members,
        refusing: vec![],
        parts: parts.collect(),
    }
}

#[derive(Clone, Copy, Debug)]
struct Event {
    back: bool,
    time: Amount,
    what: What,
    refund: Option<(usize, Amount)>,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let back = prop_oneof![5 => Just(false), 1 => Just(true)];
    let refund = prop_oneof![4 => Just(None), 1 => (any::<usize>(), amount()).prop_map(Some)];
    let event = (back, amount(), what(), refund).prop_map(|(back, time, what, refund)| Event {
        back,
        time,
        what,
        refund,
    });
    prop::collection::vec(event, 1..40)
}

/// What `All` handed out, and what each member's own receipt would be.
struct Receipts {
    whole: Receipt,
    parts: Vec<Receipt>,
}

fn follow<A: Algorithm>(
    all: &A,
    mut members: Vec<Member>,
    (scale, max_wait_ns): (Scale, u64),
    begin: u64,
    events: &[Event],
    pack: impl Fn(&A::State) -> Vec<u128>,
) {
    let mut state = A::State::default();
    let mut now = begin;
    let mut receipts: Vec<Receipts> = Vec::new();
    for event in events {
        let by = event.time.time(scale);
        now = if event.back {
            now.saturating_sub(by)
        } else {
            now.saturating_add(by)
        };
        let before = pack(&state);
        let decision = match event.refund {
            Some((which, tokens)) if !receipts.is_empty() => {
                let Receipts { whole, parts } = receipts.swap_remove(which % receipts.len());
                let tokens = tokens.cost(scale.limit);
                for (member, part) in members.iter_mut().zip(parts) {
                    let answer = member.step(now, &Request::refund(tokens, part));
                    assert!(answer.decision.is_allowed());
                }
                let answer = step(all, now, &mut state, &Request::refund(tokens, whole));
                assert!(answer.decision.is_allowed());
                answer.decision
            }
            _ => {
                let ask = event.what.ask(scale.limit, max_wait_ns);
                let expected = together(&members, now, ask);
                let Step { decision, keep, .. } = step(all, now, &mut state, &ask.request());
                assert_eq!(
                    decision.outcome(),
                    expected.outcome,
                    "{ask:?} of {members:?}"
                );
                assert_eq!(decision.granted(), expected.granted);
                assert_eq!(ns(decision.wait()), expected.wait_ns);
                assert_eq!(keep.is_some(), pack(&state) != before);
                if !decision.is_allowed() {
                    assert!(
                        expected.refusing.contains(&decision.index()),
                        "an innocent is named"
                    );
                }
                members = expected.members;
                for (index, (charged, _)) in expected.parts.iter().enumerate() {
                    assert_eq!(decision.charged_to(index), *charged);
                }
                assert_eq!(decision.charged_to(members.len()), 0);
                let uncharged = if ask.charge {
                    ask.cost - expected.granted
                } else {
                    0
                };
                assert_eq!(decision.uncharged(), uncharged);
                check(&members, now, &decision, pack(&state));
                if expected.parts.iter().all(|(charged, _)| *charged == 0) {
                    continue;
                }
                let run_at = if expected.wait_ns > 0 && !ask.charge {
                    now + expected.wait_ns
                } else {
                    0
                };
                let part = |(charged, mark)| Receipt::new(charged, mark).with_run_at_ns(run_at);
                let parts = expected.parts.into_iter().map(part).collect();
                let whole = decision.into_receipt();
                receipts.push(Receipts { whole, parts });
                continue;
            }
        };
        check(&members, now, &decision, pack(&state));
    }
}

/// The states are those of the members alone; the numbers are the tightest.
fn check(members: &[Member], now: u64, decision: &Decision, states: Vec<u128>) {
    let own: Vec<u128> = members.iter().map(|member| member.state).collect();
    assert_eq!(states, own, "{decision:?}");
    let seen: Vec<Decision> = members.iter().map(|member| member.peek(now)).collect();
    let remaining = seen.iter().map(Decision::remaining).min();
    assert_eq!(Some(decision.remaining()), remaining);
    let reset_after = seen.iter().map(Decision::reset_after).max();
    assert_eq!(Some(decision.reset_after()), reset_after);
    assert_eq!(
        decision.limit(),
        seen[decision.index()].limit(),
        "the limit that spoke"
    );
    if decision.is_allowed() {
        assert_eq!(
            Some(seen[decision.index()].remaining()),
            remaining,
            "the tightest speaks"
        );
    }
}

const fn word(tat: u64) -> u128 {
    (tat as u128) << 64
}

proptest! {
    #![proptest_config(config(1_500))]

    #[test]
    fn three_buckets(
        limits in prop_oneof![
            [small_bucket(), small_bucket(), small_bucket()],
            [realistic_bucket(), realistic_bucket(), realistic_bucket()],
            [any_bucket(), any_bucket(), any_bucket()],
        ],
        begin in start(),
        events in events(),
    ) {
        let members = limits.map(Member::of).to_vec();
        let scale = (Scale::of_bucket(&limits[0]), ns(limits[1].max_wait()));
        follow(&All(limits), members, scale, begin, &events, |state| state.map(word).to_vec());
    }

    #[test]
    fn a_bucket_and_a_window(
        a in prop_oneof![small_bucket(), any_bucket()],
        b in sliding_window(),
        begin in start(),
        events in events(),
    ) {
        let members = vec![Member::of(a), Member::of(b)];
        let scale = (Scale::of_bucket(&a), ns(a.max_wait()));
        follow(&All((a, b)), members, scale, begin, &events, |(a, b)| vec![word(*a), *b]);
        let members = vec![Member::of(b), Member::of(a)];
        let scale = (Scale::of_window(b.limit(), b.window()), ns(a.max_wait()));
        follow(&All((b, a)), members, scale, begin, &events, |(b, a)| vec![*b, word(*a)]);
    }

    #[test]
    fn one_of_each_and_another(
        a in any_bucket(),
        b in sliding_window(),
        c in fixed_window(),
        d in small_bucket(),
        begin in start(),
        events in events(),
    ) {
        let members = vec![Member::of(a), Member::of(b), Member::of(c), Member::of(d)];
        let scale = (Scale::of_window(c.limit(), c.window()), ns(d.max_wait()));
        follow(&All((a, b, c, d)), members, scale, begin, &events, |(a, b, c, d)| {
            vec![word(*a), *b, *c, word(*d)]
        });
    }
}
