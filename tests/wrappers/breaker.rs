//! `Breaker`.

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use ratekeeper::store::{AsyncStore, Breaker, BreakerState, ErrorKind, Item, Store};
use ratekeeper::{Clock as _, ManualClock, Outcome, Request, Timestamp};

use crate::support::{Answer, KINDS, LIMIT, MODES, Mode, SECOND, Script, block_on, give_up, ms};

type Subject<'a> = Breaker<&'a Script, &'a ManualClock>;

fn subject<'a>(script: &'a Script, outages: u32, clock: &'a ManualClock) -> Subject<'a> {
    Breaker::with_clock(script, outages, SECOND, clock)
}

/// The kind of the error, if it is one.
fn ask(mode: Mode, store: &Subject<'_>) -> Option<ErrorKind> {
    let result = mode.apply(store, "alice", &LIMIT, Request::ONE);
    result.err().map(|error| error.kind())
}

const DOWN: Answer = Answer::Fail(ErrorKind::NotExecuted);
const REFUSED: Option<ErrorKind> = Some(ErrorKind::NotExecuted);

#[test]
fn opens_probes_and_closes() {
    for mode in MODES {
        let (script, clock) = (Script::default(), ManualClock::new());
        let store = subject(&script, 3, &clock);
        script.then(vec![Answer::Fail(ErrorKind::Unknown); 3]);
        for _ in 0..3 {
            assert_eq!(store.state(), BreakerState::Closed);
            assert_eq!(ask(mode, &store), Some(ErrorKind::Unknown));
        }
        assert_eq!(store.state(), BreakerState::Open { probe_in: SECOND });
        assert_eq!(script.count(), 3);
        clock.advance(SECOND - Duration::from_nanos(1));
        for _ in 0..5 {
            assert_eq!(ask(mode, &store), REFUSED);
        }
        assert_eq!(script.count(), 0);
        clock.advance(Duration::from_nanos(1));
        let due = BreakerState::Open {
            probe_in: Duration::ZERO,
        };
        assert_eq!(store.state(), due);
        // A probe that fails: nobody asks for another second.
        script.then([Answer::Fail(ErrorKind::Unknown)]);
        assert_eq!(ask(mode, &store), Some(ErrorKind::Unknown));
        assert_eq!(ask(mode, &store), REFUSED);
        clock.advance(SECOND - Duration::from_nanos(1));
        assert_eq!(ask(mode, &store), REFUSED);
        assert_eq!((store.times_opened(), store.calls_refused()), (1, 7));
        clock.advance(Duration::from_nanos(1));
        // A probe that succeeds: closed, and it takes three outages again.
        assert_eq!(ask(mode, &store), None);
        assert_eq!(store.state(), BreakerState::Closed);
        script.then([DOWN, DOWN, Answer::Fresh, DOWN, DOWN]);
        for expected in [REFUSED, REFUSED, None, REFUSED, REFUSED, None] {
            assert_eq!(ask(mode, &store), expected);
            assert_eq!(store.state(), BreakerState::Closed);
        }
        assert_eq!(store.times_opened(), 1);
    }
}

/// Of each kind of answer, whether it closes the circle of outages.
#[test]
fn whatever_is_no_outage_says_that_the_store_is_alive() {
    let mut answers: Vec<(Answer, bool)> = vec![
        (Answer::Deny(ms(5)), true),
        (Answer::Outcome(Outcome::TooLarge), true),
        (Answer::Outcome(Outcome::Unsupported), true),
        (Answer::Fresh, true),
    ];
    let alive = |kind| {
        !matches!(
            kind,
            ErrorKind::NotExecuted | ErrorKind::Unknown | ErrorKind::Unsupported
        )
    };
    answers.extend(KINDS.map(|kind| (Answer::Fail(kind), alive(kind))));
    for mode in MODES {
        for (answer, alive) in &answers {
            let (script, clock) = (Script::default(), ManualClock::new());
            let store = subject(&script, 2, &clock);
            script.then([DOWN, answer.clone(), DOWN]);
            for _ in 0..3 {
                ask(mode, &store);
            }
            let is_open = store.state() != BreakerState::Closed;
            assert_eq!(is_open, !alive, "{answer:?}");
        }
    }
}

#[test]
fn forgetting_is_a_call_like_the_others() {
    for mode in MODES {
        let (script, clock) = (Script::new([DOWN, DOWN]), ManualClock::new());
        let store = subject(&script, 2, &clock);
        assert!(mode.forget(&store, "a", &LIMIT).is_err());
        assert!(mode.forget(&store, "a", &LIMIT).is_err());
        assert_eq!(store.times_opened(), 1);
        assert!(mode.forget(&store, "a", &LIMIT).is_err());
        assert_eq!(script.count(), 2);
        clock.advance(SECOND);
        assert!(mode.forget(&store, "a", &LIMIT).is_ok());
        assert_eq!(store.state(), BreakerState::Closed);
        // What takes no server to know does not close it.
        script.then([DOWN, DOWN, Answer::Fail(ErrorKind::Unsupported)]);
        assert!(mode.forget(&store, "a", &LIMIT).is_err());
        assert!(mode.forget(&store, "a", &LIMIT).is_err());
        clock.advance(SECOND);
        let error = mode.forget(&store, "a", &LIMIT).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert_ne!(store.state(), BreakerState::Closed);
    }
}

