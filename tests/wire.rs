//! The wire form of states: golden bytes, round trips, and what is refused.

use std::time::Duration;

use ratekeeper::store::{ErrorKind, StateBytes, StoreError};
use ratekeeper::{
    Algorithm, All, AnyAlgorithm, Decision, FixedWindow, Outcome, Request, SlidingWindow, Step,
    Timestamp, TokenBucket,
};

/// 2023-11-14 22:13:20 UTC.
const NOW_NS: u64 = 1_700_000_000_000_000_000;
const SECOND: Duration = Duration::from_secs(1);

/// The state after one take at `NOW_NS + after`, as hexadecimal digits.
fn taken<A: Algorithm>(limit: &A, cost: u64, after: Duration) -> String {
    let mut state = A::State::default();
    let step = limit.step(
        Timestamp::from_nanos(NOW_NS) + after,
        &mut state,
        &Request::take(cost),
    );
    assert!(step.decision.is_allowed());
    hex(&StateBytes::encode(limit, &state).unwrap())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Worked out by hand: a TAT is now + 100 ms, and 1.7e18 = 0x17979cfe362a0000; its reach is five tokens, 500 ms = 0x1dcd6500.
#[test]
fn golden_bytes() {
    let zero = Duration::ZERO;
    let bucket = TokenBucket::per_second(10).with_burst(5);
    assert_eq!(
        taken(&bucket, 1, zero),
        "2117979cfe3c1fe100000000001dcd6500"
    );
    assert_eq!(
        taken(&AnyAlgorithm::from(bucket), 1, zero),
        "2117979cfe3c1fe100000000001dcd6500"
    );

    let window = SlidingWindow::per_second(10);
    let at_900_ms = Duration::from_millis(900);
    // Windows begin at first use: 1.7e18 + 9e8.
    assert_eq!(
        taken(&window, 10, at_900_ms),
        "1317979cfe6bcee900000000000000000a"
    );
    assert_eq!(
        taken(&AnyAlgorithm::from(window), 10, at_900_ms),
        "1317979cfe6bcee900000000000000000a"
    );

    let fixed = FixedWindow::per_second(10);
    assert_eq!(
        taken(&fixed, 3, at_900_ms),
        "1517979cfe362a00000000000100000003"
    );

    let pair = All([bucket, TokenBucket::per_second(1)]);
    assert_eq!(
        taken(&pair, 1, zero),
        "2417979cfe3c1fe100000000001dcd650017979cfe71c4ca00000000003b9aca00"
    );
    // With a version, the limit: number 2, 10 tokens per second, a burst of 5, no waiting.
    assert_eq!(
        taken(&bucket.with_version(2), 1, zero),
        "3117979cfe3c1fe1000002000000000000000a000000003b9aca0000000000000000050000000000000000"
    );
    let mixed = All((bucket, window));
    assert_eq!(
        taken(&mixed, 1, zero),
        "2717979cfe3c1fe100000000001dcd650017979cfe362a00000000000000000001"
    );
}

#[test]
fn all_of_windows_is_not_mistaken_for_all_of_buckets() {
    let buckets = All([TokenBucket::per_second(1); 4]);
    let windows = All([SlidingWindow::per_second(1); 2]);
    let any = All([AnyAlgorithm::from(TokenBucket::per_second(1)); 2]);
    let (a, b, c) = (
        StateBytes::encode(&buckets, &[1, 2, 3, 4]).unwrap(),
        StateBytes::encode(&windows, &[5, 6]).unwrap(),
        StateBytes::encode(&any, &[7, 8]).unwrap(),
    );
    assert_eq!([a.len(), b.len(), c.len()], [65, 33, 33]);
    assert_eq!(kind(a.decode(&windows)), ErrorKind::Corrupt);
    assert_eq!(kind(a.decode(&any)), ErrorKind::Corrupt);
    assert_eq!(kind(b.decode(&buckets)), ErrorKind::Corrupt);
    assert_eq!(a.decode(&buckets).unwrap(), [1, 2, 3, 4]);
    assert_eq!(b.decode(&windows).unwrap(), [5, 6]);
}

#[test]
fn states_survive_the_round_trip() {
    let wide = All((
        FixedWindow::per_second(1),
        TokenBucket::per_second(1),
        SlidingWindow::per_second(1),
        FixedWindow::per_second(1),
    ));
    let state = (u128::MAX - 7, 0x0102_0304_0506_0708, 1 << 127 | 5, 9);
    let bytes = StateBytes::encode(&wide, &state).unwrap();
    assert_eq!(bytes.len(), 1 + 4 * 16);
    assert_eq!(bytes.decode(&wide).unwrap(), state);
    assert_eq!(StateBytes::from_stored(&bytes).unwrap(), bytes);

    let widest = All([SlidingWindow::per_second(1); 4]);
    let bytes = StateBytes::encode(&widest, &[1, 2, 3, u128::MAX]).unwrap();
    // A process that tells the time itself writes nine more.
    assert_eq!(bytes.len(), StateBytes::CAPACITY - 9);
    assert_eq!(bytes.decode(&widest).unwrap(), [1, 2, 3, u128::MAX]);
}

#[test]
fn whatever_is_not_a_state_of_this_algorithm_is_corrupt() {
    let bucket = TokenBucket::per_second(1);
    let good = StateBytes::encode(&bucket, &5).unwrap();
    let mut stored: Vec<Vec<u8>> = vec![
        b"hello".to_vec(),
        b"42".to_vec(),
        b"\x11".to_vec(),
        good[..8].to_vec(),
    ];
    stored.push([&good[..], &[0]].concat());
    // Windows and several limits once had a bucket's keys: they count as absent.
    const OTHERS: [u8; 4] = [0x13, 0x14, 0x15, 0x17];
    for tag in (0..=u8::MAX).filter(|tag| *tag != 0x21) {
        let bytes = [&[tag], &good[1..]].concat();
        if OTHERS.contains(&tag) {
            let absent = StateBytes::from_stored(&bytes).and_then(|bytes| bytes.decode(&bucket));
            assert_eq!(absent.unwrap(), 0);
        } else {
            stored.push(bytes);
        }
    }
    let bare = [&[0x11], &good[1..9]].concat();
    let bare = StateBytes::from_stored(&bare).and_then(|bytes| bytes.decode(&bucket));
    assert_eq!(bare.unwrap(), 5);
    for bytes in stored {
        let result = StateBytes::from_stored(&bytes).and_then(|bytes| bytes.decode(&bucket));
        assert_eq!(kind(result), ErrorKind::Corrupt, "{}", hex(&bytes));
    }
    for len in [0, StateBytes::CAPACITY + 1, 500] {
        assert_eq!(
            kind(StateBytes::from_stored(&vec![0x11; len])),
            ErrorKind::Corrupt
        );
    }
}

fn kind<T: std::fmt::Debug>(result: Result<T, StoreError>) -> ErrorKind {
    result.unwrap_err().kind()
}

/// An algorithm that says nothing of a wire form, or chooses a tag of its own.
#[derive(Debug)]
struct Own(u8);

impl Algorithm for Own {
    type State = u64;

    fn step(&self, _now: Timestamp, _state: &mut u64, _request: &Request) -> Step {
        Step::unchanged(Decision::new(Outcome::Allowed, 1, 1, Duration::ZERO))
    }

    fn tag(&self) -> u8 {
        self.0
    }
}

#[test]
fn algorithms_of_ones_own_need_a_tag() {
    assert_eq!(
        kind(StateBytes::encode(&Own(0), &1)),
        ErrorKind::Unsupported
    );
    let good = StateBytes::encode(&Own(0x81), &1).unwrap();
    assert_eq!(hex(&good), "810000000000000001");
    assert_eq!(kind(good.decode(&Own(0))), ErrorKind::Unsupported);
    assert_eq!(kind(good.decode(&Own(0x82))), ErrorKind::Corrupt);
    assert_eq!(
        kind(StateBytes::encode(&All((Own(0), Own(0x81))), &(1, 1))),
        ErrorKind::Unsupported
    );
    assert_eq!(
        StateBytes::encode(&All([Own(0x81); 1]), &[1]).unwrap()[0],
        0x27
    );

    #[cfg(feature = "alloc")]
    {
        let log = ratekeeper::SlidingLog::per(1, SECOND);
        assert_eq!(
            kind(StateBytes::encode(&log, &ratekeeper::LogRing::default())),
            ErrorKind::Unsupported
        );
    }
    let _ = SECOND;
}
