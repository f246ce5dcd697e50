//! A backend that fails: no decision, and no request counted twice.

use alloc::vec::Vec;
use std::sync::mpsc;
use std::time::Instant;

use super::super::backend::Fault;
use super::super::run::up_to_time;
use super::prelude::*;
use crate::store::Item;

const CAPACITY: u64 = 1_000;
/// What a slow machine may add to a deadline.
const GRACE: Duration = Duration::from_secs(2);
/// Within which time a store finds back to its backend.
const RECOVERY: Duration = Duration::from_secs(20);

/// Where requests do not arrive, they end in [`ErrorKind::NotExecuted`], and nothing is counted.
pub fn refused_requests_count_nothing(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "refused_requests_count_nothing");
    broken_backend(kit, Fault::Refuse, &[ErrorKind::NotExecuted])
}

/// A request whose answer was lost is [`ErrorKind::Unknown`], unless it only read, and counted once at most: nothing that may
/// have been executed is asked again.
pub fn lost_answers_count_at_most_once(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "lost_answers_count_at_most_once");
    broken_backend(
        kit,
        Fault::LoseAnswer,
        &[ErrorKind::Unknown, ErrorKind::NotExecuted],
    )
}

/// A backend that does not answer ends in an error within the deadline.
pub fn hung_requests_end_in_time(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "hung_requests_end_in_time");
    kit.backend()?;
    if subject.deadline().is_none() {
        return Err(kit.lacks(Need::Deadline));
    }
    broken_backend(
        kit,
        Fault::Hang,
        &[ErrorKind::Unknown, ErrorKind::NotExecuted],
    )
}

fn broken_backend(kit: Kit<'_>, fault: Fault, kinds: &[ErrorKind]) -> Checked {
    let backend = kit.backend()?;
    let client = kit.bucket(slow(CAPACITY));
    client
        .take("one while all is well", 1)?
        .allowed()?
        .leaves(CAPACITY - 1)?;
    if !backend.break_with(fault) {
        return Err(kit.lacks(Need::Faults));
    }
    let counts = ask_in_vain(&client, fault, kinds);
    backend.heal();
    let (least, most) = counts?;
    let left = recover(&client)?;
    let counted = CAPACITY - 1 - left;
    kit.is(
        least <= counted && counted <= most,
        format!("requests met {fault:?}; those whose error says that they may have been counted cost {most}"),
        format!("{least} to {most} are counted"),
        counted,
    )?;
    client
        .take("one after the backend is back", 1)?
        .allowed()?
        .leaves(left - 1)?;
    Ok(())
}

/// Asks while the backend is broken. Returns how much was counted at least and at most, by what the errors say.
fn ask_in_vain(
    client: &Client<'_, TokenBucket>,
    fault: Fault,
    kinds: &[ErrorKind],
) -> Result<(u64, u64), Finding> {
    let kit = client.kit;
    let mut most = 0;
    let mut judge = |case, cost, result: Result<Decision, StoreError>| match result {
        Err(error) if kinds.contains(&error.kind()) => {
            if error.kind() == ErrorKind::Unknown {
                most += cost;
            }
            Ok(())
        }
        other => {
            let expected = format!("an error of kind {kinds:?} from a backend broken by {fault:?}");
            Err(kit.broken(case, expected, format!("{other:?}")))
        }
    };
    for (case, cost) in [("a take", 1), ("a large take", 10), ("a peek", 0)] {
        let asked = client
            .store
            .apply_async(&client.key, &client.limit, Request::take(cost));
        judge(case, cost, in_time(kit, case, asked)?)?;
    }
    let mut items =
        [100, 1].map(|cost| Item::new(client.key.as_str(), &client.limit, Request::take(cost)));
    in_time(kit, "a batch", client.store.apply_batch_async(&mut items))?;
    let items = Vec::from(items);
    for (item, cost) in items.into_iter().zip([100, 1]) {
        judge("an item of a batch", cost, item.into_result())?;
    }
    Ok((0, most))
}

/// Runs a future within the subject's deadline, if it has one.
#[allow(clippy::disallowed_methods)] // the deadline itself is the subject
fn in_time<T>(kit: Kit<'_>, case: &str, future: impl Future<Output = T>) -> Result<T, Finding> {
    let deadline = kit.subject.deadline();
    let longest = deadline.map_or(10 * RECOVERY, |deadline| deadline.saturating_add(GRACE));
    let begun = Instant::now();
    let answer = kit.run(up_to_time(longest, future));
    let elapsed = begun.elapsed();
    let late = || {
        kit.broken(
            format!("{case} to a broken backend"),
            format!("an answer within {deadline:?}"),
            format!("{elapsed:?}"),
        )
    };
    answer.filter(|_| elapsed <= longest).ok_or_else(late)
}

/// Waits until the store has found its backend again. Returns what the client has left.
#[allow(clippy::disallowed_methods)] // reconnecting takes real time
fn recover(client: &Client<'_, TokenBucket>) -> Result<u64, Finding> {
    let begun = Instant::now();
    loop {
        match client.try_ask(Request::PEEK) {
            Ok(decision) => return Ok(decision.remaining()),
            Err(error) if begun.elapsed() > RECOVERY => {
                let case = format!("a peek {RECOVERY:?} after the backend was healed");
                return Err(client.kit.broken(case, "a decision", Shown(&error)));
            }
            Err(_) => {
                let (_never, timer) = mpsc::channel::<()>();
                let _ = timer.recv_timeout(ms(20));
            }
        }
    }
}
