//! Instants, requests and limits as no sane program has them, and as every program has them.

use std::time::Duration;

use ratekeeper::{Receipt, Request, TokenBucket};

use crate::common::Draw;

pub(crate) fn first_instant(draw: &mut Draw) -> u64 {
    match draw.below(10) {
        0 => 0,
        1 => draw.magnitude(63),
        2 => u64::MAX - draw.magnitude(63),
        _ => 1_700_000_000_000_000_000 + draw.below(1_000_000_000_000_000),
    }
}

/// Mostly forwards, often to an edge: of the state, of a nanosecond.
pub(crate) fn next_instant(draw: &mut Draw, now_ns: u64, reset: Duration) -> u64 {
    let reset_ns = u64::try_from(reset.as_nanos()).unwrap_or(u64::MAX);
    let forward = now_ns.saturating_add(match draw.below(8) {
        0 => reset_ns,
        1 => reset_ns / 2,
        2 => reset_ns.saturating_sub(1),
        3 => draw.below(reset_ns.saturating_add(1)),
        4 => draw.magnitude(40),
        5 => draw.below(3),
        _ => 0,
    });
    match draw.below(16) {
        0 => forward.saturating_sub(draw.magnitude(62)),
        1 => now_ns.saturating_sub(draw.below(reset_ns.saturating_add(2))),
        2 => now_ns.saturating_sub(1),
        _ => forward,
    }
}

/// All kinds of requests, with costs around the limit; refunds of receipts that were handed out, sometimes wrong ones.
pub(crate) fn request(
    draw: &mut Draw,
    limit: u64,
    receipts: &mut Vec<Receipt>,
    now_ns: u64,
) -> Request {
    let cost = match draw.below(12) {
        0 => 0,
        1 => limit,
        2 => limit.saturating_add(1),
        3 => draw.next(),
        4 => draw.magnitude(64),
        5..=7 => 1,
        _ => 1 + draw.below(limit),
    };
    let wait = match draw.below(5) {
        0 => Duration::MAX,
        1 | 2 => Duration::from_nanos(draw.magnitude(60)),
        _ => Duration::ZERO,
    };
    match draw.below(10) {
        0 | 1 if !receipts.is_empty() => {
            let index = usize::try_from(draw.below(receipts.len() as u64)).unwrap();
            let receipt = receipts.swap_remove(index);
            let part = match draw.below(4) {
                0 => draw.below(receipt.charged().saturating_add(2)),
                _ => receipt.charged(),
            };
            Request::refund(part, receipt)
        }
        2 if draw.once_in(4) => {
            let mark = draw.of(&[0, now_ns, now_ns.saturating_add(1), u64::MAX, draw.0]);
            let receipt = Receipt::new(draw.magnitude(64), mark);
            let receipt = receipt.with_run_at_ns(draw.of(&[0, now_ns.saturating_add(1), u64::MAX]));
            Request::refund(cost, receipt)
        }
        3 => Request::up_to(cost).at_least(0).or_wait(Duration::MAX), // a charge
        4 | 5 => Request::up_to(cost)
            .at_least(draw.below(cost.saturating_add(1)))
            .or_wait(wait),
        6 => Request::up_to(cost).at_least(draw.below(2)).or_wait(wait),
        _ => Request::take(cost).or_wait(wait),
    }
}

/// Whole, fractional and dense ones of all sizes, now and then at the end of the range.
pub(crate) fn bucket(draw: &mut Draw) -> TokenBucket {
    let (tokens, period_ns) = match draw.below(8) {
        0 => (1, draw.magnitude(64)),
        1 => (1 + draw.below(20), 1 + draw.below(20)),
        2 => (draw.magnitude(64), draw.magnitude(64)),
        3 => (draw.magnitude(40), draw.magnitude(20)),
        4 => (1 + draw.below(1_000), 1_000_000_000),
        5 => (1 + draw.below(100), 3_600_000_000_000),
        6 => (3, 1_000_000_000),
        _ => (1 + draw.below(10), 60_000_000_000),
    };
    let burst = match draw.below(6) {
        0 => draw.magnitude(64),
        1 => 1,
        2 => tokens,
        _ => 1 + draw.below(20),
    };
    let max_wait = match draw.below(6) {
        0 => Duration::from_nanos(draw.magnitude(64)),
        1 => Duration::from_nanos(draw.below(3)),
        2 => Duration::from_nanos(period_ns),
        _ => Duration::ZERO,
    };
    TokenBucket::per(tokens, Duration::from_nanos(period_ns))
        .with_burst(burst)
        .with_max_wait(max_wait)
}

pub(crate) fn window(draw: &mut Draw) -> (u32, Duration) {
    let limit = match draw.below(5) {
        0 => u32::try_from(draw.magnitude(32)).unwrap_or(u32::MAX),
        1 => 1,
        _ => u32::try_from(1 + draw.below(20)).unwrap(),
    };
    let span_ns = match draw.below(6) {
        0 => draw.magnitude(64),
        1 => 1 + draw.below(20),
        2 => draw.magnitude(50),
        _ => draw.of(&[1, 60, 3_600]) * 1_000_000_000,
    };
    (limit, Duration::from_nanos(span_ns))
}

/// One that does not count, now and then.
pub(crate) fn extreme(draw: &mut Draw) -> TokenBucket {
    match draw.below(8) {
        0 => TokenBucket::UNLIMITED,
        1 => TokenBucket::BLOCKED,
        _ => bucket(draw),
    }
}
