//! What is measured against what.

use std::hint::black_box;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use governor::clock::MonotonicClock;
use ratekeeper::{
    Clock, DashStore, Decision, KeyedLimiter, Limiter, MemoryStore, StdClock, TableStore,
    Timestamp, TokenBucket,
};

use crate::common::{
    DENSE, FRACTIONAL, LASTING, SPENT, SPENT_FRACTIONAL, STRIDE, WHOLE, floor, keys, peers,
    scramble, shuffled, threads,
};
use crate::memory::bytes_held;
use crate::table::{Table, Target};

/// Times `calls` calls that must all answer `expected`.
#[inline(always)]
fn timed(calls: u64, expected: bool, mut check: impl FnMut() -> bool) -> Duration {
    let begun = Instant::now();
    let mut as_expected = true;
    for _ in 0..calls {
        as_expected &= black_box(check()) == expected;
    }
    let taken = begun.elapsed();
    assert!(as_expected, "a decision was not the expected one");
    taken
}

/// One limit.
pub(crate) fn direct(table: &mut Table) {
    for (name, limit, most) in [
        (
            "check_at whole / load+exchange",
            WHOLE,
            Target::AtMost(1.15),
        ),
        (
            "check_at fractional / load+exchange",
            FRACTIONAL,
            Target::AtMost(1.9),
        ),
        ("check_at dense / load+exchange", DENSE, Target::None),
    ] {
        check_at(table, name, limit, most);
    }

    for (name, limit, most) in [
        (
            "check whole / clock+load+exchange",
            WHOLE,
            Target::AtMost(1.15),
        ),
        (
            "check fractional / clock+load+exchange",
            FRACTIONAL,
            Target::None,
        ),
    ] {
        let limiter = Limiter::new(limit);
        let limiter = black_box(&limiter);
        let (clock, word) = (StdClock::new(), AtomicU64::new(0));
        let (clock, word) = (black_box(&clock), black_box(&word));
        table.row(
            name,
            most,
            &mut |calls| timed(calls, true, || limiter.check().is_allowed()),
            &mut |calls| {
                timed(calls, true, || {
                    black_box(floor::exchange(word, clock.now().as_nanos())) != 1
                })
            },
        );
    }

    for (name, limit, most) in [
        ("check whole, denied / clock", SPENT, Target::AtMost(1.2)),
        (
            "check fractional, denied / clock",
            SPENT_FRACTIONAL,
            Target::None,
        ),
    ] {
        let limiter = Limiter::new(limit);
        let limiter = black_box(&limiter);
        assert!(limiter.check().is_allowed());
        let clock = StdClock::new();
        let clock = black_box(&clock);
        table.row(
            name,
            most,
            &mut |calls| timed(calls, false, || limiter.check().is_allowed()),
            &mut |calls| timed(calls, false, || clock.now() == Timestamp::ZERO),
        );
    }

    for (name, limit, quota, allowed) in [
        ("check whole / governor", WHOLE, peers::whole(), true),
        (
            "check fractional / governor",
            FRACTIONAL,
            peers::whole(),
            true,
        ),
        (
            "check whole, denied / governor",
            SPENT,
            peers::spent(),
            false,
        ),
        (
            "check fractional, denied / governor",
            SPENT_FRACTIONAL,
            peers::spent(),
            false,
        ),
    ] {
        let limiter = Limiter::new(limit);
        let limiter = black_box(&limiter);
        let governor = peers::direct(quota, MonotonicClock);
        let governor = black_box(&governor);
        assert!(limiter.check().is_allowed() && governor.check().is_ok());
        table.row(
            name,
            Target::Below(1.0),
            &mut |calls| timed(calls, allowed, || limiter.check().is_allowed()),
            &mut |calls| timed(calls, allowed, || governor.check().is_ok()),
        );
    }

    // Somebody who asks through a function that is not inlined gets the whole answer back, which is
    // larger than governor's.
    let limiter = Limiter::new(WHOLE);
    let governor = peers::direct(peers::whole(), MonotonicClock);
    table.row(
        "check whole / governor, both out of line",
        Target::None,
        &mut |calls| {
            timed(calls, true, || {
                out_of_line::ours(black_box(&limiter)).is_allowed()
            })
        },
        &mut |calls| {
            timed(calls, true, || {
                out_of_line::governors(black_box(&governor)).is_ok()
            })
        },
    );
    let clock = StdClock::new();
    let clock = black_box(&clock);
    let mut previous = Instant::now();
    table.row(
        "StdClock / Instant::now",
        Target::None,
        &mut |calls| timed(calls, false, || clock.now() == Timestamp::ZERO),
        &mut |calls| {
            timed(calls, true, || {
                let now = Instant::now();
                std::mem::replace(&mut previous, now) <= now
            })
        },
    );
}

