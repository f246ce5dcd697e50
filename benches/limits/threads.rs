//! One thread and two, on keys of their own in one store; the time is for one thread's share.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion};
use ratekeeper::{KeyedLimiter, TableStore};

use crate::common::{LASTING, keys, peers, shuffled, threads};

type Visit<'a> = &'a (dyn Fn(&[u64]) + Sync);

const KEYS: usize = 100_000;

pub(crate) fn bench(c: &mut Criterion) {
    let mut group = c.benchmark_group("keys of their own");
    let order = shuffled(keys(KEYS));
    let limiter = KeyedLimiter::<u64>::new(LASTING);
    let store: TableStore = TableStore::for_keys(KEYS).expect("a valid capacity");
    let table = KeyedLimiter::<u64, _, _>::with_store(LASTING, store);
    let governor = peers::keyed(peers::lasting());
    let checks: [(&str, Visit<'_>); 3] = [
        ("DashStore", &|keys| {
            for key in keys {
                assert!(black_box(limiter.check(key).is_allowed()));
            }
        }),
        ("TableStore", &|keys| {
            for key in keys {
                assert!(black_box(table.check(key).is_allowed()));
            }
        }),
        ("governor", &|keys| {
            for key in keys {
                assert!(black_box(governor.check_key(key).is_ok()));
            }
        }),
    ];
    for (name, check) in checks {
        check(&order);
        for count in [1, 2] {
            group.bench_function(BenchmarkId::new(name, count), |b| {
                let shares: Vec<&[u64]> = order.chunks(KEYS / 2).collect();
                b.iter_custom(|rounds| {
                    threads::run(count, |i| {
                        for _ in 0..rounds {
                            check(shares[i]);
                        }
                    })
                });
            });
        }
    }
    group.finish();
}
