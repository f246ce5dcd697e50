//! `Fallback` and `WithLimit`.

use ratekeeper::store::{AsyncStore, ErrorKind, Fallback, Item, MemoryStore, Ready, WithLimit};
use ratekeeper::{DashStore, ManualClock, Outcome, Receipt, Request, TokenBucket};

use crate::support::{Answer, Call, KINDS, LIMIT, MODES, Script, asked, block_on, give_up, ms};

#[test]
fn every_error_that_may_end_asks_the_second_store() {
    for mode in MODES {
        for kind in KINDS {
            let (first, second) = (Script::new([Answer::Fail(kind)]), Script::default());
            let store = Fallback::new(&first, &second);
            let request = || Request::up_to(3).at_least(2).or_wait(ms(9));
            let result = mode.apply(&store, "alice", &LIMIT, request());
            assert_eq!(first.count(), 1);
            if matches!(kind, ErrorKind::Unsupported | ErrorKind::Corrupt) {
                assert_eq!(result.unwrap_err().kind(), kind);
                assert_eq!((second.count(), store.errors_answered()), (0, 0));
                continue;
            }
            let decision = result.unwrap();
            assert!(decision.is_degraded() && decision.is_allowed());
            assert_eq!(decision.remaining(), 7);
            assert_eq!(decision.into_receipt(), Receipt::new(3, 0));
            let expected = Call::Apply(asked("alice", &LIMIT, &request()));
            assert_eq!(second.calls(), [expected]);
            assert_eq!(
                (store.errors_answered(), store.last_error()),
                (1, Some(kind))
            );
        }
    }
}

#[test]
fn decisions_of_the_first_store_stay_as_they_are() {
    for mode in MODES {
        for outcome in [
            Outcome::Denied { retry_after: ms(3) },
            Outcome::TooLarge,
            Outcome::Unsupported,
            Outcome::Allowed,
        ] {
            let (first, second) = (Script::new([Answer::Outcome(outcome)]), Script::default());
            let store = Fallback::new(&first, &second);
            let decision = mode.apply(&store, "a", &LIMIT, Request::ONE).unwrap();
            assert_eq!(
                (decision.outcome(), decision.is_degraded()),
                (outcome, false)
            );
            let mut items = [Item::new("a", &LIMIT, Request::ONE)];
            mode.batch(&store, &mut items);
            assert_eq!(second.count(), 0);
        }
    }
}

#[test]
fn a_denial_of_the_second_store_stands() {
    for mode in MODES {
        let first = Script::new([Answer::Fail(ErrorKind::Unknown)]);
        let store = Fallback::new(&first, Script::new([Answer::Deny(ms(3))]));
        let decision = mode.apply(&store, "a", &LIMIT, Request::ONE).unwrap();
        assert_eq!(decision.retry_after(), Some(ms(3)));
        assert!(decision.is_degraded());
    }
}

/// An error of the second says nothing about whether the first has counted.
#[test]
fn if_both_fail_the_first_error_counts() {
    for mode in MODES {
        let first = Script::new(vec![Answer::Fail(ErrorKind::Unknown); 2]);
        let second = Script::new(vec![Answer::Fail(ErrorKind::NotExecuted); 2]);
        let store = Fallback::new(&first, &second);
        let error = mode.apply(&store, "a", &LIMIT, Request::ONE).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unknown);
        let mut items = [Item::new("a", &LIMIT, Request::ONE)];
        mode.batch(&store, &mut items);
        let [item] = items;
        assert_eq!(item.into_result().unwrap_err().kind(), ErrorKind::Unknown);
        assert_eq!(store.errors_answered(), 0);
        assert_eq!((first.count(), second.count()), (2, 2));
    }
}

#[test]
fn refunds_in_an_outage_are_lost() {
    for mode in MODES {
        let first = Script::new([Answer::Fail(ErrorKind::Unknown)]);
        let second = Script::default();
        let store = Fallback::new(&first, &second);
        let refund = Request::refund(2, Receipt::new(2, u64::MAX));
        let decision = mode.apply(&store, "a", &LIMIT, refund).unwrap();
        assert!(decision.is_allowed() && decision.is_degraded());
        assert_eq!((decision.limit(), decision.granted()), (10, 0));
        assert_eq!((second.count(), store.errors_answered()), (0, 1));
    }
}

