//! `Leased`: what it asks, what it hands out, and what it forgets.

use std::time::Duration;

use ratekeeper::store::{ErrorKind, FailOpen, InvalidCapacity, Item, Leased, Store};
use ratekeeper::{
    All, DashStore, Decision, ManualClock, Outcome, Receipt, Request, Timestamp, TokenBucket,
};

use crate::support::{Answer, Call, LIMIT, MODES, Mode, NOW, SECOND, Script, asked, ms};

pub(crate) const NS: Duration = Duration::from_nanos(1);

pub(crate) type Subject<'a> = Leased<&'a Script, &'a ManualClock>;

pub(crate) fn subject<'a>(script: &'a Script, batch: u64, clock: &'a ManualClock) -> Subject<'a> {
    Leased::with_clock(script, batch, clock)
}

pub(crate) fn take(mode: Mode, store: &Subject<'_>, cost: u64) -> Decision {
    mode.apply(store, "alice", &LIMIT, Request::take(cost))
        .unwrap()
}

pub(crate) fn spend(mode: Mode, store: &Subject<'_>, cost: u64) {
    assert_eq!(take(mode, store, cost).granted(), cost);
}

pub(crate) fn lease(batch: u64, cost: u64) -> Call {
    Call::Apply(asked(
        "alice",
        &LIMIT,
        &Request::up_to(batch).at_least(cost),
    ))
}

pub(crate) fn exactly(cost: u64) -> Call {
    Call::Apply(asked("alice", &LIMIT, &Request::take(cost)))
}

#[test]
fn a_batch_is_bought_and_handed_out() {
    for mode in MODES {
        let (script, clock) = (Script::default(), ManualClock::new());
        let store = subject(&script, 4, &clock);
        // The store grants 4 of 10 and has 6 left; it will be full again in 4 seconds.
        for (left, balance) in [(6, 3), (6, 2), (6, 1), (6, 0)] {
            let decision = take(mode, &store, 1);
            assert!(decision.is_allowed() && !decision.is_degraded());
            assert_eq!((decision.granted(), decision.limit()), (1, 10));
            assert_eq!(decision.remaining(), left.max(balance));
            assert_eq!(decision.reset_after(), 4 * SECOND);
        }
        assert_eq!(script.calls(), [lease(4, 1)]);
        assert_eq!(store.hits(), 3);
        spend(mode, &store, 3);
        spend(mode, &store, 1);
        spend(mode, &store, 2);
        assert_eq!(script.calls(), [lease(4, 3), lease(4, 2)]);
    }
}

#[test]
fn the_balance_is_the_largest_cost_left_when_the_store_has_less() {
    let (script, clock) = (Script::default(), ManualClock::new());
    let store = subject(&script, 9, &clock);
    assert_eq!(take(Mode::Blocking, &store, 1).remaining(), 8); // the store has one
    clock.advance(ms(300));
    let local = take(Mode::Blocking, &store, 1);
    assert_eq!((local.remaining(), local.reset_after()), (7, ms(8_700)));
}

#[test]
fn near_the_limit_it_gets_what_there_is() {
    let clock = ManualClock::new();
    clock.set(NOW);
    let exact = DashStore::<String, TokenBucket, _>::with_clock(&clock);
    let store = Leased::with_clock(exact, 8, &clock);
    let granted: u64 = (0..20)
        .map(|_| store.apply("a", &LIMIT, Request::ONE).unwrap().granted())
        .sum();
    assert_eq!(granted, 10);
    let refused = store.apply("a", &LIMIT, Request::ONE).unwrap();
    assert_eq!(refused.retry_after(), Some(SECOND));
    clock.advance(2 * SECOND);
    let refused = store.apply("a", &LIMIT, Request::take(5)).unwrap();
    assert_eq!(refused.retry_after(), Some(3 * SECOND)); // for five, not for eight
    assert_eq!((refused.granted(), refused.remaining()), (0, 2));
}

