//! `DenyCache`: when a refusal ends.

use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

use ratekeeper::store::{AsyncStore, DenyCache, ErrorKind, FailClosed, FailOpen, Store};
use ratekeeper::{
    DashStore, Decision, ManualClock, Outcome, Receipt, Request, Timestamp, TokenBucket,
};

use crate::deny_cache::{NS, Subject, subject};
use crate::support::{Answer, LIMIT, MODES, Mode, NOW, SECOND, Script, block_on, give_up, ms};

fn refusal(retry_after: Duration, reset_after: Duration) -> Decision {
    Decision::new(Outcome::Denied { retry_after }, 10, 0, reset_after)
}

#[test]
fn a_refusal_is_repeated_until_its_wait_is_over_and_no_longer() {
    for mode in MODES {
        let (script, clock) = (Script::new([Answer::Deny(ms(300))]), ManualClock::new());
        clock.set(Timestamp::from_nanos(12_345));
        let store = subject(&script, &clock);
        let ask = || {
            mode.apply(&store, "alice", &LIMIT, Request::take(4))
                .unwrap()
        };
        assert_eq!(ask(), refusal(ms(300), 2 * SECOND));
        assert_eq!(ask(), refusal(ms(300), 2 * SECOND));
        clock.advance(ms(100));
        assert_eq!(ask(), refusal(ms(200), ms(1_900)));
        clock.advance(ms(200) - NS);
        assert_eq!(ask(), refusal(NS, ms(1_700) + NS));
        assert_eq!((script.count(), store.hits()), (1, 3));
        clock.advance(NS);
        assert!(ask().is_allowed());
        assert_eq!((script.count(), store.hits()), (1, 3));
    }
}

/// The wait that is told is the true one, also when the memory ends before.
#[test]
fn memory_ends_after_its_greatest_age() {
    for mode in MODES {
        let hour = Duration::from_secs(3_600);
        for (max_age, age) in [(None, SECOND), (Some(ms(20)), ms(20))] {
            let (script, clock) = (Script::new([Answer::Deny(hour)]), ManualClock::new());
            let mut store = subject(&script, &clock);
            if let Some(max_age) = max_age {
                store = store.with_max_age(max_age);
            }
            let ask = || mode.apply(&store, "alice", &LIMIT, Request::ONE).unwrap();
            assert!(!ask().is_allowed());
            clock.advance(age - NS);
            assert_eq!(ask().retry_after(), Some(hour - age + NS));
            assert_eq!(ask().reset_after(), hour - age + NS); // never shorter than the wait
            assert_eq!(script.count(), 1);
            clock.advance(NS);
            assert!(ask().is_allowed());
        }
    }
}

#[test]
fn no_age_no_memory() {
    let (script, clock) = (
        Script::new(vec![Answer::Deny(SECOND); 2]),
        ManualClock::new(),
    );
    let store = subject(&script, &clock).with_max_age(Duration::ZERO);
    for _ in 0..2 {
        assert!(
            !store
                .apply("alice", &LIMIT, Request::ONE)
                .unwrap()
                .is_allowed()
        );
    }
    assert_eq!((script.count(), store.hits()), (2, 0));
}

/// Answers in place of the store neither make nor end refusals.
#[test]
fn degraded_answers_teach_nothing() {
    let script = Script::default();
    let clock = ManualClock::new();
    let closed = DenyCache::with_clock(FailClosed::new(&script), &clock);
    script.then([Answer::Fail(ErrorKind::Unknown)]);
    assert!(
        closed
            .apply("a", &LIMIT, Request::ONE)
            .unwrap()
            .is_degraded()
    );
    assert!(
        closed
            .apply("a", &LIMIT, Request::ONE)
            .unwrap()
            .is_allowed()
    );
    assert_eq!(closed.hits(), 0);

    let open = DenyCache::with_clock(FailOpen::new(&script), &clock);
    script.then([Answer::Deny(SECOND), Answer::Fail(ErrorKind::Unknown)]);
    assert!(
        !open
            .apply("a", &LIMIT, Request::take(5))
            .unwrap()
            .is_allowed()
    );
    assert!(
        open.apply("a", &LIMIT, Request::take(1))
            .unwrap()
            .is_degraded()
    );
    let again = open.apply("a", &LIMIT, Request::take(5)).unwrap();
    assert!(!again.is_allowed() && !again.is_degraded());
    assert_eq!(open.hits(), 1);
}

