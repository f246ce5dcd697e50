//! Changing a key's limit, cancelling, what limits are accepted, and how keys are told apart: what each wrapper does about it.
#![allow(unused_must_use)] // the recorded calls are what is looked at

use std::sync::Arc;

use ratekeeper::store::{
    AsyncStore, Breaker, Deadline, DenyCache, DynStore, ErrorKind, FailClosed, FailOpen, Fallback,
    Leased, Sharded, Store, WithLimit,
};
use ratekeeper::{
    Carry, Clock as _, DashStore, InProcess, ManualClock, Outcome, Receipt, Request, TokenBucket,
};

use crate::support::{
    Answer, Call, DOES_NOT_FIT, KINDS, LIMIT, MODES, NOW, SECOND, Script, asked, block_on,
    cancelled, changed, fingerprint, give_up, ms,
};

const NEW: TokenBucket = TokenBucket::per_second(5);

fn receipt() -> Receipt {
    Receipt::new(2, 77)
}

/// The change and its answer, the error also; the cancellation, the number of the key and what is accepted.
fn passes_on<W>(make: impl Fn(Arc<Script>) -> W)
where
    W: Store<str, TokenBucket> + AsyncStore<str, TokenBucket>,
{
    for mode in MODES {
        let script = Arc::new(Script::default());
        let store = make(Arc::clone(&script));
        for carry in [Carry::Tokens, Carry::Debt, Carry::Full, Carry::Empty] {
            let peek = mode.change(&store, "alice", [&LIMIT, &NEW], carry).unwrap();
            assert_eq!((peek.limit(), peek.granted()), (5, 0));
            assert!(!peek.is_degraded());
            assert_eq!(script.calls(), [changed("alice", &LIMIT, &NEW, carry)]);
        }
        for kind in KINDS {
            script.then([Answer::Fail(kind)]);
            let result = mode.change(&store, "bob", [&NEW, &LIMIT], Carry::Full);
            assert_eq!(result.unwrap_err().kind(), kind, "{mode:?}");
            assert_eq!(script.calls(), [changed("bob", &NEW, &LIMIT, Carry::Full)]);
            // So that no breaker is open.
            mode.forget(&store, "bob", &LIMIT).unwrap();
            script.calls();
        }
        assert_eq!(mode.accepts(&store, &LIMIT), Ok(()));
        script.refuse(&LIMIT);
        let refused = Err(DOES_NOT_FIT);
        assert_eq!(mode.accepts(&store, &LIMIT), refused);
        assert_eq!(mode.accepts(&store, &NEW), Ok(()));
        assert_eq!(mode.fingerprint(&store, "eve", &LIMIT), fingerprint("eve"));
        assert_eq!(script.calls(), []);
    }
    let script = Arc::new(Script::default());
    let store = make(Arc::clone(&script));
    store.cancel("alice", &LIMIT, receipt());
    assert_eq!(script.calls(), [cancelled("alice", &LIMIT, receipt())]);
}

#[test]
fn all_wrappers() {
    let clock = || ManualClock::new();
    passes_on(FailOpen::new);
    passes_on(|store| FailOpen::new(store).answering_corrupt());
    passes_on(FailClosed::new);
    passes_on(|store| FailClosed::new(store).answering_corrupt());
    passes_on(|store| Fallback::new(store, Script::default()));
    passes_on(|store| Fallback::new(store, Script::default()).answering_corrupt());
    passes_on(|store| Breaker::with_clock(store, 2, SECOND, clock()));
    passes_on(|store| DenyCache::with_clock(store, clock()));
    passes_on(|store| Leased::with_clock(store, 8, clock()));
    passes_on(|store| Sharded::new([("only", store)]).unwrap());
}

/// They are async only.
#[test]
fn the_deadline_and_the_store_chosen_at_run_time() {
    async_only(|script| Deadline::new(script, ms(50), |_| std::future::pending()));
    async_only(DynStore::new);
}

