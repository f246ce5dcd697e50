//! What the atomics alone cost, at both widths.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

use criterion::Criterion;
use portable_atomic::AtomicU128;

use crate::common::floor;

pub(crate) fn bench(c: &mut Criterion) {
    let mut group = c.benchmark_group("floor");
    let word = &AtomicU64::new(0);
    group.bench_function("load and exchange 64 bits", |b| {
        b.iter(|| floor::exchange(word, black_box(100)));
    });
    let word = &AtomicU128::new(0);
    group.bench_function("load and exchange 128 bits", |b| {
        b.iter(|| exchange_128(word, black_box(100)));
    });
    group.finish();
}

fn exchange_128(word: &AtomicU128, by: u128) -> u128 {
    let mut old = word.load(Ordering::Relaxed);
    loop {
        let new = old.wrapping_add(by);
        match word.compare_exchange_weak(old, new, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => return new,
            Err(newer) => old = newer,
        }
    }
}
