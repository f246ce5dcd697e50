//! One limit: `Limiter` against governor, `ratelimit` and `leaky-bucket`.

use std::hint::black_box;
use std::time::Duration;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion};
use governor::clock::{DefaultClock, MonotonicClock};
use ratekeeper::{Algorithm, Limiter, Live, SlidingWindow, Timestamp, TokenBucket};

use crate::common::{FRACTIONAL, NEVER_EMPTY, SPENT, SPENT_FRACTIONAL, STRIDE, WHOLE, peers};

const HOUR: Duration = Duration::from_secs(3_600);

/// The caller has read the clock already.
pub(crate) fn check_at(c: &mut Criterion) {
    let mut group = c.benchmark_group("Limiter::check_at");
    at(&mut group, "whole", WHOLE);
    at(&mut group, "fractional", FRACTIONAL);
    at(&mut group, "window", SlidingWindow::per_minute(1_000));
    for (name, limit) in [("whole", SPENT), ("fractional", SPENT_FRACTIONAL)] {
        denied(&mut group, &format!("{name}, denied"), limit);
    }
    group.finish();
}

/// The same for limits that can change at run time: never changed yet, changed before the first request, and changed three
/// times since a key was last allowed.
pub(crate) fn live(c: &mut Criterion) {
    let mut group = c.benchmark_group("Limiter<Live>::check_at");
    let set = |limit: TokenBucket, changes: u64| {
        let live = Live::new(limit);
        // Other limits on the way, but the same in the end.
        for change in (0..changes).rev() {
            let passing = limit.with_burst(limit.burst() + change);
            live.set_at(passing, Timestamp::ZERO).expect("a bucket");
        }
        live
    };
    for (name, limit) in [("whole", WHOLE), ("fractional", FRACTIONAL)] {
        at(&mut group, &format!("{name}, plain"), limit);
        at(&mut group, &format!("{name}, never changed"), set(limit, 0));
        at(&mut group, &format!("{name}, changed"), set(limit, 2));
    }
    for (name, limit) in [("whole", SPENT), ("fractional", SPENT_FRACTIONAL)] {
        denied(&mut group, &format!("{name}, denied, plain"), limit);
        denied(
            &mut group,
            &format!("{name}, denied, never changed"),
            set(limit, 0),
        );
        denied(
            &mut group,
            &format!("{name}, denied, changed"),
            set(limit, 2),
        );
        let limiter = Limiter::new(Live::new(limit));
        assert!(limiter.check_at(Timestamp::ZERO).is_allowed());
        for burst in [3, 2, 1] {
            let set = limiter.set_at(limit.with_burst(burst), Timestamp::ZERO);
            set.expect("a bucket");
        }
        let limiter = black_box(&limiter);
        group.bench_function(format!("{name}, denied, three changes behind"), |b| {
            b.iter(|| limiter.check_at(black_box(Timestamp::ZERO)).is_allowed());
        });
    }
    group.finish();
}

fn denied<A: Algorithm>(group: &mut BenchmarkGroup<'_, WallTime>, name: &str, limit: A) {
    let limiter = Limiter::new(limit);
    let limiter = black_box(&limiter);
    all(group, name, false, || {
        limiter.check_at(black_box(Timestamp::ZERO)).is_allowed()
    });
}

fn at<A: Algorithm>(group: &mut BenchmarkGroup<'_, WallTime>, name: &str, limit: A) {
    let limiter = Limiter::new(limit);
    group.bench_function(name, |b| {
        let limiter = black_box(&limiter);
        let mut now = Timestamp::ZERO;
        let mut allowed = true;
        b.iter(|| {
            now = now + STRIDE;
            allowed &= black_box(limiter.check_at(black_box(now)).is_allowed());
        });
        assert!(allowed);
    });
}

/// Everybody reads a clock, and everything is allowed.
pub(crate) fn check(c: &mut Criterion) {
    let group = c.benchmark_group("Limiter::check");
    check_group(group, WHOLE, FRACTIONAL, peers::whole(), NEVER_EMPTY);
}

/// Everybody reads a clock, and everything is denied.
pub(crate) fn check_denied(c: &mut Criterion) {
    let group = c.benchmark_group("Limiter::check, denied");
    check_group(group, SPENT, SPENT_FRACTIONAL, peers::spent(), 1);
}

fn check_group(
    mut group: BenchmarkGroup<'_, WallTime>,
    whole: TokenBucket,
    fractional: TokenBucket,
    quota: governor::Quota,
    burst: u32,
) {
    let allowed = burst > 1;
    for (name, limit) in [("whole", whole), ("fractional", fractional)] {
        let limiter = Limiter::new(limit);
        let limiter = black_box(&limiter);
        all(&mut group, name, allowed, || limiter.check().is_allowed());
    }

    let limiter = peers::direct(quota, MonotonicClock);
    let limiter = black_box(&limiter);
    all(&mut group, "governor", allowed, || limiter.check().is_ok());

    #[cfg(feature = "quanta")]
    {
        let limiter = Limiter::with_clock(whole, ratekeeper::QuantaClock::new());
        let limiter = black_box(&limiter);
        all(&mut group, "whole, quanta", allowed, || {
            limiter.check().is_allowed()
        });
    }
    let limiter = peers::direct(quota, DefaultClock::default());
    let limiter = black_box(&limiter);
    all(&mut group, "governor, quanta", allowed, || {
        limiter.check().is_ok()
    });

    // Two atomics; refills at most once a microsecond.
    let limiter = ratelimit::Ratelimiter::builder(1)
        .period(HOUR)
        .max_tokens(burst.into())
        .initial_available(burst.into())
        .build()
        .expect("a valid limit");
    let limiter = black_box(&limiter);
    all(&mut group, "ratelimit", allowed, || {
        limiter.try_wait().is_ok()
    });

    // Reads no clock while it has tokens; takes a lock when it has none.
    let limiter = leaky_bucket::RateLimiter::builder()
        .interval(HOUR)
        .max(burst as usize)
        .initial(burst as usize)
        .build();
    let limiter = black_box(&limiter);
    all(&mut group, "leaky-bucket", allowed, || {
        limiter.try_acquire(1)
    });
    group.finish();
}

/// Benches a check that answers the same every time, once its single token is gone.
fn all(
    group: &mut BenchmarkGroup<'_, WallTime>,
    name: &str,
    expected: bool,
    check: impl Fn() -> bool,
) {
    assert!(check());
    group.bench_function(name, |b| {
        let mut as_expected = true;
        b.iter(|| as_expected &= black_box(check()) == expected);
        assert!(as_expected);
    });
}
