//! Bytes in use, as the counting allocator sees them.

use crate::ALLOCATOR;

/// How many bytes what `make` returns holds, and keeps until it is dropped.
pub(crate) fn bytes_held<T>(make: impl FnOnce() -> T) -> usize {
    let before = ALLOCATOR.allocated();
    let made = make();
    let held = ALLOCATOR.allocated() - before;
    drop(made);
    held
}
