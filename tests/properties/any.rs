//! A limit chosen at run time answers like the limit it holds.

use proptest::prelude::*;
use ratekeeper::{Algorithm, AnyAlgorithm, Carry, Receipt, Request};

use crate::support::{
    Amount, Scale, What, amount, any_bucket, at, carry, config, fixed_window, ns, sliding_window,
    start, step, what,
};

#[derive(Clone, Copy, Debug)]
struct Event {
    back: bool,
    time: Amount,
    what: What,
    refund: Option<Amount>,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = (any::<bool>(), amount(), what(), prop::option::of(amount()));
    let event = event.prop_map(|(back, time, what, refund)| Event {
        back,
        time,
        what,
        refund,
    });
    prop::collection::vec(event, 1..40)
}

/// Steps both with the same requests; `pack` turns the state of the limit itself into the common one.
fn follow<A: Algorithm>(
    limit: &A,
    any: AnyAlgorithm,
    scale: Scale,
    max_wait_ns: u64,
    begin: u64,
    events: &[Event],
    pack: impl Fn(&A::State) -> u128,
) {
    assert_eq!(any.tag(), limit.tag());
    let (mut own, mut common) = (A::State::default(), 0);
    let mut now = begin;
    let mut receipts: Vec<(Receipt, Receipt)> = Vec::new();
    for event in events {
        let by = event.time.time(scale);
        now = if event.back {
            now.saturating_sub(by)
        } else {
            now.saturating_add(by)
        };
        let ask = event.what.ask(scale.limit, max_wait_ns);
        let (one, two) = match (event.refund, receipts.pop()) {
            (Some(tokens), Some((one, two))) => {
                let tokens = tokens.cost(scale.limit);
                (Request::refund(tokens, one), Request::refund(tokens, two))
            }
            _ => (ask.request(), ask.request()),
        };
        let left = step(limit, now, &mut own, &one);
        let right = step(&any, now, &mut common, &two);
        assert_eq!(left.decision, right.decision);
        assert_eq!(left.keep, right.keep);
        assert_eq!(pack(&own), common);
        receipts.push((left.decision.into_receipt(), right.decision.into_receipt()));
    }
}

proptest! {
    #![proptest_config(config(800))]

    #[test]
    fn token_bucket(
        limit in any_bucket(),
        old in any_bucket(),
        carry in carry(),
        begin in start(),
        events in events(),
    ) {
        let (scale, wait) = (Scale::of_bucket(&limit), ns(limit.max_wait()));
        follow(&limit, limit.into(), scale, wait, begin, &events, |tat| u128::from(*tat) << 64);
        let (mut own, mut common) = (begin, u128::from(begin) << 64);
        assert!(limit.change(at(begin / 2), &mut own, &old, carry));
        assert!(AnyAlgorithm::from(limit).change(at(begin / 2), &mut common, &old.into(), carry));
        assert_eq!(u128::from(own) << 64, common);
    }

    #[test]
    fn sliding(limit in sliding_window(), begin in start(), events in events()) {
        let scale = Scale::of_window(limit.limit(), limit.window());
        follow(&limit, limit.into(), scale, 0, begin, &events, |state| *state);
    }

    #[test]
    fn fixed(limit in fixed_window(), begin in start(), events in events()) {
        let scale = Scale::of_window(limit.limit(), limit.window());
        follow(&limit, limit.into(), scale, 0, begin, &events, |state| *state);
    }

    /// States of another algorithm mean nothing to a limit, so there is nothing to carry over: the change is refused, and the
    /// state stays.
    #[test]
    fn another_algorithm_is_no_change(
        bucket in any_bucket(),
        sliding in sliding_window(),
        fixed in fixed_window(),
        carry in carry(),
        state in any::<u128>(),
        now in start(),
    ) {
        let limits: [AnyAlgorithm; 3] = [bucket.into(), sliding.into(), fixed.into()];
        for (i, new) in limits.iter().enumerate() {
            for (j, old) in limits.iter().enumerate() {
                let mut moved = state;
                let changed = new.change(at(now), &mut moved, old, carry);
                assert_eq!(changed, i == j);
                if i != j || carry == Carry::Tokens || carry == Carry::Debt {
                    assert_eq!(moved, state);
                }
            }
        }
    }
}
