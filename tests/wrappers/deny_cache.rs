//! `DenyCache`: what it answers, and what it remembers.

use std::time::Duration;

use ratekeeper::store::{DenyCache, ErrorKind, InvalidCapacity, Item, Store};
use ratekeeper::{All, ManualClock, Outcome, Receipt, Request, SlidingWindow, TokenBucket};

use crate::support::{Answer, LIMIT, MODES, SECOND, Script, ms};

pub(crate) const NS: Duration = Duration::from_nanos(1);

pub(crate) type Subject<'a> = DenyCache<&'a Script, &'a ManualClock>;

pub(crate) fn subject<'a>(script: &'a Script, clock: &'a ManualClock) -> Subject<'a> {
    DenyCache::with_clock(script, clock)
}

/// After a refusal of three tokens: which requests are answered, and which passed on.
#[test]
fn only_the_same_question_is_answered() {
    let questions: [(fn() -> Request, bool); 12] = [
        (|| Request::take(3), true),
        (|| Request::up_to(9).at_least(3), true),
        (|| Request::up_to(90).at_least(3), true),
        (|| Request::take(2), false),
        (|| Request::take(4), false),
        (|| Request::take(11), false),
        (|| Request::up_to(3), false),
        (|| Request::up_to(3).at_least(2), false),
        (|| Request::up_to(3).at_least(0), false),
        (|| Request::take(3).or_wait(NS), false),
        (|| Request::PEEK, false),
        (|| Request::refund(3, Receipt::new(3, 7)), false),
    ];
    for mode in MODES {
        for (question, answered) in questions {
            let (script, clock) = (Script::new([Answer::Deny(SECOND)]), ManualClock::new());
            let store = subject(&script, &clock);
            assert!(
                !mode
                    .apply(&store, "alice", &LIMIT, Request::take(3))
                    .unwrap()
                    .is_allowed()
            );
            let decision = mode.apply(&store, "alice", &LIMIT, question()).unwrap();
            assert_eq!(store.hits(), u64::from(answered), "{:?}", question());
            assert_eq!(script.count(), 2 - usize::from(answered));
            assert!(!answered || decision.retry_after() == Some(SECOND));
            assert!(
                !mode
                    .apply(&store, "bob", &LIMIT, Request::take(11))
                    .unwrap()
                    .is_allowed()
            );
            assert_eq!(script.count(), 1, "another key");
        }
    }
}

/// What is refused with other rules than "all or nothing, now" says nothing about those.
#[test]
fn only_plain_refusals_are_remembered() {
    for request in [
        || Request::up_to(9).at_least(3),
        || Request::take(3).or_wait(NS),
    ] {
        let (script, clock) = (Script::new([Answer::Deny(SECOND)]), ManualClock::new());
        let store = subject(&script, &clock);
        assert!(!store.apply("a", &LIMIT, request()).unwrap().is_allowed());
        assert!(
            store
                .apply("a", &LIMIT, Request::take(3))
                .unwrap()
                .is_allowed()
        );
        assert_eq!(store.hits(), 0);
    }
}

#[test]
fn costs_are_remembered_beside_each_other() {
    let script = Script::new([Answer::Deny(ms(100)), Answer::Deny(ms(500))]);
    let clock = ManualClock::new();
    let store = subject(&script, &clock);
    for cost in [1, 5, 1, 5, 5] {
        let decision = store.apply("a", &LIMIT, Request::take(cost)).unwrap();
        assert_eq!(decision.retry_after(), Some(ms(cost * 100)));
    }
    assert_eq!((script.count(), store.hits()), (2, 3));
    clock.advance(ms(100));
    assert!(store.apply("a", &LIMIT, Request::take(5)).is_ok());
    assert_eq!(script.count(), 0);
    // An allowed request ends them all.
    assert!(
        store
            .apply("a", &LIMIT, Request::take(1))
            .unwrap()
            .is_allowed()
    );
    assert!(
        store
            .apply("a", &LIMIT, Request::take(5))
            .unwrap()
            .is_allowed()
    );
}

#[test]
fn another_limit_is_another_question() {
    let (script, clock) = (Script::default(), ManualClock::new());
    let store = subject(&script, &clock);
    let refuse = || script.then([Answer::Deny(SECOND)]);
    let size = LIMIT.with_burst(11);
    refuse();
    assert!(!store.apply("a", &LIMIT, Request::ONE).unwrap().is_allowed());
    assert!(store.apply("a", &size, Request::ONE).unwrap().is_allowed());
    refuse();
    assert!(!store.apply("b", &LIMIT, Request::ONE).unwrap().is_allowed());
    let other = SlidingWindow::per_second(10);
    assert!(store.apply("b", &other, Request::ONE).unwrap().is_allowed());
    refuse();
    assert!(!store.apply("c", &LIMIT, Request::ONE).unwrap().is_allowed());
    let equal = TokenBucket::per_second(1).with_burst(10);
    assert!(!store.apply("c", &equal, Request::ONE).unwrap().is_allowed());
    assert_eq!(store.hits(), 1);
}

#[test]
fn what_is_no_refusal_of_the_store_is_not_remembered() {
    for answer in [
        Answer::Outcome(Outcome::TooLarge),
        Answer::Outcome(Outcome::Unsupported),
        Answer::Fail(ErrorKind::Unknown),
        Answer::Fail(ErrorKind::NotExecuted),
    ] {
        for mode in MODES {
            let (script, clock) = (Script::new([answer.clone()]), ManualClock::new());
            let store = subject(&script, &clock);
            let _ = mode.apply(&store, "a", &LIMIT, Request::ONE);
            assert!(
                mode.apply(&store, "a", &LIMIT, Request::ONE)
                    .unwrap()
                    .is_allowed()
            );
            assert_eq!((script.count(), store.hits()), (2, 0));
        }
    }
}