fn async_only<W: AsyncStore<str, TokenBucket>>(make: impl Fn(Arc<Script>) -> W) {
    let script = Arc::new(Script::default());
    let store = make(Arc::clone(&script));
    script.then([Answer::Late(Box::new(Answer::Fresh))]);
    let peek = block_on(store.change_async("alice", &LIMIT, &NEW, Carry::Empty));
    assert_eq!(peek.unwrap().limit(), 5);
    assert_eq!(
        script.calls(),
        [changed("alice", &LIMIT, &NEW, Carry::Empty)]
    );
    script.refuse(&NEW);
    let refused = Err(DOES_NOT_FIT);
    assert_eq!(
        [&LIMIT, &NEW].map(|it| store.accepts_async(it)),
        [Ok(()), refused]
    );
    assert_eq!(store.fingerprint_of("eve"), fingerprint("eve"));
    store.cancel("bob", &LIMIT, receipt());
    assert_eq!(script.calls(), [cancelled("bob", &LIMIT, receipt())]);
}

/// It may have happened, and running it again may forgive again.
#[test]
fn a_change_that_takes_too_long_is_unknown() {
    let script = Script::new([Answer::Hang]);
    let store = Deadline::new(&script, ms(50), |_| std::future::ready(()));
    let result = block_on(store.change_async("alice", &LIMIT, &NEW, Carry::Tokens));
    assert_eq!(result.unwrap_err().kind(), ErrorKind::Unknown);
    assert_eq!(script.count(), 1);
}

#[test]
fn a_change_is_a_call_to_the_breaker_and_a_cancellation_is_none() {
    for mode in MODES {
        let (script, clock) = (Script::default(), ManualClock::new());
        let store = Breaker::with_clock(&script, 2, SECOND, &clock);
        let change = || {
            let result = mode.change(&store, "a", [&LIMIT, &NEW], Carry::Tokens);
            result.err().map(|error| error.kind())
        };
        let lost = Some(ErrorKind::Unknown);
        script.then([ErrorKind::Unknown, ErrorKind::Corrupt].map(Answer::Fail));
        script.then(vec![Answer::Fail(ErrorKind::Unknown); 3]);
        // `Corrupt` says that the store is alive.
        assert_eq!([change(), change()], [lost, Some(ErrorKind::Corrupt)]);
        assert_eq!([change(), change()], [lost; 2]);
        script.calls();
        assert_eq!(change(), Some(ErrorKind::NotExecuted));
        AsyncStore::<str, _>::cancel(&store, "a", &LIMIT, receipt());
        assert_eq!(script.calls(), []);
        clock.advance(SECOND);
        AsyncStore::<str, _>::cancel(&store, "a", &LIMIT, receipt());
        assert_eq!(script.calls(), [], "that is no probe");
        assert_eq!([change(), change()], [lost, Some(ErrorKind::NotExecuted)]);
        clock.advance(SECOND);
        assert_eq!([change(), change()], [None; 2]);
        assert_eq!((store.times_opened(), store.calls_refused()), (1, 2));
    }
}

#[test]
fn a_change_is_made_once_in_both_stores_of_a_fallback() {
    for mode in MODES {
        let (first, second) = (Script::default(), Script::default());
        let store = Fallback::new(&first, &second);
        let change = || mode.change(&store, "a", [&LIMIT, &NEW], Carry::Debt);
        let expected = || [changed("a", &LIMIT, &NEW, Carry::Debt)];
        // What the first has not done, the second does not do either: it will be repeated.
        first.then([Answer::Fail(ErrorKind::NotExecuted)]);
        assert_eq!(change().unwrap_err().kind(), ErrorKind::NotExecuted);
        assert_eq!((first.calls(), second.count()), (expected().into(), 0));
        first.then([Answer::Outcome(Outcome::Unsupported)]);
        assert_eq!(change().unwrap().outcome(), Outcome::Unsupported);
        assert_eq!((first.count(), second.count()), (1, 0));
        second.then([Answer::Fail(ErrorKind::Unsupported)]);
        assert!(!change().unwrap().is_degraded());
        assert_eq!(first.calls(), expected());
        assert_eq!(second.calls(), expected());
        assert_eq!(store.errors_answered(), 0);

        second.refuse(&NEW);
        assert_eq!(mode.accepts(&store, &NEW), Err(DOES_NOT_FIT));
        assert_eq!(mode.accepts(&store, &LIMIT), Ok(()));
        AsyncStore::<str, _>::cancel(&store, "a", &LIMIT, receipt());
        assert_eq!((first.count(), second.count()), (1, 0));
    }
}

