//! With room for every key in debt, a table is a map: the same machine stepped in a `HashMap` answers alike, to the
//! last field of every decision.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use ratekeeper::{
    Algorithm, Decision, FixedWindow, KeyedLimiter, ManualClock, Outcome, Overflow, Receipt,
    Request, SlidingWindow, SlotState, TableStore, Timestamp, TokenBucket, Ways,
};

use crate::support::{MS, START, at, config, limiter, ns, sliding, table};

/// A limit and the machine that a plain map runs for it.
struct Twin<A: Algorithm> {
    limit: A,
    /// Windows run on whole milliseconds in a table: the same limit, its nanoseconds being those.
    in_ms: Option<A>,
    states: HashMap<u64, A::State>,
}

impl<A: Algorithm> Twin<A> {
    fn step(&mut self, key: u64, request: &Request, now: u64) -> Decision {
        let state = self.states.entry(key).or_default();
        let Some(in_ms) = &self.in_ms else {
            return self.limit.step(at(now), state, request).decision;
        };
        let decision = in_ms.step(at(now / MS), state, request).decision;
        // What ends at a millisecond ends at its first nanosecond.
        let scaled = |ticks: Duration| match ns(ticks) {
            0 => Duration::ZERO,
            ticks => Duration::from_nanos((now / MS + ticks) * MS - now),
        };
        let outcome = match decision.outcome() {
            Outcome::Denied { retry_after } => Outcome::Denied {
                retry_after: scaled(retry_after),
            },
            other => other,
        };
        let reset_after = scaled(decision.reset_after());
        Decision::new(outcome, decision.limit(), decision.remaining(), reset_after)
            .with_uncharged(decision.uncharged())
            .with_receipt(decision.into_receipt())
    }
}

#[derive(Clone, Debug)]
enum Op {
    Take { cost: u64 },
    UpTo { cost: u64, at_least: u64 },
    OrWait { cost: u64, ns: u64 },
    Charge { cost: u64 },
    Refund { which: usize, amount: u64 },
    Remove,
}

fn op() -> impl Strategy<Value = Op> {
    let cost = || prop_oneof![8 => 0_u64..8, 1 => any::<u64>()];
    prop_oneof![
        8 => cost().prop_map(|cost| Op::Take { cost }),
        3 => (cost(), 0_u64..4).prop_map(|(cost, at_least)| Op::UpTo { cost, at_least }),
        2 => (cost(), 0..4_000 * MS).prop_map(|(cost, ns)| Op::OrWait { cost, ns }),
        1 => cost().prop_map(|cost| Op::Charge { cost }),
        4 => (any::<usize>(), 0_u64..8).prop_map(|(which, amount)| Op::Refund { which, amount }),
        1 => Just(Op::Remove),
    ]
}

/// A move of the clock, forwards if positive.
fn moved() -> impl Strategy<Value = i64> {
    let ms = i64::try_from(MS).unwrap();
    prop_oneof![
        4 => Just(0_i64),
        3 => 0..3_i64,
        4 => 0..30 * ms,
        4 => 0..400 * ms,
        2 => 600 * ms..1_600 * ms,
        1 => 0..100_000 * ms,
        2 => -300 * ms..0,
        1 => -9_000 * ms..0,
    ]
}

#[derive(Clone, Debug)]
struct Event {
    key: u64,
    op: Op,
    moved: i64,
    by_clock: bool,
}

fn events(keys: u64) -> impl Strategy<Value = Vec<Event>> {
    let event =
        (0..keys, op(), moved(), any::<bool>()).prop_map(|(key, op, moved, by_clock)| Event {
            key,
            op,
            moved,
            by_clock,
        });
    prop::collection::vec(event, 1..120)
}

/// The receipts of both sides for one charge.
type Receipts = Vec<(Receipt, Receipt)>;