#[test]
fn a_batch_is_one_call() {
    for mode in MODES {
        let (script, clock) = (Script::default(), ManualClock::new());
        let store = subject(&script, 2, &clock);
        let batch = |answers: &[Answer]| {
            script.then(answers.iter().cloned());
            let mut answered = Item::new("x", &LIMIT, Request::ONE);
            let request = answered.take_request().unwrap();
            answered.set_result(mode.apply(&Script::default(), "x", &LIMIT, request));
            let mut items = vec![answered];
            items.extend(
                answers[1..]
                    .iter()
                    .map(|_| Item::new("a", &LIMIT, Request::ONE)),
            );
            mode.batch(&store, &mut items);
            items.remove(0);
            items
                .into_iter()
                .map(|item| item.into_result().err().map(|error| error.kind()))
                .collect::<Vec<_>>()
        };
        let unknown = Answer::Fail(ErrorKind::Unknown);
        // The answered item comes first, so every answer but the first one of `then` is used.
        let first = Answer::Ignore;
        let all_out = [first.clone(), unknown.clone(), unknown.clone()];
        batch(&all_out);
        assert_eq!(store.state(), BreakerState::Closed); // one outage, not two
        batch(&[first.clone(), unknown.clone(), Answer::Deny(ms(1))]);
        batch(&all_out);
        assert_eq!(store.state(), BreakerState::Closed); // an answer came between
        batch(&all_out);
        assert_eq!(store.times_opened(), 1);
        script.calls();
        let kinds = batch(&[first, Answer::Fresh]);
        assert_eq!(kinds, [REFUSED]);
        assert_eq!(script.count(), 0);
        assert_eq!(store.calls_refused(), 1);
    }
}

/// Nor does a batch without questions take the probe.
#[test]
fn an_answered_batch_is_no_call() {
    let (script, clock) = (Script::new([DOWN]), ManualClock::new());
    let store = subject(&script, 1, &clock);
    ask(Mode::Blocking, &store);
    clock.advance(SECOND);
    let mut item = Item::new("a", &LIMIT, Request::ONE);
    item.take_request();
    Store::<str, _>::apply_batch(&store, &mut [item]);
    assert_eq!(ask(Mode::Async, &store), None);
    assert_eq!(script.count(), 2);
}

#[test]
fn a_dropped_probe_delays_the_next_one_only() {
    let (script, clock) = (Script::new([DOWN, Answer::Hang]), ManualClock::new());
    let store = subject(&script, 1, &clock);
    ask(Mode::Async, &store);
    clock.advance(SECOND);
    give_up(store.apply_async("a", &LIMIT, Request::ONE));
    assert_eq!(ask(Mode::Async, &store), REFUSED);
    clock.advance(SECOND);
    assert_eq!(ask(Mode::Async, &store), None);
    assert_eq!(store.state(), BreakerState::Closed);
}

/// A call that was under way when it opened brings good news.
#[test]
fn late_success_closes() {
    let late = Answer::Late(Box::new(Answer::Fresh));
    let (script, clock) = (Script::new([late, DOWN]), ManualClock::new());
    let store = subject(&script, 1, &clock);
    let mut slow = std::pin::pin!(store.apply_async("a", &LIMIT, Request::ONE));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(slow.as_mut().poll(&mut context).is_pending());
    ask(Mode::Blocking, &store);
    assert_ne!(store.state(), BreakerState::Closed);
    assert!(block_on(slow).unwrap().is_allowed());
    assert_eq!(store.state(), BreakerState::Closed);
}

#[test]
fn a_clock_stepped_back_keeps_nobody_waiting() {
    let (script, clock) = (Script::new([DOWN]), ManualClock::new());
    clock.set(Timestamp::from_nanos(u64::MAX / 2));
    let store = subject(&script, 1, &clock);
    ask(Mode::Blocking, &store);
    clock.set(Timestamp::from_nanos(7));
    assert_eq!(
        store.state(),
        BreakerState::Open {
            probe_in: Duration::ZERO
        }
    );
    assert_eq!(ask(Mode::Blocking, &store), None);
}

#[test]
fn the_smallest_numbers_still_work() {
    let (script, clock) = (Script::new([DOWN]), ManualClock::new());
    let store = Breaker::with_clock(&script, 0, Duration::ZERO, &clock);
    assert_eq!(clock.now(), Timestamp::ZERO);
    ask(Mode::Blocking, &store);
    assert_eq!(ask(Mode::Blocking, &store), REFUSED);
    assert_eq!(script.count(), 1);
    clock.advance(Duration::from_nanos(1));
    assert_eq!(ask(Mode::Blocking, &store), None);
}

#[test]
fn of_many_threads_one_is_the_probe() {
    const THREADS: usize = 8;
    for round in 0..200 {
        let (script, clock) = (Script::new([DOWN, DOWN]), ManualClock::new());
        let store = subject(&script, 1, &clock);
        ask(Mode::Blocking, &store);
        clock.advance(SECOND);
        let start = Barrier::new(THREADS);
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    start.wait();
                    assert_eq!(ask(Mode::Blocking, &store), REFUSED);
                });
            }
        });
        assert_eq!(script.count(), 2, "round {round}: one outage and one probe");
        assert_eq!(store.times_opened(), 1);
        assert_eq!(store.calls_refused(), THREADS as u64 - 1);
    }
}
