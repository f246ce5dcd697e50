//! Limits that differ on the keys of one store: nobody's debt is forgiven because somebody else is under another limit, by
//! evictions, by sweeps when a map grows, or by pruning. What may be forgotten is what every limit has forgotten: a debt in time
//! that is over.

use std::time::Duration;

use ratekeeper::{
    DashStore, FixedWindow, ManualClock, Outcome, Overflow, Request, SlidingWindow, SlotState,
    TableStore, TokenBucket, Ways,
};

use crate::support::{Bounded, Limiter, MS, SECOND, START, at, limiter, map, table};

const SLOW: TokenBucket = TokenBucket::per_hour(10);
const FAST: TokenBucket = TokenBucket::per_second(1_000);

/// Drains keys under the slow limit, then lets newcomers come under the fast one; within the hour, no drained key may pass more
/// than the slow limit's ten and what has refilled.
fn nobody_is_freed<S: Bounded<TokenBucket>>(store: S, sweep: impl Fn(&S)) {
    let limiter = limiter(SLOW, store);
    let mut passed = vec![0; 200];
    for (key, passed) in (0..).zip(&mut passed) {
        let taken = limiter.apply_at(&key, Request::up_to(10), at(START));
        *passed += taken.granted();
    }
    for round in 0..20 {
        for stranger in 0..300 {
            let key = 1_000 + 300 * round + stranger;
            let now = at(START + (round * 300 + stranger) * MS);
            let _ = limiter
                .under(&FAST)
                .apply_at(&key, Request::up_to(1_000), now);
        }
        sweep(limiter.store());
        // Of an hour, some seconds are over: no token of the slow limit has come back.
        for (key, passed) in (0..).zip(&mut passed) {
            let now = at(START + (round + 1) * 300 * MS);
            *passed += limiter.apply_at(&key, Request::up_to(10), now).granted();
        }
    }
    let freed = passed.iter().filter(|passed| **passed > 10).count();
    assert_eq!(freed, 0, "freed of {}: {passed:?}", passed.len());
}

#[test]
fn by_newcomers_in_full_stores() {
    for overflow in [Overflow::Inherit, Overflow::Deny] {
        nobody_is_freed(map(200, overflow), |_| ());
        for ways in [Ways::Four, Ways::Eight] {
            nobody_is_freed(table(200, ways, overflow), |_| ());
        }
    }
}

/// A store in which there is room sweeps when it grows.
#[test]
fn by_sweeps_of_a_map_that_grows() {
    for overflow in [Overflow::Inherit, Overflow::Deny, Overflow::Admit] {
        nobody_is_freed(map(100_000, overflow), |_| ());
    }
}

#[test]
fn by_pruning() {
    for limit in [SLOW, FAST] {
        let prune = |store: &DashStore<u64, TokenBucket, ManualClock>| {
            store.prune_at(&limit, at(START + 6 * SECOND));
        };
        nobody_is_freed(map(100_000, Overflow::Inherit), prune);
        nobody_is_freed(map(200, Overflow::Inherit), prune);
    }
}

/// The same for windows of one kind and length, which count for each other; all others are refused.
fn no_window_is_freed<A, S>(slow: A, fast: A, others: &[A], store: S, sweep: impl Fn(&S))
where
    A: ratekeeper::Algorithm + Copy,
    A::State: ratekeeper::SameState<A::State>,
    S: Bounded<A>,
{
    let limiter: Limiter<A, S> = limiter(slow, store);
    // The start of an hour of the clock, where aligned windows begin.
    let start = START / (3_600 * SECOND) * (3_600 * SECOND) + 7 * SECOND;
    let mut passed = vec![0; 100];
    for (key, passed) in (0..).zip(&mut passed) {
        *passed += limiter
            .apply_at(&key, Request::up_to(10), at(start))
            .granted();
    }
    for round in 0..20 {
        for stranger in 0..100 {
            let key = 1_000 + 100 * round + stranger;
            let now = at(start + (round * 100 + stranger) * MS);
            let _ = limiter
                .under(&fast)
                .apply_at(&key, Request::up_to(1_000), now);
            for other in others {
                for key in [key, stranger] {
                    let refused = limiter.under(other).apply_at(&key, Request::ONE, now);
                    assert_eq!(refused.outcome(), Outcome::Unsupported);
                }
            }
        }
        sweep(limiter.store());
        for (key, passed) in (0..).zip(&mut passed) {
            let now = at(start + (round + 1) * 100 * MS);
            *passed += limiter.apply_at(&key, Request::up_to(10), now).granted();
        }
    }
    assert!(passed.iter().all(|passed| *passed <= 10), "{passed:?}");
}

fn windows_in_every_store<A>(slow: A, fast: A, others: &[A])
where
    A: ratekeeper::Algorithm<State: SlotState> + Copy,
    A::State: ratekeeper::SameState<A::State>,
{
    let swept = |store: &DashStore<u64, A, ManualClock>| {
        for limit in [slow, fast].iter().chain(others) {
            store.prune_at(limit, at(START + 6 * SECOND));
        }
    };
    for overflow in [Overflow::Inherit, Overflow::Deny] {
        no_window_is_freed(slow, fast, others, map(100, overflow), swept);
        no_window_is_freed(slow, fast, others, map(100_000, overflow), swept);
        for ways in [Ways::Four, Ways::Eight] {
            let table = table(100, ways, overflow);
            no_window_is_freed(
                slow,
                fast,
                others,
                table,
                |_: &TableStore<ManualClock, A>| (),
            );
        }
    }
}