#[test]
fn of_a_batch_the_second_store_sees_what_the_first_failed() {
    for mode in MODES {
        let first = Script::new([
            Answer::Deny(ms(5)),
            Answer::Fail(ErrorKind::Contention),
            Answer::Fail(ErrorKind::Unsupported),
            Answer::Ignore,
            Answer::Fresh,
            Answer::Fail(ErrorKind::Config),
            Answer::Fail(ErrorKind::Unknown),
        ]);
        let second = Script::new([
            Answer::Fresh,
            Answer::Fresh,
            Answer::Fail(ErrorKind::Unknown),
        ]);
        let store = Fallback::new(&first, &second);
        let request = |key| match key {
            "f" => Request::refund(1, Receipt::new(1, u64::MAX)),
            _ => Request::take(2),
        };
        let keys = ["a", "b", "c", "d", "e", "f", "g"];
        let mut items = keys.map(|key| Item::new(key, &LIMIT, request(key)));
        mode.batch(&store, &mut items);
        let [a, b, c, d, e, f, g] = items.map(Item::into_result);
        assert_eq!(a.unwrap().retry_after(), Some(ms(5)));
        assert!(b.unwrap().is_degraded());
        assert_eq!(c.unwrap_err().kind(), ErrorKind::Unsupported);
        assert!(d.unwrap().is_degraded());
        assert!(!e.unwrap().is_degraded());
        assert!(f.unwrap().is_degraded());
        assert_eq!(g.unwrap_err().kind(), ErrorKind::Unknown);
        let asked = ["b", "d", "g"].map(|key| asked(key, &LIMIT, &Request::take(2)));
        assert_eq!(second.calls(), [Call::Batch(asked.to_vec())]);
        assert_eq!(first.count(), 1);
        assert_eq!(store.errors_answered(), 3);
    }
}

#[test]
fn forgetting_concerns_both() {
    for mode in MODES {
        let first = Script::new([
            Answer::Fresh,
            Answer::Fail(ErrorKind::Config),
            Answer::Fresh,
        ]);
        let second = Script::new([
            Answer::Fresh,
            Answer::Fresh,
            Answer::Fail(ErrorKind::Config),
        ]);
        let store = Fallback::new(&first, &second);
        assert!(mode.forget(&store, "a", &LIMIT).is_ok());
        let error = mode.forget(&store, "a", &LIMIT).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(mode.forget(&store, "a", &LIMIT).is_ok());
        assert_eq!((first.count(), second.count()), (3, 3));
    }
}

#[test]
fn a_dropped_future_leaves_the_second_alone() {
    let (first, second) = (Script::new([Answer::Hang]), Script::default());
    let store = Fallback::new(&first, &second);
    give_up(store.apply_async("a", &LIMIT, Request::ONE));
    assert_eq!((first.count(), second.count()), (1, 0));
    assert!(block_on(store.apply_async("a", &LIMIT, Request::ONE)).is_ok());
    assert_eq!(second.count(), 0);
}

/// `n` processes with their share each, during an outage: together no more than one limit.
#[test]
fn shares_add_up_to_the_limit() {
    let clock = ManualClock::new();
    let limit = TokenBucket::per_second(10).with_burst(20);
    let stores = [(); 5].map(|()| {
        let local = DashStore::<String, TokenBucket, _>::with_clock(&clock);
        let share = TokenBucket::per_second(2).with_burst(4);
        Fallback::new(
            Script::new(vec![Answer::Fail(ErrorKind::NotExecuted); 10_000]),
            WithLimit::new(local, share),
        )
    });
    let mut admitted = 0;
    for step in 0..1_000_usize {
        let store = &stores[step % stores.len()];
        let decision = MODES[step % 2]
            .apply(store, "alice", &limit, Request::ONE)
            .unwrap();
        assert!(decision.is_degraded());
        assert_eq!(decision.limit(), 4);
        admitted += decision.granted();
        clock.advance(ms(10));
    }
    // 20 at once, and 10 a second for 10 seconds; each of five shares may be in the middle of a token.
    assert!((115..=120).contains(&admitted), "{admitted}");
}

#[test]
fn an_own_limit_is_enforced_in_memory_too() {
    let clock = ManualClock::new();
    let store = DashStore::<String, TokenBucket, _>::with_clock(&clock);
    let store = WithLimit::new(Ready(store), TokenBucket::per_second(1));
    assert!(MemoryStore::<str, _>::accepts(&store, &LIMIT).is_ok());
    let now = ratekeeper::Timestamp::from_nanos(5);
    assert!(store.decide_at("a", &LIMIT, Request::ONE, now).is_allowed());
    assert!(!store.decide_at("a", &LIMIT, Request::ONE, now).is_allowed());
    assert!(store.decide("b", &LIMIT, Request::ONE).is_allowed());
    assert_eq!(store.decide("b", &LIMIT, Request::ONE).limit(), 1);
}
