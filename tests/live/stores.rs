//! Over stores: nobody is forgiven by an eviction.

use core::time::Duration;

use ratekeeper::{
    DashStore, InProcess, KeyedLimiter, Live, ManualClock, MemoryStore, TableStore, Timestamp,
    TokenBucket,
};

use crate::Stream;

/// Keys come, go and come back while the limit changes; what each one was given is counted against the bound of a changing limit.
fn nobody_passes_more<S: MemoryStore<u64, Live> + InProcess>(
    store: S,
    clock: &ManualClock,
    seed: u64,
) {
    const LIMITS: [TokenBucket; 3] = [
        TokenBucket::per_hour(10),
        TokenBucket::per_hour(3_600).with_burst(3),
        TokenBucket::per_hour(60).with_burst(6),
    ];
    const KEYS: usize = 200;
    clock.set(Timestamp::from_nanos(1_000_000_000_000));
    let users = KeyedLimiter::<u64, Live, S>::with_store(Live::new(LIMITS[0]), store);
    let stream = &mut Stream(seed);
    let mut taken = [0_u64; KEYS];
    // In thousandths of a token, one more for each change.
    let mut due = 10_000;
    let mut held = 0;
    let mut denied = 0;
    for _ in 0..40 {
        for _ in 0..200 {
            let key = stream.below(KEYS as u64);
            let allowed = users.check(&key).is_allowed();
            taken[key as usize] += u64::from(allowed);
            denied += u64::from(!allowed);
            assert!(
                taken[key as usize] * 1_000 <= due,
                "{key}: {} of {due}/1000",
                taken[key as usize]
            );
        }
        clock.advance(Duration::from_millis(360));
        due += LIMITS[held].tokens() / 10;
        if stream.below(3) == 0 {
            let next = stream.below(3) as usize;
            let raise = LIMITS[next].burst().saturating_sub(LIMITS[held].burst());
            due += raise * 1_000 + 1;
            users.set(LIMITS[next]).unwrap();
            held = next;
        }
    }
    assert!(denied > 0);
}

#[test]
fn a_full_map_forgives_nobody() {
    for seed in 0..30 {
        let clock = ManualClock::new();
        let store = DashStore::<u64, Live, _>::with_capacity(64, &clock).unwrap();
        nobody_passes_more(store, &clock, seed);
    }
}

#[test]
fn a_full_table_forgives_nobody() {
    for seed in 0..30 {
        let clock = ManualClock::new();
        let store = TableStore::<_, Live>::with_seed(32, 7, &clock).unwrap();
        nobody_passes_more(store, &clock, seed);
    }
}
