//! Without room for all, no key passes more than its limit allows: the admitted requests of each key are written down
//! and counted in every window that begins and ends with one, by brute force.

use std::collections::HashMap;
use std::time::Duration;

use ratekeeper::{
    Algorithm, FixedWindow, Overflow, Request, SlidingWindow, SlotState, TokenBucket, Ways,
};

use crate::support::{
    Bounded, MS, Random, SECOND, START, at, buckets, fixed, limiter, map, ns, sliding, tiny,
};

/// When each key's tokens were granted, in order.
type Grants = HashMap<u64, Vec<u64>>;

/// The sizes that requests and pauses are drawn from.
#[derive(Clone, Copy, Debug)]
struct Scale {
    limit: u64,
    full_ns: u64,
    /// Keys that the store holds: the more, the slower time passes, so that it is full most of the time.
    keys: u64,
}

impl Scale {
    fn of_bucket(bucket: TokenBucket, keys: u64) -> Self {
        Self {
            keys,
            limit: bucket.burst(),
            full_ns: ns(bucket.period()) * bucket.burst() / bucket.tokens(),
        }
    }

    fn of_window(limit: u32, window: Duration, keys: u64) -> Self {
        Self {
            keys,
            limit: limit.into(),
            full_ns: ns(window),
        }
    }
}

/// Clients who come back again and again among strangers who come once, in rounds: now the strangers press, now the
/// clients do, now time passes.
fn flooded<A: Algorithm, S: Bounded<A>>(limit: A, store: S, scale: Scale, seed: u64) -> Grants {
    const CLIENTS: u64 = 6;
    let limiter = limiter(limit, store);
    let mut random = Random(seed);
    let mut grants = Grants::new();
    let mut now = START;
    let mut stranger = 1_000;
    for _ in 0..6_000 {
        now += match random.below(16) {
            0..=8 => 0,
            9 => random.below(3),
            10..=13 => random.below(2 * scale.full_ns / scale.limit / scale.keys),
            14 => random.below(scale.full_ns / scale.keys),
            _ if random.one_in(scale.keys) => random.below(2 * scale.full_ns),
            _ => 0,
        };
        let key = if random.one_in(3) {
            random.below(CLIENTS)
        } else {
            stranger += 1;
            stranger
        };
        let request = match random.below(8) {
            0 => Request::up_to(scale.limit),
            // Leaves something for a stranger to take over.
            1 => Request::up_to(scale.limit.div_ceil(2)),
            2 => Request::take(1 + random.below(scale.limit)),
            _ => Request::ONE,
        };
        let granted = limiter.apply_at(&key, request, at(now)).granted();
        if key < CLIENTS {
            let log = grants.entry(key).or_default();
            log.extend((0..granted).map(|_| now));
        }
    }
    assert!(limiter.store().counts().1 > 100, "too little pressure");
    grants
}

/// The same for `Admit`, where a key may pass untracked, and counts only while it is tracked.
fn tracked<A: Algorithm, S: Bounded<A>>(limit: A, store: S, scale: Scale, seed: u64) -> Grants {
    let limiter = limiter(limit, store);
    let mut random = Random(seed);
    let mut grants = Grants::new();
    let mut now = START;
    for _ in 0..6_000 {
        if random.one_in(3) {
            now += random.below(scale.full_ns / scale.keys);
        }
        let key = random.below(5 * scale.keys);
        let request = Request::up_to(1 + random.below(scale.limit));
        let overflowed = limiter.store().counts().1;
        let granted = limiter.apply_at(&key, request, at(now)).granted();
        if limiter.store().counts().1 == overflowed {
            let log = grants.entry(key).or_default();
            log.extend((0..granted).map(|_| now));
        } else {
            assert!(granted > 0, "an untracked newcomer passes");
        }
    }
    assert!(limiter.store().counts().1 > 100, "too little pressure");
    grants
}

/// In any closed window `W` at most `B + W/T`, one more if `T` is no whole number of nanoseconds.
fn keeps_to_bucket(bucket: TokenBucket, grants: &Grants, context: &str) {
    let (tokens, period_ns) = (u128::from(bucket.tokens()), bucket.period().as_nanos());
    let is_whole = period_ns % tokens == 0;
    let burst = u128::from(bucket.burst()) + u128::from(!is_whole);
    for (key, log) in grants {
        for (i, first) in log.iter().enumerate() {
            for (count, last) in (1_u128..).zip(&log[i..]) {
                let refilled = u128::from(last - first) * tokens / period_ns;
                assert!(
                    count <= burst + refilled,
                    "{context}, {bucket}: key {key} got {count} within {} ns",
                    last - first
                );
            }
        }
    }
}

