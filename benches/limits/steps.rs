//! The algorithms alone: no atomics, no clock.

use std::hint::black_box;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion};
use ratekeeper::{
    Algorithm, All, AnyAlgorithm, FixedWindow, Request, SlidingLog, SlidingWindow, Timestamp,
    TokenBucket,
};

use crate::common::{DENSE, FRACTIONAL, STRIDE, WHOLE};

pub(crate) fn bench(c: &mut Criterion) {
    let mut group = c.benchmark_group("step");
    step(&mut group, "TokenBucket whole", WHOLE);
    step(&mut group, "TokenBucket fractional", FRACTIONAL);
    step(&mut group, "TokenBucket dense", DENSE);
    step(
        &mut group,
        "SlidingWindow",
        SlidingWindow::per_minute(1_000),
    );
    step(&mut group, "SlidingLog", SlidingLog::per_minute(1_000));
    step(&mut group, "FixedWindow", FixedWindow::per_minute(1_000));
    step(&mut group, "All of two", All([WHOLE, FRACTIONAL]));
    step(
        &mut group,
        "All of bucket and window",
        All((WHOLE, SlidingWindow::per_minute(1_000))),
    );
    let chosen: [(&str, AnyAlgorithm); 2] = [
        ("AnyAlgorithm bucket", WHOLE.into()),
        (
            "AnyAlgorithm window",
            SlidingWindow::per_minute(1_000).into(),
        ),
    ];
    for (name, limit) in chosen {
        step(&mut group, name, limit);
    }
    denied(&mut group, "TokenBucket whole, denied", WHOLE.with_burst(1));
    denied(
        &mut group,
        "TokenBucket fractional, denied",
        FRACTIONAL.with_burst(1),
    );
    group.finish();
}

fn step<A: Algorithm>(group: &mut BenchmarkGroup<'_, WallTime>, name: &str, limit: A) {
    group.bench_function(name, |b| {
        let limit = black_box(&limit);
        let mut state = A::State::default();
        let mut now = Timestamp::ZERO + STRIDE;
        let mut allowed = true;
        b.iter(|| {
            now = now + STRIDE;
            let step = limit.step(black_box(now), black_box(&mut state), &Request::ONE);
            allowed &= black_box(step.decision.is_allowed());
        });
        assert!(allowed);
    });
}

fn denied(group: &mut BenchmarkGroup<'_, WallTime>, name: &str, limit: TokenBucket) {
    group.bench_function(name, |b| {
        let limit = black_box(&limit);
        let mut tat = 0;
        let now = Timestamp::ZERO + STRIDE;
        let first = limit.step(now, &mut tat, &Request::ONE);
        let mut allowed = !first.decision.is_allowed();
        b.iter(|| {
            let step = limit.step(black_box(now), black_box(&mut tat), &Request::ONE);
            allowed |= black_box(step.decision.is_allowed());
        });
        assert!(!allowed);
    });
}