fn check_at(table: &mut Table, name: &str, limit: TokenBucket, target: Target) {
    let limiter = Limiter::new(limit);
    let limiter = black_box(&limiter);
    let word = AtomicU64::new(0);
    let word = black_box(&word);
    let mut now = Timestamp::ZERO;
    table.row(
        name,
        target,
        &mut |calls| {
            let mut at = now;
            let taken = timed(calls, true, || {
                at = at + STRIDE;
                limiter.check_at(black_box(at)).is_allowed()
            });
            now = at;
            taken
        },
        &mut |calls| {
            let mut at = Timestamp::ZERO;
            timed(calls, true, || {
                at = at + STRIDE;
                floor::exchange(word, black_box(at).as_nanos()) != 1
            })
        },
    );
}

mod out_of_line {
    use super::{Decision, Limiter, MonotonicClock, peers};

    #[inline(never)]
    pub(super) fn ours(limiter: &Limiter) -> Decision {
        limiter.check()
    }

    type Refusal = governor::NotUntil<<MonotonicClock as governor::clock::Clock>::Instant>;

    #[inline(never)]
    pub(super) fn governors(limiter: &peers::Direct<MonotonicClock>) -> Result<(), Refusal> {
        limiter.check()
    }
}

/// One limit per key, all keys present, visited in random order.
pub(crate) fn keyed(table: &mut Table) {
    for (n, label, most) in [
        (1_000, "1k", 0.8),
        (100_000, "100k", 0.8),
        (1_000_000, "1M", 0.8),
    ] {
        let name = format!("DashStore, {label} keys / governor");
        hits(table, &name, n, most, dash_store);
    }
    for (n, label, most) in [
        (1_000, "1k", 0.78),
        (100_000, "100k", 0.7),
        (1_000_000, "1M", 0.6),
        (8_000_000, "8M", 0.35),
    ] {
        let name = format!("TableStore, {label} keys / governor");
        hits(table, &name, n, most, table_store);
    }
    new_keys(table);
    flood(table);
}

/// With room for twice the keys: a shard or set that is full by chance would measure something else.
fn dash_store(keys: usize) -> KeyedLimiter<u64> {
    let store = DashStore::with_capacity(2 * keys, StdClock::new());
    KeyedLimiter::with_store(LASTING, store.expect("a valid capacity"))
}

fn table_store(keys: usize) -> KeyedLimiter<u64, TokenBucket, TableStore> {
    let store = TableStore::for_keys(keys);
    KeyedLimiter::with_store(LASTING, store.expect("a valid capacity"))
}

fn hits<S: MemoryStore<u64, TokenBucket>>(
    table: &mut Table,
    name: &str,
    n: usize,
    most: f64,
    make: impl Fn(usize) -> KeyedLimiter<u64, TokenBucket, S>,
) {
    if !table.wants(name) {
        return;
    }
    let n = if table.is_full() { n } else { n / 1_000 };
    let order = shuffled(keys(n));
    let limiter = make(n);
    let governor = peers::keyed(peers::lasting());
    assert!(order.iter().all(|key| limiter.check(key).is_allowed()));
    assert!(order.iter().all(|key| governor.check_key(key).is_ok()));
    let (limiter, governor) = (black_box(&limiter), black_box(&governor));
    // Long enough rounds for each side to find its own lines in the caches again.
    let calls = (n as u64).clamp(20_000, 250_000);
    let (mut ours, mut theirs) = (order.iter().cycle(), order.iter().cycle());
    table.row_of(
        name,
        Target::AtMost(most),
        Some(calls),
        &mut |calls| {
            timed(calls, true, || {
                let key = ours.next().expect("a cycle");
                limiter.check(key).is_allowed()
            })
        },
        &mut |calls| {
            timed(calls, true, || {
                let key = theirs.next().expect("a cycle");
                governor.check_key(key).is_ok()
            })
        },
    );
}

/// Into stores that grow: empty ones.
fn new_keys(table: &mut Table) {
    let name = "DashStore, 10k new keys / governor";
    if !table.wants(name) {
        return;
    }
    let order = shuffled(keys(if table.is_full() { 10_000 } else { 100 }));
    let calls = order.len() as u64;
    table.row_of(
        name,
        Target::None,
        Some(calls),
        &mut |_| {
            let (limiter, mut next) = (KeyedLimiter::<u64>::new(LASTING), order.iter());
            timed(calls, true, || {
                let key = next.next().expect("a key for each call");
                limiter.check(key).is_allowed()
            })
        },
        &mut |_| {
            let (governor, mut next) = (peers::keyed(peers::lasting()), order.iter());
            timed(calls, true, || {
                let key = next.next().expect("a key for each call");
                governor.check_key(key).is_ok()
            })
        },
    );
}

