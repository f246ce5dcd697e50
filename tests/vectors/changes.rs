//! The vectors of limits that change and clocks that differ: states ahead of the caller, charges, give-backs beside a line,
//! changes of limits.

use std::time::Duration;

#[cfg(feature = "alloc")]
use ratekeeper::SlidingLog;
use ratekeeper::{
    Algorithm, Carry, FixedWindow, Outcome, Receipt, Request, SlidingWindow, Timestamp, TokenBucket,
};

use super::{E9, MAX};

const fn at(now_ns: u64) -> Timestamp {
    Timestamp::from_nanos(now_ns)
}

/// `n` tokens per `period` ns, with room for `burst`, and `max_wait` ns.
fn bucket(n: u64, period: u64, burst: u64, max_wait: u64) -> TokenBucket {
    let limit = TokenBucket::new(n, Duration::from_nanos(period), burst).unwrap();
    limit.with_max_wait(Duration::from_nanos(max_wait))
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap()
}

#[derive(Debug, PartialEq)]
enum Said {
    Allow(u64),
    Deny(u64),
    TooLarge,
}
use Said::{Allow, Deny, TooLarge};

/// What the bucket says, and that a refusal leaves the state alone.
fn ask(limit: &TokenBucket, state: u64, now: u64, request: &Request) -> Said {
    let mut after = state;
    let step = limit.step(at(now), &mut after, request);
    assert_eq!(step.keep.is_some(), after != state);
    match step.decision.outcome() {
        Outcome::Allowed => Allow(after),
        Outcome::Denied { retry_after } => {
            assert_eq!(after, state);
            Deny(nanos(retry_after))
        }
        _ => {
            assert_eq!(after, state);
            TooLarge
        }
    }
}

/// Remaining tokens and nanoseconds until the bucket is full.
fn numbers(limit: &TokenBucket, mut state: u64, now: u64) -> (u64, u64) {
    let peek = limit.step(at(now), &mut state, &Request::PEEK).decision;
    (peek.remaining(), nanos(peek.reset_after()))
}

#[test]
fn states_ahead_of_the_caller_are_debt() {
    let five = bucket(1, E9, 5, 0);
    assert_eq!(ask(&five, 105 * E9, 90 * E9, &Request::ONE), Deny(11 * E9)); // 1
    assert_eq!(numbers(&five, 105 * E9, 90 * E9), (0, 15 * E9));
    assert_eq!(
        ask(&five, 105 * E9, 101 * E9, &Request::ONE),
        Allow(106 * E9)
    ); // 2
    assert_eq!(numbers(&five, 105 * E9, 101 * E9), (1, 4 * E9));
    assert_eq!(ask(&five, MAX, 0, &Request::ONE), TooLarge); // 3
    assert_eq!(ask(&five, MAX - E9, 0, &Request::ONE), Deny(MAX - 5 * E9)); // 4
    let fractional = bucket(3, 10, 4, 0);
    assert_eq!(ask(&fractional, 1_060, 1_000, &Request::ONE), Deny(50)); // 5
    assert_eq!(numbers(&fractional, 1_060, 1_000), (0, 60));
    let dense = bucket(7, 2, 9, 0);
    assert_eq!(ask(&dense, 120, 100, &Request::take(3)), Deny(19)); // 6
    assert_eq!(numbers(&dense, 120, 100), (0, 20));
    let reserving = bucket(1, E9, 5, 10 * E9);
    let reserve = Request::ONE.or_wait(Duration::from_secs(10));
    assert_eq!(ask(&reserving, 40 * E9, 0, &reserve), Deny(26 * E9)); // 7
}

#[test]
fn charges_take_whole_tokens_or_nothing() {
    let limit = bucket(1, E9, 5, 10 * E9);
    for (state, charge, charged, after) in [
        (0, 20, 15, 115 * E9),              // 8
        (130 * E9, 3, 0, 130 * E9),         // 9
        (114 * E9 + 1, 3, 0, 114 * E9 + 1), // 9
        (114 * E9, 3, 1, 115 * E9),
    ] {
        let mut left = state;
        let step = limit.step(at(100 * E9), &mut left, &Request::charge(charge));
        assert!(step.decision.is_allowed());
        let said = (step.decision.granted(), step.decision.uncharged(), left);
        assert_eq!(said, (charged, charge - charged, after));
        assert_eq!(step.keep.is_some(), charged > 0);
        // Until what is owed beyond the burst is paid.
        assert_eq!(nanos(step.decision.wait()), left - 5 * E9 - 100 * E9);
    }
}

#[test]
fn a_refund_gives_nothing_back_beside_a_line() {
    let limit = bucket(1, E9, 10, 20 * E9);
    let refund = |after, tokens| Request::refund(tokens, Receipt::new(tokens, after));
    assert_eq!(
        ask(&limit, 20 * E9, 0, &refund(10 * E9, 10)),
        Allow(20 * E9)
    ); // 10
    assert_eq!(
        ask(&limit, 20 * E9, 10 * E9, &refund(15 * E9, 4)),
        Allow(16 * E9)
    ); // 11
}