#[test]
fn sliding_windows() {
    windows_in_every_store(
        SlidingWindow::per_hour(10),
        SlidingWindow::per_hour(1_000),
        &[SlidingWindow::per_second(1_000), SlidingWindow::per_day(10)],
    );
}

#[test]
fn fixed_windows() {
    let slow = FixedWindow::per_hour(10);
    windows_in_every_store(
        slow,
        FixedWindow::per_hour(1_000),
        &[
            FixedWindow::per_second(1_000),
            slow.anchored(),
            slow.with_offset(Duration::from_secs(1)),
        ],
    );
}

/// A full store under `Deny` and a clock that was set back by an hour: newcomers who obey the wait that they are told pass after
/// it, all of them.
#[test]
fn newcomers_who_obey_their_wait_are_admitted() {
    fn obey<S: Bounded<TokenBucket>>(store: S) {
        let limiter = limiter(TokenBucket::per_minute(5), store);
        for key in 0..400 {
            let _ = limiter.apply_at(&key, Request::take(5), at(START + key * SECOND / 16));
        }
        let mut refused = 0;
        for newcomer in 0..31 {
            let now = START - 3_600 * SECOND + newcomer;
            let key = 1_000_000 + newcomer;
            if let Some(wait) = limiter.check_at(&key, at(now)).retry_after() {
                refused += 1;
                assert!(limiter.check_at(&key, at(now) + wait).is_allowed());
            }
        }
        assert!(refused > 10, "the store was not full: {refused}");
    }
    obey(map(64, Overflow::Deny));
    for ways in [Ways::Four, Ways::Eight] {
        obey(table(64, ways, Overflow::Deny));
    }
}

/// One key, two bursts in turn, time standing still (a rolling deploy, two routes): the larger burst, in every store.
#[test]
fn two_bursts_in_turn_on_one_key() {
    fn in_turn<S: Bounded<TokenBucket>>(store: S) {
        let limits = [20, 5].map(|burst| TokenBucket::per_second(10).with_burst(burst));
        let limiter = limiter(limits[0], store);
        let asks = (0..10_000).map(|i| limiter.under(&limits[i % 2]).check_at(&7, at(START)));
        assert_eq!(asks.filter(ratekeeper::Decision::is_allowed).count(), 20);
        // A refused call under a smaller limit forgives nothing, either.
        let (large, small) = (
            TokenBucket::per_minute(1_000),
            TokenBucket::per_minute(10).with_burst(2),
        );
        assert!(
            limiter
                .under(&large)
                .apply_at(&8, Request::take(1_000), at(START))
                .is_allowed()
        );
        assert!(!limiter.under(&small).check_at(&8, at(START)).is_allowed());
        let left = limiter.under(&large).apply_at(&8, Request::PEEK, at(START));
        assert_eq!(left.remaining(), 0);
        // Nor does an instant further back.
        let ten = TokenBucket::per_second(1).with_burst(10);
        let instants = (0..1_000).map(|i| START - (i % 2) * 10 * SECOND);
        let asks = instants.map(|now| limiter.under(&ten).check_at(&9, at(now)));
        assert_eq!(asks.filter(ratekeeper::Decision::is_allowed).count(), 10);
    }
    in_turn(map(64, Overflow::Inherit));
    in_turn(DashStore::with_clock(ManualClock::new()));
    in_turn(table(64, Ways::Four, Overflow::Inherit));
}

/// Moving a key over a store is the change of its state, and of nobody else's; a newcomer that takes a stranger's debt over is
/// not freed of it by a change.
#[test]
fn a_change_moves_the_key_alone() {
    fn moves<S: Bounded<TokenBucket>>(store: S, full: u64) {
        let limiter = limiter(SLOW, store);
        let clock_reads = at(0); // the stores' clocks stand still
        for key in 0..full {
            let _ = limiter.apply_at(&key, Request::up_to(10), clock_reads);
        }
        let held = |key: u64| {
            limiter
                .apply_at(&key, Request::PEEK, clock_reads)
                .reset_after()
        };
        let before: Vec<_> = (0..full).map(held).collect();
        let report = limiter.change(&3, &SLOW, &FAST);
        assert_eq!(report.remaining(), 0);
        assert_eq!(
            (report.limit(), report.reset_after()),
            (1_000, Duration::from_secs(1))
        );
        for (key, before) in (0..full).zip(before).filter(|(key, _)| *key != 3) {
            assert_eq!(held(key), before);
        }
        // A key that is not there has nothing to change, and gets no place.
        let counts = limiter.store().counts();
        let absent = limiter.change(&1_000_000, &SLOW, &FAST);
        assert!(absent.is_allowed());
        assert_eq!(limiter.store().counts(), counts);
    }
    moves(map(64, Overflow::Inherit), 30);
    moves(table(64, Ways::Eight, Overflow::Inherit), 10);
}
