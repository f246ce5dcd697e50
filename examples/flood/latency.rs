//! Real time: how long single requests take.

use std::time::Instant;

/// One new key in so many is timed.
pub(crate) const EVERY: u64 = 16;

/// The measured times of one run.
#[derive(Debug)]
pub(crate) struct Samples {
    nanos: Vec<u32>,
    len: usize,
}

impl Samples {
    /// Memory for the samples of a flood of `keys`, written to, so that it is resident before the first run.
    pub(crate) fn with_room_for(keys: u64) -> Self {
        let room = usize::try_from(keys / EVERY + 1).expect("fits memory");
        Self {
            nanos: vec![u32::MAX; room],
            len: 0,
        }
    }

    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }

    /// Runs `work`, and times it if it is `index`'s turn.
    #[inline]
    pub(crate) fn time<T>(&mut self, index: u64, work: impl FnOnce() -> T) -> T {
        if index % EVERY != 0 {
            return work();
        }
        let start = Instant::now();
        let result = work();
        self.nanos[self.len] = nanos_since(start);
        self.len += 1;
        result
    }

    /// The median, and what 1 in 100, 1 in 1,000 and none exceeded.
    pub(crate) fn percentiles(&mut self) -> [u32; 4] {
        let sorted = &mut self.nanos[..self.len];
        sorted.sort_unstable();
        let last = sorted.len() - 1;
        [500, 990, 999, 1000].map(|permille| sorted[last * permille / 1000])
    }
}

/// What an empty measurement shows: part of every latency printed.
pub(crate) fn clock_overhead_ns() -> u32 {
    let mut empty: Vec<u32> = (0..100_000).map(|_| nanos_since(Instant::now())).collect();
    empty.sort_unstable();
    empty[empty.len() / 2]
}

fn nanos_since(start: Instant) -> u32 {
    u32::try_from(start.elapsed().as_nanos()).unwrap_or(u32::MAX)
}