#[test]
fn changes_keep_whole_tokens() {
    let change = |old: &TokenBucket, new: &TokenBucket, mut state, now| {
        assert!(new.change(at(now), &mut state, old, Carry::Tokens));
        state
    };
    let (five, twenty) = (bucket(1, E9, 5, 0), bucket(1, E9, 20, 0));
    assert_eq!(change(&five, &twenty, 105 * E9, 100 * E9), 120 * E9); // 12
    let full = change(&five, &twenty, 100 * E9, 100 * E9);
    assert_eq!((full, numbers(&twenty, full, 100 * E9).0), (100 * E9, 20));
    let (slow, fast) = (bucket(10, 3_600 * E9, 10, 0), bucket(1_000, E9, 1_000, 0));
    assert_eq!(change(&slow, &fast, 4_600 * E9, 1_000 * E9), 1_001 * E9); // 13
    assert_eq!(change(&fast, &slow, 1_005 * E9, 1_000 * E9), 4_600 * E9); // 14
    let (old, new) = (bucket(3, 10, 4, 0), bucket(2, 5, 6, 0));
    assert_eq!(change(&old, &new, 1_009, 1_000), 1_013); // 15
    assert_eq!(
        (numbers(&old, 1_009, 1_000).0, numbers(&new, 1_013, 1_000).0),
        (1, 1)
    );
    // The older vectors of the same formula.
    let (old, new) = (bucket(1, 2 * E9, 16, 0), bucket(1, 20_000_000, 16, 0)); // 30
    assert_eq!(change(&old, &new, 4 * E9, 2 * E9), 2_020_000_000);
    let (old, new) = (bucket(1, E9, 10, 0), bucket(1, E9, 20, 0)); // 32
    assert_eq!(change(&old, &new, 10 * E9, 0), 20 * E9);
}

#[test]
fn two_limits_on_one_key_pay_in_time() {
    let (slow, fast) = (bucket(1, 12 * E9, 5, 0), bucket(1, 10_000_000, 100, 0));
    assert_eq!(ask(&slow, 0, 100 * E9, &Request::take(3)), Allow(136 * E9)); // 16
    assert_eq!(
        ask(&fast, 136 * E9, 100 * E9, &Request::ONE),
        Deny(35_010_000_000)
    );
    assert_eq!(
        ask(&fast, 0, 100 * E9, &Request::take(100)),
        Allow(101 * E9)
    ); // 17
    assert_eq!(
        ask(&slow, 101 * E9, 100 * E9, &Request::ONE),
        Allow(113 * E9)
    );
}

#[test]
fn windows_ahead_of_the_caller_stay() {
    let pack = |start: u128, previous: u128, current: u128| start << 64 | previous << 32 | current;
    let counter = SlidingWindow::new(10, Duration::from_nanos(100)).unwrap(); // 19
    let before = pack(500, 8, 9);
    let mut state = before;
    let decision = counter
        .step(at(130), &mut state, &Request::take(4))
        .decision;
    assert_eq!(decision.retry_after().map(nanos), Some(504));
    assert_eq!(
        (decision.remaining(), nanos(decision.reset_after())),
        (0, 570)
    );
    assert_eq!(state, before);

    let fixed = FixedWindow::new(3, Duration::from_nanos(100)).unwrap(); // 20
    let mut state = pack(500, 1, 3);
    let decision = fixed.step(at(130), &mut state, &Request::ONE).decision;
    assert_eq!(decision.retry_after().map(nanos), Some(470));
    let mut state = pack(500, 1, 1);
    assert!(
        fixed
            .step(at(130), &mut state, &Request::ONE)
            .decision
            .is_allowed()
    );
    assert_eq!(state, pack(500, 1, 2));
}

#[cfg(feature = "alloc")]
#[test]
fn logs_go_on_from_their_newest_instant() {
    let log = SlidingLog::new(3, Duration::from_nanos(10)).unwrap(); // 21
    let filled = |instants: [u64; 3]| {
        let mut state = Default::default();
        for instant in instants {
            assert!(
                log.step(at(instant), &mut state, &Request::ONE)
                    .decision
                    .is_allowed()
            );
        }
        state
    };
    let mut state = filled([95, 104, 106]);
    assert!(
        log.step(at(50), &mut state, &Request::ONE)
            .decision
            .is_allowed()
    );
    assert_eq!(state, filled([104, 106, 106]));
    let mut state = filled([101, 104, 106]);
    let decision = log.step(at(50), &mut state, &Request::ONE).decision;
    assert_eq!(decision.retry_after().map(nanos), Some(61));
    assert_eq!(state, filled([101, 104, 106]));
}
