//! [`Monotonic`] under loom: two or three threads read while the inner clock moves on and is stepped, in every
//! order of their steps that the bound allows, with every old value that the orderings allow.
//!
//! The inner clock is an atomic that orders nothing else. Readings move it on, by a stride of the thread's choice
//! or, negative, back.

use core::cell::Cell;

use alloc::vec::Vec;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicI64, AtomicU64};
use loom::thread;

use super::Monotonic;
use crate::clock::Clock;
use crate::sync::Ordering::{Acquire, Relaxed, Release};
use crate::sync::play::play;
use crate::time::Timestamp;

const SECOND: i64 = 1_000_000_000;
/// What the inner clock shows at first.
const START: i64 = 100 * SECOND;

loom::thread_local! {
    /// How far this thread's next reading moves the inner clock, in seconds.
    static STRIDE: Cell<i64> = Cell::new(0);
}

struct Inner(AtomicI64);

impl Clock for Inner {
    fn now(&self) -> Timestamp {
        // Read again, the clock stands still.
        let stride_ns = STRIDE.with(Cell::take) * SECOND;
        let now_ns = if stride_ns == 0 {
            self.0.load(Relaxed)
        } else {
            self.0.fetch_add(stride_ns, Relaxed) + stride_ns
        };
        Timestamp::from_nanos(now_ns.try_into().expect("an instant"))
    }
}

struct Stage {
    clock: Monotonic<Inner>,
    /// The highest reading that a thread has told the others of.
    told: AtomicU64,
}

impl Stage {
    /// Reads as often as there are strides, after what the others told and after each other. The largest shift
    /// seen meanwhile.
    fn watch(&self, strides: &[i64]) -> u64 {
        let mut shift_ns = 0;
        for &stride in strides {
            let earlier = self.told.load(Acquire);
            STRIDE.with(|next| next.set(stride));
            let now = self.clock.now().as_nanos();
            assert!(now >= earlier, "{now} after {earlier}");
            self.told.fetch_max(now, Release);
            let newer_ns = self.clock.shift_ns.load(Relaxed);
            assert!(newer_ns >= shift_ns, "a shift was taken back");
            shift_ns = newer_ns;
        }
        shift_ns
    }
}

/// The clock is read once in peace, then by each thread with its strides. In the end it is ahead of the inner clock
/// by one of `shifts`, in seconds.
fn scene(
    name: &str,
    bound: Option<usize>,
    threads: &'static [&'static [i64]],
    shifts: core::ops::RangeInclusive<i64>,
) {
    play(name, bound, move || {
        let stage = Arc::new(Stage {
            clock: Monotonic::new(Inner(AtomicI64::new(START))),
            told: AtomicU64::new(0),
        });
        stage.watch(&[0]);
        let (first, others) = threads.split_first().expect("a thread");
        let others: Vec<_> = others
            .iter()
            .map(|strides| {
                let stage = Arc::clone(&stage);
                thread::spawn(move || stage.watch(strides))
            })
            .collect();
        let mut largest_ns = stage.watch(first);
        for other in others {
            largest_ns = largest_ns.max(other.join().expect("a thread panicked"));
        }
        let shift_ns = stage.clock.shift_ns.load(Relaxed);
        assert!(shift_ns >= largest_ns, "a shift was taken back");
        let shift = i64::try_from(shift_ns).expect("a small shift") / SECOND;
        assert!(shifts.contains(&shift), "shifted by {shift} s");
        // No instant was made up: no more was shown than all steps forwards together.
        let forwards: i64 = threads
            .iter()
            .flat_map(|strides| strides.iter())
            .filter(|stride| **stride > 0)
            .sum();
        let shown = stage.told.load(Relaxed);
        let most = START + forwards * SECOND;
        assert!(
            shown <= most.try_into().expect("an instant"),
            "{shown} is more than {most}"
        );
    });
}

/// The inner clock does not step back, so nothing may be made up for.
#[test]
fn a_a_late_reading_is_not_a_step() {
    scene(
        "monotonic a a late reading is not a step",
        Some(4),
        &[&[5, 0], &[3, 0]],
        0..=0,
    );
}

#[test]
fn b_a_step_back_is_made_up_for_once() {
    scene(
        "monotonic b a step back is made up for once",
        Some(4),
        &[&[-40, 0], &[0, 1]],
        39..=40,
    );
}

#[test]
fn c_two_steps_back() {
    scene(
        "monotonic c two steps back",
        Some(4),
        &[&[-20, 2], &[-30, 0]],
        48..=50,
    );
}

#[test]
fn d_forwards_and_back() {
    scene(
        "monotonic d forwards and back",
        Some(4),
        &[&[50, 0], &[-40, 1]],
        0..=40,
    );
}

#[test]
fn e_small_steps_are_waited_out() {
    scene(
        "monotonic e small steps are waited out",
        Some(4),
        &[&[-1, 1], &[1, 0]],
        0..=0,
    );
}

#[test]
fn f_three_threads() {
    scene(
        "monotonic f three threads",
        Some(3),
        &[&[-40], &[0], &[1]],
        39..=40,
    );
}
