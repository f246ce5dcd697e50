//! One limit per key: `KeyedLimiter` on each store against governor's on dashmap.

use std::hint::black_box;

use criterion::measurement::WallTime;
use criterion::{BatchSize, BenchmarkGroup, BenchmarkId, Criterion};
use ratekeeper::{DashStore, KeyedLimiter, StdClock, TableStore};

use crate::common::{LASTING, keys, peers, scramble, shuffled};

/// Keys that are there already, visited in random order; eight million of them only when it counts.
pub(crate) fn check(c: &mut Criterion) {
    let mut group = c.benchmark_group("KeyedLimiter::check");
    for n in [1_000, 100_000, 1_000_000, 8_000_000] {
        if n <= 1_000_000 || is_measured() {
            every_store(&mut group, &n.to_string(), n, &shuffled(keys(n)));
        }
    }
    group.finish();
}

/// Keys as clients choose them: everybody the same one, or a few of them most of the time.
pub(crate) fn skewed(c: &mut Criterion) {
    let mut group = c.benchmark_group("KeyedLimiter::check, skewed");
    every_store(&mut group, "one hot key", 1_000, &keys(1));
    every_store(
        &mut group,
        "Zipf over 100000",
        100_000,
        &zipf(100_000, 400_000),
    );
    group.finish();
}

/// The same visits to each store, all made for `n` keys.
fn every_store(group: &mut BenchmarkGroup<'_, WallTime>, what: &str, n: usize, order: &[u64]) {
    let store = DashStore::<u64>::with_capacity(2 * n, StdClock::new());
    let limiter = KeyedLimiter::<u64>::with_store(LASTING, store.expect("a valid capacity"));
    visit(group, BenchmarkId::new("DashStore", what), order, |key| {
        limiter.check(key).is_allowed()
    });
    drop(limiter);
    let store: TableStore = TableStore::for_keys(n).expect("a valid capacity");
    let limiter = KeyedLimiter::<u64, _, _>::with_store(LASTING, store);
    visit(group, BenchmarkId::new("TableStore", what), order, |key| {
        limiter.check(key).is_allowed()
    });
    drop(limiter);
    let limiter = peers::keyed(peers::lasting());
    visit(group, BenchmarkId::new("governor", what), order, |key| {
        limiter.check_key(key).is_ok()
    });
}

fn visit(
    group: &mut BenchmarkGroup<'_, WallTime>,
    id: BenchmarkId,
    order: &[u64],
    check: impl Fn(&u64) -> bool,
) {
    assert!(order.iter().all(&check));
    group.bench_function(id, |b| {
        let mut next = order.iter().cycle();
        let mut allowed = true;
        b.iter(|| allowed &= black_box(check(next.next().expect("a cycle"))));
        assert!(allowed);
    });
}

/// Ten thousand keys never seen before, into an empty store; the time is for all of them.
pub(crate) fn insert(c: &mut Criterion) {
    let mut group = c.benchmark_group("10k new keys");
    let order = shuffled(keys(10_000));
    group.bench_function("DashStore", |b| {
        b.iter_batched_ref(
            || KeyedLimiter::<u64>::new(LASTING),
            |limiter| assert!(order.iter().all(|key| limiter.check(key).is_allowed())),
            BatchSize::LargeInput,
        );
    });
    group.bench_function("governor", |b| {
        b.iter_batched_ref(
            || peers::keyed(peers::lasting()),
            |limiter| assert!(order.iter().all(|key| limiter.check_key(key).is_ok())),
            BatchSize::LargeInput,
        );
    });
    group.finish();
}

/// `visits` of `n` keys as real traffic makes them: the `i`-th most popular key comes in proportion to `1/i` (Zipf, exponent 1).
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss
)] // ranks are far below 2^52
fn zipf(n: usize, visits: usize) -> Vec<u64> {
    let uniform = |i: usize| scramble(!(i as u64)) as f64 / u64::MAX as f64;
    let rank = |i| ((n as f64).powf(uniform(i)) as u64 - 1).min(n as u64 - 1);
    (0..visits).map(|i| scramble(rank(i))).collect()
}

/// Whether this is a measurement, not a trial run of everything once.
fn is_measured() -> bool {
    let given = |flag| std::env::args().any(|argument| argument == flag);
    given("--bench") && !given("--test")
}
