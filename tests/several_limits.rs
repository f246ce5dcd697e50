//! `Limits`, checked against its members one by one: each asked alone, on a state of its own.

use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use ratekeeper::store::{ErrorKind, StateBytes};
use ratekeeper::{
    Algorithm, All, AnyAlgorithm, KeyedLimiter, Limiter, Limits, Outcome, Request, Timestamp,
};

const LIMITS: [&str; 8] = [
    "2/s",
    "3/7s burst 5 wait 2s",
    "1/250ms burst 4",
    "sliding 4/s",
    "sliding 9/min",
    "fixed 5/2s",
    "fixed 3/s anchored",
    "unlimited",
];

#[derive(Clone, Copy, Debug)]
struct Ask {
    ms: u64,
    cost: u64,
}

/// A request passes if every member lets it pass, and then each of them is charged; otherwise none.
fn one_by_one(
    members: &mut [(AnyAlgorithm, u128)],
    now: Timestamp,
    request: impl Fn() -> Request,
) -> Outcome {
    let mut after = Vec::new();
    let (mut waits, mut too_large) = (Vec::new(), false);
    for (limit, state) in members.iter() {
        let mut state = *state;
        match limit.step(now, &mut state, &request()).decision.outcome() {
            Outcome::Allowed => {}
            Outcome::Denied { retry_after } => waits.push(retry_after),
            _ => too_large = true,
        }
        after.push(state);
    }
    if too_large {
        return Outcome::TooLarge;
    }
    if let Some(retry_after) = waits.into_iter().max() {
        return Outcome::Denied { retry_after };
    }
    for ((_, state), after) in members.iter_mut().zip(after) {
        *state = after;
    }
    Outcome::Allowed
}

fn asks() -> impl Strategy<Value = Vec<Ask>> {
    let ask = (0_u64..900, 0_u64..4).prop_map(|(ms, cost)| Ask { ms, cost });
    prop::collection::vec(ask, 1..60)
}

fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 1_000,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(0x1bad_c0de),
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn all_are_charged_or_none(
        texts in prop::collection::vec(prop::sample::select(&LIMITS[..]), 1..=4),
        asks in asks(),
    ) {
        let limits: Limits = texts.join("; ").parse().unwrap();
        let mut members: Vec<(AnyAlgorithm, u128)> =
            texts.iter().map(|text| (text.parse().unwrap(), 0)).collect();
        let mut states = [0; 4];
        let mut now = Timestamp::from_nanos(1_700_000_000_000_000_000);
        for Ask { ms, cost } in asks {
            now = now + Duration::from_millis(ms);
            let expected = one_by_one(&mut members, now, || Request::take(cost));
            let decision = limits.step(now, &mut states, &Request::take(cost)).decision;
            assert_eq!(decision.outcome(), expected);
            // What is not there was not touched.
            let own = members.iter().map(|(_, state)| *state);
            assert_eq!(states.to_vec(), own.chain([0; 4]).take(4).collect::<Vec<_>>());
            let remaining = members.iter().map(|(limit, state)| {
                limit.step(now, &mut state.clone(), &Request::PEEK).decision.remaining()
            });
            let remaining: Vec<u64> = remaining.collect();
            assert_eq!(Some(decision.remaining()), remaining.iter().copied().min());
            if decision.is_allowed() {
                assert_eq!(remaining[decision.index()], decision.remaining());
            }
            assert!(decision.index() < limits.len());
        }
    }
}

#[test]
fn a_receipt_gives_back_to_every_member() {
    let limits: Limits = "5/h; sliding 9/h; fixed 7/h".parse().unwrap();
    let limiter = Limiter::new(limits);
    let now = Timestamp::from_nanos(1_700_000_000_000_000_000);
    let receipt = limiter.apply_at(Request::take(5), now).into_receipt();
    assert_eq!(limiter.check_at(now).index(), 0);
    let back = limiter.apply_at(Request::refund(4, receipt), now);
    assert_eq!((back.remaining(), back.index()), (4, 0));
    assert!(limiter.apply_at(Request::take(4), now).is_allowed());
    assert!(!limiter.check_at(now).is_allowed());
}

#[test]
fn keys_are_limited_each_for_itself() {
    let limits: Limits = "2/h; sliding 9/h".parse().unwrap();
    let users: KeyedLimiter<String, Limits> = KeyedLimiter::new(limits);
    for name in ["alice", "bob"] {
        assert!(users.check_n(name, 2).is_allowed());
        assert!(!users.check(name).is_allowed());
    }
    assert_eq!(users.store().len(), 2);
}

/// The same bytes as an array's, and no more than there are limits.
#[test]
fn a_state_leaves_the_process_like_that_of_an_array() {
    let text = "10/s burst 20; sliding 1000/h";
    let (limits, array): (Limits, All<[AnyAlgorithm; 2]>) =
        (text.parse().unwrap(), text.parse().unwrap());
    let now = Timestamp::from_nanos(1_700_000_000_000_000_000);
    let (mut of_limits, mut of_array) = ([0; 4], [0; 2]);
    assert!(
        limits
            .step(now, &mut of_limits, &Request::take(3))
            .decision
            .is_allowed()
    );
    assert!(
        array
            .step(now, &mut of_array, &Request::take(3))
            .decision
            .is_allowed()
    );
    let bytes = StateBytes::encode(&limits, &of_limits).unwrap();
    assert_eq!(bytes.len(), 1 + 2 * 16);
    assert_eq!(bytes, StateBytes::encode(&array, &of_array).unwrap());
    assert_eq!(bytes.decode(&limits).unwrap(), of_limits);
    let three: Limits = "1/s; 2/s; 3/s".parse().unwrap();
    assert!(bytes.decode(&three).is_err());
}

/// The newest version of a limit decides for its key, and so would for its neighbours: shared stores refuse it among others.
#[test]
fn a_version_among_others_has_no_value() {
    let limits: Limits = "1/s v2; 2/min".parse().unwrap();
    let error = StateBytes::encode(&limits, &[0; 4]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
}
