//! One store holds states of one kind. Counts mean nothing to a window of another kind, length, offset or anchoring, and a debt
//! means nothing to a window: such a call is refused as unsupported and writes nothing, whether it comes through a view of the
//! limiter, to the store itself, or in the guise of an `AnyAlgorithm`.

use std::fmt::Debug;
use std::time::Duration;

use ratekeeper::store::{ErrorKind, Store};
use ratekeeper::{
    Algorithm, All, AnyAlgorithm, Carry, FixedWindow, MemoryStore, Outcome, Overflow, Request,
    SlidingWindow, State, TokenBucket, Ways,
};

use crate::support::{Bounded, SECOND, START, at, fixed, limiter, map, sliding, table};

/// Fills a key under `own`, asks under `other` by every way there is, and finds all as it was.
fn is_kept_out<A, B, S>(own: A, other: B, store: S)
where
    A: Algorithm + Copy,
    B: Algorithm<State = A::State> + Copy + Debug,
    A::State: State + ratekeeper::SameState<A::State>,
    S: Bounded<A> + MemoryStore<u64, B> + Store<u64, B>,
{
    let limiter = limiter(own, store);
    assert!(
        limiter
            .apply_at(&1, Request::take(2), at(START))
            .is_allowed()
    );
    let seen = |key: u64| limiter.apply_at(&key, Request::PEEK, at(START + SECOND / 3));
    let before = (seen(1), seen(2), limiter.store().counts());
    let requests = || {
        [
            Request::ONE,
            Request::PEEK,
            Request::charge(9),
            Request::up_to(3),
        ]
    };
    for key in [1, 2] {
        for request in requests() {
            let view = limiter.under(&other).apply_at(&key, request, at(START));
            assert_eq!(view.outcome(), Outcome::Unsupported, "{other:?}");
        }
        for request in requests() {
            let raw = limiter.store().decide_at(&key, &other, request, at(START));
            assert_eq!(raw.outcome(), Outcome::Unsupported, "{other:?}");
            assert_eq!((raw.granted(), raw.limit()), (0, 0));
        }
        let error = limiter.under(&other).try_check(&key).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        let change =
            Store::<u64, B>::try_change(limiter.store(), &key, &other, &other, Carry::Full);
        assert_eq!(change.unwrap().outcome(), Outcome::Unsupported);
    }
    assert_eq!((seen(1), seen(2), limiter.store().counts()), before);
}

macro_rules! kept_out_of_every_store {
    ($own:expr, $others:expr) => {
        for other in $others {
            is_kept_out($own, other, map(64, Overflow::Inherit));
            is_kept_out($own, other, map(64, Overflow::Deny));
            is_kept_out($own, other, table(64, Ways::Four, Overflow::Inherit));
            is_kept_out($own, other, table(64, Ways::Eight, Overflow::Deny));
        }
    };
}

#[test]
fn windows_of_another_length_offset_or_anchoring() {
    let longer = sliding().window() + Duration::from_millis(1);
    kept_out_of_every_store!(sliding(), [SlidingWindow::per(6, longer)]);
    let [aligned, shifted, anchored] = fixed();
    kept_out_of_every_store!(aligned, [shifted, anchored, FixedWindow::per(6, longer)]);
    kept_out_of_every_store!(shifted, [aligned, anchored]);
    kept_out_of_every_store!(anchored, [aligned, FixedWindow::per(6, longer).anchored()]);
}

#[test]
fn windows_of_another_kind() {
    let window = sliding().window();
    kept_out_of_every_store!(sliding(), [FixedWindow::per(6, window)]);
    kept_out_of_every_store!(FixedWindow::per(6, window), [SlidingWindow::per(6, window)]);
}

/// What has the same state, but is none of ours or several of them, needs a map.
#[test]
fn in_any_guise() {
    let bucket = TokenBucket::per_second(10).with_burst(5);
    let any: [AnyAlgorithm; 5] = [
        bucket.into(),
        sliding().into(),
        SlidingWindow::per_second(6).into(),
        fixed()[0].into(),
        fixed()[2].into(),
    ];
    for (i, own) in any.iter().enumerate() {
        for (j, other) in any.iter().enumerate() {
            if i != j {
                is_kept_out(*own, *other, map(64, Overflow::Inherit));
            }
        }
    }
    is_kept_out(any[0], sliding(), map(64, Overflow::Deny));
    is_kept_out(sliding(), any[0], map(64, Overflow::Deny));
    let pair = All([bucket, bucket]);
    let mixed = All((any[0], any[1]));
    is_kept_out(mixed, All((any[1], any[0])), map(64, Overflow::Inherit));
    is_kept_out(mixed, All((any[0], any[2])), map(64, Overflow::Inherit));
    // Buckets of every rate and burst share: their states are debts in time.
    let limiter = limiter(pair, map(64, Overflow::Inherit));
    let other = All([TokenBucket::per_hour(3), bucket]);
    assert!(limiter.under(&other).check_at(&1, at(START)).is_allowed());
}

/// The same limit in another guise, and another count, are no other kind.
#[test]
fn what_may_differ() {
    let limiter = limiter(sliding(), map(64, Overflow::Inherit));
    assert!(
        limiter
            .apply_at(&1, Request::take(6), at(START))
            .is_allowed()
    );
    let any = AnyAlgorithm::from(sliding());
    let raised = SlidingWindow::per(9, sliding().window());
    assert!(!limiter.under(&any).check_at(&1, at(START)).is_allowed());
    assert!(limiter.under(&raised).check_at(&1, at(START)).is_allowed());
}

/// A store that was cleared is anybody's.
#[test]
fn a_cleared_map_takes_another_kind() {
    let store = map::<SlidingWindow>(64, Overflow::Inherit);
    assert!(
        store
            .decide_at(&1, &sliding(), Request::ONE, at(START))
            .is_allowed()
    );
    let fixed = fixed()[0];
    let refused = store.decide_at(&1, &fixed, Request::ONE, at(START));
    assert_eq!(refused.outcome(), Outcome::Unsupported);
    store.clear();
    assert!(
        store
            .decide_at(&1, &fixed, Request::ONE, at(START))
            .is_allowed()
    );
}
