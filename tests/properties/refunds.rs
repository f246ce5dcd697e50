//! Giving tokens back: never more than was taken, never so that others pass more than the stated bounds. Without a `max_wait`
//! nobody stands in line, and a refund gives back all that has not refilled; beside a line it gives nothing, because the
//! instants of those in line are promised already and the tokens would be used a second time.

use proptest::prelude::*;
use ratekeeper::{Outcome, Receipt, Request, TokenBucket};

use crate::exact::{
    Exact, Meter, burst, full_ns, is_dense, late, on_time, period, slack, tokens as tokens_of,
};
use crate::support::{
    Amount, Ask, Scale, What, amount, any_bucket, bucket, config, edge, ns, peek, realistic_bucket,
    small_bucket, step, what,
};

#[derive(Debug)]
struct Taken {
    at: u64,
    units: i128,
    receipt: Option<Receipt>,
    /// What others gave back since, in units.
    given_since: i128,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Take(Amount),
    /// Gives back some of one of the last takes.
    Refund(usize, Amount),
}

fn events() -> impl Strategy<Value = Vec<(Amount, Event)>> {
    let event = prop_oneof![
        3 => amount().prop_map(Event::Take),
        2 => (0_usize..5, amount()).prop_map(|(back, tokens)| Event::Refund(back, tokens)),
    ];
    prop::collection::vec((amount(), event), 1..60)
}

/// What is owed at `now`, in units.
fn owed(limit: &TokenBucket, now: u64, state: u64) -> i128 {
    (late(limit, state) - late(limit, now)).max(0)
}

fn run(limit: &TokenBucket, begin: u64, one_at_a_time: bool, events: &[(Amount, Event)]) {
    let scale = Scale::of_bucket(limit);
    let (mut state, mut now) = (0, begin);
    let mut taken: Vec<Taken> = Vec::new();
    let bound = i128::from(limit.burst()) * period(limit) + slack(limit);
    let mut as_it_happens = Meter::new();
    let mut excess = 0;
    for (time, event) in events {
        now += time.short_time(scale) / 2;
        match *event {
            Event::Take(cost) => {
                let ask = Ask::take(cost.cost(limit.burst()));
                let decision = step(limit, now, &mut state, &ask.request()).decision;
                let units = i128::from(decision.granted()) * period(limit);
                assert!(as_it_happens.count(on_time(limit, now), units) <= bound);
                if units > 0 {
                    taken.push(Taken {
                        at: now,
                        units,
                        receipt: Some(decision.into_receipt()),
                        given_since: 0,
                    });
                }
            }
            Event::Refund(back, tokens) => {
                let Some(index) = taken.len().checked_sub(back + 1) else {
                    continue;
                };
                if one_at_a_time && taken[index].given_since > 0 {
                    continue;
                }
                let Some(receipt) = taken[index].receipt.take() else {
                    continue;
                };
                let tokens = tokens.cost(receipt.charged()).min(receipt.charged());
                let owed_before = owed(limit, now, state);
                let after = receipt.mark();
                let answer = step(limit, now, &mut state, &Request::refund(tokens, receipt));
                assert!(answer.decision.is_allowed());
                let given = owed_before - owed(limit, now, state);
                let asked = i128::from(tokens) * period(limit);
                assert!(
                    (0..=asked).contains(&given),
                    "gave {given} back for {asked}"
                );
                // All that has not refilled meanwhile, to the rounding of unrelated instants: no line takes it away.
                if !is_dense(limit) {
                    let unpaid = late(limit, after) - late(limit, now);
                    let due = asked.min(unpaid).min(owed_before).max(0);
                    assert!(given >= due - 4 * tokens_of(limit), "gave {given} of {due}");
                }
                as_it_happens.count(on_time(limit, now), -given);
                taken[index].units -= given;
                excess += given.min(taken[index].given_since);
                for other in &mut taken {
                    other.given_since += given;
                }
            }
        }
        assert!(!one_at_a_time || excess == 0);
        as_if_never_taken(limit, &taken, bound + excess);
    }
}

/// Counting what was given back as never taken, every span keeps the bound (and the stated excess).
fn as_if_never_taken(limit: &TokenBucket, taken: &[Taken], bound: i128) {
    let mut meter = Meter::new();
    for take in taken {
        let level = meter.count(on_time(limit, take.at), take.units);
        assert!(
            level <= bound,
            "{level} units at {} above {bound}: {taken:?}",
            take.at
        );
    }
}

/// A take, when it runs.
#[derive(Debug)]
struct Booked {
    run_at: u64,
    /// The order of events at one instant.
    turn: usize,
    units: i128,
    receipt: Option<Receipt>,
}

/// How much later, which receipt is given back and how much of it, or what is taken.
type Turn = (Amount, Option<(usize, Amount)>, What);