/// The same request for both sides, unless the event is none.
fn requests(event: &Event, receipts: &mut HashMap<u64, Receipts>) -> Option<(Request, Request)> {
    let both = |request: fn(u64, u64) -> Request, a, b| Some((request(a, b), request(a, b)));
    match event.op {
        Op::Take { cost } => both(|cost, _| Request::take(cost), cost, 0),
        Op::UpTo { cost, at_least } => {
            let up_to = |cost, at_least| Request::up_to(cost).at_least(at_least);
            both(up_to, cost, at_least)
        }
        Op::OrWait { cost, ns } => {
            let or_wait = |cost, ns| Request::take(cost).or_wait(Duration::from_nanos(ns));
            both(or_wait, cost, ns)
        }
        Op::Charge { cost } => {
            let charge = |cost, _| Request::charge(cost);
            both(charge, cost, 0)
        }
        Op::Refund { which, amount } => {
            let receipts = receipts.get_mut(&event.key).filter(|all| !all.is_empty())?;
            let (ours, theirs) = receipts.swap_remove(which % receipts.len());
            Some((
                Request::refund(amount, ours),
                Request::refund(amount, theirs),
            ))
        }
        Op::Remove => None,
    }
}

/// Runs the events on both sides. Newcomers may find no room, if `may_overflow`; that leaves no trace.
fn run<A>(
    limit: A,
    in_ms: Option<A>,
    store: TableStore<Clock, A>,
    clock: &ManualClock,
    events: &[Event],
    may_overflow: bool,
) -> Result<(), TestCaseError>
where
    A: Algorithm<State: SlotState> + Copy,
{
    let limiter = KeyedLimiter::<u64, _, _>::with_store(limit, store);
    let store = limiter.store();
    let mut twin = Twin {
        limit,
        in_ms,
        states: HashMap::new(),
    };
    let mut receipts = HashMap::<u64, Receipts>::new();
    let mut now = START;
    for event in events {
        now = now.saturating_add_signed(event.moved);
        clock.set(at(now));
        let key = event.key;
        let Some((ours, theirs)) = requests(event, &mut receipts) else {
            if matches!(event.op, Op::Remove) {
                store.remove(&key);
                twin.states.remove(&key);
            }
            continue;
        };
        let wants = matches!(
            ours,
            Request::Take {
                cost: 1..,
                at_least: 1..,
                ..
            }
        );
        let overflowed = store.overflowed();
        let decision = if event.by_clock {
            limiter.apply(&key, ours)
        } else {
            clock.set(Timestamp::ZERO); // which nobody reads
            limiter.apply_at(&key, ours, at(now))
        };
        let before = twin.states.get(&key).cloned().unwrap_or_default();
        let is_fresh = twin.step(key, &Request::PEEK, now).reset_after().is_zero();
        let expected = twin.step(key, &theirs, now);
        let has_no_room = if wants {
            store.overflowed() != overflowed
        } else {
            decision != expected // and must look like one
        };
        if has_no_room {
            prop_assert!(
                may_overflow && is_fresh,
                "{:?} at {}: {:?}",
                decision,
                now,
                event
            );
            prop_assert!(!(wants && decision.is_allowed()));
            prop_assert_eq!((decision.granted(), decision.remaining()), (0, 0));
            prop_assert!(decision.reset_after() > Duration::ZERO);
            twin.states.insert(key, before);
            continue;
        }
        prop_assert_eq!(&decision, &expected, "at {}: {:?}", now, event);
        if decision.is_allowed() {
            let pair = (decision.into_receipt(), expected.into_receipt());
            receipts.entry(key).or_default().push(pair);
        }
    }
    Ok(())
}

type Clock = Arc<ManualClock>;

/// A table, and its clock.
fn clocked<A: Algorithm>(slots: usize, ways: Ways) -> (TableStore<Clock, A>, Clock) {
    let clock = Clock::default();
    let table = TableStore::with_seed(slots, 7, clock.clone()).unwrap();
    (table.with_ways(ways), clock)
}

/// Large and small tables, none of which ever overflows.
fn with_room<A>(limit: A, in_ms: Option<A>, events: &[Event]) -> Result<(), TestCaseError>
where
    A: Algorithm<State: SlotState> + Copy,
{
    // Eight keys have room in one set of eight, and spread out in a large table.
    for (slots, ways) in [(8, Ways::Eight), (4096, Ways::Four), (4096, Ways::Eight)] {
        let (table, clock) = clocked(slots, ways);
        run(limit, in_ms, table, &clock, events, false)?;
    }
    Ok(())
}

