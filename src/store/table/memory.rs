//! Where the slots are: in a static, or on the heap; in any case on whole cache lines.

#[cfg(feature = "alloc")]
use alloc::boxed::Box;

use super::sizing::{MOST_SETS, Ways};
use super::slot::Slot;
#[cfg(feature = "alloc")]
use crate::store::overflow::InvalidCapacity;
use crate::store::prefetch::prefetch;

/// Slots on a cache line of 64 bytes.
const LINE: usize = 4;
/// The most slots that may have to be skipped to reach the start of a line.
const SLACK: usize = LINE - 1;

#[derive(Debug)]
pub(super) enum Memory {
    Static(&'static [Slot]),
    #[cfg(feature = "alloc")]
    Heap(Box<[Slot]>),
}

impl Memory {
    pub(super) const fn borrow(slots: &'static [Slot]) -> Self {
        assert!(
            slots.len() >= Ways::Eight.count() + SLACK,
            "a table needs at least 11 slots"
        );
        assert!(
            slots.len() <= MOST_SETS * LINE,
            "a table has at most 2^26 slots"
        );
        Self::Static(slots)
    }

    #[cfg(feature = "alloc")]
    pub(super) fn allocate(slots: usize) -> Result<Self, InvalidCapacity> {
        if slots == 0 {
            return Err(InvalidCapacity::Zero);
        }
        if slots > MOST_SETS * LINE {
            return Err(InvalidCapacity::TooLarge);
        }
        let whole_sets = slots.next_multiple_of(Ways::Eight.count());
        Ok(Self::Heap(
            (0..whole_sets + SLACK).map(|_| Slot::new()).collect(),
        ))
    }

    /// The slots, from the start of a cache line on.
    #[inline]
    pub(super) fn slots(&self) -> &[Slot] {
        let slots = match self {
            Self::Static(slots) => slots,
            #[cfg(feature = "alloc")]
            Self::Heap(slots) => &**slots,
        };
        let past_line = slots.as_ptr().addr() / size_of::<Slot>();
        // Static memory cannot be measured when it is wrapped (in a constant), so this is done here; it
        // takes three instructions.
        let skip = past_line.wrapping_neg() % LINE;
        slots.get(skip..).unwrap_or_default()
    }

    /// Begins to fetch the lines of set number `set`.
    #[inline]
    pub(super) fn prefetch(&self, set: usize, ways: Ways) {
        let first = self.slots().as_ptr().wrapping_add(set * ways.count());
        for line in 0..ways.count() / LINE {
            prefetch(first.wrapping_add(line * LINE).cast());
        }
    }

    /// How many sets there are: as many whole ones as fit wherever the memory begins.
    #[inline]
    pub(super) fn sets(&self, ways: Ways) -> usize {
        let len = match self {
            Self::Static(slots) => slots.len(),
            #[cfg(feature = "alloc")]
            Self::Heap(slots) => slots.len(),
        };
        let sets = (len - SLACK) / ways.count();
        if sets > MOST_SETS { MOST_SETS } else { sets }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(not(loom))] // whose slots are larger
    #[test]
    fn sets_start_on_cache_lines_wherever_the_memory_does() {
        static SLOTS: [Slot; 40] = [const { Slot::new() }; 40];
        for start in 0..8 {
            let memory = Memory::borrow(&SLOTS[start..]);
            assert_eq!(memory.slots().as_ptr().addr() % 64, 0);
            for ways in [Ways::Four, Ways::Eight] {
                assert!(memory.sets(ways) * ways.count() <= memory.slots().len());
            }
        }
    }

    #[cfg(feature = "alloc")]
    #[test]
    fn capacities() {
        assert_eq!(Memory::allocate(0).unwrap_err(), InvalidCapacity::Zero);
        assert_eq!(
            Memory::allocate(usize::MAX).unwrap_err(),
            InvalidCapacity::TooLarge
        );
        assert_eq!(Memory::allocate(1).unwrap().sets(Ways::Eight), 1);
        assert_eq!(Memory::allocate(9).unwrap().sets(Ways::Four), 4);
    }
}
