//! Limits that change at run time: [`ratekeeper::Live`].
#![allow(clippy::cast_possible_truncation)] // of small numbers

mod buckets;
mod stores;
mod threads;
mod windows;

/// A stream of numbers that is the same in every run (splitmix64).
struct Stream(u64);

impl Stream {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number below `end`.
    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}
