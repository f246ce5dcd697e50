//! `FailOpen` and `FailClosed`.

use std::time::Duration;

use ratekeeper::store::{AsyncStore, ErrorKind, FailClosed, FailOpen, Item, Store, StoreError};
use ratekeeper::{All, Decision, Outcome, Receipt, Request, SlidingWindow, TokenBucket};

use crate::support::{Answer, Call, KINDS, LIMIT, MODES, SECOND, Script, give_up, ms};

/// What a wrapper answers after the given error; `None`: the error.
fn policies(request: impl Fn() -> Request, kind: ErrorKind) -> Vec<[Option<Decision>; 2]> {
    let mut answers = Vec::new();
    for mode in MODES {
        let script = Script::default();
        let (open, closed) = (FailOpen::new(&script), FailClosed::new(&script));
        script.then([Answer::Fail(kind), Answer::Fail(kind)]);
        let alone = [
            checked(mode.apply(&open, "alice", &LIMIT, request()), kind),
            checked(mode.apply(&closed, "alice", &LIMIT, request()), kind),
        ];
        script.then([Answer::Fail(kind), Answer::Fail(kind)]);
        let mut items = [(); 2].map(|()| [Item::new("alice", &LIMIT, request())]);
        mode.batch(&open, &mut items[0]);
        mode.batch(&closed, &mut items[1]);
        let batched = items.map(|[item]| checked(item.into_result(), kind));
        assert_eq!(alone, batched);
        let count = if is_passed_on(kind) { 0 } else { 2 };
        assert_eq!(
            [open.errors_answered(), closed.errors_answered()],
            [count; 2]
        );
        let last = Some(kind).filter(|_| count > 0);
        assert_eq!([open.last_error(), closed.last_error()], [last; 2]);
        answers.push(alone);
    }
    answers
}

/// Not ended by waiting: a mistake in the program, and a value that makes no sense.
fn is_passed_on(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Unsupported | ErrorKind::Corrupt)
}

fn checked(result: Result<Decision, StoreError>, kind: ErrorKind) -> Option<Decision> {
    match result {
        Ok(decision) => Some(decision),
        Err(error) => {
            assert_eq!(error.kind(), kind);
            None
        }
    }
}

#[test]
fn every_error_that_may_end_is_answered() {
    for kind in KINDS {
        for [open, closed] in policies(|| Request::take(3), kind) {
            if is_passed_on(kind) {
                assert_eq!((open, closed), (None, None));
                continue;
            }
            let honest = Decision::new(Outcome::Allowed, 10, 7, 3 * SECOND)
                .with_receipt(Receipt::new(3, 0))
                .with_degraded(true);
            assert_eq!(open, Some(honest), "{kind:?}");
            let outcome = Outcome::Denied {
                retry_after: SECOND,
            };
            let refusal = Decision::new(outcome, 10, 0, SECOND).with_degraded(true);
            assert_eq!(closed, Some(refusal), "{kind:?}");
        }
    }
}

#[test]
fn what_can_never_pass_never_passes() {
    for [open, closed] in policies(|| Request::take(11), ErrorKind::Unknown) {
        for decision in [open, closed] {
            let decision = decision.unwrap();
            assert_eq!(decision.outcome(), Outcome::TooLarge);
            assert_eq!((decision.limit(), decision.granted()), (10, 0));
            assert!(decision.is_degraded());
        }
    }
}

#[test]
fn partial_grants_get_what_there_is() {
    for [open, closed] in policies(|| Request::up_to(25), ErrorKind::NotExecuted) {
        let open = open.unwrap();
        assert_eq!((open.granted(), open.remaining()), (10, 0));
        assert_eq!(open.into_receipt(), Receipt::new(10, 0));
        assert_eq!(closed.unwrap().retry_after(), Some(SECOND));
    }
}

/// Whatever is never refused is not refused, but nothing is granted.
#[test]
fn requests_that_are_never_refused() {
    let requests: [fn() -> Request; 4] = [
        || Request::PEEK,
        || Request::up_to(4).at_least(0),
        || Request::up_to(4).at_least(0).or_wait(Duration::MAX),
        || Request::refund(3, Receipt::new(3, u64::MAX)),
    ];
    for (index, request) in requests.into_iter().enumerate() {
        for [open, closed] in policies(request, ErrorKind::Unknown) {
            let (open, closed) = (open.unwrap(), closed.unwrap());
            assert!(open.is_allowed() && closed.is_allowed());
            assert!(open.is_degraded() && closed.is_degraded());
            assert_eq!(open.granted(), [0, 4, 4, 0][index]);
            assert_eq!((closed.granted(), closed.remaining()), (0, 0));
        }
    }
}

