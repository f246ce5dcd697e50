//! The atomic of the models' slots, in one of two memories.
//!
//! [`Memory::Weak`] is loom's: loads may return old values, as their orderings allow. But loom (0.7.3) plays the other
//! order of two accesses only if the later one conflicts with the *last* access to its atomic. A thread's own load
//! just before its exchange hides another thread's load, and orders in which that one comes later may never be
//! played: one model had a single execution, of two threads that meet on one word. So every model is played a second
//! time in a [`Memory::Strong`], where loads return the newest value and no order is missed.

use core::cell::Cell;
use core::sync::atomic::AtomicU64;

use crate::sync::{AtomicSlot, Ordering};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Memory {
    Weak,
    Strong,
}

/// Threads of a scene.
const MOST_THREADS: usize = 3;

std::thread_local! {
    /// All threads of a model take turns on one real thread.
    static MEMORY: Cell<Memory> = const { Cell::new(Memory::Weak) };
    static THREADS: Cell<usize> = const { Cell::new(1) };
}

loom::thread_local! {
    static ME: Cell<usize> = Cell::new(0);
}

/// Chooses the memory of the model played next, and how many threads it has.
pub(super) fn choose(memory: Memory, threads: usize) {
    assert!(threads <= MOST_THREADS, "add marks");
    MEMORY.set(memory);
    THREADS.set(threads);
}

/// Says which of the scene's threads this is.
pub(super) fn enter(thread: usize) {
    ME.with(|me| me.set(thread));
}

/// A word, or in strong memory a cell with a mark for each thread: there its loads meet all exchanges, and no load
/// meets another thread's load.
pub(in crate::store::table) struct Watched {
    word: AtomicSlot,
    cell: AtomicU64,
    marks: [AtomicSlot; MOST_THREADS],
}

impl Watched {
    pub(in crate::store::table) fn new(word: u64) -> Self {
        Self {
            word: AtomicSlot::new(word),
            cell: AtomicU64::new(word),
            marks: [0; MOST_THREADS].map(AtomicSlot::new),
        }
    }

    pub(in crate::store::table) fn load(&self, ordering: Ordering) -> u64 {
        match MEMORY.get() {
            Memory::Weak => self.word.load(ordering),
            Memory::Strong => {
                touch(&self.marks[ME.with(Cell::get)]);
                self.cell.load(Ordering::Relaxed)
            }
        }
    }

    pub(in crate::store::table) fn compare_exchange(
        &self,
        old: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        match MEMORY.get() {
            Memory::Weak => self.word.compare_exchange(old, new, success, failure),
            Memory::Strong => {
                // One point of decision for all marks.
                let (first, rest) = self.marks[..THREADS.get()].split_first().expect("a thread");
                touch(first);
                loom::stop_exploring();
                rest.iter().for_each(touch);
                loom::explore();
                self.cell
                    .compare_exchange(old, new, Ordering::Relaxed, Ordering::Relaxed)
            }
        }
    }
}

/// An access that conflicts with every other one to `mark`.
fn touch(mark: &AtomicSlot) {
    mark.fetch_add(0, Ordering::Relaxed);
}
