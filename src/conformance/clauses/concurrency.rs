//! Many callers at once.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::super::run::join_all;
use super::prelude::*;

const THREADS: u32 = 4;
/// Tasks that share a thread.
const TASKS: u32 = 4;

/// Requests on one bucket, from several threads, tasks and handles, are answered as in some order, one after the other.
pub fn requests_on_a_bucket_are_serial(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "requests_on_a_bucket_are_serial");
    serial(
        kit,
        kit.requests(),
        |space| Some(subject.buckets(space)),
        Need::Clock,
        slow,
    )
}

/// The same for sliding windows.
pub fn requests_on_a_window_are_serial(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "requests_on_a_window_are_serial");
    let limit = |count| SlidingWindow::per(count_of(count), 30 * DAY);
    serial(
        kit,
        kit.requests(),
        |space| subject.windows(space),
        Need::Windows,
        limit,
    )
}

/// The same for fixed windows.
pub fn requests_on_a_fixed_window_are_serial(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "requests_on_a_fixed_window_are_serial");
    let limit = |count| FixedWindow::per(count_of(count), 30 * DAY).anchored();
    serial(
        kit,
        kit.requests(),
        |space| subject.fixed_windows(space),
        Need::FixedWindows,
        limit,
    )
}

/// The same for several limits at once.
pub fn requests_on_several_limits_are_serial(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "requests_on_several_limits_are_serial");
    let limit = |count| All([slow(2 * count), slow(count), slow(3 * count)]);
    serial(
        kit,
        kit.requests(),
        |space| subject.several(space),
        Need::Several,
        limit,
    )
}

/// The same for exact logs.
pub fn requests_on_a_log_are_serial(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "requests_on_a_log_are_serial");
    let limit = |count| SlidingLog::per(count_of(count), 30 * DAY);
    // A log takes longer the more it holds.
    serial(
        kit,
        kit.requests().min(1_000),
        |space| subject.logs(space),
        Need::Logs,
        limit,
    )
}

fn count_of(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// An answer as far as the order of answers goes.
struct Turn {
    cost: u64,
    is_allowed: bool,
    remaining: u64,
}

/// Asks for twice as much as there is. While next to nothing comes back, each allowed request leaves `cost` less than
/// the one before it in the order of the store, and so the answers themselves tell that order; a denial must fit in.
fn serial<A: Algorithm>(
    kit: Kit<'_>,
    requests: u32,
    open: impl Fn(&str) -> Option<DynStore<str, A>>,
    need: Need,
    limit: impl Fn(u64) -> A,
) -> Checked {
    let space = kit.space();
    let per_task = requests / (THREADS * TASKS);
    let capacity = u64::from(per_task * THREADS * TASKS);
    let limit = limit(capacity);
    let first = open(&space).ok_or_else(|| kit.lacks(need))?;
    let second = open(&space).ok_or_else(|| kit.lacks(need))?;
    let turns = Mutex::new(Vec::new());
    let broken = Mutex::new(None);

    let task = |store, number: u32| {
        let (turns, broken, limit) = (&turns, &broken, &limit);
        async move {
            for round in 0..per_task {
                let cost = u64::from((number + round) % 3 + 1);
                match ask(kit, store, limit, cost).await {
                    Ok(Some(turn)) => push(turns, turn),
                    Ok(None) => {}
                    Err(finding) => {
                        *broken.lock().unwrap_or_else(PoisonError::into_inner) = Some(finding);
                        return;
                    }
                }
            }
        }
    };
    thread::scope(|scope| {
        for number in 0..THREADS {
            let store = if number % 2 == 0 { &first } else { &second };
            let task = &task;
            scope.spawn(move || {
                kit.run(join_all(
                    (0..TASKS).map(|place| task(store, number * TASKS + place)),
                ));
            });
        }
    });
    if let Some(finding) = broken.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(finding);
    }

    let mut turns = turns.into_inner().unwrap_or_else(PoisonError::into_inner);
    // What contention left over.
    for cost in [3, 2].into_iter().chain(core::iter::repeat_n(1, 4)) {
        let turn = kit.run(ask(kit, &first, &limit, cost))?;
        turns.extend(turn);
    }
    is_serial(kit, capacity, turns)
}

fn push(turns: &Mutex<Vec<Turn>>, turn: Turn) {
    turns
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(turn);
}

