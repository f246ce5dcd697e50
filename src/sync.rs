//! The only file that names a source of atomics or locks.

#[cfg(target_has_atomic = "64")]
pub(crate) use core::sync::atomic::AtomicU64;
pub(crate) use core::sync::atomic::Ordering;
#[cfg(not(target_has_atomic = "64"))]
pub(crate) use portable_atomic::AtomicU64;
pub(crate) use portable_atomic::AtomicU128;

/// The word of a `TableStore`'s slot. Under loom, its model of an atomic, which is only 64 bits wide.
#[cfg(all(test, loom))]
pub(crate) use loom::sync::atomic::AtomicU64 as AtomicSlot;
#[cfg(not(all(test, loom)))]
pub(crate) use portable_atomic::AtomicU128 as AtomicSlot;

/// Exclusive access to a value.
///
/// With `std`, a mutex. Without, nothing that blocks is safe to call from an interrupt, so this is a
/// `RefCell`: what contains it is not `Sync`, and the compiler asks for a lock of the caller's choice
/// around it (for example `critical_section::Mutex`) before it can be shared.
#[derive(Debug)]
pub(crate) struct Lock<T> {
    #[cfg(feature = "std")]
    inner: std::sync::Mutex<T>,
    #[cfg(not(feature = "std"))]
    inner: core::cell::RefCell<T>,
}

impl<T> Lock<T> {
    pub(crate) const fn new(value: T) -> Self {
        #[cfg(feature = "std")]
        let inner = std::sync::Mutex::new(value);
        #[cfg(not(feature = "std"))]
        let inner = core::cell::RefCell::new(value);
        Self { inner }
    }

    /// Runs `f` with exclusive access. A panic in an earlier `f` does not matter: a state that was
    /// written halfway is still a state.
    pub(crate) fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        #[cfg(feature = "std")]
        let mut guard = self
            .inner
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        #[cfg(not(feature = "std"))]
        let mut guard = self.inner.borrow_mut();
        f(&mut guard)
    }
}

/// `Sync` where every cell is: with `std`. Without, cells wider than 128 bits are not, and code that is
/// generic over algorithms cannot assume it.
#[cfg(feature = "std")]
pub trait Shareable: Sync {}
#[cfg(feature = "std")]
impl<T: Sync> Shareable for T {}
/// Nothing: see the same trait with `std`.
#[cfg(not(feature = "std"))]
pub trait Shareable {}
#[cfg(not(feature = "std"))]
impl<T> Shareable for T {}