#[test]
fn refunds_forgetting_and_grants_end_it() {
    let refund = || Request::refund(1, Receipt::new(1, 7));
    type End = fn(Mode, &Subject<'_>);
    let ends: [(&str, End); 5] = [
        ("a grant", |mode, store| {
            assert!(
                mode.apply(store, "a", &LIMIT, Request::ONE)
                    .unwrap()
                    .is_allowed()
            );
        }),
        ("a partial grant", |mode, store| {
            assert!(
                mode.apply(store, "a", &LIMIT, Request::up_to(2))
                    .unwrap()
                    .is_allowed()
            );
        }),
        ("a reservation", |mode, store| {
            let request = Request::take(2).or_wait(SECOND);
            assert!(
                mode.apply(store, "a", &LIMIT, request)
                    .unwrap()
                    .is_allowed()
            );
        }),
        ("forgetting", |mode, store| {
            mode.forget(store, "a", &LIMIT).unwrap();
        }),
        ("clear", |_, store| store.clear()),
    ];
    for mode in MODES {
        for (name, end) in ends {
            let (script, clock) = (Script::new([Answer::Deny(SECOND)]), ManualClock::new());
            let store = subject(&script, &clock);
            assert!(
                !mode
                    .apply(&store, "a", &LIMIT, Request::take(5))
                    .unwrap()
                    .is_allowed()
            );
            end(mode, &store);
            assert!(
                mode.apply(&store, "a", &LIMIT, Request::take(5))
                    .unwrap()
                    .is_allowed(),
                "{name}"
            );
            assert_eq!(store.hits(), 0, "{name}");
        }
        // Whatever the store says to a refund: it may have happened.
        for answer in [Answer::Fresh, Answer::Fail(ErrorKind::Unknown)] {
            let (script, clock) = (
                Script::new([Answer::Deny(SECOND), answer]),
                ManualClock::new(),
            );
            let store = subject(&script, &clock);
            assert!(
                !mode
                    .apply(&store, "a", &LIMIT, Request::take(5))
                    .unwrap()
                    .is_allowed()
            );
            let _ = mode.apply(&store, "a", &LIMIT, refund());
            assert!(
                mode.apply(&store, "a", &LIMIT, Request::take(5))
                    .unwrap()
                    .is_allowed()
            );
        }
        // A look, or a grant of nothing, changes nothing.
        let (script, clock) = (Script::new([Answer::Deny(SECOND)]), ManualClock::new());
        let store = subject(&script, &clock);
        assert!(
            !mode
                .apply(&store, "a", &LIMIT, Request::take(5))
                .unwrap()
                .is_allowed()
        );
        assert!(
            mode.apply(&store, "a", &LIMIT, Request::PEEK)
                .unwrap()
                .is_allowed()
        );
        assert!(
            !mode
                .apply(&store, "a", &LIMIT, Request::take(5))
                .unwrap()
                .is_allowed()
        );
        assert_eq!(store.hits(), 1);
    }
}

/// A refusal that was decided before tokens came back must not be written down after.
#[test]
fn a_refund_overtakes_a_refusal_under_way() {
    type GiveBack = fn(&Subject<'_>);
    let ways: [GiveBack; 4] = [
        |store| {
            let refund = Request::refund(1, Receipt::new(1, 7));
            assert!(store.apply("a", &LIMIT, refund).unwrap().is_allowed());
        },
        |store| Store::<str, _>::forget(store, "a", &LIMIT).unwrap(),
        |store| store.clear(),
        |store| {
            let refund = Request::refund(1, Receipt::new(1, 7));
            give_up(store.apply_async("a", &LIMIT, refund));
        },
    ];
    for (index, way) in ways.into_iter().enumerate() {
        let late = Answer::Late(Box::new(Answer::Deny(SECOND)));
        let second = if index == 3 {
            Answer::Hang
        } else {
            Answer::Fresh
        };
        let (script, clock) = (Script::new([late, second]), ManualClock::new());
        let store = subject(&script, &clock);
        let mut slow = pin!(store.apply_async("a", &LIMIT, Request::ONE));
        let mut context = Context::from_waker(Waker::noop());
        assert!(slow.as_mut().poll(&mut context).is_pending());
        way(&store);
        assert!(!block_on(slow).unwrap().is_allowed());
        let next = store.apply("a", &LIMIT, Request::ONE).unwrap();
        assert_eq!((next.is_allowed(), store.hits()), (true, 0), "way {index}");
    }
}

/// The wait counts from before the store was asked, so a slow answer ends no later than it promised.
#[test]
fn slow_answers_are_remembered_for_less_time() {
    let late = Answer::Late(Box::new(Answer::Deny(ms(100))));
    let (script, clock) = (Script::new([late]), ManualClock::new());
    let store = subject(&script, &clock);
    let mut slow = pin!(store.apply_async("a", &LIMIT, Request::ONE));
    let mut context = Context::from_waker(Waker::noop());
    assert!(slow.as_mut().poll(&mut context).is_pending());
    clock.advance(ms(30));
    assert_eq!(block_on(slow).unwrap().retry_after(), Some(ms(100)));
    let known = store.apply("a", &LIMIT, Request::ONE).unwrap();
    assert_eq!(known.retry_after(), Some(ms(70)));
    clock.advance(ms(70));
    assert!(store.apply("a", &LIMIT, Request::ONE).unwrap().is_allowed());
}

#[test]
fn dropped_futures_leave_nothing_behind() {
    let (script, clock) = (
        Script::new([Answer::Hang, Answer::Deny(SECOND)]),
        ManualClock::new(),
    );
    let store = subject(&script, &clock);
    give_up(store.apply_async("a", &LIMIT, Request::ONE));
    assert!(
        !block_on(store.apply_async("a", &LIMIT, Request::ONE))
            .unwrap()
            .is_allowed()
    );
    assert!(
        !block_on(store.apply_async("a", &LIMIT, Request::ONE))
            .unwrap()
            .is_allowed()
    );
    assert_eq!(store.hits(), 1);
}

#[test]
fn a_clock_stepped_back_forgets() {
    let (script, clock) = (Script::new([Answer::Deny(SECOND)]), ManualClock::new());
    clock.set(Timestamp::from_nanos(1_000));
    let store = subject(&script, &clock);
    assert!(!store.apply("a", &LIMIT, Request::ONE).unwrap().is_allowed());
    clock.set(Timestamp::from_nanos(999));
    assert!(store.apply("a", &LIMIT, Request::ONE).unwrap().is_allowed());
}

#[test]
fn at_the_end_of_time_nothing_overflows() {
    let script = Script::new([Answer::Deny(Duration::MAX), Answer::Deny(SECOND)]);
    let clock = ManualClock::new();
    clock.set(Timestamp::from_nanos(u64::MAX - 5));
    let store = subject(&script, &clock);
    assert!(!store.apply("a", &LIMIT, Request::ONE).unwrap().is_allowed());
    clock.advance(5 * NS);
    let last = store.apply("a", &LIMIT, Request::ONE).unwrap();
    assert_eq!(last.retry_after(), Some(SECOND));
}

/// Another process forgets the key: here it stays refused for a second, no longer, however long the wait was.
#[test]
fn what_others_do_is_seen_after_the_greatest_age() {
    let clock = ManualClock::new();
    clock.set(NOW);
    let shared = DashStore::<String, TokenBucket, _>::with_clock(&clock);
    let [here, there] = [(); 2].map(|()| DenyCache::with_clock(&shared, &clock));
    let limit = TokenBucket::per_hour(3);
    let ask = |store: &DenyCache<_, _>| store.apply("a", &limit, Request::take(3)).unwrap();
    assert!(ask(&here).is_allowed());
    assert!(!ask(&here).is_allowed() && !ask(&there).is_allowed());
    Store::<str, _>::forget(&there, "a", &limit).unwrap();
    assert!(!ask(&here).is_allowed());
    clock.advance(SECOND - NS);
    assert!(!ask(&here).is_allowed());
    clock.advance(NS);
    assert!(ask(&here).is_allowed());
    assert_eq!(here.hits(), 2);
}
