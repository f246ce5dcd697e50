//! Limits and requests from arbitrary bytes: small numbers mostly, so that they meet, and sometimes any.

use std::time::Duration;

use arbitrary::{Result, Unstructured};
use ratekeeper::{FixedWindow, Request, SlidingLog, SlidingWindow, TokenBucket};

/// A number up to `most`; one in eight anywhere in 64 bits, if `wide`.
pub(crate) fn number(u: &mut Unstructured<'_>, most: u64, wide: bool) -> Result<u64> {
    if wide && u.ratio(1_u8, 8)? {
        u.arbitrary()
    } else {
        u.int_in_range(0..=most)
    }
}

pub(crate) fn bucket(u: &mut Unstructured<'_>, wide: bool) -> Result<TokenBucket> {
    loop {
        let tokens = number(u, 12, wide)?.max(1);
        let period_ns = number(u, 40, wide)?.max(1);
        let burst = number(u, 6, wide)?.max(1);
        let wait_ns = if u.arbitrary()? {
            number(u, 60, wide)?
        } else {
            0
        };
        if let Ok(limit) = TokenBucket::new(tokens, Duration::from_nanos(period_ns), burst) {
            return Ok(limit.with_max_wait(Duration::from_nanos(wait_ns)));
        }
        if u.is_empty() {
            return Err(arbitrary::Error::NotEnoughData);
        }
    }
}

fn window_numbers(u: &mut Unstructured<'_>) -> Result<(u32, Duration)> {
    let limit = u.int_in_range(1..=6)?;
    let window = Duration::from_nanos(u.int_in_range(1..=40)?);
    Ok((limit, window))
}

pub(crate) fn sliding_window(u: &mut Unstructured<'_>) -> Result<SlidingWindow> {
    let (limit, window) = window_numbers(u)?;
    Ok(SlidingWindow::per(limit, window))
}

pub(crate) fn sliding_log(u: &mut Unstructured<'_>) -> Result<SlidingLog> {
    let (limit, window) = window_numbers(u)?;
    Ok(SlidingLog::per(limit, window))
}

pub(crate) fn fixed_window(u: &mut Unstructured<'_>) -> Result<FixedWindow> {
    let (limit, window) = window_numbers(u)?;
    let fixed = FixedWindow::per(limit, window);
    Ok(if u.arbitrary()? {
        fixed.anchored()
    } else {
        fixed
    })
}

/// A request that takes: all or nothing, part, a reservation, a charge, a peek.
pub(crate) fn take(u: &mut Unstructured<'_>, wide: bool) -> Result<Request> {
    let cost = number(u, 8, wide)?;
    Ok(match u.int_in_range(0..=5)? {
        0 => Request::PEEK,
        1 => Request::up_to(cost),
        2 => Request::up_to(cost).at_least(number(u, 4, false)?),
        3 => Request::take(cost).or_wait(Duration::from_nanos(number(u, 80, wide)?)),
        4 => Request::charge(cost),
        _ => Request::take(cost),
    })
}

/// The next reading: later mostly, or at once, or (if `both_ways`) earlier.
pub(crate) fn reading(u: &mut Unstructured<'_>, now_ns: u64, both_ways: bool) -> Result<u64> {
    let by_ns = number(u, 60, false)?;
    Ok(match u.int_in_range(0..=7)? {
        0 if both_ways => now_ns.saturating_sub(by_ns),
        1..=3 => now_ns,
        _ => now_ns.saturating_add(by_ns),
    })
}

/// Whether the work was already done.
pub(crate) fn is_charge(request: &Request) -> bool {
    matches!(request, Request::Take { at_least: 0, max_wait, .. } if *max_wait == Duration::MAX)
}
