//! Cases that some rate limiter in the field got wrong, each with its right answer: a table of
//! situations (`S`) and of faults found in published limiters (`F`).
//!
//! A row that does not apply to a part that exists says why. Every number appears exactly once.

mod bucket;
mod clocks;
mod keyed;
mod rates;
mod stores;
mod waiting;
mod windows;

use std::panic::catch_unwind;
use std::time::Duration;

use ratekeeper::{Decision, Outcome, Timestamp};

/// A row of the table.
enum Row {
    /// The situation, and the test of its right answer.
    Check(&'static str, &'static str, fn()),
    /// Not a matter for what this crate contains, and why.
    Elsewhere(&'static str, &'static str),
}
use Row::{Check, Elsewhere};

#[test]
fn every_scenario_has_its_right_answer() {
    let rows: Vec<Row> = [
        bucket::ROWS,
        clocks::ROWS,
        keyed::ROWS,
        rates::ROWS,
        stores::ROWS,
        waiting::ROWS,
        windows::ROWS,
        ELSEWHERE,
    ]
    .into_iter()
    .flatten()
    .map(|row| match *row {
        Check(id, what, test) => Check(id, what, test),
        Elsewhere(id, why) => Elsewhere(id, why),
    })
    .collect();

    let mut ids: Vec<_> = rows
        .iter()
        .map(|row| match row {
            Check(id, ..) | Elsewhere(id, _) => *id,
        })
        .collect();
    ids.sort_unstable();
    let expected: Vec<_> = (1..=25)
        .map(|i| format!("F{i:02}"))
        .chain((1..=48).map(|i| format!("S{i:02}")))
        .collect();
    assert_eq!(ids, expected, "each number once");

    let mut wrong = Vec::new();
    for row in rows {
        match row {
            Check(id, what, test) => {
                println!("{id}  {what}");
                if catch_unwind(test).is_err() {
                    wrong.push(id);
                }
            }
            Elsewhere(id, why) => println!("{id}  elsewhere: {why}"),
        }
    }
    assert!(wrong.is_empty(), "wrong answers: {wrong:?}");
}

const ELSEWHERE: &[Row] = &[
    Elsewhere("S27", "no algorithm here refills at intervals"),
    Elsewhere("S28", "no algorithm here refills at intervals"),
    Elsewhere("S44", "jitter is the caller's"),
    Elsewhere(
        "F08",
        "no queue to be unfair: a place in line is an instant (S25, F06)",
    ),
    Elsewhere(
        "F09",
        "no queue to wedge: a place in line is an instant (S25, F06)",
    ),
];

const SECOND: Duration = Duration::from_secs(1);

fn s(seconds: u64) -> Timestamp {
    ms(seconds * 1_000)
}

fn ms(millis: u64) -> Timestamp {
    Timestamp::ZERO + Duration::from_millis(millis)
}

fn ns(nanos: u64) -> Timestamp {
    Timestamp::from_nanos(nanos)
}

#[track_caller]
fn assert_allowed(decision: &Decision, remaining: u64) {
    assert_eq!(
        (decision.outcome(), decision.remaining()),
        (Outcome::Allowed, remaining)
    );
}

#[track_caller]
fn assert_denied(decision: &Decision, retry_after: Duration) {
    assert_eq!(decision.outcome(), Outcome::Denied { retry_after });
}
