//! The only file that names a source of atomics or locks.

#[cfg(all(test, loom))]
pub(crate) mod play;

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

/// What files with a loom model beside them share between threads: there, loom's own, so that the model
/// plays every order of the accesses.
#[cfg(not(all(test, loom)))]
pub(crate) mod modelled {
    #[cfg(feature = "std")]
    pub(crate) use std::sync::Mutex;

    pub(crate) use super::AtomicU64;
    pub(crate) use core::hint::spin_loop;
    pub(crate) use core::sync::atomic::fence;
    #[cfg(feature = "std")]
    pub(crate) use portable_atomic::AtomicI64;
}
#[cfg(all(test, loom))]
pub(crate) mod modelled {
    pub(crate) use loom::hint::spin_loop;
    pub(crate) use loom::sync::Mutex;
    pub(crate) use loom::sync::atomic::{AtomicI64, AtomicU64, fence};
}

/// A `const fn`; not `const` under loom, whose atomics are not made in constants.
macro_rules! const_unless_modelled {
    ($(#[$attribute:meta])* $visibility:vis const fn $($rest:tt)*) => {
        #[cfg(not(all(test, loom)))]
        $(#[$attribute])*
        $visibility const fn $($rest)*

        #[cfg(all(test, loom))]
        $(#[$attribute])*
        $visibility fn $($rest)*
    };
}
pub(crate) use const_unless_modelled;

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
