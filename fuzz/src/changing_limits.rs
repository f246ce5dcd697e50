//! One key under limits that differ from call to call: what each of them admits, and all together, counted over every span.

use std::time::Duration;

use arbitrary::{Result, Unstructured};
use ratekeeper::{Algorithm, Carry, Request, Timestamp, TokenBucket};

use crate::bucket::Numbers;
use crate::input;

/// Tokens that a limit let pass, and when they ran.
struct Ran {
    limit: usize,
    at_ns: i128,
    tokens: i128,
}

/// Asks under several limits in any order, and counts.
pub fn changing_limits(data: &[u8]) {
    let mut u = Unstructured::new(data);
    let _ = run(&mut u);
}

fn run(u: &mut Unstructured<'_>) -> Result<()> {
    let mut limits: Vec<TokenBucket> = Vec::new();
    for _ in 0..u.int_in_range(2..=4)? {
        limits.push(input::bucket(u, false)?);
    }
    let mut state = 0;
    let mut now_ns = input::number(u, 200, false)?;
    let (mut ran, mut turns, mut last) = (Vec::new(), 0_i128, usize::MAX);
    while !u.is_empty() && ran.len() < 200 {
        now_ns = input::reading(u, now_ns, false)?;
        let which = u.choose_index(limits.len())?;
        let limit = &limits[which];
        let mut request = input::take(u, false)?;
        if input::is_charge(&request) && Numbers::of(limit).is_dense() {
            // A charge is rounded up to a whole nanosecond once, its tokens one by one would each be.
            request = Request::ONE;
        }
        let before = state;
        let step = limit.step(Timestamp::from_nanos(now_ns), &mut state, &request);
        let decision = step.decision;
        assert_eq!(step.keep.is_some(), state != before);
        if !decision.is_allowed() {
            assert_eq!(state, before, "no refusal writes");
        }
        assert!(
            state >= before,
            "no take forgives: {limit} at {now_ns} from {before}"
        );
        if decision.granted() > 0 {
            turns += i128::from(last != which);
            last = which;
            if input::is_charge(&request) {
                // Work already done counts token by token, each when it would have had its turn.
                ran.extend(
                    turns_of(limit, before, now_ns, decision.granted()).map(|at_ns| Ran {
                        limit: which,
                        at_ns,
                        tokens: 1,
                    }),
                );
            } else {
                ran.push(Ran {
                    limit: which,
                    at_ns: i128::from(now_ns) + nanos(decision.wait()),
                    tokens: decision.granted().into(),
                });
            }
        }
    }
    for (which, limit) in limits.iter().enumerate() {
        own_bound(limit, &ran, which);
    }
    all_together(&limits, &ran, turns);
    change_keeps_tokens(&limits, state, now_ns);
    Ok(())
}

fn nanos(duration: Duration) -> i128 {
    i128::try_from(duration.as_nanos()).unwrap_or(i128::MAX)
}

/// When single reservations would run, one after the other.
fn turns_of(
    limit: &TokenBucket,
    mut state: u64,
    now_ns: u64,
    tokens: u64,
) -> impl Iterator<Item = i128> {
    let patient = limit.with_max_wait(Duration::from_secs(1));
    (0..tokens).map(move |_| {
        let reserve = Request::ONE.or_wait(Duration::from_secs(1));
        let step = patient.step(Timestamp::from_nanos(now_ns), &mut state, &reserve);
        assert!(step.decision.is_allowed());
        i128::from(now_ns) + nanos(step.decision.wait())
    })
}

/// No closed span holds more of a limit's tokens than its burst and what flows back in it, whatever the others take.
fn own_bound(limit: &TokenBucket, ran: &[Ran], which: usize) {
    let numbers = Numbers::of(limit);
    let slack = if numbers.is_whole() || numbers.is_dense() {
        0
    } else {
        numbers.n + numbers.p % numbers.n - 1
    };
    let own: Vec<_> = ran.iter().filter(|ran| ran.limit == which).collect();
    for first in &own {
        for last in &own {
            let span_ns = last.at_ns - first.at_ns;
            if span_ns < 0 {
                continue;
            }
            let inside = |ran: &&&Ran| (first.at_ns..=last.at_ns).contains(&ran.at_ns);
            let tokens: i128 = own.iter().filter(inside).map(|ran| ran.tokens).sum();
            let most = numbers.burst * numbers.p + numbers.n * span_ns + slack;
            assert!(
                tokens * numbers.p <= most,
                "{limit}: {tokens} in {span_ns} ns"
            );
        }
    }
}

/// The time that all tokens together take: no more than the span and the largest capacity, and 2 ns for each turn.
fn all_together(limits: &[TokenBucket], ran: &[Ran], turns: i128) {
    // All rates as whole numbers: tokens per period are at most 12.
    const COMMON: i128 = 27_720;
    let (Some(first), Some(last)) = (
        ran.iter().map(|ran| ran.at_ns).min(),
        ran.iter().map(|ran| ran.at_ns).max(),
    ) else {
        return;
    };
    let spent: i128 = ran
        .iter()
        .map(|ran| {
            let numbers = Numbers::of(&limits[ran.limit]);
            ran.tokens * numbers.p * (COMMON / numbers.n)
        })
        .sum();
    let capacities = limits.iter().map(|limit| Numbers::of(limit).capacity_ns());
    let most_ns = last - first + capacities.max().unwrap_or(0) + 2 * (turns + 1);
    assert!(
        spent <= most_ns * COMMON,
        "{spent} of {} in {} ns",
        most_ns * COMMON,
        last - first
    );
}

/// A change at this instant keeps whole tokens, at most as many as the new limit holds, and never lowers a TAT below now.
fn change_keeps_tokens(limits: &[TokenBucket], state: u64, now_ns: u64) {
    let now = Timestamp::from_nanos(now_ns);
    let remaining = |limit: &TokenBucket, mut state: u64| {
        limit
            .step(now, &mut state, &Request::PEEK)
            .decision
            .remaining()
    };
    for pair in limits.windows(2) {
        let (old, new) = (&pair[0], &pair[1]);
        let mut changed = state;
        assert!(new.change(now, &mut changed, old, Carry::Tokens));
        let (had, has) = (remaining(old, state), remaining(new, changed));
        let most = if had == old.burst() {
            new.burst() // full stays full
        } else {
            had.min(new.burst())
        };
        let is_dense = Numbers::of(new).is_dense() || Numbers::of(old).is_dense();
        assert!(
            has == most || (is_dense && has <= most),
            "{old} to {new} at {now_ns} from {state}: {had} became {has}"
        );
        assert!(changed >= now_ns || changed == state);
        if state <= now_ns {
            assert_eq!(changed, state, "a full bucket stays full");
        }
    }
}
