//! The reference vectors of the token bucket, the windows and the log: state, instant and request in;
//! outcome, new state and numbers out. The right-hand sides were computed by an exact rational model.

mod changes;

use std::time::Duration;

use ratekeeper::{
    Algorithm, Outcome, Receipt, Request, SliceLog, SlidingLog, SlidingWindow, Timestamp,
    TokenBucket,
};

const E9: u64 = 1_000_000_000;
const MAX: u64 = u64::MAX;

#[derive(Debug, PartialEq)]
enum Expect {
    /// Allowed; the new state.
    Allow(u64),
    /// Denied with this wait; the state stays.
    Deny(u64),
    TooLarge,
}
use Expect::{Allow, Deny, TooLarge};

/// `(number, tokens, period, burst, state, now, cost, expected, remaining before, reset before)`.
type Row = (u32, u64, u64, u64, u64, u64, u64, Expect, u64, u64);

const BUCKETS: [Row; 19] = [
    (1, 1, E9, 5, 0, 0, 1, Allow(E9), 5, 0),
    (2, 1, E9, 5, 0, 0, 5, Allow(5 * E9), 5, 0),
    (3, 1, E9, 5, 0, 0, 6, TooLarge, 5, 0),
    (4, 1, E9, 5, 5 * E9, 0, 0, Allow(5 * E9), 0, 5 * E9),
    (
        5,
        1,
        E9,
        5,
        5 * E9,
        200_000_000,
        1,
        Deny(800_000_000),
        0,
        4_800_000_000,
    ),
    (6, 1, E9, 5, 105 * E9, 90 * E9, 1, Deny(11 * E9), 0, 15 * E9),
    (7, 1, E9, 5, 95 * E9, 91 * E9, 1, Allow(96 * E9), 1, 4 * E9),
    (8, 2, 5, 2, 0, 1002, 1, Allow(1004), 2, 0),
    (9, 2, 5, 2, 1006, 1002, 1, Deny(2), 0, 4),
    (10, 2, 3, 1, 0, 1000, 1, Allow(1001), 1, 0),
    (12, 3, E9, 1, 333_333_334, 333_333_333, 1, Deny(1), 0, 1),
    (
        13,
        3,
        E9,
        1,
        333_333_334,
        333_333_334,
        1,
        Allow(666_666_667),
        1,
        0,
    ),
    (
        15,
        600_000_001,
        E9,
        10,
        0,
        1_760_000_000 * E9,
        3,
        Allow(1_760_000_000_000_000_005),
        10,
        0,
    ),
    (
        19,
        1_000_000,
        86_400 * E9,
        1_000_000,
        0,
        3_155_760_000 * E9,
        1,
        Allow(3_155_760_000_086_400_000),
        1_000_000,
        0,
    ),
    (20, 1_000_000_001, E9, 1, 0, 5, 1, Allow(6), 1, 0),
    (21, 1_000_000_001, E9, 1, 6, 5, 1, Deny(1), 0, 1),
    (22, 3 * E9, E9, 9, 0, 100, 9, Allow(103), 9, 0),
    (23, 1, MAX, 1, 0, 0, 1, Allow(MAX), 1, 0),
    (25, 1, E9, 5, MAX, MAX - 2 * E9, 1, TooLarge, 0, 2 * E9),
];

#[test]
fn token_bucket() {
    for (number, tokens, period, burst, before, now, cost, expected, remaining, reset) in BUCKETS {
        let limit = TokenBucket::new(tokens, Duration::from_nanos(period), burst).unwrap();
        let now = Timestamp::from_nanos(now);

        let mut state = before;
        let peek = limit.step(now, &mut state, &Request::PEEK);
        assert_eq!(
            (state, peek.keep),
            (before, None),
            "vector {number}: a peek writes nothing"
        );
        assert_eq!(
            peek.decision.remaining(),
            remaining,
            "vector {number}: remaining"
        );
        assert_eq!(
            peek.decision.reset_after(),
            Duration::from_nanos(reset),
            "vector {number}: reset_after"
        );

        let step = limit.step(now, &mut state, &Request::take(cost));
        let got = match step.decision.outcome() {
            Outcome::Allowed => Allow(state),
            Outcome::Denied { retry_after } => Deny(u64::try_from(retry_after.as_nanos()).unwrap()),
            _ => TooLarge,
        };
        assert_eq!(got, expected, "vector {number}");
        if matches!(got, Deny(_) | TooLarge) {
            assert_eq!(
                (state, step.keep),
                (before, None),
                "vector {number}: untouched"
            );
        }
    }
}

#[test]
fn reservation() {
    let limit = TokenBucket::per_second(1).with_max_wait(Duration::from_secs(10));
    let reserve = Request::take(1).or_wait(Duration::from_secs(1));

    let mut state = E9; // vector 28
    let step = limit.step(Timestamp::ZERO, &mut state, &reserve);
    assert!(step.decision.is_allowed());
    assert_eq!(
        (state, step.decision.wait()),
        (2 * E9, Duration::from_secs(1))
    );

    let step = limit.step(Timestamp::ZERO, &mut state, &reserve); // vector 29
    assert_eq!(step.decision.retry_after(), Some(Duration::from_secs(1)));
    assert_eq!(state, 2 * E9);
}

#[test]
fn sliding_window() {
    let limit = SlidingWindow::new(10, Duration::from_nanos(100)).unwrap(); // vector 34
    let before = 100 << 64 | 8 << 32 | 9;
    let mut state = before;
    let now = Timestamp::from_nanos(130);
    let decision = limit.step(now, &mut state, &Request::take(4)).decision;
    assert_eq!(decision.retry_after(), Some(Duration::from_nanos(104)));
    assert_eq!(
        (decision.remaining(), decision.reset_after()),
        (0, Duration::from_nanos(170))
    );
    assert_eq!(state, before);
}

#[test]
fn sliding_log() {
    let limit = SlidingLog::new(3, Duration::from_nanos(10)).unwrap(); // vector 37
    let mut buffer = [0; 3];
    let mut log = SliceLog::new(limit, &mut buffer).unwrap();
    for now in [1, 4, 6] {
        assert!(log.check_at(Timestamp::from_nanos(now)).is_allowed());
    }
    let decision = log.apply_at(Request::take(2), Timestamp::from_nanos(10));
    assert_eq!(decision.retry_after(), Some(Duration::from_nanos(4)));
}

#[test]
fn at_most() {
    let period = |burst| TokenBucket::at_most(10, Duration::from_secs(1), burst).period(); // vector 38
    assert_eq!(period(5), Duration::from_nanos(166_666_667));
    assert_eq!(period(1), Duration::from_nanos(100_000_000));
}

#[test]
fn refund_and_cancel() {
    let limit = TokenBucket::new(1, Duration::from_secs(1), 5).unwrap(); // vector 39
    let mut state = 3 * E9;
    let refund = Request::refund(2, Receipt::new(2, 3 * E9));
    let step = limit.step(Timestamp::from_nanos(E9), &mut state, &refund);
    assert_eq!((state, step.keep), (E9, Some(Duration::ZERO)));

    for (before, after) in [(2 * E9, E9), (3 * E9, 3 * E9)] {
        let limit = limit.with_max_wait(Duration::from_secs(10)); // vector 42
        let mut state = before;
        let cancel = Request::refund(1, Receipt::new(1, 2 * E9).with_run_at_ns(E9));
        let step = limit.step(Timestamp::ZERO, &mut state, &cancel);
        assert_eq!(state, after);
        assert_eq!(step.keep.is_some(), before != after);
    }
}
