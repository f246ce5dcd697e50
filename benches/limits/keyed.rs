//! One limit per key: `KeyedLimiter` on each store against governor's on dashmap.

use std::hint::black_box;

use criterion::measurement::WallTime;
use criterion::{BatchSize, BenchmarkGroup, BenchmarkId, Criterion};
use ratekeeper::{DashStore, KeyedLimiter, StdClock, TableStore};

use crate::common::{LASTING, keys, peers, shuffled};

/// Keys that are there already, visited in random order.
pub(crate) fn check(c: &mut Criterion) {
    let mut group = c.benchmark_group("KeyedLimiter::check");
    for n in [1_000, 100_000, 1_000_000] {
        let order = shuffled(keys(n));
        let store = DashStore::<u64>::with_capacity(2 * n, StdClock::new());
        let limiter = KeyedLimiter::<u64>::with_store(LASTING, store.expect("a valid capacity"));
        visit(&mut group, "DashStore", &order, |key| {
            limiter.check(key).is_allowed()
        });
        let store: TableStore = TableStore::for_keys(n).expect("a valid capacity");
        let limiter = KeyedLimiter::<u64, _, _>::with_store(LASTING, store);
        visit(&mut group, "TableStore", &order, |key| {
            limiter.check(key).is_allowed()
        });
        let limiter = peers::keyed(peers::lasting());
        visit(&mut group, "governor", &order, |key| {
            limiter.check_key(key).is_ok()
        });
    }
    group.finish();
}

fn visit(
    group: &mut BenchmarkGroup<'_, WallTime>,
    name: &str,
    order: &[u64],
    check: impl Fn(&u64) -> bool,
) {
    assert!(order.iter().all(&check));
    group.bench_function(BenchmarkId::new(name, order.len()), |b| {
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
