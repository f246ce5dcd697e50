//! Steps on the values of shared stores: what proves a clock step, versions of a limit, values of earlier versions of this
//! crate, processes that tell the time themselves.

use std::time::Duration;

use ratekeeper::store::{
    CasAction, CasDriver, ErrorKind, Loaded, StateBytes, StoredWrite, Swap, Version,
    compare_versions, step_stored,
};
use ratekeeper::{
    All, AnyAlgorithm, Decision, FixedWindow, ManualClock, Request, SlidingWindow, Timestamp,
    TokenBucket,
};

const E9: u64 = 1_000_000_000;

const fn at(seconds: u64) -> Timestamp {
    Timestamp::from_nanos(seconds * E9)
}

const fn seconds(decision: &Decision) -> Option<u64> {
    match decision.retry_after() {
        Some(wait) => Some(wait.as_secs()),
        None => None,
    }
}

fn five() -> TokenBucket {
    TokenBucket::per_second(1).with_burst(5)
}

fn value(bytes: &[&[u8]]) -> StateBytes {
    StateBytes::from_stored(&bytes.concat()).unwrap()
}

fn with_reach(tat_s: u64, reach_s: u64) -> StateBytes {
    value(&[
        &[0x21],
        &(tat_s * E9).to_be_bytes(),
        &(reach_s * E9).to_be_bytes(),
    ])
}

#[test]
fn a_value_that_proves_a_clock_step_is_repaired_though_refused() {
    // Vector 18.
    let step = step_stored(&five(), at(190), Some(&with_reach(200, 5)), &Request::ONE).unwrap();
    assert_eq!(seconds(&step.decision), Some(1));
    let repaired = step.write.unwrap();
    assert_eq!(repaired.value, with_reach(195, 5));
    assert_eq!(repaired.keep, Duration::from_secs(5));
    let step = step_stored(&five(), at(190), Some(&repaired.value), &Request::ONE).unwrap();
    assert_eq!((seconds(&step.decision), step.write), (Some(1), None));
    let step = step_stored(&five(), at(190), Some(&with_reach(200, 5)), &Request::PEEK).unwrap();
    assert_eq!(
        (step.decision.reset_after(), step.write),
        (Duration::from_secs(5), None)
    );
    // One second within the reach proves nothing.
    let step = step_stored(&five(), at(195), Some(&with_reach(200, 5)), &Request::ONE).unwrap();
    assert_eq!((seconds(&step.decision), step.write), (Some(1), None));
}

#[test]
fn another_limit_proves_no_clock_step() {
    let wide = TokenBucket::per_second(1).with_burst(200);
    let all = step_stored(&wide, at(100), None, &Request::take(200)).unwrap();
    let left = all.write.unwrap().value;
    assert_eq!(left, with_reach(300, 200));
    let step = step_stored(&five(), at(100), Some(&left), &Request::ONE).unwrap();
    assert_eq!((seconds(&step.decision), step.write), (Some(196), None));
}

#[test]
fn giving_back_leaves_the_reach() {
    let wide = TokenBucket::per_second(1).with_burst(200);
    let taken = step_stored(&wide, at(100), None, &Request::take(3)).unwrap();
    let left = taken.write.unwrap().value;
    let refund = Request::refund(1, taken.decision.into_receipt());
    let given = step_stored(&five(), at(100), Some(&left), &refund).unwrap();
    assert_eq!(given.write.unwrap().value, with_reach(102, 200));
}

#[test]
fn windows_that_begin_after_now_begin_now() {
    let window = |tag: u8, start_s: u64, upper: u32, lower: u32| {
        let start = (start_s * E9).to_be_bytes();
        value(&[&[tag], &start, &upper.to_be_bytes(), &lower.to_be_bytes()])
    };
    let sliding = SlidingWindow::per(10, Duration::from_secs(100));
    let step = step_stored(
        &sliding,
        at(130),
        Some(&window(0x13, 500, 8, 9)),
        &Request::take(4),
    );
    let step = step.unwrap();
    assert!(!step.decision.is_allowed());
    assert_eq!(step.write.unwrap().value, window(0x13, 130, 8, 9));
    let fixed = FixedWindow::per(3, Duration::from_secs(100));
    let step = step_stored(
        &fixed,
        at(130),
        Some(&window(0x15, 500, 1, 3)),
        &Request::ONE,
    )
    .unwrap();
    assert_eq!(seconds(&step.decision), Some(70));
    assert_eq!(step.write.unwrap().value, window(0x15, 100, 1, 3));
    // Beside a bucket, each is repaired by itself.
    let both = All((five(), sliding));
    let parts = value(&[
        &[0x27],
        &with_reach(205, 5)[1..],
        &window(0x13, 500, 0, 10)[1..],
    ]);
    let step = step_stored(&both, at(190), Some(&parts), &Request::ONE).unwrap();
    let expected = value(&[
        &[0x27],
        &with_reach(195, 5)[1..],
        &window(0x13, 190, 0, 10)[1..],
    ]);
    assert_eq!(step.write.unwrap().value, expected);
}