#[test]
fn what_is_not_plain_or_too_large_for_the_batch_is_passed_on() {
    let requests: [fn() -> Request; 7] = [
        || Request::PEEK,
        || Request::take(4),
        || Request::take(5),
        || Request::up_to(2),
        || Request::up_to(2).at_least(0),
        || Request::take(2).or_wait(NS),
        || Request::refund(2, Receipt::new(2, 7)),
    ];
    for mode in MODES {
        let (script, clock) = (Script::default(), ManualClock::new());
        let store = subject(&script, 4, &clock);
        spend(mode, &store, 1);
        script.calls();
        for request in requests {
            let decision = mode.apply(&store, "alice", &LIMIT, request()).unwrap();
            let plain = mode
                .apply(&Script::default(), "alice", &LIMIT, request())
                .unwrap();
            assert_eq!(decision, plain);
            let expected = Call::Apply(asked("alice", &LIMIT, &request()));
            assert_eq!(script.calls(), [expected]);
        }
        // The balance is still there.
        assert_eq!(take(mode, &store, 3).granted(), 3);
        assert_eq!((script.count(), store.hits()), (0, 1));
    }
}

#[test]
fn batches_of_one_are_no_batches() {
    for batch in [0, 1] {
        let (script, clock) = (Script::default(), ManualClock::new());
        let store = subject(&script, batch, &clock);
        spend(Mode::Blocking, &store, 1);
        assert_eq!(script.calls(), [exactly(1)]);
    }
}

#[test]
fn balances_expire() {
    for mode in MODES {
        for (chosen, expiry) in [(None, SECOND), (Some(ms(30)), ms(30))] {
            let (script, clock) = (Script::default(), ManualClock::new());
            let mut store = subject(&script, 4, &clock);
            if let Some(expiry) = chosen {
                store = store.with_expiry(expiry);
            }
            spend(mode, &store, 1);
            clock.advance(expiry - NS);
            spend(mode, &store, 1);
            assert_eq!(script.calls(), [lease(4, 1)]);
            clock.advance(NS);
            spend(mode, &store, 1);
            assert_eq!(script.calls(), [lease(4, 1)]);
            // The old rest was lost, the new one begins.
            for _ in 0..3 {
                spend(mode, &store, 1);
            }
            assert_eq!(script.count(), 0);
            spend(mode, &store, 1);
            assert_eq!(script.count(), 1);
        }
    }
}

#[test]
fn a_clock_stepped_back_loses_balances() {
    let (script, clock) = (Script::default(), ManualClock::new());
    clock.set(Timestamp::from_nanos(1_000));
    let store = subject(&script, 4, &clock);
    spend(Mode::Blocking, &store, 1);
    clock.set(Timestamp::from_nanos(999));
    spend(Mode::Blocking, &store, 1);
    assert_eq!(script.count(), 2);
}

/// A rest that did not suffice stays, and together they stay below the batch.
#[test]
fn rests_add_up_to_less_than_a_batch() {
    let (script, clock) = (Script::default(), ManualClock::new());
    let store = subject(&script, 8, &clock);
    spend(Mode::Blocking, &store, 3); // 5 left
    spend(Mode::Blocking, &store, 6); // 2 of 8 and 5: 7
    assert_eq!(script.calls(), [lease(8, 3), lease(8, 6)]);
    for _ in 0..7 {
        spend(Mode::Blocking, &store, 1);
    }
    assert_eq!(script.count(), 0);
    spend(Mode::Blocking, &store, 1);
    assert_eq!(script.count(), 1);
}

#[test]
fn denials_errors_and_impossible_costs_stay_as_they_are() {
    for mode in MODES {
        let script = Script::new([
            Answer::Deny(ms(7)),
            Answer::Fail(ErrorKind::Unknown),
            Answer::Outcome(Outcome::TooLarge),
            Answer::Outcome(Outcome::Unsupported),
        ]);
        let clock = ManualClock::new();
        let store = subject(&script, 4, &clock);
        assert_eq!(take(mode, &store, 1).retry_after(), Some(ms(7)));
        let error = mode
            .apply(&store, "alice", &LIMIT, Request::ONE)
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unknown);
        assert_eq!(take(mode, &store, 1).outcome(), Outcome::TooLarge);
        assert_eq!(take(mode, &store, 1).outcome(), Outcome::Unsupported);
        // Each of them ended its lease: the next one asks for another.
        spend(mode, &store, 1);
        assert_eq!(script.calls(), vec![lease(4, 1); 5]);
        assert_eq!(store.hits(), 0);
    }
}

