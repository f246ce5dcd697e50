//! Counts over time in constant memory, for a log of unknown length.

use std::ops::Range;

/// What happened in one slot of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) allowed: u64,
    pub(crate) denied: u64,
}

impl Slot {
    pub(crate) fn all(&self) -> u64 {
        self.allowed + self.denied
    }
}

/// Slots of equal width. When time runs past the last one, neighbours are merged and the width doubles.
#[derive(Debug, Default)]
pub(crate) struct Timeline {
    /// Unix seconds at which the first slot starts.
    start: u64,
    /// Seconds a slot lasts: `1 << doublings`.
    doublings: u32,
    slots: Vec<Slot>,
}

impl Timeline {
    /// More would be narrower than the chart can show.
    const MAX_SLOTS: usize = 300;

    /// Counts one request. Seconds must not run backwards.
    pub(crate) fn count(&mut self, seconds: u64, is_allowed: bool) {
        if self.slots.is_empty() {
            self.start = seconds;
        }
        let index = loop {
            let index = (seconds - self.start) >> self.doublings;
            match usize::try_from(index) {
                Ok(index) if index < Self::MAX_SLOTS => break index,
                _ => self.double(),
            }
        };
        if self.slots.len() <= index {
            self.slots.resize(index + 1, Slot::default());
        }
        let slot = &mut self.slots[index];
        *(if is_allowed {
            &mut slot.allowed
        } else {
            &mut slot.denied
        }) += 1;
    }

    fn double(&mut self) {
        let merge = |pair: &[Slot]| Slot {
            allowed: pair.iter().map(|slot| slot.allowed).sum(),
            denied: pair.iter().map(|slot| slot.denied).sum(),
        };
        self.slots = self.slots.chunks(2).map(merge).collect();
        self.doublings += 1;
    }

    /// Seconds a slot lasts.
    pub(crate) fn width(&self) -> u64 {
        1 << self.doublings
    }

    /// Unix seconds from the start of the first slot to the end of the last one.
    pub(crate) fn range(&self) -> Range<u64> {
        let slots = self.slots.len() as u64;
        self.start
            ..self
                .start
                .saturating_add(slots.saturating_mul(self.width()))
    }

    /// The slots and when they are, from the first request to the last one, without a gap.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Range<u64>, &Slot)> {
        let starts = self
            .range()
            .step_by(usize::try_from(self.width()).unwrap_or(usize::MAX));
        starts
            .zip(&self.slots)
            .map(|(start, slot)| (start..start.saturating_add(self.width()), slot))
    }
}

#[cfg(test)]
mod tests {
    use super::{Slot, Timeline};

    #[test]
    fn a_gap_is_slots_without_requests() {
        let mut timeline = Timeline::default();
        timeline.count(100, true);
        timeline.count(100, false);
        timeline.count(102, false);
        assert_eq!((timeline.range(), timeline.width()), (100..103, 1));
        let slots: Vec<_> = timeline
            .iter()
            .map(|(times, &slot)| (times, slot))
            .collect();
        let slot = |allowed, denied| Slot { allowed, denied };
        let expected = [
            (100..101, slot(1, 1)),
            (101..102, slot(0, 0)),
            (102..103, slot(0, 1)),
        ];
        assert_eq!(slots, expected);
    }

    #[test]
    fn a_long_log_has_wider_slots_and_loses_nothing() {
        let mut timeline = Timeline::default();
        for seconds in 0..100_000 {
            timeline.count(seconds, seconds % 3 == 0);
        }
        assert_eq!(timeline.width(), 512);
        assert!(timeline.slots.len() <= Timeline::MAX_SLOTS);
        let allowed: u64 = timeline.slots.iter().map(|slot| slot.allowed).sum();
        let denied: u64 = timeline.slots.iter().map(|slot| slot.denied).sum();
        assert_eq!((allowed, denied), (33_334, 66_666));
    }

    #[test]
    fn a_jump_of_centuries_ends() {
        let mut timeline = Timeline::default();
        timeline.count(0, true);
        timeline.count(u64::MAX, true);
        assert!(timeline.slots.len() <= Timeline::MAX_SLOTS);
    }
}