#[test]
fn earlier_values_are_debt_until_a_take() {
    let bare = value(&[&[0x11], &(500 * E9).to_be_bytes()]);
    let step = step_stored(&five(), at(100), Some(&bare), &Request::ONE).unwrap();
    assert_eq!((seconds(&step.decision), step.write), (Some(396), None));
    let step = step_stored(&five(), at(499), Some(&bare), &Request::ONE).unwrap();
    assert_eq!(step.write.unwrap().value, with_reach(501, 5));
    // Windows and several limits had the same keys then; now they have their own.
    let window = value(&[&[0x13], &[7; 16]]);
    let step = step_stored(&five(), at(100), Some(&window), &Request::ONE).unwrap();
    assert_eq!(step.decision.remaining(), 4);
    for foreign in [
        value(&[b"hello"]),
        value(&[&[0x11], &[1; 7]]),
        value(&[&[0x21], &[1; 8]]),
    ] {
        let error = step_stored(&five(), at(100), Some(&foreign), &Request::ONE).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
    }
}

fn written(
    step: Result<ratekeeper::store::StoredStep, ratekeeper::store::StoreError>,
) -> StoredWrite {
    step.unwrap().write.unwrap()
}

#[test]
fn the_newest_version_decides() {
    let slow = TokenBucket::per_hour(100).with_version(1);
    let fast = TokenBucket::per_hour(10_000).with_version(2);
    let first = written(step_stored(&slow, at(1_000), None, &Request::take(100)));
    assert_eq!(first.value.len(), 43);

    // A raise holds from the next request, and is stored though that is refused.
    let step = step_stored(&fast, at(1_000), Some(&first.value), &Request::ONE).unwrap();
    assert_eq!(
        step.decision.retry_after(),
        Some(Duration::from_millis(360))
    );
    assert_eq!(step.decision.limit(), 10_000);
    let raised = step.write.unwrap();
    // The old process adopts it, and writes nothing more.
    let step = step_stored(&slow, at(1_000), Some(&raised.value), &Request::ONE).unwrap();
    assert_eq!(
        step.decision.retry_after(),
        Some(Duration::from_millis(360))
    );
    assert_eq!((step.decision.limit(), step.write), (10_000, None));
    let any = AnyAlgorithm::from(slow);
    assert!(matches!(
        compare_versions(&any, at(1_000), &raised.value),
        Ok(Version::Newer(newer)) if newer == AnyAlgorithm::from(fast)
    ));
    assert!(matches!(
        compare_versions(&fast, at(1_000), &first.value),
        Ok(Version::Older(write)) if write == raised
    ));
    assert!(matches!(
        compare_versions(&fast, at(1_000), &raised.value),
        Ok(Version::Same)
    ));
    // So does one whose limit has no version.
    let plain = TokenBucket::per_hour(100);
    let step = step_stored(&plain, at(1_000), Some(&raised.value), &Request::ONE).unwrap();
    assert_eq!(step.decision.limit(), 10_000);

    let other = TokenBucket::per_hour(7).with_version(2);
    let error = step_stored(&other, at(1_000), Some(&raised.value), &Request::ONE).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
}

#[test]
fn a_value_without_version_keeps_its_debt_in_time_up_to_the_reach() {
    let newer = five().with_version(1);
    let step = step_stored(
        &newer,
        at(100),
        Some(&with_reach(103, 60)),
        &Request::take(3),
    )
    .unwrap();
    assert_eq!(seconds(&step.decision), Some(1));
    let value = step.write.unwrap().value;
    assert_eq!(value.len(), 43);
    let again = step_stored(&newer, at(100), Some(&value), &Request::take(3)).unwrap();
    assert_eq!((seconds(&again.decision), again.write), (Some(1), None));
    // A longer one becomes an empty bucket, once: the wait that is told is the wait.
    for far in [with_reach(160, 60), value_of_before(160)] {
        let step = step_stored(&newer, at(100), Some(&far), &Request::ONE).unwrap();
        assert_eq!(seconds(&step.decision), Some(1));
        let value = step.write.unwrap().value;
        let step = step_stored(&newer, at(101), Some(&value), &Request::ONE).unwrap();
        assert!(step.decision.is_allowed());
    }
}

fn value_of_before(tat_s: u64) -> StateBytes {
    value(&[&[0x11], &(tat_s * E9).to_be_bytes()])
}

#[test]
fn processes_with_clocks_of_their_own_go_by_the_latest() {
    let limit = five();
    let (ahead, behind) = (ManualClock::new(), ManualClock::new());
    ahead.set(at(107));
    behind.set(at(100));
    let run = |found: Option<StateBytes>, clock: &ManualClock, n| {
        let mut driver = CasDriver::new(&limit, Request::take(n), 16);
        let loaded = Loaded {
            state: found,
            version: (),
            now: None,
        };
        match driver.loaded(loaded, clock).unwrap() {
            CasAction::Exchange { new, .. } => {
                let CasAction::Done(decision) = driver.exchanged(Swap::Done, clock).unwrap() else {
                    panic!("the exchange went through");
                };
                (decision, Some(new))
            }
            CasAction::Done(decision) => (decision, found),
            other => panic!("{other:?}"),
        }
    };
    let (_, left) = run(None, &ahead, 5);
    assert_eq!(
        left.unwrap()[..9],
        [&[0x70][..], &(107 * E9).to_be_bytes()].concat()
    );
    let (refused, same) = run(left, &behind, 1);
    assert_eq!((seconds(&refused), same), (Some(1), left));
    // Set back by more than clocks may differ: nobody waits longer than a refill.
    behind.set(at(90));
    let (refused, repaired) = run(left, &behind, 1);
    assert_eq!(seconds(&refused), Some(1));
    assert_eq!(
        repaired.unwrap()[..9],
        [&[0x70][..], &(90 * E9).to_be_bytes()].concat()
    );
}
