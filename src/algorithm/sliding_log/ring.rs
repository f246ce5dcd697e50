//! Where the exact log keeps its instants: ascending, oldest first.

#[cfg(feature = "alloc")]
use alloc::collections::VecDeque;

/// A double-ended queue of instants in ascending order.
pub(super) trait Ring {
    fn len(&self) -> usize;
    /// The instant at `index`, counted from the oldest; `index` is below `len`.
    fn get(&self, index: usize) -> u64;
    fn pop_oldest(&mut self, count: usize);
    /// Appends `count` copies; the length stays at or below `limit`.
    fn push(&mut self, at_ns: u64, count: usize, limit: usize);
    /// Removes `count` instants from `first` on.
    fn remove(&mut self, first: usize, count: usize);
}

/// The state of a [`SlidingLog`](crate::SlidingLog): its last admitted instants, on the heap. Empty is
/// a key never seen; memory grows with use, up to 8 bytes times the limit.
#[cfg(feature = "alloc")]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogRing {
    instants: VecDeque<u64>,
}

#[cfg(feature = "alloc")]
impl LogRing {
    /// An empty log.
    pub(crate) const EMPTY: Self = Self {
        instants: VecDeque::new(),
    };
}

#[cfg(feature = "alloc")]
impl Ring for LogRing {
    fn len(&self) -> usize {
        self.instants.len()
    }

    fn get(&self, index: usize) -> u64 {
        self.instants[index]
    }

    fn pop_oldest(&mut self, count: usize) {
        self.instants.drain(..count);
    }

    fn push(&mut self, at_ns: u64, count: usize, limit: usize) {
        let needed = self.instants.len() + count;
        if needed > self.instants.capacity() {
            // Doubling keeps growth cheap; the limit keeps the last doubling from overshooting.
            let target = needed
                .max(self.instants.capacity().saturating_mul(2))
                .min(limit);
            self.instants
                .reserve_exact(target.max(needed) - self.instants.len());
        }
        self.instants.extend(core::iter::repeat_n(at_ns, count));
    }

    fn remove(&mut self, first: usize, count: usize) {
        self.instants.drain(first..first + count);
    }
}

/// The same in a borrowed slice.
#[derive(Debug)]
pub(super) struct SliceRing<'a> {
    slots: &'a mut [u64],
    /// Where the oldest instant is.
    head: usize,
    len: usize,
}

impl<'a> SliceRing<'a> {
    pub(super) fn new(slots: &'a mut [u64]) -> Self {
        Self {
            slots,
            head: 0,
            len: 0,
        }
    }

    fn slot(&self, index: usize) -> usize {
        // Both terms are at most the length of a slice, so the sum does not wrap.
        let slot = self.head + index;
        if slot >= self.slots.len() {
            slot - self.slots.len()
        } else {
            slot
        }
    }
}

impl Ring for SliceRing<'_> {
    fn len(&self) -> usize {
        self.len
    }

    fn get(&self, index: usize) -> u64 {
        self.slots[self.slot(index)]
    }

    fn pop_oldest(&mut self, count: usize) {
        self.head = self.slot(count);
        self.len -= count;
    }

    fn push(&mut self, at_ns: u64, count: usize, _limit: usize) {
        for index in self.len..self.len + count {
            let slot = self.slot(index);
            self.slots[slot] = at_ns;
        }
        self.len += count;
    }

    fn remove(&mut self, first: usize, count: usize) {
        for index in first + count..self.len {
            let (from, to) = (self.slot(index), self.slot(index - count));
            self.slots[to] = self.slots[from];
        }
        self.len -= count;
    }
}

#[cfg(all(test, feature = "alloc"))]
mod tests {
    use super::*;

    #[test]
    fn both_rings_agree_through_wrap_around() {
        let mut slots = [0; 5];
        let mut slice = SliceRing::new(&mut slots);
        let mut heap = LogRing::default();
        let contents =
            |ring: &dyn Fn(usize) -> u64, len| (0..len).map(ring).collect::<alloc::vec::Vec<_>>();
        for round in 0..20_u64 {
            let count = usize::try_from(round % 3).unwrap() + 1;
            let room = 5 - heap.len();
            let pop = count.saturating_sub(room);
            for ring in [&mut slice as &mut dyn Ring, &mut heap] {
                ring.pop_oldest(pop);
                ring.push(round, count, 5);
                if round % 4 == 0 && ring.len() > 2 {
                    ring.remove(1, 1);
                }
            }
            assert_eq!(
                contents(&|i| slice.get(i), slice.len()),
                contents(&|i| heap.get(i), heap.len())
            );
            assert!(heap.instants.capacity() <= 5);
        }
    }
}
