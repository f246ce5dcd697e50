//! What both bench targets measure: the floor, the limits, the keys, and governor's limiters.
//!
//! # What is compared
//! * The decision is always consumed through `is_allowed()` (`is_ok()` for the others) and
//!   `black_box`, as a server's `if` would; instants and keys are hidden from the optimiser.
//! * Everything here is generic or `#[inline]`, and so is governor: both sides are inlined into the
//!   loop, and both then drop the parts of the answer that nobody reads (our numbers, governor's
//!   `NotUntil`). That favours neither on the allowed path; `ratios` has a row with the call kept out
//!   of line, where the whole decision is really returned.
//! * The floor is the same loop without a decision in it. Locked instructions do not overlap, so
//!   these loops measure the latency of one call after the other, not throughput.

pub(crate) mod floor;
pub(crate) mod peers;
pub(crate) mod threads;

use std::time::Duration;

use ratekeeper::TokenBucket;

/// A burst that no bench can use up, and the largest that governor takes.
pub(crate) const NEVER_EMPTY: u32 = u32::MAX;

/// Whole nanoseconds per token.
pub(crate) const WHOLE: TokenBucket = TokenBucket::per_second(10).with_burst(NEVER_EMPTY as u64);
/// A third of a second per token.
pub(crate) const FRACTIONAL: TokenBucket =
    TokenBucket::per_second(3).with_burst(NEVER_EMPTY as u64);
/// More than one token per nanosecond.
pub(crate) const DENSE: TokenBucket = TokenBucket::per_second(3_000_000_000);
/// For stores: one token leaves a key in debt for longer than a bench takes, so that no store drops it as good as new.
pub(crate) const LASTING: TokenBucket = TokenBucket::per_minute(1).with_burst(LASTING_BURST as u64);
/// No bench asks that often for one key.
pub(crate) const LASTING_BURST: u32 = 100_000_000;
/// One token, and then none for longer than a bench takes.
pub(crate) const SPENT: TokenBucket = TokenBucket::per_hour(1);
/// The same, fractional.
pub(crate) const SPENT_FRACTIONAL: TokenBucket = TokenBucket::per_day(7).with_burst(1);

/// How far time moves between two calls of a bench that brings its own instants: enough for a token
/// of each of the limits above.
pub(crate) const STRIDE: Duration = Duration::from_millis(400);

/// `n` different keys that look random (splitmix64, a bijection of the counter).
pub(crate) fn keys(n: usize) -> Vec<u64> {
    (0..n as u64).map(scramble).collect()
}

/// An order in which to visit `keys`: every one equally often, none predictably.
pub(crate) fn shuffled(mut keys: Vec<u64>) -> Vec<u64> {
    for i in (1..keys.len()).rev() {
        let j = scramble(!(i as u64)) % (i as u64 + 1);
        keys.swap(i, usize::try_from(j).expect("an index"));
    }
    keys
}

/// The `i`-th of those keys.
pub(crate) fn scramble(i: u64) -> u64 {
    let mut x = i.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