#[test]
fn a_limit_of_its_own_does_not_change() {
    for mode in MODES {
        let script = Script::default();
        let own = TokenBucket::per_second(4);
        let store = WithLimit::new(&script, own);
        let peek = mode.change(&store, "a", [&LIMIT, &NEW], Carry::Empty);
        assert_eq!(peek.unwrap().limit(), 4);
        assert_eq!(
            script.calls(),
            [Call::Apply(asked("a", &own, &Request::PEEK))]
        );
        script.refuse(&NEW);
        assert_eq!(mode.accepts(&store, &NEW), Ok(()));
        script.refuse(&own);
        assert_eq!(mode.accepts(&store, &LIMIT), Err(DOES_NOT_FIT));
        assert_eq!(mode.fingerprint(&store, "eve", &LIMIT), fingerprint("eve"));
        AsyncStore::<str, _>::cancel(&store, "a", &LIMIT, receipt());
        assert_eq!(script.calls(), [cancelled("a", &own, receipt())]);
    }
}

#[test]
fn each_shard_changes_its_own_keys_and_all_must_accept() {
    for mode in MODES {
        let store = Sharded::new(["a", "b", "c"].map(|name| (name, Script::default()))).unwrap();
        for key in ["alice", "bob", "carol", "dave", "eve", "frank"] {
            let _ = mode
                .change(&store, key, [&LIMIT, &NEW], Carry::Tokens)
                .unwrap();
            store.cancel(key, &NEW, receipt());
            let expected = [
                changed(key, &LIMIT, &NEW, Carry::Tokens),
                cancelled(key, &NEW, receipt()),
            ];
            assert_eq!(store.shard_of(key).1.calls(), expected);
            assert!(store.shards().all(|(_, script)| script.count() == 0));
        }
        assert_eq!(mode.accepts(&store, &NEW), Ok(()));
        store.shards().nth(1).unwrap().1.refuse(&NEW);
        assert_eq!(mode.accepts(&store, &NEW), Err(DOES_NOT_FIT));
    }
}

#[cfg(feature = "remote")]
#[test]
fn hidden_keys_are_changed_under_their_other_name() {
    use ratekeeper::store::HashedKeys;

    for mode in MODES {
        let script = Script::default();
        let store = HashedKeys::new(&script, b"at least sixteen bytes").unwrap();
        let hidden = store.hash("alice").to_string();
        let _ = mode
            .change(&store, "alice", [&LIMIT, &NEW], Carry::Tokens)
            .unwrap();
        AsyncStore::<str, _>::cancel(&store, "alice", &NEW, receipt());
        let expected = [
            changed(&hidden, &LIMIT, &NEW, Carry::Tokens),
            cancelled(&hidden, &NEW, receipt()),
        ];
        assert_eq!(script.calls(), expected);
        assert_eq!(
            mode.fingerprint(&store, "alice", &LIMIT),
            fingerprint(&hidden)
        );
        script.refuse(&NEW);
        assert_eq!(mode.accepts(&store, &NEW), Err(DOES_NOT_FIT));
    }
}

