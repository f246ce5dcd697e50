//! What the tests share: limits, small stores, random numbers.

use std::time::Duration;

use proptest::prelude::ProptestConfig;
use proptest::test_runner::RngSeed;
use ratekeeper::{
    Algorithm, DashStore, FixedWindow, KeyedLimiter, ManualClock, MemoryStore, Overflow,
    SlidingWindow, SlotState, TableStore, Timestamp, TokenBucket, Ways,
};

/// `cases` random inputs from a fixed seed; nothing is written to disk.
pub(crate) fn config(cases: u32) -> ProptestConfig {
    let mut config = ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    if config.rng_seed == RngSeed::Random {
        config.rng_seed = RngSeed::Fixed(0x5e7_0f5e7);
    }
    config
}

pub(crate) const MS: u64 = 1_000_000;
pub(crate) const SECOND: u64 = 1_000 * MS;
/// Where tests start, counted from 1970: no multiple of a window or of a millisecond.
pub(crate) const START: u64 = 1_780_000_007 * SECOND + 123_456_789;

pub(crate) const fn at(ns: u64) -> Timestamp {
    Timestamp::from_nanos(ns)
}

/// A duration in nanoseconds; everything the crate answers fits.
pub(crate) fn ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).expect("at most u64::MAX nanoseconds")
}

/// The smallest table: one set of eight, or two of four.
pub(crate) fn tiny<A: Algorithm>(ways: Ways, overflow: Overflow) -> TableStore<ManualClock, A> {
    table(8, ways, overflow)
}

pub(crate) fn table<A: Algorithm>(
    slots: usize,
    ways: Ways,
    overflow: Overflow,
) -> TableStore<ManualClock, A> {
    let table = TableStore::with_seed(slots, 0x0123_4567_89ab_cdef, ManualClock::new());
    table.unwrap().with_ways(ways).with_overflow(overflow)
}

pub(crate) fn map<A: Algorithm>(keys: usize, overflow: Overflow) -> DashStore<u64, A, ManualClock> {
    let map = DashStore::with_capacity(keys, ManualClock::new());
    map.unwrap().with_overflow(overflow)
}

/// A store that counts what it does with new keys.
pub(crate) trait Bounded<A: Algorithm>: MemoryStore<u64, A> + Sync {
    fn counts(&self) -> (u64, u64);
}

impl<A: Algorithm<State: SlotState>> Bounded<A> for TableStore<ManualClock, A> {
    fn counts(&self) -> (u64, u64) {
        (self.replaced(), self.overflowed())
    }
}

impl<A: Algorithm> Bounded<A> for DashStore<u64, A, ManualClock> {
    fn counts(&self) -> (u64, u64) {
        (self.replaced(), self.overflowed())
    }
}

pub(crate) type Limiter<A, S> = KeyedLimiter<u64, A, S>;

pub(crate) fn limiter<A: Algorithm, S: Bounded<A>>(limit: A, store: S) -> Limiter<A, S> {
    KeyedLimiter::with_store(limit, store)
}

/// Whole and fractional nanoseconds a token, short and long bursts.
pub(crate) fn buckets() -> [TokenBucket; 4] {
    [
        TokenBucket::per_second(10).with_burst(5),
        TokenBucket::per_second(3).with_burst(4),
        TokenBucket::per(7, Duration::from_millis(11)).with_burst(2),
        TokenBucket::per_minute(7).with_burst(1),
    ]
}

pub(crate) fn sliding() -> SlidingWindow {
    SlidingWindow::per(6, Duration::from_millis(700))
}

pub(crate) fn fixed() -> [FixedWindow; 3] {
    let fixed = FixedWindow::per(6, Duration::from_millis(700));
    [
        fixed,
        fixed.with_offset(Duration::from_millis(13)),
        fixed.anchored(),
    ]
}

/// Marsaglia's xorshift.
#[derive(Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 8
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    pub(crate) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}