/// Who gets no more than it needs keeps the store's own receipt.
#[test]
fn receipts() {
    let clock = ManualClock::new();
    clock.set(NOW);
    let exact = DashStore::<String, TokenBucket, _>::with_clock(&clock);
    let store = Leased::with_clock(&exact, 8, &clock);
    let take = |n| store.apply("a", &LIMIT, Request::take(n)).unwrap();
    let peek = || exact.apply("a", &LIMIT, Request::PEEK).unwrap().remaining();

    let first = take(2).into_receipt();
    assert_eq!((first.charged(), first.mark()), (2, 1));
    assert_eq!(peek(), 2);
    let local = take(3).into_receipt();
    assert_eq!((local.charged(), local.mark()), (3, 1));
    // 3 are left. Giving back goes into the balance, up to 7, and no further.
    let back = |n, receipt| {
        store
            .apply("a", &LIMIT, Request::refund(n, receipt))
            .unwrap()
    };
    let hits = store.hits();
    assert_eq!(back(9, local).remaining(), 6); // counts as 3
    assert_eq!(back(2, first).remaining(), 7);
    assert_eq!((store.hits(), peek()), (hits + 2, 2));
    assert_eq!(take(7).granted(), 7);
    assert_eq!(store.hits(), hits + 3);

    // The store has 2, of which the lease gets 2: nothing is left to keep.
    let all = take(2).into_receipt();
    assert_eq!(peek(), 0);
    assert!(all.mark() > NOW.as_nanos());
    assert!(back(2, all).is_allowed());
    assert_eq!(peek(), 2);
}

#[test]
fn refunds_after_the_end_of_the_balance_are_lost() {
    for mode in MODES {
        let (script, clock) = (Script::default(), ManualClock::new());
        let store = subject(&script, 4, &clock);
        let receipt = take(mode, &store, 1).into_receipt();
        clock.advance(SECOND);
        script.calls();
        let refund = |receipt| Request::refund(1, receipt);
        let decision = mode
            .apply(&store, "alice", &LIMIT, refund(receipt))
            .unwrap();
        assert!(decision.is_allowed());
        let expected = Call::Apply(asked("alice", &LIMIT, &refund(Receipt::new(1, 1))));
        assert_eq!(script.calls(), [expected]);
        spend(mode, &store, 1);
        assert_eq!(script.calls(), [lease(4, 1)]);
    }
}

/// What nobody was charged for must not become a token.
#[test]
fn receipts_of_answers_in_place_of_the_store_fill_no_balance() {
    let (script, clock) = (Script::default(), ManualClock::new());
    let store = FailOpen::new(subject(&script, 4, &clock));
    for _ in 0..4 {
        assert!(
            store
                .apply("alice", &LIMIT, Request::ONE)
                .unwrap()
                .is_allowed()
        );
    }
    script.then([Answer::Fail(ErrorKind::NotExecuted)]);
    let made_up = store.apply("alice", &LIMIT, Request::take(3)).unwrap();
    assert!(made_up.is_degraded());
    script.calls();
    let refund = Request::refund(3, made_up.into_receipt());
    assert!(store.apply("alice", &LIMIT, refund).unwrap().is_allowed());
    assert!(
        store
            .apply("alice", &LIMIT, Request::ONE)
            .unwrap()
            .is_allowed()
    );
    assert_eq!(script.count(), 2, "both went to the store");
}

#[test]
fn a_made_up_grant_is_not_kept() {
    let clock = ManualClock::new();
    let script = Script::new(vec![Answer::Fail(ErrorKind::Unknown); 2]);
    let store = Leased::with_clock(FailOpen::new(&script), 4, &clock);
    for _ in 0..2 {
        let decision = store.apply("alice", &LIMIT, Request::ONE).unwrap();
        assert!(decision.is_degraded());
        assert_eq!(decision.into_receipt(), Receipt::new(1, 0));
    }
    assert_eq!((script.count(), store.hits()), (2, 0));
}

#[test]
fn forgetting_and_clearing_lose_the_balance() {
    for mode in MODES {
        let (script, clock) = (Script::default(), ManualClock::new());
        let store = subject(&script, 4, &clock);
        spend(mode, &store, 1);
        mode.forget(&store, "alice", &LIMIT).unwrap();
        spend(mode, &store, 1);
        store.clear();
        spend(mode, &store, 1);
        let forget = Call::Forget("alice".into());
        assert_eq!(
            script.calls(),
            [lease(4, 1), forget, lease(4, 1), lease(4, 1)]
        );
    }
}

#[test]
fn keys_have_balances_of_their_own() {
    let (script, clock) = (Script::default(), ManualClock::new());
    let store = subject(&script, 4, &clock);
    for key in ["alice", "bob", "alice", "bob"] {
        let decision = store.apply(key, &LIMIT, Request::take(2)).unwrap();
        assert_eq!(decision.granted(), 2);
    }
    assert_eq!((script.count(), store.hits()), (2, 2));
}

