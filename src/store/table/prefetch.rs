//! Asking for a set's cache lines before they are needed.
//!
//! Reading the clock waits for outstanding *loads*, but not for a prefetch: hash, prefetch, read the clock,
//! decide, hides most of a cache miss behind the clock.
#![allow(unsafe_code)] // one instruction that has no safe name

use super::sizing::Ways;
use super::slot::Slot;

/// Begins to fetch the lines of set number `set`. Only a hint: on other targets it does nothing.
#[inline]
pub(super) fn prefetch(slots: &[Slot], set: usize, ways: Ways) {
    let first = set * ways.count();
    for line in 0..ways.count() / 4 {
        if let Some(slot) = slots.get(first + line * 4) {
            prefetch_line(slot);
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn prefetch_line(slot: &Slot) {
    use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a prefetch reads nothing the program can see and cannot fault; SSE is part of x86-64. The
    // pointer comes from a reference all the same.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(core::ptr::from_ref(slot).cast()) }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn prefetch_line(_: &Slot) {}
