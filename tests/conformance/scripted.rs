//! [`CasLoop`] against a backend that follows a script: which answers it asks for, and what it makes of them.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::time::Duration;

use ratekeeper::store::{
    CasAction, CasDriver, CasLoop, CasStore, ErrorKind, Jitter, KeyKind, Loaded, StateBytes, Store,
    StoreError, Swap,
};
use ratekeeper::{
    Algorithm, Clock, Decision, ManualClock, Outcome, Request, Timestamp, TokenBucket,
};

const LIMIT: TokenBucket = TokenBucket::per_second(10).with_burst(5);
const T: Duration = Duration::from_millis(100);

/// What the backend answers next.
#[derive(Debug)]
enum Answer {
    /// To a load.
    Load(Result<Loaded<u64>, StoreError>),
    /// To an exchange.
    Exchange(Result<Swap<u64>, StoreError>),
}
use Answer::{Exchange, Load};

/// Answers as written, and notes what it was asked.
struct Script {
    answers: RefCell<VecDeque<Answer>>,
    asked: RefCell<Vec<String>>,
}

impl Script {
    fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        Self {
            answers: RefCell::new(answers.into_iter().collect()),
            asked: RefCell::default(),
        }
    }

    fn next(&self, asked: String) -> Answer {
        self.asked.borrow_mut().push(asked);
        self.answers
            .borrow_mut()
            .pop_front()
            .expect("the script ends here")
    }
}

/// Of a bucket's value, with or without the instant of its write.
fn tat_ns(value: &StateBytes) -> u64 {
    let start = if value[0] == 0x70 { 9 } else { 0 };
    let value = StateBytes::from_stored(&value[start..]).expect("a value");
    value.decode(&LIMIT).expect("a bucket's state")
}

impl CasStore<str> for Script {
    type Version = u64;

    fn load(&self, key: &str, _: &KeyKind) -> Result<Loaded<u64>, StoreError> {
        match self.next(format!("load {key}")) {
            Load(answer) => answer,
            Exchange(answer) => {
                panic!("a load, where an exchange should be answered by {answer:?}")
            }
        }
    }

    fn compare_exchange(
        &self,
        key: &str,
        _: &KeyKind,
        seen: &Loaded<u64>,
        new: &StateBytes,
        keep: Duration,
    ) -> Result<Swap<u64>, StoreError> {
        let version = seen.version;
        let tat = Timestamp::from_nanos(tat_ns(new));
        let since = tat.saturating_since(Timestamp::ZERO);
        match self.next(format!(
            "exchange {key} from {version} to {since:?} for {keep:?}"
        )) {
            Exchange(answer) => answer,
            Load(answer) => panic!("an exchange, where a load should be answered by {answer:?}"),
        }
    }
}

/// A key that holds a bucket with `tokens` taken at time zero, or nothing.
fn key(tokens: Option<u32>, version: u64, now: Option<Duration>) -> Loaded<u64> {
    let state = tokens.map(|tokens| {
        let tat_ns = u64::try_from((T * tokens).as_nanos()).unwrap();
        StateBytes::encode(&LIMIT, &tat_ns).unwrap()
    });
    let now = now.map(|since| Timestamp::ZERO + since);
    Loaded {
        state,
        version,
        now,
    }
}

fn conflict(fresh: Option<Loaded<u64>>) -> Answer {
    Exchange(Ok(Swap::Conflict(fresh)))
}

fn error(kind: ErrorKind) -> StoreError {
    StoreError::new(kind, "as the script says")
}

/// One token for the key `k`, what the backend was asked for it, and how often the loop waited.
fn run(
    answers: impl IntoIterator<Item = Answer>,
) -> (Result<Decision, StoreError>, Vec<String>, u32) {
    let waits = Cell::new(0);
    let no_wait = Jitter::new(1, Duration::ZERO, Duration::ZERO);
    let sleep = |_| waits.set(waits.get() + 1);
    let store = CasLoop::with_clock(Script::new(answers), sleep, ManualClock::new(), no_wait);
    let store = store.with_max_attempts(4);
    let result = store.apply("k", &LIMIT, Request::ONE);
    let script = store.get_ref();
    assert!(
        script.answers.borrow().is_empty(),
        "not asked for: {:?}",
        script.answers
    );
    (result, script.asked.take(), waits.get())
}

