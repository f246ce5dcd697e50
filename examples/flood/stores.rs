//! The stores under flood.

use ratekeeper::{DashStore, ManualClock, MemoryStore, Overflow, TableStore, TokenBucket, Ways};

/// What a store has counted.
#[derive(Debug)]
pub(crate) struct Counts {
    pub(crate) replaced: u64,
    pub(crate) overflowed: u64,
}

/// A store that tells what it did with new keys.
pub(crate) trait BoundedStore: MemoryStore<u64, TokenBucket> {
    fn counts(&self) -> Counts;
}

impl BoundedStore for TableStore<ManualClock> {
    fn counts(&self) -> Counts {
        Counts {
            replaced: self.replaced(),
            overflowed: self.overflowed(),
        }
    }
}

impl BoundedStore for DashStore<u64, TokenBucket, ManualClock> {
    fn counts(&self) -> Counts {
        Counts {
            replaced: self.replaced(),
            overflowed: self.overflowed(),
        }
    }
}

/// A map. Its hash key is random, so its numbers vary a little from run to run.
pub(crate) fn map(keys: usize, overflow: Overflow) -> DashStore<u64, TokenBucket, ManualClock> {
    let map = DashStore::with_capacity(keys, ManualClock::new());
    map.expect("a capacity above 0").with_overflow(overflow)
}

/// A table whose keys fall into the same sets in every run. Its clock is never read: the simulation says what time
/// it is.
pub(crate) fn table(slots: usize, ways: Ways, overflow: Overflow) -> TableStore<ManualClock> {
    const SEED: u128 = 0x243f_6a88_85a3_08d3_1319_8a2e_0370_7344;
    let table = TableStore::with_seed(slots, SEED, ManualClock::new());
    let table = table.expect("a capacity between 1 and 2^26");
    table.with_ways(ways).with_overflow(overflow)
}
