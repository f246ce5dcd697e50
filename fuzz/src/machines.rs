//! One limit and one key, any requests, readings in both directions.

use arbitrary::{Result, Unstructured};
use ratekeeper::{
    Algorithm, Decision, FixedWindow, Outcome, Receipt, Request, SlidingLog, Timestamp, TokenBucket,
};

use crate::bucket::{Expected, Numbers, expected};
use crate::input;

/// Runs a machine beside its definition.
pub fn machines(data: &[u8]) {
    let mut u = Unstructured::new(data);
    let _ = run(&mut u);
}

fn run(u: &mut Unstructured<'_>) -> Result<()> {
    match u.int_in_range(0..=4)? {
        0 | 1 => exact_bucket(u),
        2 => laws(u, |u| input::bucket(u, true)),
        3 => log(u),
        _ => {
            if u.arbitrary()? {
                laws(u, input::sliding_window)
            } else {
                fixed(u)
            }
        }
    }
}

const fn at(now_ns: u64) -> Timestamp {
    Timestamp::from_nanos(now_ns)
}

fn nanos(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Every decision of a bucket against exact fractions.
fn exact_bucket(u: &mut Unstructured<'_>) -> Result<()> {
    let limit = input::bucket(u, false)?;
    if Numbers::of(&limit).is_dense() {
        return Ok(());
    }
    let mut state = input::number(u, 200, false)?;
    let mut now_ns = input::number(u, 200, false)?;
    let mut receipts: Vec<Receipt> = Vec::new();
    while !u.is_empty() {
        now_ns = input::reading(u, now_ns, true)?;
        if u.ratio(1_u8, 5)? && !receipts.is_empty() {
            let receipt = receipts.swap_remove(u.choose_index(receipts.len())?);
            give_back(
                &limit,
                now_ns,
                &mut state,
                receipt,
                input::number(u, 8, false)?,
            );
            continue;
        }
        let request = input::take(u, false)?;
        let want = expected(&limit, state, now_ns, &request);
        let before = state;
        let step = limit.step(at(now_ns), &mut state, &request);
        let decision = &step.decision;
        let got = Expected {
            tat_ns: state,
            granted: decision.is_allowed().then_some(decision.granted()),
            too_large: decision.outcome() == Outcome::TooLarge,
            wait_ns: nanos(decision.wait()),
        };
        assert_eq!(got, want, "{limit} at {now_ns} from {before}: {request:?}");
        assert_eq!(step.keep.is_some(), state != before);
        honest(&limit, now_ns, &state, &request, decision);
        if decision.granted() > 0 {
            receipts.push(step.decision.into_receipt());
        }
    }
    Ok(())
}

/// A refund takes no more back than it says, nothing that has refilled, and nothing beside a line.
fn give_back(limit: &TokenBucket, now_ns: u64, state: &mut u64, receipt: Receipt, cost: u64) {
    let numbers = Numbers::of(limit);
    let before = *state;
    let (after, run_at) = (receipt.mark(), receipt.run_at_ns());
    let charged = cost.min(receipt.charged());
    let step = limit.step(at(now_ns), state, &Request::refund(cost, receipt));
    assert!(step.decision.is_allowed());
    assert!(*state <= before, "a refund charges nothing");
    let given = numbers.seen(before.into()) - numbers.seen((*state).into());
    assert!(
        given <= i128::from(charged) * numbers.p,
        "{given} for {charged} of {limit}"
    );
    let now = i128::from(now_ns);
    let owed = numbers.seen(before.into());
    let has_line = owed > numbers.seen(now) + numbers.burst * numbers.p;
    if before != after && (now_ns < run_at || has_line) {
        assert_eq!(*state, before, "others stand behind it");
    }
    if now_ns >= run_at && after <= now_ns {
        assert_eq!(*state, before, "it has refilled");
    }
    if before == after && now_ns < after && charged > 0 {
        assert!(*state < before, "the last charge comes back");
    }
}

/// What holds for every algorithm: a promise, the largest cost, what is written.
fn laws<A: Algorithm>(
    u: &mut Unstructured<'_>,
    limit: impl FnOnce(&mut Unstructured<'_>) -> Result<A>,
) -> Result<()> {
    let limit = limit(u)?;
    let mut state = A::State::default();
    let mut now_ns = input::number(u, 200, true)?;
    let mut receipts: Vec<Receipt> = Vec::new();
    while !u.is_empty() {
        now_ns = input::reading(u, now_ns, true)?;
        let request = if u.ratio(1_u8, 5)? && !receipts.is_empty() {
            let receipt = receipts.swap_remove(u.choose_index(receipts.len())?);
            Request::refund(input::number(u, 8, true)?, receipt)
        } else {
            input::take(u, true)?
        };
        let before = state.clone();
        let step = limit.step(at(now_ns), &mut state, &request);
        if step.keep.is_none() {
            assert!(
                before == state,
                "unchanged means untouched: {limit:?} {request:?}"
            );
        }
        if !step.decision.is_allowed() {
            assert!(
                before == state,
                "a refusal writes nothing: {limit:?} {request:?}"
            );
        }
        honest(&limit, now_ns, &state, &request, &step.decision);
        if step.decision.granted() > 0 {
            receipts.push(step.decision.into_receipt());
        }
    }
    Ok(())
}

fn passes<A: Algorithm>(limit: &A, now_ns: u64, state: &A::State, request: &Request) -> bool {
    limit
        .step(at(now_ns), &mut state.clone(), request)
        .decision
        .is_allowed()
}

/// The wait is a promise, `remaining` the largest cost, `reset_after` zero exactly for what is as good as new.
fn honest<A: Algorithm>(
    limit: &A,
    now_ns: u64,
    state: &A::State,
    request: &Request,
    decision: &Decision,
) {
    if let Some(wait) = decision.retry_after() {
        let wait_ns = nanos(wait);
        assert!(wait_ns > 0);
        if let Some(then_ns) = now_ns.checked_add(wait_ns) {
            assert!(
                passes(limit, then_ns, state, request),
                "{limit:?} {request:?} {state:?} at {now_ns}: {wait_ns}"
            );
        }
        if let Some(early_ns) = now_ns.checked_add(wait_ns - 1) {
            assert!(
                !passes(limit, early_ns, state, request),
                "{limit:?} {request:?} {state:?} at {now_ns}: {wait_ns}"
            );
        }
    }
    let remaining = decision.remaining();
    assert!(passes(limit, now_ns, state, &Request::take(remaining)));
    if let Some(more) = remaining.checked_add(1) {
        assert!(
            !passes(limit, now_ns, state, &Request::take(more)),
            "{limit:?} {state:?} at {now_ns}: more than {remaining}"
        );
    }
    let peek = limit.step(at(now_ns), &mut state.clone(), &Request::PEEK);
    assert!(peek.keep.is_none());
    if peek.decision.reset_after().is_zero() {
        let mut fresh = <A::State as Default>::default();
        let mut old = state.clone();
        let all = Request::take(decision.limit());
        let same = |state: &mut A::State| {
            let decision = limit.step(at(now_ns), state, &all).decision;
            (
                decision.is_allowed(),
                decision.remaining(),
                decision.reset_after(),
            )
        };
        assert_eq!(
            same(&mut old),
            same(&mut fresh),
            "{limit:?} {state:?} at {now_ns} is as good as new"
        );
    }
}

/// The exact log against a list of every admitted instant.
fn log(u: &mut Unstructured<'_>) -> Result<()> {
    let limit: SlidingLog = input::sliding_log(u)?;
    let window_ns = nanos(limit.window());
    let mut state = Default::default();
    let mut now_ns = input::number(u, 200, false)?;
    let mut admitted: Vec<u64> = Vec::new();
    while !u.is_empty() {
        now_ns = input::reading(u, now_ns, true)?;
        let cost = u.int_in_range(0..=7)?;
        let at_ns = admitted.last().copied().unwrap_or(0).max(now_ns);
        let inside = admitted.iter().filter(|t| **t + window_ns > at_ns).count() as u64;
        let room = u64::from(limit.limit()) - inside;
        let step = limit.step(at(now_ns), &mut state, &Request::take(cost));
        assert_eq!(
            step.decision.is_allowed(),
            cost <= room,
            "{limit} {cost} at {now_ns}: {admitted:?}"
        );
        honest(&limit, now_ns, &state, &Request::take(cost), &step.decision);
        if step.decision.is_allowed() {
            admitted.extend((0..cost).map(|_| at_ns));
        }
    }
    Ok(())
}

/// Fixed windows against a count for each.
fn fixed(u: &mut Unstructured<'_>) -> Result<()> {
    let limit: FixedWindow = input::fixed_window(u)?;
    let window_ns = nanos(limit.window());
    let mut state = 0;
    let mut now_ns = input::number(u, 200, false)?;
    let mut open: Option<(u64, u64)> = None; // begin and count
    while !u.is_empty() {
        now_ns = input::reading(u, now_ns, true)?;
        let cost = u.int_in_range(0..=7)?;
        let at_ns = open.map_or(now_ns, |(begin, _)| begin.max(now_ns));
        let begin = match open {
            Some((begin, _)) if limit.is_anchored() && at_ns < begin + window_ns => begin,
            _ if limit.is_anchored() => at_ns,
            _ => at_ns / window_ns * window_ns,
        };
        let count = open
            .filter(|(opened, _)| *opened == begin)
            .map_or(0, |(_, count)| count);
        let step = limit.step(at(now_ns), &mut state, &Request::take(cost));
        let passes = count + cost <= u64::from(limit.limit());
        assert_eq!(
            step.decision.is_allowed(),
            passes || cost == 0,
            "{limit} {cost} at {now_ns}: {open:?}"
        );
        honest(&limit, now_ns, &state, &Request::take(cost), &step.decision);
        if step.decision.is_allowed() && cost > 0 {
            open = Some((begin, count + cost));
        }
    }
    Ok(())
}