/// Takes that may wait in line, cancelled or refunded: counted when they run, taken minus given back keeps the bound.
fn with_waiting(limit: &TokenBucket, begin: u64, events: &[Turn]) {
    let scale = Scale::of_bucket(limit);
    let (mut state, mut now) = (0, begin);
    let mut booked: Vec<Booked> = Vec::new();
    let mut given_back: Vec<(u64, usize, i128)> = Vec::new();
    for (turn, (time, refund, what)) in events.iter().enumerate() {
        now += time.short_time(scale) / 4;
        let Some((back, tokens)) = refund else {
            let mut ask = what.ask(limit.burst(), ns(limit.max_wait()));
            ask.charge = false; // work already done keeps no bound
            let decision = step(limit, now, &mut state, &ask.request()).decision;
            booked.push(Booked {
                run_at: now + ns(decision.wait()),
                turn,
                units: i128::from(decision.granted()) * period(limit),
                receipt: (decision.granted() > 0).then(|| decision.into_receipt()),
            });
            continue;
        };
        let Some(index) = booked.len().checked_sub(back + 1) else {
            continue;
        };
        let Some(receipt) = booked[index].receipt.take() else {
            continue;
        };
        let before = state;
        let (is_last, is_cancel) = (receipt.mark() == state, now < booked[index].run_at);
        // What is cancelled is cancelled whole: see `Receipt` on the rest of a reservation that runs later than it need.
        let tokens = if is_cancel {
            receipt.charged()
        } else {
            tokens.cost(receipt.charged())
        };
        let owed_before = owed(limit, now, state);
        let answer = step(limit, now, &mut state, &Request::refund(tokens, receipt));
        assert!(answer.decision.is_allowed());
        let somebody_waits = booked
            .iter()
            .any(|work| work.run_at > now && work.units > 0);
        if is_cancel {
            if state < before {
                booked[index].units = 0;
            }
        } else if somebody_waits && !is_last {
            assert_eq!((answer.keep, state), (None, before), "given beside a line");
        } else {
            given_back.push((now, turn, owed_before - owed(limit, now, state)));
        }
    }
    let runs = booked
        .iter()
        .map(|work| (work.run_at, work.turn, work.units));
    let given_back = given_back
        .iter()
        .map(|(at, turn, units)| (*at, *turn, -*units));
    let mut all: Vec<_> = runs.chain(given_back).collect();
    all.sort_unstable();
    let mut meter = Meter::new();
    for (at, _, units) in &all {
        let level = meter.count(on_time(limit, *at), *units);
        assert!(
            level <= burst(limit) * period(limit) + slack(limit),
            "{level} at {at} of {all:?}"
        );
    }
}

fn queueing_bucket() -> impl Strategy<Value = TokenBucket> {
    (1_u64..=16, 1_u64..=30, 1_u64..=8, 1_u64..=240).prop_map(|(n, p, b, s)| bucket(n, p, b, s))
}

proptest! {
    #![proptest_config(config(6_000))]

    #[test]
    fn beside_a_line(
        limit in queueing_bucket(),
        begin in 0_u64..60,
        events in prop::collection::vec(
            (amount(), prop_oneof![3 => Just(None), 2 => (0_usize..5, amount()).prop_map(Some)], what()),
            1..60,
        ),
    ) {
        with_waiting(&limit, begin, &events);
    }
}

/// Ten taken, ten more in line; a refund of the first ten would let twenty run at once. The last in line may cancel, and then
/// the first gives back as it always did.
#[test]
fn a_refund_gives_nothing_while_somebody_waits() {
    const SECOND: u64 = 1_000_000_000;
    let limit = bucket(1, SECOND, 10, 20 * SECOND);
    let mut state = 0;
    let now = 100 * SECOND;
    let mut take = |request| {
        step(&limit, now, &mut state, &request)
            .decision
            .into_receipt()
    };
    let (first, second) = (take(Request::take(4)), take(Request::take(6)));
    let waiting = take(Request::take(10).or_wait(limit.max_wait()));
    let before = state;
    let nothing = step(&limit, now, &mut state, &Request::refund(4, first));
    assert_eq!((nothing.keep, state), (None, before));
    let cancelled = step(&limit, now, &mut state, &Request::refund(10, waiting));
    assert_eq!(
        (cancelled.decision.remaining(), state),
        (0, now + 10 * SECOND)
    );
    let back = step(&limit, now, &mut state, &Request::refund(6, second));
    assert_eq!((back.decision.remaining(), state), (6, now + 4 * SECOND));
}

/// A charge beyond the burst is a line, too.
#[test]
fn a_refund_gives_nothing_beside_a_charge_beyond_the_burst() {
    const SECOND: u64 = 1_000_000_000;
    let limit = bucket(1, SECOND, 10, 20 * SECOND);
    let mut state = 0;
    let taken = step(&limit, 0, &mut state, &Request::take(4))
        .decision
        .into_receipt();
    let charge = step(&limit, 0, &mut state, &Request::charge(8)).decision;
    assert_eq!((charge.granted(), ns(charge.wait())), (8, 2 * SECOND));
    let nothing = step(&limit, SECOND, &mut state, &Request::refund(4, taken));
    assert_eq!((nothing.keep, state), (None, 12 * SECOND));
    let charge = charge.into_receipt(); // the last in line
    let back = step(&limit, SECOND, &mut state, &Request::refund(8, charge));
    assert!(back.keep.is_some());
    assert_eq!(state, 4 * SECOND);
}

