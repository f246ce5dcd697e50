//! `Leased` while a lease is under way.

use std::pin::pin;
use std::task::{Context, Waker};

use ratekeeper::store::{AsyncStore, ErrorKind, Item, Store};
use ratekeeper::{ManualClock, Request};

use crate::leased::{NS, exactly, lease, spend, subject, take};
use crate::support::{Answer, Call, LIMIT, Mode, SECOND, Script, asked, block_on, give_up};

#[test]
fn while_a_lease_is_under_way_others_ask_for_what_they_need() {
    let late = Answer::Late(Box::new(Answer::Fresh));
    let (script, clock) = (Script::new([late]), ManualClock::new());
    let store = subject(&script, 4, &clock);
    let mut slow = pin!(store.apply_async("alice", &LIMIT, Request::ONE));
    let mut context = Context::from_waker(Waker::noop());
    assert!(slow.as_mut().poll(&mut context).is_pending());
    spend(Mode::Async, &store, 1);
    spend(Mode::Blocking, &store, 3);
    assert_eq!(script.calls(), [lease(4, 1), exactly(1), exactly(3)]);
    assert_eq!(block_on(slow).unwrap().granted(), 1);
    spend(Mode::Async, &store, 3);
    assert_eq!((script.count(), store.hits()), (0, 1));
}

#[test]
fn a_dropped_lease_is_over() {
    let (script, clock) = (Script::new([Answer::Hang]), ManualClock::new());
    let store = subject(&script, 4, &clock);
    give_up(store.apply_async("alice", &LIMIT, Request::ONE));
    spend(Mode::Async, &store, 1);
    assert_eq!(script.calls(), [lease(4, 1), lease(4, 1)]);
    let mut items = [Item::new("bob", &LIMIT, Request::ONE)];
    script.then([Answer::Hang]);
    give_up(store.apply_batch_async(&mut items));
    let [item] = items;
    assert_eq!(item.into_result().unwrap_err().kind(), ErrorKind::Unknown);
    script.calls();
    let bob = store.apply("bob", &LIMIT, Request::ONE).unwrap();
    assert_eq!(bob.granted(), 1);
    let expected = asked("bob", &LIMIT, &Request::up_to(4).at_least(1));
    assert_eq!(script.calls(), [Call::Apply(expected)]);
}

/// A future that is never dropped keeps the others without a lease for no longer than an expiry, and brings nothing then.
#[test]
fn a_forgotten_lease_is_over_in_time() {
    let late = Answer::Late(Box::new(Answer::Fresh));
    let (script, clock) = (Script::new([late]), ManualClock::new());
    let store = subject(&script, 4, &clock);
    let mut slow = pin!(store.apply_async("alice", &LIMIT, Request::ONE));
    let mut context = Context::from_waker(Waker::noop());
    assert!(slow.as_mut().poll(&mut context).is_pending());
    clock.advance(SECOND - NS);
    spend(Mode::Async, &store, 1);
    assert_eq!(script.calls(), [lease(4, 1), exactly(1)]);
    clock.advance(NS);
    spend(Mode::Async, &store, 1);
    assert_eq!(script.calls(), [lease(4, 1)]);
    assert_eq!(block_on(slow).unwrap().granted(), 1);
    for expected in [0, 0, 0, 1] {
        spend(Mode::Async, &store, 1);
        assert_eq!(script.count(), expected);
    }
}

/// What is given back while a lease is under way may not push the balance over its bound.
#[test]
fn refunds_leave_room_for_what_is_under_way() {
    let (script, clock) = (Script::default(), ManualClock::new());
    let store = subject(&script, 8, &clock);
    let receipt = take(Mode::Async, &store, 7).into_receipt(); // 1 left
    script.then([Answer::Late(Box::new(Answer::Fresh))]);
    let request = || Request::take(3);
    let mut slow = pin!(store.apply_async("alice", &LIMIT, request())); // will bring 5
    let mut context = Context::from_waker(Waker::noop());
    assert!(slow.as_mut().poll(&mut context).is_pending());
    let refund = Request::refund(7, receipt);
    assert!(store.apply("alice", &LIMIT, refund).unwrap().is_allowed());
    script.calls();
    spend(Mode::Async, &store, 2); // of the two that were kept
    assert_eq!((script.count(), store.hits()), (0, 2));
    spend(Mode::Async, &store, 1);
    assert_eq!(script.calls(), [exactly(1)]);
    assert_eq!(block_on(slow).unwrap().granted(), 3);
    spend(Mode::Async, &store, 5);
    assert_eq!(script.count(), 0);
}

/// What was bought before the key was forgotten is not kept after.
#[test]
fn forgetting_concerns_what_is_under_way() {
    let late = Answer::Late(Box::new(Answer::Fresh));
    let (script, clock) = (Script::new([late]), ManualClock::new());
    let store = subject(&script, 9, &clock);
    let mut slow = pin!(store.apply_async("alice", &LIMIT, Request::ONE));
    let mut context = Context::from_waker(Waker::noop());
    assert!(slow.as_mut().poll(&mut context).is_pending());
    Store::<str, _>::forget(&store, "alice", &LIMIT).unwrap();
    script.calls();
    let decision = block_on(slow).unwrap();
    assert_eq!((decision.granted(), decision.remaining()), (1, 1));
    spend(Mode::Async, &store, 1);
    assert_eq!(script.calls(), [lease(9, 1)]);
}