/// The refusals of a key go when it is changed, also when nobody waits for the answer; so do its balances.
#[test]
fn what_is_remembered_of_a_key_goes_when_it_changes() {
    for mode in MODES {
        let (script, clock) = (Script::new([Answer::Deny(SECOND)]), ManualClock::new());
        let store = DenyCache::with_clock(&script, &clock);
        let take = |limit| mode.apply(&store, "a", limit, Request::ONE).unwrap();
        assert!(!take(&LIMIT).is_allowed() && !take(&LIMIT).is_allowed());
        assert_eq!((script.count(), store.hits()), (1, 1));
        let _ = mode
            .change(&store, "b", [&LIMIT, &NEW], Carry::Tokens)
            .unwrap();
        assert!(!take(&LIMIT).is_allowed(), "another key");
        let _ = mode
            .change(&store, "a", [&LIMIT, &NEW], Carry::Tokens)
            .unwrap();
        assert!(take(&LIMIT).is_allowed());
        script.then([Answer::Deny(SECOND), Answer::Hang]);
        assert!(!take(&LIMIT).is_allowed() && !take(&LIMIT).is_allowed());
        give_up(AsyncStore::<str, _>::change_async(
            &store,
            "a",
            &LIMIT,
            &NEW,
            Carry::Tokens,
        ));
        assert!(take(&LIMIT).is_allowed());
        script.then([Answer::Deny(SECOND)]);
        assert!(!take(&LIMIT).is_allowed());
        AsyncStore::<str, _>::cancel(&store, "a", &LIMIT, receipt());
        assert!(take(&LIMIT).is_allowed(), "tokens were given back");

        let script = Script::default();
        let store = Leased::with_clock(&script, 5, &clock);
        let spend = || mode.apply(&store, "a", &LIMIT, Request::ONE).unwrap();
        spend();
        spend();
        assert_eq!((script.count(), store.hits()), (1, 1));
        let _ = mode
            .change(&store, "a", [&LIMIT, &NEW], Carry::Tokens)
            .unwrap();
        script.calls();
        spend();
        assert_eq!((script.count(), store.hits()), (1, 1), "a new lease");
        script.then([Answer::Hang]);
        give_up(AsyncStore::<str, _>::change_async(
            &store,
            "a",
            &NEW,
            &LIMIT,
            Carry::Tokens,
        ));
        script.calls();
        spend();
        assert_eq!((script.count(), store.hits()), (1, 1), "a new lease");
    }
}

/// A lease that is under way while the key changes brings its buyer what it needs, and no balance.
#[test]
fn what_is_bought_during_a_change_is_not_kept() {
    let (script, clock) = (Script::default(), ManualClock::new());
    let store = Leased::with_clock(&script, 5, &clock);
    script.then([Answer::Late(Box::new(Answer::Fresh))]);
    let mut buying = Box::pin(store.apply_async("a", &LIMIT, Request::ONE));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(buying.as_mut().poll(&mut context).is_pending());
    Store::<str, _>::try_change(&store, "a", &LIMIT, &NEW, Carry::Tokens).unwrap();
    assert!(block_on(buying).unwrap().is_allowed());
    script.calls();
    let own = store.apply("a", &LIMIT, Request::ONE).unwrap();
    assert_eq!((own.granted(), store.hits(), script.count()), (1, 0, 1));
}

#[test]
fn a_bought_token_is_cancelled_into_the_balance() {
    let (script, clock) = (Script::default(), ManualClock::new());
    let store = Leased::with_clock(&script, 3, &clock);
    let spend = || Store::<str, _>::apply(&store, "a", &LIMIT, Request::ONE).unwrap();
    spend();
    let bought = spend().into_receipt();
    script.calls();
    AsyncStore::<str, _>::cancel(&store, "a", &LIMIT, bought);
    for _ in 0..2 {
        spend();
    }
    assert_eq!(script.calls(), []);
}

#[test]
fn wrappers_tell_the_time_of_their_store() {
    let clock = ManualClock::new();
    clock.set(NOW);
    let store = || DashStore::<String, TokenBucket, _>::with_clock(&clock);
    let other = ManualClock::new();
    let told: [&dyn InProcess; 9] = [
        &FailOpen::new(store()),
        &FailClosed::new(store()),
        &Fallback::new(store(), ()),
        &Breaker::with_clock(store(), 1, SECOND, &other),
        &Deadline::new(store(), SECOND, ()),
        &DenyCache::with_clock(store(), &other),
        &Leased::with_clock(store(), 2, &other),
        &Sharded::new([("only", store())]).unwrap(),
        &WithLimit::new(store(), LIMIT),
    ];
    for store in told {
        assert_eq!(store.now(), clock.now());
    }
}
