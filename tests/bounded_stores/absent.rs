//! What does not insert leaves no trace: peeks, refusals and refunds of keys that have no slot.

use std::fmt::Debug;

use ratekeeper::{
    Algorithm, KeyedLimiter, ManualClock, Overflow, Receipt, Request, Slot, SlotState, TableStore,
    TokenBucket, Ways,
};

use crate::support::{Limiter, MS, START, at, buckets, fixed, sliding};

/// Every slot, word by word.
fn contents(slots: &[Slot]) -> String {
    format!("{slots:?}")
}

/// A limiter whose slots can be looked at.
fn transparent<A: Algorithm>(
    limit: A,
    ways: Ways,
    overflow: Overflow,
) -> (Limiter<A, TableStore<ManualClock, A>>, &'static [Slot]) {
    let slots: &'static [Slot] = Box::leak((0..11).map(|_| Slot::new()).collect());
    let store = TableStore::from_slots(slots, 7, ManualClock::new());
    let store = store.with_ways(ways).with_overflow(overflow);
    (KeyedLimiter::with_store(limit, store), slots)
}

fn leaves_no_trace<A: Algorithm<State: SlotState> + Copy + Debug>(limit: A, most: u64) {
    for overflow in [Overflow::Inherit, Overflow::Deny] {
        for ways in [Ways::Four, Ways::Eight] {
            let (limiter, slots) = transparent(limit, ways, overflow);
            let now = at(START);
            let untouched = |what: &str, request: fn(u64) -> Request| {
                let before = (contents(slots), limiter.store().replaced());
                for key in 1_000..1_100 {
                    let decision = limiter.apply_at(&key, request(most), now);
                    assert_eq!(decision.granted(), 0, "{what} of {limit:?}, {overflow:?}");
                }
                let after = (contents(slots), limiter.store().replaced());
                assert_eq!(before, after, "{what} of {limit:?}, {overflow:?}");
            };
            let looks = || {
                untouched("a peek", |_| Request::PEEK);
                untouched("a cost that never passes", |most| Request::take(most + 1));
                untouched("a refund", |most| {
                    Request::refund(1, Receipt::new(most, START + MS))
                });
            };
            looks(); // empty
            assert!(limiter.check_at(&1, now).is_allowed());
            looks(); // nearly
            for key in 0..64 {
                // Whoever gets a slot takes it all.
                let _ = limiter.apply_at(&key, Request::up_to(most), now);
            }
            looks();
            untouched("a refusal", |_| Request::ONE);
            untouched("a refused partial grant", Request::up_to);
            untouched("a grant of nothing", |most| {
                Request::up_to(most).at_least(0)
            });

            // Those that are there are peeked at and refused without a trace, too.
            let before = contents(slots);
            for key in 0..64 {
                assert_eq!(limiter.apply_at(&key, Request::PEEK, now).granted(), 0);
                assert!(!limiter.check_at(&key, now).is_allowed());
            }
            assert_eq!(before, contents(slots));
        }
    }
}

#[test]
fn in_tables_of_buckets() {
    for bucket in buckets() {
        leaves_no_trace(bucket, bucket.burst());
    }
}

#[test]
fn in_tables_of_windows() {
    leaves_no_trace(sliding(), sliding().limit().into());
    for limit in fixed() {
        leaves_no_trace(limit, limit.limit().into());
    }
}

/// The counters and the count of slots in debt.
#[test]
fn what_is_counted() {
    let limit = buckets()[0];
    let clock = ManualClock::new();
    clock.set(at(START));
    let store = TableStore::<_, TokenBucket>::with_seed(8, 7, &clock).unwrap();
    let store = store.with_ways(Ways::Eight).with_overflow(Overflow::Deny);
    let limiter = KeyedLimiter::<u64, _, _>::with_store(limit, store);
    let counts = || {
        let store = limiter.store();
        (store.occupied(&limit), store.replaced(), store.overflowed())
    };
    assert_eq!(counts(), (0, 0, 0));
    for key in 0..8 {
        assert!(limiter.check(&key).is_allowed());
        assert_eq!(limiter.peek(&(100 + key)).granted(), 0);
    }
    assert_eq!(counts(), (8, 0, 0));
    assert!(!limiter.check(&8).is_allowed());
    assert_eq!(
        limiter.peek(&8).remaining(),
        0,
        "no room, so nothing to take"
    );
    assert_eq!(counts(), (8, 0, 1));

    clock.set(at(START + 100 * MS)); // one token later all are as good as new
    assert_eq!(counts().0, 0);
    assert!(limiter.check(&8).is_allowed());
    assert_eq!(counts(), (1, 1, 1));
    assert!(limiter.store().remove(&8_u64));
    assert_eq!(counts().0, 0);
    assert!(!limiter.store().remove(&8_u64));
    assert!(!limiter.store().remove(&999_u64));
}

/// A key that was forgotten has nothing to get back, and must not be given what others are charged for.
#[test]
fn a_refund_does_not_reach_the_key_that_took_the_place() {
    let limit = buckets()[0];
    let (limiter, _) = transparent(limit, Ways::Eight, Overflow::Inherit);
    let now = at(START);
    let receipts: Vec<_> = (0..8_u64)
        .map(|key| {
            (
                key,
                limiter.apply_at(&key, Request::take(2), now).into_receipt(),
            )
        })
        .collect();
    for key in 8..16 {
        assert!(
            limiter.apply_at(&key, Request::take(3), now).is_allowed(),
            "takes over"
        );
    }
    let remaining = |key| limiter.apply_at(&key, Request::PEEK, now).remaining();
    assert!((8..16).all(|key| remaining(key) == 0));
    for (key, receipt) in receipts {
        let refund = limiter.apply_at(&key, Request::refund(2, receipt), now);
        assert!(refund.is_allowed());
    }
    assert!((8..16).all(|key| remaining(key) == 0));
}