#[test]
fn of_several_limits_the_one_that_refused_is_told() {
    let limit = All([TokenBucket::per_second(20), TokenBucket::per_hour(3)]);
    let clock = ManualClock::new();
    let exact = ratekeeper::DashStore::<String, All<[TokenBucket; 2]>, _>::with_clock(&clock);
    let store = DenyCache::with_clock(exact, &clock);
    assert!(
        store
            .apply("a", &limit, Request::take(3))
            .unwrap()
            .is_allowed()
    );
    let asked = store.apply("a", &limit, Request::ONE).unwrap();
    let known = store.apply("a", &limit, Request::ONE).unwrap();
    assert_eq!(store.hits(), 1);
    assert_eq!((known.limit(), known.index()), (3, 1));
    assert_eq!(known, asked);
}

#[test]
fn a_batch_is_answered_in_part() {
    for mode in MODES {
        let (script, clock) = (Script::new([Answer::Deny(ms(400))]), ManualClock::new());
        let store = subject(&script, &clock);
        assert!(
            !mode
                .apply(&store, "a", &LIMIT, Request::ONE)
                .unwrap()
                .is_allowed()
        );
        script.calls();
        script.then([
            Answer::Deny(ms(200)),
            Answer::Fresh,
            Answer::Fail(ErrorKind::Config),
        ]);
        let mut items = ["b", "a", "c", "d", "a"].map(|key| Item::new(key, &LIMIT, Request::ONE));
        mode.batch(&store, &mut items);
        let crate::support::Call::Batch(asked) = script.calls().remove(0) else {
            panic!("no batch");
        };
        assert_eq!(
            asked
                .iter()
                .map(|asked| asked.key.as_str())
                .collect::<Vec<_>>(),
            ["b", "c", "d"]
        );
        let [b, a, c, d, a_again] = items.map(Item::into_result);
        assert_eq!(b.unwrap().retry_after(), Some(ms(200)));
        assert_eq!(a.unwrap().retry_after(), Some(ms(400)));
        assert!(c.unwrap().is_allowed());
        assert_eq!(d.unwrap_err().kind(), ErrorKind::Config);
        assert_eq!(a_again.unwrap().retry_after(), Some(ms(400)));
        // What the batch was told is known from now on; once all is known, nobody is asked.
        let mut items = ["b", "a"].map(|key| Item::new(key, &LIMIT, Request::ONE));
        mode.batch(&store, &mut items);
        assert!(
            items
                .iter()
                .all(|item| matches!(item.result(), Some(Ok(d)) if !d.is_allowed()))
        );
        assert_eq!((script.count(), store.hits()), (0, 4));
    }
}

#[test]
fn memory_is_bounded_and_keeps_what_lasts_longest() {
    let (script, clock) = (Script::default(), ManualClock::new());
    // One set of eight places.
    let store = subject(&script, &clock).with_capacity(1).unwrap();
    let keys: Vec<String> = (0..30).map(|n| format!("key {n}")).collect();
    for (n, key) in (0..).zip(&keys) {
        // The waits of all but the longest eight are shorter, in no order.
        script.then([Answer::Deny(ms(100 + (n * 7 + 8) % 30))]);
        assert!(
            !store
                .apply(key.as_str(), &LIMIT, Request::ONE)
                .unwrap()
                .is_allowed()
        );
    }
    script.calls();
    script.then(vec![Answer::Outcome(Outcome::TooLarge); 30]);
    let mut known = Vec::new();
    for (n, key) in (0..).zip(&keys) {
        if store
            .apply(key.as_str(), &LIMIT, Request::ONE)
            .unwrap()
            .retry_after()
            .is_some()
        {
            known.push((n * 7 + 8) % 30);
        }
    }
    assert_eq!((known.len(), store.hits()), (8, 8));
    known.sort_unstable();
    // The last newcomer is always there, although its wait is short; the other seven are the longest.
    assert_eq!(known, [1, 23, 24, 25, 26, 27, 28, 29]);
}

#[test]
fn capacities_that_cannot_be() {
    let store = || DenyCache::with_clock(Script::default(), ManualClock::new());
    assert_eq!(store().with_capacity(0).unwrap_err(), InvalidCapacity::Zero);
    for keys in [usize::MAX, usize::MAX / 8] {
        assert_eq!(
            store().with_capacity(keys).unwrap_err(),
            InvalidCapacity::TooLarge
        );
    }
    let seeded = DenyCache::with_seed(Script::new([Answer::Deny(SECOND)]), ManualClock::new(), 9);
    assert!(
        !seeded
            .apply("a", &LIMIT, Request::ONE)
            .unwrap()
            .is_allowed()
    );
    assert!(
        !seeded
            .apply("a", &LIMIT, Request::ONE)
            .unwrap()
            .is_allowed()
    );
    assert_eq!(seeded.hits(), 1);
}

/// In a set that they share, what ends one key's refusals leaves the others alone.
#[test]
fn neighbours_keep_their_refusals() {
    let clock = ManualClock::new();
    let script = Script::new(vec![Answer::Deny(SECOND); 3]);
    let store = subject(&script, &clock).with_capacity(8).unwrap();
    let ask = |key: &str, cost| store.apply(key, &LIMIT, Request::take(cost)).unwrap();
    for key in ["a", "b", "c"] {
        assert!(!ask(key, 5).is_allowed());
    }
    assert!(ask("b", 1).is_allowed());
    assert!(!ask("a", 5).is_allowed() && ask("b", 5).is_allowed() && !ask("c", 5).is_allowed());
    Store::<str, _>::forget(&store, "a", &LIMIT).unwrap();
    assert!(!ask("c", 5).is_allowed());
    assert_eq!(store.hits(), 3);
}