/// `None` if other callers were always faster: then nothing was counted.
async fn ask<A: Algorithm>(
    kit: Kit<'_>,
    store: &DynStore<str, A>,
    limit: &A,
    cost: u64,
) -> Result<Option<Turn>, Finding> {
    match store
        .apply_async("shared", limit, Request::take(cost))
        .await
    {
        Ok(decision) => Ok(Some(Turn {
            cost,
            is_allowed: decision.is_allowed(),
            remaining: decision.remaining(),
        })),
        Err(error) if error.kind() == ErrorKind::Contention => Ok(None),
        Err(error) => Err(kit.broken("many callers at once", "a decision", Shown(&error))),
    }
}

fn is_serial(kit: Kit<'_>, capacity: u64, turns: Vec<Turn>) -> Checked {
    let (mut allowed, denied): (Vec<_>, Vec<_>) =
        turns.into_iter().partition(|turn| turn.is_allowed);
    allowed.sort_unstable_by_key(|turn| (u64::MAX - turn.remaining, turn.cost));
    let mut left = capacity;
    let mut seen = Vec::from([capacity]);
    for turn in allowed {
        let case = format!(
            "{} taken of {left} by one of many callers at once: what is left",
            turn.cost
        );
        kit.equal(case, left.checked_sub(turn.cost), Some(turn.remaining))?;
        left = turn.remaining;
        seen.push(left);
    }
    seen.sort_unstable();
    for turn in denied {
        let (cost, remaining) = (turn.cost, turn.remaining);
        kit.is(
            remaining < cost && seen.binary_search(&remaining).is_ok(),
            format!("{cost} denied to one of many callers at once"),
            "fewer left than that, as after one of the others",
            remaining,
        )?;
    }
    Ok(())
}

/// Takes and refunds at once: what was taken and not given back is what is missing in the end.
pub fn concurrent_refunds_are_counted(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "concurrent_refunds_are_counted");
    let space = kit.space();
    let rounds = kit.requests() / (2 * THREADS * TASKS);
    let capacity = u64::from(rounds * THREADS * TASKS);
    let limit = slow(capacity);
    let store = subject.buckets(&space);
    let kept = AtomicU64::new(0);
    let finding = Mutex::new(None);
    let keep_every_second = |store: &DynStore<str, TokenBucket>, number: u32| {
        let (store, kept, limit) = (store.clone(), &kept, &limit);
        async move {
            for round in 0..rounds {
                let Some(decision) =
                    settled(store.apply_async("shared", limit, Request::ONE).await)?
                else {
                    continue;
                };
                if (round + number) % 2 == 0 {
                    kept.fetch_add(decision.granted(), Ordering::Relaxed);
                    continue;
                }
                let (granted, receipt) = (decision.granted(), decision.into_receipt());
                let refund = Request::refund(1, receipt);
                if settled(store.apply_async("shared", limit, refund).await)?.is_none() {
                    kept.fetch_add(granted, Ordering::Relaxed); // the receipt is spent
                }
            }
            Ok::<(), StoreError>(())
        }
    };
    thread::scope(|scope| {
        for number in 0..THREADS {
            let (task, finding, store) = (&keep_every_second, &finding, &store);
            scope.spawn(move || {
                kit.run(join_all((0..TASKS).map(|place| async move {
                    if let Err(error) = task(store, place + number).await {
                        let need =
                            (error.kind() == ErrorKind::Unsupported).then_some(Need::Refunds);
                        let found = need.map_or_else(
                            || {
                                kit.broken(
                                    "taking and giving back at once",
                                    "a decision",
                                    Shown(&error),
                                )
                            },
                            |need| kit.lacks(need),
                        );
                        *finding.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
                    }
                })));
            });
        }
    });
    if let Some(finding) = finding.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(finding);
    }
    let client = Client::new(kit, store, space, limit).with_key("shared");
    let case = "what is left after taking and giving back from many sides";
    client.peek(case)?.leaves(capacity - kept.into_inner())?;
    Ok(())
}

/// The decision, unless other callers were always faster.
fn settled(result: Result<Decision, StoreError>) -> Result<Option<Decision>, StoreError> {
    match result {
        Err(error) if error.kind() == ErrorKind::Contention => Ok(None),
        other => other.map(Some),
    }
}
