//! Reservations: work that runs at `now + wait` keeps the bucket's bound, in the order of asking; a
//! cancelled one leaves no trace if it was the last, and changes nothing if it was not.

use proptest::prelude::*;
use ratekeeper::{Receipt, Request, TokenBucket};

use crate::exact::{Meter, is_dense, on_time, period, slack};
use crate::support::{
    Amount, Scale, What, amount, bucket, config, ns, peek, realistic_bucket, step, what,
};

/// A reservation, or a take that runs at once.
#[derive(Debug)]
struct Booked {
    run_at: u64,
    tokens: u64,
    receipt: Option<Receipt>,
    /// The state it found, and when.
    found: u64,
    asked_at: u64,
}

/// What happens after some time.
#[derive(Clone, Debug)]
enum Event {
    Ask(What),
    /// Cancels one (counted from the newest) of those that still wait, whole or in part.
    Cancel(usize, Amount),
}

fn events() -> impl Strategy<Value = Vec<(Amount, Event)>> {
    let event = prop_oneof![
        3 => what().prop_map(Event::Ask),
        2 => (0_usize..3, amount()).prop_map(|(back, tokens)| Event::Cancel(back, tokens)),
    ];
    prop::collection::vec((amount(), event), 1..60)
}

fn queueing_bucket() -> impl Strategy<Value = TokenBucket> {
    (1_u64..=16, 1_u64..=30, 1_u64..=6, 1_u64..=120).prop_map(|(n, p, b, s)| bucket(n, p, b, s))
}

fn run(limit: &TokenBucket, begin: u64, in_part: bool, events: Vec<(Amount, Event)>) {
    let scale = Scale::of_bucket(limit);
    let (mut state, mut now) = (0, begin);
    let mut booked: Vec<Booked> = Vec::new();
    for (time, event) in events {
        now += time.short_time(scale) / 4;
        match event {
            Event::Ask(what) => ask(limit, now, &mut state, what, &mut booked),
            Event::Cancel(back, tokens) => {
                if let Some(index) = booked.len().checked_sub(back + 1) {
                    let tokens = in_part.then_some(tokens);
                    cancel(limit, now, &mut state, index, tokens, &mut booked);
                }
            }
        }
    }
    // What is left of a reservation runs when it was told to, though others may now run before it.
    assert!(
        in_part || booked.is_sorted_by_key(|work| work.run_at),
        "one overtook another"
    );
    booked.sort_by_key(|work| work.run_at);
    let mut meter = Meter::new();
    for work in &booked {
        let units = i128::from(work.tokens) * period(limit);
        let level = meter.count(on_time(limit, work.run_at), units);
        assert!(
            level <= i128::from(limit.burst()) * period(limit) + slack(limit),
            "{booked:?}"
        );
    }
}

fn ask(limit: &TokenBucket, now: u64, state: &mut u64, what: What, booked: &mut Vec<Booked>) {
    let mut ask = what.ask(limit.burst(), ns(limit.max_wait()));
    ask.charge = false; // work already done keeps no bound
    let found = *state;
    let decision = step(limit, now, state, &ask.request()).decision;
    let (tokens, wait_ns) = (decision.granted(), ns(decision.wait()));
    if tokens == 0 {
        return;
    }
    assert!(wait_ns <= ns(limit.max_wait()) && wait_ns <= ask.wait_ns);
    booked.push(Booked {
        run_at: now + wait_ns,
        tokens,
        receipt: Some(decision.into_receipt()),
        found,
        asked_at: now,
    });
}

fn cancel(
    limit: &TokenBucket,
    now: u64,
    state: &mut u64,
    index: usize,
    tokens: Option<Amount>,
    booked: &mut Vec<Booked>,
) {
    let is_last = index + 1 == booked.len();
    let work = &mut booked[index];
    let Some(receipt) = work.receipt.take_if(|_| work.run_at > now) else {
        return;
    };
    let tokens = tokens.map_or(work.tokens, |tokens| tokens.cost(work.tokens));
    let before = *state;
    let answer = step(limit, now, state, &Request::refund(tokens, receipt));
    assert!(answer.decision.is_allowed());
    if !is_last || tokens == 0 {
        assert_eq!(
            (*state, answer.keep),
            (before, None),
            "somebody stands behind"
        );
        return;
    }
    // A part of what was rounded up to a whole nanosecond may be nothing.
    let rounded = is_dense(limit) && tokens < work.tokens;
    assert!(
        *state < before || rounded,
        "the last in line gives its place back"
    );
    if tokens < work.tokens {
        work.tokens -= tokens;
        return;
    }
    if work.found > work.asked_at {
        assert_eq!(*state, work.found, "as if never asked");
    }
    booked.pop();
}

proptest! {
    #![proptest_config(config(4_000))]

    #[test]
    fn small(limit in queueing_bucket(), begin in 0_u64..60, in_part in any::<bool>(), events in events()) {
        run(&limit, begin, in_part, events);
    }

    #[test]
    fn realistic(limit in realistic_bucket(), begin in 0_u64..1 << 61, in_part in any::<bool>(), events in events()) {
        run(&limit, begin, in_part, events);
    }

    /// Newest to oldest, everything comes back; the first waiter in a middle place gives nothing.
    #[test]
    fn cancelling_newest_to_oldest_restores_the_state(
        limit in queueing_bucket(),
        begin in 0_u64..60,
        drain in any::<bool>(),
        asks in prop::collection::vec(amount(), 1..8),
    ) {
        let mut state = 0;
        if drain {
            let answer = step(&limit, begin, &mut state, &Request::take(limit.burst()));
            assert!(answer.decision.is_allowed());
        }
        let mut waiting = Vec::new();
        for cost in asks {
            let cost = 1 + cost.cost(limit.burst()) % limit.burst();
            let found = state;
            let request = Request::take(cost).or_wait(limit.max_wait());
            let decision = step(&limit, begin, &mut state, &request).decision;
            if !decision.wait().is_zero() {
                waiting.push((found, cost, decision.into_receipt()));
            }
        }
        for (found, cost, receipt) in waiting.into_iter().rev() {
            // All were asked at one instant, so each found the state that its predecessor left.
            assert!(step(&limit, begin, &mut state, &Request::refund(cost, receipt)).keep.is_some());
            assert_eq!(state, found);
        }
    }
}

/// 60 per second, one at once: three reservations, cancelled newest to oldest, leave exactly one token.
#[test]
fn three_reservations_cancelled_leave_one_token() {
    let limit = bucket(60, 1_000_000_000, 1, 1_000_000_000);
    let mut state = 0;
    let mut book = || {
        let request = Request::take(1).or_wait(limit.max_wait());
        let decision = step(&limit, 0, &mut state, &request).decision;
        (ns(decision.wait()), decision.into_receipt())
    };
    let (first, second, third) = (book(), book(), book());
    assert_eq!((first.0, second.0, third.0), (0, 16_666_667, 33_333_334));
    for receipt in [third.1, second.1, first.1] {
        let answer = step(&limit, 0, &mut state, &Request::refund(1, receipt));
        assert!(answer.decision.is_allowed());
    }
    assert_eq!(peek(&limit, 0, &state).remaining(), 1);
}
