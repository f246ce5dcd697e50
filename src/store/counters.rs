//! Counts of what a bounded store did with new keys.

use crate::sync::{AtomicU64, Ordering};

/// What may happen to a new key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// It took the place of a key that was as good as new.
    Replaced,
    /// There was no such place, and the overflow policy answered.
    Overflowed,
}

/// A flood of new keys from several threads must not meet on one counter's cache line, so there are a few, chosen by
/// where the key lives. Known keys are not counted at all.
#[derive(Debug)]
pub(crate) struct Counters {
    lanes: [Lane; LANES],
}

const LANES: usize = 8;

#[derive(Debug)]
#[repr(align(64))]
struct Lane {
    replaced: AtomicU64,
    overflowed: AtomicU64,
}

impl Counters {
    pub(crate) const fn new() -> Self {
        Self {
            lanes: [const {
                Lane {
                    replaced: AtomicU64::new(0),
                    overflowed: AtomicU64::new(0),
                }
            }; LANES],
        }
    }

    #[inline]
    pub(crate) fn count(&self, place: usize, event: Event) {
        let lane = &self.lanes[place % LANES];
        let counter = match event {
            Event::Replaced => &lane.replaced,
            Event::Overflowed => &lane.overflowed,
        };
        // Relaxed: a statistic; nothing is read because of it.
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn replaced(&self) -> u64 {
        self.lanes
            .iter()
            .map(|lane| lane.replaced.load(Ordering::Relaxed))
            .sum()
    }

    pub(crate) fn overflowed(&self) -> u64 {
        self.lanes
            .iter()
            .map(|lane| lane.overflowed.load(Ordering::Relaxed))
            .sum()
    }
}
