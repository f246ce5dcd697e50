//! Batches against one request at a time: through every wrapper, over exact stores, the same answers.

use std::time::Duration;

use ratekeeper::store::{
    AsyncStore, Breaker, DenyCache, FailClosed, Fallback, Item, Leased, Sharded, Store, WithLimit,
};
use ratekeeper::{DashStore, ManualClock, Request, TokenBucket};

use crate::support::{Draw, LIMIT, MODES, NOW, SECOND};

type Exact<'a> = DashStore<String, TokenBucket, &'a ManualClock>;

fn one_by_one<'a, W>(clock: &'a ManualClock, make: impl Fn(Exact<'a>) -> W, seed: u64)
where
    W: Store<str, TokenBucket> + AsyncStore<str, TokenBucket>,
{
    for mode in MODES {
        clock.set(NOW);
        let (batched, alone) = (
            make(DashStore::with_clock(clock)),
            make(DashStore::with_clock(clock)),
        );
        let mut draw = Draw(seed);
        for round in 0..400 {
            let keys: Vec<_> = (0..draw.below(8))
                .map(|_| ["a", "b", "c"][draw.place(3)])
                .collect();
            let requests: Vec<_> = keys.iter().map(|_| draw.below(6)).collect();
            let request = |n: u64| match n {
                5 => Request::up_to(4),
                n => Request::take(n),
            };
            let mut items: Vec<_> = keys
                .iter()
                .zip(&requests)
                .map(|(key, n)| Item::new(*key, &LIMIT, request(*n)))
                .collect();
            mode.batch(&batched, &mut items);
            for ((item, key), n) in items.into_iter().zip(keys).zip(requests) {
                let expected = mode.apply(&alone, key, &LIMIT, request(n)).unwrap();
                let got = item.into_result().unwrap();
                assert_eq!(got.outcome(), expected.outcome(), "round {round}");
                assert_eq!(got.granted(), expected.granted(), "round {round}");
                assert_eq!(got.retry_after(), expected.retry_after(), "round {round}");
            }
            clock.advance(Duration::from_millis(draw.below(900)));
        }
    }
}

#[test]
fn through_every_wrapper() {
    let clock = &ManualClock::new();
    one_by_one(clock, |store| store, 1);
    one_by_one(clock, FailClosed::new, 2);
    one_by_one(
        clock,
        |store| Breaker::with_clock(store, 1, SECOND, clock),
        3,
    );
    one_by_one(clock, |store| DenyCache::with_clock(store, clock), 4);
    let local = || DashStore::<String, TokenBucket, _>::with_clock(clock);
    one_by_one(clock, |store| Fallback::new(store, local()), 5);
    one_by_one(clock, |store| WithLimit::new(store, LIMIT.with_burst(4)), 6);
    one_by_one(
        clock,
        |store| Sharded::new([("x", store), ("y", local()), ("z", local())]).unwrap(),
        7,
    );
    one_by_one(clock, |store| Leased::with_clock(store, 1, clock), 8);
}
