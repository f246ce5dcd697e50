//! How long to wait after losing a race.

use core::time::Duration;

use crate::sync::{AtomicU64, Ordering};
use crate::time::duration_ns;

/// Waits that grow with each lost race, each drawn at random from zero up: exponential back-off with full jitter.
///
/// M. Brooker: *Exponential Backoff And Jitter*, AWS Architecture Blog (2015). Without the randomness, callers who lost
/// together would meet again.
#[derive(Debug)]
pub struct Jitter {
    state: AtomicU64,
    base: Duration,
    longest: Duration,
}

impl Jitter {
    /// Waits drawn from up to `base` after the first lost race, twice that after the second, and so on, up to `longest`.
    /// Processes that compete need different seeds.
    pub const fn new(seed: u64, base: Duration, longest: Duration) -> Self {
        Self {
            state: AtomicU64::new(seed),
            base,
            longest,
        }
    }

    /// With a random seed, from 1 up to 64 ms.
    #[cfg(feature = "std")]
    pub(crate) fn random() -> Self {
        use core::hash::BuildHasher as _;
        let seed = std::hash::RandomState::new().hash_one(0_u8);
        Self::new(seed, Duration::from_millis(1), Duration::from_millis(64))
    }

    /// How long to wait after having lost `lost` times.
    pub fn wait(&self, lost: u32) -> Duration {
        let doublings = lost.saturating_sub(1).min(63);
        let most_ns = duration_ns(self.base)
            .saturating_mul(1 << doublings)
            .min(duration_ns(self.longest));
        Duration::from_nanos(self.next() % most_ns.saturating_add(1).max(1))
    }

    /// `SplitMix64`: G. Steele, D. Lea, C. Flood, *Fast Splittable Pseudorandom Number Generators* (2014).
    fn next(&self) -> u64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut z = self
            .state
            .fetch_add(STEP, Ordering::Relaxed)
            .wrapping_add(STEP);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest_and_spread_from_zero() {
        let ms = Duration::from_millis;
        let jitter = Jitter::new(7, ms(1), ms(64));
        for (lost, most) in [(1, 1), (2, 2), (4, 8), (7, 64), (8, 64), (u32::MAX, 64)] {
            let waits: alloc::vec::Vec<_> = (0..2_000).map(|_| jitter.wait(lost)).collect();
            let (least, longest) = (waits.iter().min().unwrap(), waits.iter().max().unwrap());
            assert!(*longest <= ms(most), "{lost} lost: {longest:?}");
            assert!(*longest > ms(most) * 9 / 10, "{lost} lost: {longest:?}");
            assert!(*least < ms(most) / 10, "{lost} lost: {least:?}");
        }
        assert_eq!(
            Jitter::new(1, Duration::ZERO, Duration::ZERO).wait(5),
            Duration::ZERO
        );
        let _ = Jitter::new(1, Duration::MAX, Duration::MAX).wait(5);
    }
}
