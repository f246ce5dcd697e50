//! A clock that holds a reader up.

use core::fmt;
use core::ops::Deref;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::clock::{Clock, ManualClock};
use crate::time::Timestamp;

/// A [`ManualClock`] that can hold a reader up after it has read the time: so the kit finds out what a store of this process
/// does with a reading that others have overtaken. Threads alone meet that situation too rarely.
///
/// Build the stores on an `Arc` of it, and return it from [`Subject::clock`](super::Subject::clock), to which it derefs, and
/// from [`Subject::pausing_clock`](super::Subject::pausing_clock).
#[derive(Default)]
pub struct PausingClock {
    clock: ManualClock,
    /// Whether the next reader is held up.
    is_armed: AtomicBool,
    reader: Mutex<Reader>,
    changed: Condvar,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Reader {
    #[default]
    Free,
    HeldUp,
}

/// Nobody is held up for longer.
const LONGEST: Duration = Duration::from_secs(5);

impl PausingClock {
    /// A clock that stands at [`Timestamp::ZERO`] and holds nobody up.
    pub fn new() -> Self {
        Self::default()
    }

    fn reader(&self) -> MutexGuard<'_, Reader> {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next reader will be held up.
    pub(super) fn arm(&self) {
        self.is_armed.store(true, Ordering::SeqCst);
    }

    /// Waits until a reader is held up, or until nobody will be: because `is_over`.
    pub(super) fn wait_for_reader(&self, is_over: impl Fn() -> bool) {
        let mut reader = self.reader();
        while *reader == Reader::Free && !is_over() {
            let short = Duration::from_millis(1);
            let waited = self.changed.wait_timeout(reader, short);
            (reader, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Nobody is held up from here on.
    pub(super) fn release(&self) {
        self.is_armed.store(false, Ordering::SeqCst);
        *self.reader() = Reader::Free;
        self.changed.notify_all();
    }
}

impl Clock for PausingClock {
    fn now(&self) -> Timestamp {
        let now = self.clock.now();
        if self.is_armed.swap(false, Ordering::SeqCst) {
            let mut reader = self.reader();
            *reader = Reader::HeldUp;
            self.changed.notify_all();
            let waited = self
                .changed
                .wait_timeout_while(reader, LONGEST, |reader| *reader == Reader::HeldUp);
            drop(waited.unwrap_or_else(PoisonError::into_inner));
        }
        now
    }
}

impl Deref for PausingClock {
    type Target = ManualClock;

    fn deref(&self) -> &ManualClock {
        &self.clock
    }
}

impl fmt::Debug for PausingClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PausingClock").field(&self.clock).finish()
    }
}