/// At most `most` in any window of length `window_ns`, one of its ends excluded.
fn keeps_to_window(window_ns: u64, most: usize, grants: &Grants, context: &str) {
    for (key, log) in grants {
        for (i, first) in log.iter().enumerate() {
            let count = log[i..]
                .iter()
                .take_while(|at| *at - first < window_ns)
                .count();
            assert!(
                count <= most,
                "{context}: key {key} got {count} in a window, not {most}"
            );
        }
    }
}

const SEEDS: std::ops::Range<u64> = 1..13;

/// Asserts for small tables under the policy.
fn tables<A: Algorithm<State: SlotState> + Copy>(
    limit: A,
    scale: impl Fn(u64) -> Scale,
    overflow: Overflow,
    keeps: impl Fn(&Grants, &str),
) {
    for ways in [Ways::Four, Ways::Eight] {
        for seed in SEEDS {
            let context = format!("table, {ways:?} ways, {overflow:?}, seed {seed}");
            let grants = flooded(limit, tiny(ways, overflow), scale(8), seed);
            keeps(&grants, &context);
        }
    }
}

/// For small maps, but also with shards of many more keys than a newcomer looks at.
fn maps<A: Algorithm + Copy>(
    limit: A,
    scale: impl Fn(u64) -> Scale,
    overflow: Overflow,
    keeps: impl Fn(&Grants, &str),
) {
    for keys in [2, 100] {
        for seed in SEEDS {
            let context = format!("map of {keys}, {overflow:?}, seed {seed}");
            let store = map(usize::try_from(keys).unwrap(), overflow);
            keeps(&flooded(limit, store, scale(keys), seed), &context);
        }
    }
}

fn bucket_keeps(bucket: TokenBucket) -> impl Fn(&Grants, &str) {
    move |grants, context| keeps_to_bucket(bucket, grants, context)
}

fn bucket_scale(bucket: TokenBucket) -> impl Fn(u64) -> Scale {
    move |keys| Scale::of_bucket(bucket, keys)
}

#[test]
fn buckets_in_tables_that_inherit() {
    for bucket in buckets() {
        tables(
            bucket,
            bucket_scale(bucket),
            Overflow::Inherit,
            bucket_keeps(bucket),
        );
    }
}

#[test]
fn buckets_in_tables_that_deny() {
    for bucket in buckets() {
        tables(
            bucket,
            bucket_scale(bucket),
            Overflow::Deny,
            bucket_keeps(bucket),
        );
    }
}

#[test]
fn buckets_in_maps_that_inherit() {
    for bucket in buckets() {
        maps(
            bucket,
            bucket_scale(bucket),
            Overflow::Inherit,
            bucket_keeps(bucket),
        );
    }
}

#[test]
fn buckets_in_maps_that_deny() {
    for bucket in buckets() {
        maps(
            bucket,
            bucket_scale(bucket),
            Overflow::Deny,
            bucket_keeps(bucket),
        );
    }
}

#[test]
fn tracked_buckets_in_stores_that_admit() {
    for bucket in buckets() {
        for ways in [Ways::Four, Ways::Eight] {
            let store = tiny(ways, Overflow::Admit);
            let grants = tracked(bucket, store, Scale::of_bucket(bucket, 8), 5);
            keeps_to_bucket(bucket, &grants, "admit");
        }
        let store = map(20, Overflow::Admit);
        let grants = tracked(bucket, store, Scale::of_bucket(bucket, 20), 5);
        keeps_to_bucket(bucket, &grants, "admit");
    }
}

fn sliding_keeps(limit: SlidingWindow) -> impl Fn(&Grants, &str) {
    let most = usize::try_from(limit.limit()).unwrap();
    move |grants, context| {
        keeps_to_window(ns(limit.window()), most.max(2 * most - 2), grants, context);
    }
}

fn fixed_keeps(limit: FixedWindow) -> impl Fn(&Grants, &str) {
    let most = usize::try_from(limit.limit()).unwrap();
    move |grants, context| {
        keeps_to_window(ns(limit.window()), 2 * most, grants, context);
        if !limit.is_anchored() {
            // And in each window of the clock, half of that.
            let (window_ns, offset_ns) = (ns(limit.window()), ns(limit.offset()));
            for (key, log) in grants {
                for window in
                    log.chunk_by(|a, b| (a - offset_ns) / window_ns == (b - offset_ns) / window_ns)
                {
                    let count = window.len();
                    assert!(count <= most, "{context}, {limit:?}: key {key} got {count}");
                }
            }
        }
    }
}