proptest! {
    #![proptest_config(config(4_000))]

    /// Whatever is refunded when nobody else gave anything back since it was taken counts as never taken.
    #[test]
    fn one_at_a_time(limit in small_bucket(), begin in 0_u64..60, events in events()) {
        run(&limit, begin, true, &events);
    }

    #[test]
    fn in_any_order(limit in small_bucket(), begin in 0_u64..60, events in events()) {
        run(&limit, begin, false, &events);
    }

    #[test]
    fn realistic(
        limit in realistic_bucket(),
        begin in 0_u64..1 << 61,
        one_at_a_time in any::<bool>(),
        events in events(),
    ) {
        run(&limit, begin, one_at_a_time, &events);
    }

    /// At once and in full, a refund is exact: the state is that of having taken less.
    #[test]
    fn at_once_it_is_as_if_less_had_been_taken(
        limit in prop_oneof![small_bucket(), realistic_bucket()],
        begin in 0_u64..1 << 61,
        earlier in amount(),
        cost in amount(),
        back in amount(),
    ) {
        let mut state = 0;
        let _ = step(&limit, begin, &mut state, &Ask::take(earlier.cost(limit.burst())).request());
        let left = peek(&limit, begin, &state).remaining();
        if left == 0 {
            return Ok(());
        }
        let cost = 1 + cost.cost(left) % left;
        let back = back.cost(cost).min(cost);
        let (mut less, before) = (state, peek(&limit, begin, &state));
        let receipt = step(&limit, begin, &mut state, &Ask::take(cost).request()).decision.into_receipt();
        let _ = step(&limit, begin, &mut state, &Request::refund(back, receipt));
        if is_dense(&limit) {
            assert!(peek(&limit, begin, &state).remaining() <= before.remaining() - (cost - back));
        } else if back < cost {
            let _ = step(&limit, begin, &mut less, &Ask::take(cost - back).request());
            assert_eq!(state, less);
        } else {
            assert_eq!(peek(&limit, begin, &state), before);
        }
    }

    /// Refunding one take among others leaves no more than if it had never been made, to the last
    /// fraction.
    #[test]
    fn no_more_than_if_it_had_never_been_taken(
        limit in prop_oneof![3 => small_bucket(), 1 => realistic_bucket()],
        begin in 0_u64..60,
        before in prop::collection::vec((amount(), amount()), 0..6),
        (cost, back) in (amount(), amount()),
        after in prop::collection::vec((amount(), amount()), 0..6),
        wait in amount(),
    ) {
        let scale = Scale::of_bucket(&limit);
        let (mut state, mut now) = (0, begin);
        let mut without = Exact::full(&limit, late(&limit, now));
        let mut take = |now: u64, state: &mut u64, cost: Amount, kept: Option<Amount>| {
            without.advance(late(&limit, now));
            let ask = Ask::take(cost.cost(limit.burst()));
            let receipt = step(&limit, now, state, &ask.request()).decision.into_receipt();
            let charged = receipt.charged();
            let back = kept.map_or(0, |back| back.cost(charged).min(charged));
            without.take(i128::from(charged - back));
            (receipt, back)
        };
        for (time, cost) in before {
            now += time.short_time(scale) / 8;
            take(now, &mut state, cost, None);
        }
        let (receipt, back) = take(now, &mut state, cost, Some(back));
        for (time, cost) in after {
            now += time.short_time(scale) / 8;
            take(now, &mut state, cost, None);
        }
        now += wait.short_time(scale) / 8;
        let _ = step(&limit, now, &mut state, &Request::refund(back, receipt));
        let level = without.level_at(late(&limit, now));
        let left = i128::from(limit.burst()) * period(&limit) - owed(&limit, now, state);
        assert!(left <= level, "{left} units instead of {level}");
    }

    /// No receipt, however old or foreign, gives more than it states, charges anything or is looked at
    /// after the bucket has refilled.
    #[test]
    fn any_receipt_is_harmless(
        limit in any_bucket(),
        state in edge(),
        now in edge(),
        (charged, mark, run_at) in (edge(), edge(), edge()),
        tokens in edge(),
    ) {
        let before = peek(&limit, now, &state);
        let receipt = Receipt::new(charged, mark).with_run_at_ns(run_at);
        let mut after = state;
        let answer = step(&limit, now, &mut after, &Request::refund(tokens, receipt));
        assert_eq!(answer.decision.outcome(), Outcome::Allowed);
        assert_eq!(answer.decision.granted(), 0);
        let gained = peek(&limit, now, &after).remaining().checked_sub(before.remaining());
        let gained = gained.expect("a refund charges nothing");
        // Near the end of time a bucket regains room as well as tokens.
        if now <= u64::MAX - full_ns(&limit) {
            // A dense charge is rounded up to a nanosecond, and comes back as one.
            let rounding = (limit.tokens() / ns(limit.period())).saturating_add(1);
            assert!(gained <= tokens.min(charged).saturating_add(rounding));
        }
        if mark <= now {
            assert_eq!(gained, 0);
        }
        if tokens.min(charged) == 0 {
            assert_eq!((after, answer.keep), (state, None));
        }
    }
}
