//! Reading a clock: most of the price of a decision.

use std::time::{Instant, SystemTime};

use criterion::Criterion;
use governor::clock::{Clock as _, DefaultClock, MonotonicClock};
use ratekeeper::{Clock, ManualClock, Monotonic, StdClock, UnixClock};

pub(crate) fn bench(c: &mut Criterion) {
    let mut group = c.benchmark_group("clock");
    group.bench_function("Instant::now", |b| b.iter(Instant::now));
    let clock = StdClock::new();
    group.bench_function("StdClock", |b| b.iter(|| clock.now()));
    let clock = Monotonic::new(StdClock::new());
    group.bench_function("Monotonic<StdClock>", |b| b.iter(|| clock.now()));
    group.bench_function("SystemTime::now", |b| b.iter(SystemTime::now));
    group.bench_function("UnixClock", |b| b.iter(|| UnixClock.now()));
    let clock = ManualClock::new();
    group.bench_function("ManualClock", |b| b.iter(|| clock.now()));
    #[cfg(feature = "quanta")]
    {
        let clock = ratekeeper::QuantaClock::new();
        group.bench_function("QuantaClock", |b| b.iter(|| clock.now()));
    }
    let clock = MonotonicClock;
    group.bench_function("governor MonotonicClock", |b| b.iter(|| clock.now()));
    let clock = DefaultClock::default();
    group.bench_function("governor DefaultClock (quanta)", |b| b.iter(|| clock.now()));
    group.finish();
}