/// More keys than slots, and a clock that only moves forwards: whoever is not refused for want of room notices
/// nothing.
fn crowded<A>(limit: A, in_ms: Option<A>, events: &[Event]) -> Result<(), TestCaseError>
where
    A: Algorithm<State: SlotState> + Copy,
{
    let forwards = |event: &Event| Event {
        moved: event.moved.abs(),
        ..event.clone()
    };
    let events: Vec<_> = events.iter().map(forwards).collect();
    for ways in [Ways::Four, Ways::Eight] {
        let (table, clock) = clocked(8, ways);
        let table = table.with_overflow(Overflow::Deny);
        run(limit, in_ms, table, &clock, &events, true)?;
    }
    Ok(())
}

fn any_bucket() -> impl Strategy<Value = TokenBucket> {
    let limits = prop_oneof![
        Just(TokenBucket::per_second(10).with_burst(5)),
        Just(TokenBucket::per_second(3).with_burst(4)),
        Just(TokenBucket::per_minute(7).with_burst(2)),
        (1_u64..50, 1_u64..3_000 * MS, 1_u64..9).prop_map(|(tokens, period, burst)| {
            TokenBucket::per(tokens, Duration::from_nanos(period)).with_burst(burst)
        }),
    ];
    let max_wait = prop_oneof![2 => Just(0_u64), 1 => 0..3_000 * MS];
    (limits, max_wait).prop_map(|(limit, wait)| limit.with_max_wait(Duration::from_nanos(wait)))
}

fn any_sliding() -> impl Strategy<Value = (SlidingWindow, SlidingWindow)> {
    (1_u32..9, 1_u64..1_500).prop_map(|(limit, ms)| {
        (
            SlidingWindow::per(limit, Duration::from_millis(ms)),
            SlidingWindow::per(limit, Duration::from_nanos(ms)),
        )
    })
}

fn any_fixed() -> impl Strategy<Value = (FixedWindow, FixedWindow)> {
    (1_u32..9, 1_u64..1_500, prop::option::of(0_u64..1_500)).prop_map(|(limit, ms, offset)| {
        let build = |unit: fn(u64) -> Duration| {
            let fixed = FixedWindow::per(limit, unit(ms));
            match offset {
                Some(offset) => fixed.with_offset(unit(offset)),
                None => fixed.anchored(),
            }
        };
        (build(Duration::from_millis), build(Duration::from_nanos))
    })
}

proptest! {
    #![proptest_config(config(400))]

    #[test]
    fn buckets_with_room(limit in any_bucket(), events in events(8)) {
        with_room(limit, None, &events)?;
    }

    #[test]
    fn sliding_windows_with_room((limit, in_ms) in any_sliding(), events in events(8)) {
        with_room(limit, Some(in_ms), &events)?;
    }

    #[test]
    fn fixed_windows_with_room((limit, in_ms) in any_fixed(), events in events(8)) {
        with_room(limit, Some(in_ms), &events)?;
    }

    #[test]
    fn crowded_buckets(limit in any_bucket(), events in events(30)) {
        crowded(limit, None, &events)?;
    }

    #[test]
    fn crowded_sliding_windows((limit, in_ms) in any_sliding(), events in events(30)) {
        crowded(limit, Some(in_ms), &events)?;
    }

    #[test]
    fn crowded_fixed_windows((limit, in_ms) in any_fixed(), events in events(30)) {
        crowded(limit, Some(in_ms), &events)?;
    }
}

/// The other half of running on milliseconds: a wait is exact to the nanosecond all the same.
#[test]
fn waits_of_windows_are_exact_between_milliseconds() {
    let limiter = limiter(sliding(), table(64, Ways::Four, Overflow::Inherit));
    for nanos in [0, 1, 499_999, 500_000, 999_999] {
        let now = START / MS * MS + nanos;
        let key = nanos;
        for _ in 0..6 {
            assert!(limiter.check_at(&key, at(now)).is_allowed());
        }
        let retry_ns = ns(limiter.check_at(&key, at(now)).retry_after().unwrap());
        assert!(!limiter.check_at(&key, at(now + retry_ns - 1)).is_allowed());
        assert!(limiter.check_at(&key, at(now + retry_ns)).is_allowed());
    }
}
