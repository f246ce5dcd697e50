//! A slot: tag, lap and state in one atomic word.

use core::fmt;

#[cfg(all(test, loom))]
use super::model::Watched as AtomicSlot;
use super::packing::{Layout, Word};
#[cfg(not(all(test, loom)))]
use crate::sync::AtomicSlot;
use crate::sync::Ordering;

/// One place for one key in a [`TableStore`](crate::TableStore): 16 bytes, aligned to 16. All bytes zero is an
/// empty slot, so zeroed memory is an array of them.
#[repr(transparent)]
pub struct Slot(AtomicSlot);

impl Slot {
    /// An empty slot.
    #[cfg(not(all(test, loom)))]
    pub const fn new() -> Self {
        Self(AtomicSlot::new(0))
    }

    /// An empty slot.
    #[cfg(all(test, loom))]
    pub fn new() -> Self {
        Self(AtomicSlot::new(0))
    }

    #[inline]
    pub(super) fn load(&self, ordering: Ordering) -> SlotWord {
        SlotWord(self.0.load(ordering))
    }

    /// Exchanges `old` for `new`; fails with what is there instead.
    #[inline]
    pub(super) fn exchange(
        &self,
        old: SlotWord,
        new: SlotWord,
        success: Ordering,
    ) -> Result<(), SlotWord> {
        let result = self
            .0
            .compare_exchange(old.0, new.0, success, Ordering::Relaxed);
        result.map(drop).map_err(SlotWord)
    }

    #[cfg(all(test, loom))]
    pub(super) fn holding(word: SlotWord) -> Self {
        Self(AtomicSlot::new(word.0))
    }
}

impl Default for Slot {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Slot")
            .field(&self.load(Ordering::Relaxed).0)
            .finish()
    }
}

/// A slot's content: from the top, the tag, the lap, the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SlotWord(Word);

impl SlotWord {
    #[inline]
    pub(super) const fn new(layout: Layout, tag: u64, lap: u64, state: Word) -> Self {
        let owner = (tag as Word) << layout.lap_bits | lap as Word;
        Self(owner << layout.state_bits() | state)
    }

    /// Whose slot this is; 0 is nobody's.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // tags have at most 40 bits
    pub(super) const fn tag(self, layout: Layout) -> u64 {
        (self.0 >> (Word::BITS - layout.tag_bits)) as u64
    }

    /// How often the slot has changed hands or was passed over, modulo its range.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // masked
    pub(super) const fn lap(self, layout: Layout) -> u64 {
        (self.0 >> layout.state_bits()) as u64 & layout.lap_mask()
    }

    /// Tag and lap together: what identifies an ownership.
    #[inline]
    pub(super) const fn owner(self, layout: Layout) -> Word {
        self.0 >> layout.state_bits()
    }

    #[inline]
    pub(super) const fn state(self, layout: Layout) -> Word {
        self.0 & layout.state_mask()
    }

    #[inline]
    pub(super) const fn with_state(self, layout: Layout, state: Word) -> Self {
        Self(self.0 & !layout.state_mask() | state)
    }

    #[inline]
    pub(super) const fn with_lap(self, layout: Layout, lap: u64) -> Self {
        Self::new(layout, self.tag(layout), lap, self.state(layout))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::table::packing::SlotState;

    #[test]
    #[allow(clippy::cast_possible_truncation)] // a loom word is half as wide
    fn fields_do_not_touch() {
        for layout in [u64::LAYOUT, u128::LAYOUT] {
            let tag = (1 << layout.tag_bits) - 2;
            let (lap, state) = (layout.lap_mask() - 4, layout.state_mask() - 8);
            let word = SlotWord::new(layout, tag, lap, state);
            assert_eq!(
                (word.tag(layout), word.lap(layout), word.state(layout)),
                (tag, lap, state)
            );
            let word = word.with_state(layout, 7).with_lap(layout, 9);
            assert_eq!(
                (word.tag(layout), word.lap(layout), word.state(layout)),
                (tag, 9, 7)
            );
            assert_eq!(SlotWord::new(layout, 0, 0, 0), SlotWord(0));
        }
    }
}