fn sliding_scale(limit: SlidingWindow) -> impl Fn(u64) -> Scale {
    move |keys| Scale::of_window(limit.limit(), limit.window(), keys)
}

fn fixed_scale(limit: FixedWindow) -> impl Fn(u64) -> Scale {
    move |keys| Scale::of_window(limit.limit(), limit.window(), keys)
}

#[test]
fn windows_in_tables_that_inherit() {
    let limit = sliding();
    tables(
        limit,
        sliding_scale(limit),
        Overflow::Inherit,
        sliding_keeps(limit),
    );
    for limit in fixed() {
        tables(
            limit,
            fixed_scale(limit),
            Overflow::Inherit,
            fixed_keeps(limit),
        );
    }
}

#[test]
fn windows_in_tables_that_deny() {
    let limit = sliding();
    tables(
        limit,
        sliding_scale(limit),
        Overflow::Deny,
        sliding_keeps(limit),
    );
    for limit in fixed() {
        tables(
            limit,
            fixed_scale(limit),
            Overflow::Deny,
            fixed_keeps(limit),
        );
    }
}

#[test]
fn windows_in_maps_that_inherit() {
    let limit = sliding();
    maps(
        limit,
        sliding_scale(limit),
        Overflow::Inherit,
        sliding_keeps(limit),
    );
    for limit in fixed() {
        maps(
            limit,
            fixed_scale(limit),
            Overflow::Inherit,
            fixed_keeps(limit),
        );
    }
}

#[test]
fn windows_in_maps_that_deny() {
    let limit = sliding();
    maps(
        limit,
        sliding_scale(limit),
        Overflow::Deny,
        sliding_keeps(limit),
    );
    for limit in fixed() {
        maps(
            limit,
            fixed_scale(limit),
            Overflow::Deny,
            fixed_keeps(limit),
        );
    }
}

/// An attack on a store that orders windows by their end alone. All of these end at once, so strangers can push out
/// whom they like, and a client that stops short of its limit comes back in the place of one that used less.
#[test]
fn a_window_is_not_escaped_by_coming_back_in_another_slot() {
    let limit = FixedWindow::per_second(1_000);
    let limiter = limiter(limit, tiny(Ways::Eight, Overflow::Inherit));
    let now = at(START);
    for key in 1..=8 {
        assert!(limiter.check_at(&key, now).is_allowed());
    }
    let mut granted = 0;
    for round in 0..8 {
        let left = limiter.apply_at(&0, Request::PEEK, now).remaining();
        let request = Request::take(left.saturating_sub(100));
        granted += limiter.apply_at(&0, request, now).granted();
        for stranger in 0..8 {
            let _ = limiter.check_at(&(1_000 + 8 * round + stranger), now);
        }
    }
    assert!(granted <= 1_000, "{granted} of 1,000 in one window");
}

/// The same against a sliding window: slots whose windows began later outlast the client's, and owe less.
#[test]
fn a_sliding_window_is_not_escaped_either() {
    let limit = SlidingWindow::per_second(100);
    let limiter = limiter(limit, tiny(Ways::Eight, Overflow::Inherit));
    let start = START / SECOND * SECOND;
    for key in 1..=8 {
        let now = at(start + key * 100 * MS);
        assert!(limiter.check_at(&key, now).is_allowed());
    }
    let mut log = Vec::new();
    for ms in 800..5_000 {
        let now = start + ms * MS;
        while limiter.apply_at(&0, Request::PEEK, at(now)).remaining() > 1
            && limiter.check_at(&0, at(now)).is_allowed()
        {
            log.push(now);
        }
        if ms % 10 == 0 {
            let _ = limiter.check_at(&(1_000 + ms), at(now));
        }
    }
    let grants = Grants::from([(0, log)]);
    keeps_to_window(SECOND, 198, &grants, "eight slots");
}

/// An attack on a store that looks at a sample: the client is pushed out by strangers whose sample owes more, and comes
/// back to one that owes less.
#[test]
fn a_bucket_is_not_escaped_by_coming_back_to_another_sample() {
    let bucket = TokenBucket::per_second(10).with_burst(20);
    let now = at(START);
    for client in 1_000_000..1_000_200 {
        let limiter = limiter(bucket, map(128, Overflow::Inherit));
        let mut granted = limiter.apply_at(&client, Request::take(19), now).granted();
        for (keys, cost) in [(1..65_u64, 20), (65..200, 1), (10_000..10_400, 1)] {
            for key in keys {
                let _ = limiter.apply_at(&key, Request::take(cost), now);
            }
        }
        granted += limiter.apply_at(&client, Request::up_to(20), now).granted();
        assert!(granted <= 20, "{granted} of 20 at one instant");
    }
}
