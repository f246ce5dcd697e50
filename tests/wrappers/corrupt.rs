//! `Corrupt` is no outage: whoever answers outages passes it on, for it does not end by itself.
#![allow(unused_must_use)] // what the store was asked is what is looked at

use std::time::Duration;

use ratekeeper::store::{
    AsyncStore, Breaker, BreakerState, ErrorKind, FailClosed, FailOpen, Fallback, Item, Store,
    StoreError,
};
use ratekeeper::{Algorithm, AnyAlgorithm, FixedWindow, ManualClock, Request, SlidingWindow};

use crate::support::{Answer, LIMIT, MODES, SECOND, Script};

/// A store whose keys hold what another algorithm wrote.
struct Foreign;

impl<A: Algorithm> Store<str, A> for Foreign {
    fn apply(&self, _: &str, _: &A, _: Request) -> Result<ratekeeper::Decision, StoreError> {
        const MESSAGE: &str = "the value was written by another algorithm";
        Err(StoreError::new(ErrorKind::Corrupt, MESSAGE))
    }
}

/// A configuration that named a window names another one, with the old values still there: 1,000 requests, none answered.
#[test]
fn another_algorithm_behind_fail_open_lets_nothing_pass() {
    let limit = AnyAlgorithm::from(FixedWindow::per_day(10));
    let store = FailOpen::new(Foreign);
    for _ in 0..1_000 {
        let error = store.apply("alice", &limit, Request::ONE).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
    }
    assert_eq!((store.errors_answered(), store.last_error()), (0, None));
    // Who wants it otherwise has to say so.
    let store = FailOpen::new(Foreign).answering_corrupt();
    assert!(
        store
            .apply("alice", &limit, Request::ONE)
            .unwrap()
            .is_degraded()
    );
    assert_eq!(store.last_error(), Some(ErrorKind::Corrupt));
    let window = AnyAlgorithm::from(SlidingWindow::per_second(1));
    let closed = FailClosed::new(Foreign).answering_corrupt();
    let refused = closed.apply("alice", &window, Request::ONE).unwrap();
    assert_eq!(refused.retry_after(), Some(SECOND));
}

/// Alone and in a batch, whatever is asked.
#[test]
fn policies_pass_it_on() {
    let requests: [fn() -> Request; 4] = [
        || Request::ONE,
        || Request::PEEK,
        || Request::charge(3),
        || Request::refund(1, ratekeeper::Receipt::new(1, 7)),
    ];
    let corrupt = || Answer::Fail(ErrorKind::Corrupt);
    for mode in MODES {
        for request in requests {
            let (script, second) = (Script::new((0..6).map(|_| corrupt())), Script::default());
            let (open, closed) = (FailOpen::new(&script), FailClosed::new(&script));
            let fallback = Fallback::new(&script, &second);
            let mut kinds = vec![
                mode.apply(&open, "a", &LIMIT, request())
                    .unwrap_err()
                    .kind(),
                mode.apply(&closed, "a", &LIMIT, request())
                    .unwrap_err()
                    .kind(),
                mode.apply(&fallback, "a", &LIMIT, request())
                    .unwrap_err()
                    .kind(),
            ];
            let mut items = [(); 3].map(|()| [Item::new("a", &LIMIT, request())]);
            mode.batch(&open, &mut items[0]);
            mode.batch(&closed, &mut items[1]);
            mode.batch(&fallback, &mut items[2]);
            kinds.extend(items.map(|[item]| item.into_result().unwrap_err().kind()));
            assert_eq!(kinds, [ErrorKind::Corrupt; 6]);
            assert_eq!(open.errors_answered() + closed.errors_answered(), 0);
            assert_eq!((fallback.errors_answered(), second.count()), (0, 0));
        }
    }
}

#[test]
fn unless_they_are_told_otherwise() {
    let corrupt = || Answer::Fail(ErrorKind::Corrupt);
    for mode in MODES {
        let (script, second) = (Script::new((0..3).map(|_| corrupt())), Script::default());
        let open = FailOpen::new(&script).answering_corrupt();
        let closed = FailClosed::new(&script)
            .with_retry_after(Duration::from_secs(3))
            .answering_corrupt();
        let fallback = Fallback::new(&script, &second).answering_corrupt();
        let ask = |store: &dyn Fn() -> Result<ratekeeper::Decision, StoreError>| store().unwrap();
        let passed = ask(&|| mode.apply(&open, "a", &LIMIT, Request::ONE));
        assert!(passed.is_allowed() && passed.is_degraded());
        let refused = ask(&|| mode.apply(&closed, "a", &LIMIT, Request::ONE));
        assert_eq!(refused.retry_after(), Some(3 * SECOND));
        let other = ask(&|| mode.apply(&fallback, "a", &LIMIT, Request::ONE));
        assert!(other.is_allowed() && other.is_degraded());
        assert_eq!(second.count(), 1);
        let last = [
            open.last_error(),
            closed.last_error(),
            fallback.last_error(),
        ];
        assert_eq!(last, [Some(ErrorKind::Corrupt); 3]);
        // What the store cannot do at all stays an error.
        script.then((0..3).map(|_| Answer::Fail(ErrorKind::Unsupported)));
        assert!(mode.apply(&open, "a", &LIMIT, Request::ONE).is_err());
        assert!(mode.apply(&closed, "a", &LIMIT, Request::ONE).is_err());
        assert!(mode.apply(&fallback, "a", &LIMIT, Request::ONE).is_err());
    }
}

/// The store is well.
#[test]
fn it_opens_no_breaker_and_closes_one() {
    for mode in MODES {
        let (script, clock) = (Script::default(), ManualClock::new());
        let store = Breaker::with_clock(&script, 2, SECOND, &clock);
        let fail = |kinds: &[ErrorKind]| {
            script.then(kinds.iter().copied().map(Answer::Fail));
            for kind in kinds {
                let result = mode.apply(&store, "a", &LIMIT, Request::ONE);
                assert_eq!(result.unwrap_err().kind(), *kind);
            }
            store.state()
        };
        assert_eq!(fail(&[ErrorKind::Corrupt; 9]), BreakerState::Closed);
        let between = [ErrorKind::Unknown, ErrorKind::Corrupt, ErrorKind::Unknown];
        assert_eq!(fail(&between), BreakerState::Closed);
        let open = BreakerState::Open { probe_in: SECOND };
        assert_eq!(fail(&[ErrorKind::Unknown]), open);
        clock.advance(SECOND);
        assert_eq!(fail(&[ErrorKind::Corrupt]), BreakerState::Closed);
    }
    fn is_async<S: AsyncStore<str, AnyAlgorithm>>(_: &S) {}
    is_async(&FailOpen::new(Script::default()));
}