#[test]
fn decisions_of_the_store_stay_as_they_are() {
    let outcomes = [
        Outcome::Denied { retry_after: ms(7) },
        Outcome::TooLarge,
        Outcome::Unsupported,
        Outcome::Allowed,
    ];
    for mode in MODES {
        for outcome in outcomes {
            let script = Script::new(vec![Answer::Outcome(outcome); 4]);
            let (open, closed) = (FailOpen::new(&script), FailClosed::new(&script));
            let expected = Decision::new(outcome, 10, 0, 2 * SECOND);
            let ask = || Request::take(2);
            assert_eq!(mode.apply(&open, "a", &LIMIT, ask()).unwrap(), expected);
            assert_eq!(mode.apply(&closed, "a", &LIMIT, ask()).unwrap(), expected);
            let mut items = [Item::new("a", &LIMIT, ask())];
            mode.batch(&open, &mut items);
            let [item] = items;
            assert_eq!(item.into_result().unwrap(), expected);
            assert_eq!(open.errors_answered() + closed.errors_answered(), 0);
        }
    }
}

#[test]
fn in_a_batch_each_item_has_its_own_answer() {
    for mode in MODES {
        let answers = || {
            let unsupported = Answer::Fail(ErrorKind::Unsupported);
            let refusal = Answer::Deny(ms(5));
            [
                refusal,
                Answer::Fail(ErrorKind::Contention),
                unsupported,
                Answer::Ignore,
                Answer::Fresh,
            ]
        };
        let script = Script::new(answers());
        let store = FailOpen::new(&script);
        let mut items = ["a", "b", "c", "d", "e"].map(|key| Item::new(key, &LIMIT, Request::ONE));
        mode.batch(&store, &mut items);
        // Whoever goes through the batch again must find nothing to do.
        assert!(items.iter_mut().all(|item| item.take_request().is_none()));
        let results = items.map(Item::into_result);
        let [a, b, c, d, e] = results;
        assert_eq!(a.unwrap().retry_after(), Some(ms(5)));
        assert!(b.unwrap().is_degraded());
        assert_eq!(c.unwrap_err().kind(), ErrorKind::Unsupported);
        assert!(d.unwrap().is_degraded());
        assert!(!e.unwrap().is_degraded());
        assert_eq!(store.errors_answered(), 2);
        assert_eq!(store.last_error(), Some(ErrorKind::NotExecuted));
    }
}

#[test]
fn an_item_that_was_taken_and_not_answered_counts_as_unknown() {
    let script = Script::new([Answer::Hang]);
    let store = FailClosed::new(&script);
    let mut items = [Item::new("a", &LIMIT, Request::ONE)];
    Store::<str, _>::apply_batch(&store, &mut items);
    let [item] = items;
    assert!(item.into_result().unwrap().is_degraded());
    assert_eq!(store.last_error(), Some(ErrorKind::Unknown));
}

#[test]
fn forgetting_is_not_made_up() {
    for mode in MODES {
        let script = Script::new(vec![Answer::Fail(ErrorKind::NotExecuted); 2]);
        let (open, closed) = (FailOpen::new(&script), FailClosed::new(&script));
        let results = [
            mode.forget(&open, "a", &LIMIT),
            mode.forget(&closed, "a", &LIMIT),
        ];
        for result in results {
            assert_eq!(result.unwrap_err().kind(), ErrorKind::NotExecuted);
        }
        assert_eq!(script.calls(), vec![Call::Forget("a".into()); 2]);
        assert_eq!(open.errors_answered() + closed.errors_answered(), 0);
    }
}

#[test]
fn the_wait_is_chosen_and_never_zero() {
    for (chosen, told) in [
        (ms(1_500), ms(1_500)),
        (Duration::ZERO, Duration::from_nanos(1)),
        (Duration::MAX, Duration::from_nanos(u64::MAX)),
    ] {
        let script = Script::new([Answer::Fail(ErrorKind::Config)]);
        let store = FailClosed::new(script).with_retry_after(chosen);
        let decision = store.apply("a", &LIMIT, Request::ONE).unwrap();
        assert_eq!(decision.retry_after(), Some(told));
    }
}

#[test]
fn limits_of_several_parts_speak_for_the_tightest() {
    let limit = All((TokenBucket::per_second(9), SlidingWindow::per_hour(5)));
    let script = Script::new(vec![Answer::Fail(ErrorKind::Unknown); 2]);
    let decision = FailOpen::new(&script).apply("a", &limit, Request::take(2));
    let decision = decision.unwrap();
    assert_eq!(
        (decision.limit(), decision.remaining(), decision.index()),
        (5, 3, 1)
    );
    assert_eq!(decision.into_receipt(), Receipt::new(2, 0));
    let decision = FailClosed::new(&script).apply("a", &limit, Request::take(2));
    assert_eq!(decision.unwrap().limit(), 5);
}

#[test]
fn a_dropped_future_answers_nothing() {
    let script = Script::new(vec![Answer::Hang; 2]);
    let (open, closed) = (FailOpen::new(&script), FailClosed::new(&script));
    give_up(open.apply_async("a", &LIMIT, Request::ONE));
    give_up(closed.apply_async("a", &LIMIT, Request::ONE));
    assert_eq!(open.errors_answered() + closed.errors_answered(), 0);
    assert_eq!(script.count(), 2);
}