fn kind(result: Result<Decision, StoreError>) -> ErrorKind {
    result.unwrap_err().kind()
}

#[test]
fn a_key_that_expires_in_between_is_a_lost_race() {
    let (result, asked, waits) = run([
        Load(Ok(key(Some(4), 7, None))),
        conflict(Some(key(None, 0, None))),
        Exchange(Ok(Swap::Done)),
    ]);
    let decision = result.unwrap();
    assert_eq!(
        (decision.outcome(), decision.remaining()),
        (Outcome::Allowed, 4)
    ); // as fresh
    assert_eq!(
        asked,
        [
            "load k",
            "exchange k from 7 to 500ms for 60.5s",
            "exchange k from 0 to 100ms for 60.1s"
        ]
    );
    assert_eq!(waits, 0);
}

#[test]
fn lost_races_end_in_contention_and_never_in_a_denial() {
    let lost = |version| [Load(Ok(key(Some(1), version, None))), conflict(None)];
    let (result, asked, waits) = run((1..=4).flat_map(lost));
    assert_eq!(kind(result), ErrorKind::Contention);
    assert_eq!(asked.len(), 8);
    assert_eq!(waits, 2); // not after the first race, and not before the error
}

#[test]
fn who_loses_the_last_token_to_another_is_denied() {
    let (result, asked, _) = run([
        Load(Ok(key(Some(4), 7, None))),
        conflict(Some(key(Some(5), 8, None))),
    ]);
    assert_eq!(
        result.unwrap().outcome(),
        Outcome::Denied { retry_after: T }
    );
    assert_eq!(asked.len(), 2);
}

#[test]
fn nothing_is_asked_again_after_an_error() {
    for kind_of_error in [
        ErrorKind::Unknown,
        ErrorKind::NotExecuted,
        ErrorKind::Config,
    ] {
        let (result, asked, _) = run([Load(Err(error(kind_of_error)))]);
        assert_eq!((kind(result), asked.len()), (kind_of_error, 1));
        let (result, asked, _) = run([
            Load(Ok(key(None, 0, None))),
            Exchange(Err(error(kind_of_error))),
        ]);
        assert_eq!((kind(result), asked.len()), (kind_of_error, 2));
    }
}

#[test]
fn a_value_that_is_no_state_is_left_alone() {
    let foreign = Loaded {
        state: Some(StateBytes::from_stored(b"hello").unwrap()),
        version: 7,
        now: None,
    };
    let (result, asked, _) = run([Load(Ok(foreign))]);
    assert_eq!((kind(result), asked.len()), (ErrorKind::Corrupt, 1));
    let (result, asked, _) = run([Load(Ok(key(None, 0, None))), conflict(Some(foreign))]);
    assert_eq!((kind(result), asked.len()), (ErrorKind::Corrupt, 2));
}

#[test]
fn a_fresh_value_without_the_servers_time_is_read_again() {
    let at = |ms| Some(Duration::from_millis(ms));
    let (result, asked, _) = run([
        Load(Ok(key(Some(1), 7, at(10)))),
        conflict(Some(key(Some(2), 8, None))),
        Load(Ok(key(Some(2), 8, at(20)))),
        Exchange(Ok(Swap::Done)),
    ]);
    assert_eq!(result.unwrap().reset_after(), Duration::from_millis(280));
    assert_eq!(asked[3], "exchange k from 8 to 300ms for 60.28s");
}

#[test]
fn a_driver_without_a_question_takes_no_answer() {
    let mut driver = CasDriver::new(&LIMIT, Request::ONE, 1);
    let clock = ManualClock::new();
    let early = driver.exchanged(Swap::<u64>::Done, &clock).unwrap_err();
    assert_eq!(early.kind(), ErrorKind::Config);

    let action = driver.loaded(key(None, 0, None), &clock).unwrap();
    assert!(matches!(action, CasAction::Exchange { .. }));
    assert_eq!(driver.seen().unwrap().version, 0);
    let last = driver
        .exchanged(conflict_of(key(Some(1), 1, None)), &clock)
        .unwrap_err();
    assert_eq!(last.kind(), ErrorKind::Contention);
    assert_eq!(clock.now(), Timestamp::ZERO);
    assert_ne!(LIMIT.tag(), 0);
}

fn conflict_of(fresh: Loaded<u64>) -> Swap<u64> {
    Swap::Conflict(Some(fresh))
}
