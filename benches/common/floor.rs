//! The least an atomic state can cost: a load and a compare-exchange of its word, in the loop that a
//! limiter needs around them.

use std::sync::atomic::{AtomicU64, Ordering};

/// Adds `by` to the word, as a limiter charges its state.
#[inline]
pub(crate) fn exchange(word: &AtomicU64, by: u64) -> u64 {
    let mut old = word.load(Ordering::Relaxed);
    loop {
        let new = old.wrapping_add(by);
        match word.compare_exchange_weak(old, new, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => return new,
            Err(newer) => old = newer,
        }
    }
}
