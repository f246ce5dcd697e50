//! Real threads on the real monotonic clock, while the wall clock is stepped.

use core::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use super::slew::Slew;
use crate::clock::{Clock, UnixClock};

const THREADS: usize = 3;
const READINGS: usize = 300_000;
/// Virtual nanoseconds per real one: a line holds for 2 µs.
const FASTER: u64 = 500;

/// Reads in several threads; no reading may be less than one that another thread had completed before.
fn never_back(read: impl Fn(usize) -> u64 + Sync) {
    let latest = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for i in 0..READINGS {
                    let earlier = latest.load(Ordering::Acquire);
                    let shown = read(i);
                    assert!(shown >= earlier, "{shown} after {earlier}");
                    latest.fetch_max(shown, Ordering::AcqRel);
                }
            });
        }
    });
}

#[test]
fn no_thread_sees_time_run_back_while_the_wall_clock_is_stepped() {
    let slew = Slew::new();
    let lead = AtomicI64::new(1_000_000_000_000);
    let start = Instant::now();
    let monotonic = || i64::try_from(start.elapsed().as_nanos() * u128::from(FASTER)).unwrap();
    let wall = || (monotonic() + lead.load(Ordering::Relaxed)).max(0);
    never_back(|i| {
        if i % 100 == 0 {
            // Back by up to 15 lines, forwards by up to 16.
            let mixed = (i as i64).wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as i64) >> 59;
            lead.fetch_add(mixed * 1_000_000, Ordering::Relaxed);
        }
        slew.read(monotonic, wall).try_into().unwrap()
    });
}

#[test]
fn the_process_s_clock_does_not_run_back() {
    never_back(|_| UnixClock.now().as_nanos());
}
