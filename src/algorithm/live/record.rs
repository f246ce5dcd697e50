//! The last limits that were in force, in a form that can be read while another one is being put in.
//!
//! Each generation's limit lies in a slot, as words of its own (no `unsafe`) under a sequence number; the number of the
//! slot's generation, or [`WRITING`]. A reader copies the words and then looks at the sequence number again.
//!
//! # No torn limit
//! The writer sets the sequence number to [`WRITING`] before the words, with a release fence between; the reader has an
//! acquire fence between the words and its look at the number. So whoever read a single word of a later writer sees that
//! writer's number, or a later one, and not the generation it came for. And it sees no older words than its
//! generation's: it came by way of `current`, whose store released them and whose load acquired them.
//!
//! # Without waiting
//! A word can be behind by three generations, so four limits are read: those of `g` to `g − 3`. There are twice as many slots,
//! and [`set`](Record::set) writes the one of `g − 7`. A reader finds one of its four overwritten only if four more changes
//! were made while it read, and then it reads the newest: somebody else made progress. No reader ever waits for
//! a writer, however long that one sleeps in the middle of its work.

use super::plain::Plain;
use crate::sync::Ordering::{Acquire, Relaxed, Release};
use crate::sync::const_unless_modelled;
use crate::sync::modelled::{AtomicU64, fence, spin_loop};

/// As many as the longest plain form of a limit has.
pub(super) const WORDS: usize = 16;
/// A power of two.
const SLOTS: usize = 8;
/// The sequence number of a slot whose words are being written.
const WRITING: u64 = u64::MAX;

/// The last eight limits, but for the first one of all, which never changes and lies beside.
#[derive(Debug)]
pub struct Record {
    /// The generation of the limit in force.
    current: AtomicU64,
    /// 1 while somebody sets a limit.
    setting: AtomicU64,
    slots: [Slot; SLOTS],
}

#[derive(Debug)]
struct Slot {
    sequence: AtomicU64,
    /// The instant from which on the limit holds.
    since_ns: AtomicU64,
    words: [AtomicU64; WORDS],
}

impl Slot {
    const_unless_modelled! {
        const fn new() -> Self {
            Self {
                sequence: AtomicU64::new(0),
                since_ns: AtomicU64::new(0),
                #[cfg(not(all(test, loom)))]
                words: [const { AtomicU64::new(0) }; WORDS],
                #[cfg(all(test, loom))]
                words: core::array::from_fn(|_| AtomicU64::new(0)),
            }
        }
    }
}

/// A limit, and since when.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry<B> {
    pub(super) limit: B,
    pub(super) since_ns: u64,
}

impl Record {
    const_unless_modelled! {
        /// Of a first limit that was not changed yet.
        pub(super) const fn new() -> Self {
            Self {
                current: AtomicU64::new(0),
                setting: AtomicU64::new(0),
                #[cfg(not(all(test, loom)))]
                slots: [const { Slot::new() }; SLOTS],
                #[cfg(all(test, loom))]
                slots: core::array::from_fn(|_| Slot::new()),
            }
        }
    }

    /// The limit in force, and its generation. `first` is that of generation 0.
    #[inline]
    pub(super) fn current<B: Plain>(&self, first: &B) -> (u64, B) {
        loop {
            let generation = self.current.load(Acquire);
            if let Some(entry) = self.entry(generation, first) {
                return (generation, entry.limit);
            }
        }
    }

    /// The limit of a generation that is not after one seen before, unless it was overwritten meanwhile.
    #[inline]
    pub(super) fn entry<B: Plain>(&self, generation: u64, first: &B) -> Option<Entry<B>> {
        if generation == 0 {
            return Some(Entry {
                limit: *first,
                since_ns: 0,
            });
        }
        let slot = self.slot(generation);
        let since_ns = slot.since_ns.load(Relaxed);
        let mut words = slot.words.iter();
        let limit = B::take(&mut || words.next().map_or(0, |word| word.load(Relaxed)));
        fence(Acquire);
        (slot.sequence.load(Relaxed) == generation).then_some(Entry { limit, since_ns })
    }

    /// Puts a limit in force from `now_ns` on, if the one in force until then is another.
    ///
    /// Setters come one after the other and spin meanwhile.
    pub(super) fn set<B: Plain>(&self, now_ns: u64, first: &B, new: &B) {
        let _turn = Turn::wait(&self.setting);
        let (generation, old) = self.current(first);
        if old == *new {
            return; // no change, and so no generation
        }
        let earlier_ns = match generation {
            0 => 0,
            _ => self.slot(generation).since_ns.load(Relaxed),
        };
        let next = generation + 1;
        let slot = self.slot(next);
        slot.sequence.store(WRITING, Relaxed);
        fence(Release);
        // Changes have an order, and so have their instants, even if two threads read the clock in the other one.
        slot.since_ns.store(now_ns.max(earlier_ns), Relaxed);
        let mut words = slot.words.iter();
        new.put(&mut |word| {
            if let Some(place) = words.next() {
                place.store(word, Relaxed);
            }
        });
        slot.sequence.store(next, Release);
        self.current.store(next, Release);
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation)] // reduced to the slots
    const fn slot(&self, generation: u64) -> &Slot {
        &self.slots[generation as usize % SLOTS]
    }
}

/// The right to set a limit, until dropped.
struct Turn<'a>(&'a AtomicU64);

impl<'a> Turn<'a> {
    fn wait(setting: &'a AtomicU64) -> Self {
        while setting
            .compare_exchange_weak(0, 1, Acquire, Relaxed)
            .is_err()
        {
            spin_loop();
        }
        Self(setting)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.store(0, Release);
    }
}