#[test]
fn without_room_balances_are_lost_never_doubled() {
    let clock = ManualClock::new();
    clock.set(NOW);
    let exact = DashStore::<String, TokenBucket, _>::with_clock(&clock);
    let store = Leased::with_clock(exact, 4, &clock)
        .with_capacity(8)
        .unwrap();
    let keys: Vec<String> = (0..40).map(|n| n.to_string()).collect();
    let mut granted = vec![0; keys.len()];
    for _ in 0..60 {
        for (key, granted) in keys.iter().zip(&mut granted) {
            *granted += store
                .apply(key.as_str(), &LIMIT, Request::ONE)
                .unwrap()
                .granted();
        }
    }
    assert!(
        granted.iter().all(|granted| (3..=10).contains(granted)),
        "{granted:?}"
    );
    assert_eq!(
        Leased::with_clock(Script::default(), 4, &clock)
            .with_capacity(0)
            .unwrap_err(),
        InvalidCapacity::Zero
    );
}

#[test]
fn several_limits_on_one_key() {
    let limit = All([TokenBucket::per_second(20), TokenBucket::per_hour(6)]);
    let clock = ManualClock::new();
    clock.set(NOW);
    let exact = DashStore::<String, All<[TokenBucket; 2]>, _>::with_clock(&clock);
    let store = Leased::with_seed(exact, 4, &clock, 7);
    let granted: u64 = (0..20)
        .map(|_| store.apply("a", &limit, Request::ONE).unwrap().granted())
        .sum();
    assert_eq!(granted, 6);
    let local = Leased::with_seed(Script::default(), 4, &clock, 7);
    assert!(local.apply("a", &limit, Request::ONE).unwrap().is_allowed());
    let decision = local.apply("a", &limit, Request::ONE).unwrap();
    assert_eq!(
        (local.hits(), decision.limit(), decision.index()),
        (1, 6, 1)
    );
}

#[test]
fn a_batch_is_answered_in_part_and_leases_once_a_key() {
    for mode in MODES {
        let (script, clock) = (Script::default(), ManualClock::new());
        let store = subject(&script, 4, &clock);
        let first = mode.apply(&store, "a", &LIMIT, Request::ONE).unwrap();
        assert_eq!(first.granted(), 1);
        script.calls();
        script.then([
            Answer::Fresh,
            Answer::Fresh,
            Answer::Deny(ms(5)),
            Answer::Fail(ErrorKind::Config),
        ]);
        let mut items =
            ["a", "b", "b", "c", "a", "d"].map(|key| Item::new(key, &LIMIT, Request::ONE));
        mode.batch(&store, &mut items);
        let lease = Request::up_to(4).at_least(1);
        let expected = [
            ("b", &lease),
            ("b", &Request::ONE),
            ("c", &lease),
            ("d", &lease),
        ];
        let expected = expected
            .map(|(key, request)| asked(key, &LIMIT, request))
            .to_vec();
        assert_eq!(script.calls(), [Call::Batch(expected)]);
        let [a, b, b2, c, a2, d] = items.map(Item::into_result);
        for decision in [a, b, b2, a2] {
            assert_eq!(decision.unwrap().granted(), 1);
        }
        assert_eq!(c.unwrap().retry_after(), Some(ms(5)));
        assert_eq!(d.unwrap_err().kind(), ErrorKind::Config);
        assert_eq!(store.hits(), 2);
        // What was left of b's lease is good for the next batch, which asks nobody.
        let mut items = [Item::new("b", &LIMIT, Request::take(3))];
        mode.batch(&store, &mut items);
        assert_eq!((script.count(), store.hits()), (0, 3));
    }
}

/// Whatever the store grants, the balance stays below the batch.
#[test]
fn a_store_that_is_too_generous_exceeds_no_bound() {
    let script = Script::new([Answer::Grant(50), Answer::Deny(SECOND)]);
    let clock = ManualClock::new();
    let store = subject(&script, 4, &clock);
    assert_eq!(take(Mode::Blocking, &store, 1).remaining(), 3);
    for expected in [1, 1, 1, 0] {
        assert_eq!(take(Mode::Blocking, &store, 1).granted(), expected);
    }
    assert_eq!(script.count(), 2);
}