/// Nothing but new keys, into a table in which every key is in debt.
fn flood(table: &mut Table) {
    let name = "TableStore, new keys at the cap / hits";
    let n = if table.is_full() { 100_000 } else { 100 };
    if table.wants(name) {
        let order = shuffled(keys(n));
        let (flooded, calm) = (table_store(n / 2), table_store(n));
        for key in &order {
            assert!(flooded.check(key).is_allowed() && calm.check(key).is_allowed());
        }
        let (flooded, calm) = (black_box(&flooded), black_box(&calm));
        let (mut fresh, mut present) = (n as u64.., order.iter().cycle());
        table.row_of(
            name,
            Target::AtMost(4.0),
            Some(n as u64),
            &mut |calls| {
                timed(calls, true, || {
                    let key = scramble(fresh.next().expect("a number"));
                    flooded.check(&key).is_allowed()
                })
            },
            &mut |calls| {
                timed(calls, true, || {
                    let key = present.next().expect("a cycle");
                    calm.check(key).is_allowed()
                })
            },
        );
    }

    let name = "TableStore, new keys at the cap: p99 / median";
    if table.wants(name) {
        let limiter = table_store(n / 2);
        let mut spans: Vec<Duration> = (0..3 * n as u64)
            .map(|i| {
                let key = scramble(i);
                let begun = Instant::now();
                assert!(limiter.check(black_box(&key)).is_allowed());
                begun.elapsed()
            })
            .skip(n)
            .collect();
        spans.sort();
        // The timer's own cost is in both, and so is whatever interrupts one call in a hundred.
        let nanos = |i: usize| spans[i].as_secs_f64() * 1e9;
        let (p99, median) = (nanos(spans.len() / 100 * 99), nanos(spans.len() / 2));
        table.print(name, Target::AtMost(5.0), (p99, median), p99 / median, None);
    }
}

/// What a second thread brings. The row of separate stores shows what the machine itself allows.
pub(crate) fn threads(table: &mut Table) {
    let n = if table.is_full() { 100_000 } else { 1_000 };
    let order = shuffled(keys(n));
    let shares: Vec<&[u64]> = order.chunks(n / 2).collect();
    let visit = |limiter: &KeyedLimiter<u64>, keys: &[u64]| {
        assert!(
            keys.iter()
                .all(|key| black_box(limiter.check(key).is_allowed()))
        );
    };

    let limiter = KeyedLimiter::<u64>::new(LASTING);
    visit(&limiter, &order);
    speed_up(
        table,
        "two threads / one, keys of their own",
        Target::AtLeast(1.7),
        |i| visit(&limiter, shares[i]),
    );

    let governor = peers::keyed(peers::lasting());
    let visit_governor = |keys: &[u64]| {
        assert!(
            keys.iter()
                .all(|key| black_box(governor.check_key(key).is_ok()))
        );
    };
    visit_governor(&order);
    speed_up(table, "two threads / one, governor", Target::None, |i| {
        visit_governor(shares[i]);
    });

    let limiters = [(); 2].map(|()| KeyedLimiter::<u64>::new(LASTING));
    for (limiter, share) in limiters.iter().zip(&shares) {
        visit(limiter, share);
    }
    speed_up(
        table,
        "two threads / one, stores of their own",
        Target::None,
        |i| {
            visit(&limiters[i], shares[i]);
        },
    );
}

/// Prints nanoseconds per pass over a share of the keys, alone and in company, and how much more gets
/// done in company.
fn speed_up(table: &mut Table, name: &str, target: Target, work: impl Fn(usize) + Sync) {
    if !table.wants(name) {
        return;
    }
    let rounds = if table.is_full() { 150 } else { 1 };
    let (mut alone, mut together) = (Duration::MAX, Duration::MAX);
    for round in 0..rounds {
        // Either share has its turn alone.
        alone = alone.min(threads::run(1, |_| work(round % 2)));
        together = together.min(threads::run(2, &work));
    }
    let (alone, together) = (alone.as_secs_f64() * 1e9, together.as_secs_f64() * 1e9);
    table.print(
        name,
        target,
        (together, alone),
        2.0 * alone / together,
        None,
    );
}

/// Bytes per key, everything included.
#[allow(clippy::cast_precision_loss)] // megabytes
pub(crate) fn memory(table: &mut Table) {
    let name = "bytes per key, DashStore / governor";
    let order = keys(if table.is_full() { 1_000_000 } else { 1_000 });
    let per_key = |bytes: usize| bytes as f64 / order.len() as f64;
    if table.wants(name) {
        let ours = per_key(bytes_held(|| {
            let limiter = dash_store(order.len());
            assert!(order.iter().all(|key| limiter.check(key).is_allowed()));
            limiter
        }));
        let governors = per_key(bytes_held(|| {
            let governor = peers::keyed(peers::lasting());
            assert!(order.iter().all(|key| governor.check_key(key).is_ok()));
            governor
        }));
        let ratio = ours / governors;
        table.print(name, Target::AtMost(1.0), (ours, governors), ratio, None);
    }

    let name = "bytes per key, TableStore / 32";
    if table.wants(name) {
        let bytes = bytes_held(|| table_store(order.len()));
        let ours = per_key(bytes);
        table.print(name, Target::AtMost(1.01), (ours, 32.0), ours / 32.0, None);
        let name = "bytes per slot, TableStore / 16";
        let slots = table_store(order.len()).store().capacity();
        let ours = bytes as f64 / slots as f64;
        table.print(name, Target::AtMost(1.01), (ours, 16.0), ours / 16.0, None);
    }
}
