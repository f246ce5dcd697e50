//! [`Slew`] under loom: readings in two threads while the wall clock is stepped, in every order of their steps
//! that the bound allows, with every old value that the orderings allow.
//!
//! The monotonic clock is an atomic that moves on with each reading and orders nothing else, as a counter in
//! hardware; how far it moves is the thread's choice.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicI64, AtomicU64};
use loom::thread;

use super::line::HOLDS_NS;
use super::slew::Slew;
use crate::sync::Ordering::{Acquire, Relaxed, Release};
use crate::sync::play::play;

const UNIT: i64 = HOLDS_NS / 10;
/// Where a scene's clock starts.
const START: i64 = 10 * UNIT;
const LEAD: i64 = 1_000 * UNIT;

/// What the threads share.
struct Stage {
    slew: Slew,
    m: AtomicI64,
    /// The highest reading that a thread has told the others of.
    told: AtomicU64,
    /// The wall clock's lead over the monotonic one, by monotonic time.
    lead: fn(i64) -> i64,
}

impl Stage {
    /// The monotonic clock, which this reading moves by `stride`.
    fn m(&self, stride: i64) -> i64 {
        self.m.fetch_add(stride, Relaxed) + stride
    }

    fn wall(&self) -> i64 {
        let m = self.m(0);
        m + (self.lead)(m)
    }

    fn read(&self, stride: i64) -> u64 {
        let shown = self.slew.read(|| self.m(stride), || self.wall());
        shown.try_into().expect("a wall clock after 1970")
    }

    /// Reads as often as there are strides, after what the others told and after each other.
    fn watch(&self, strides: &[i64]) {
        for stride in strides {
            let earlier = self.told.load(Acquire);
            let shown = self.read(stride * UNIT);
            assert!(shown >= earlier, "{shown} after {earlier}");
            self.told.fetch_max(shown, Release);
        }
    }
}

/// The wall clock is read once in peace; then each thread reads with its strides.
fn scene(
    name: &str,
    bound: Option<usize>,
    lead: fn(i64) -> i64,
    threads: &'static [&'static [i64]],
) {
    play(name, bound, move || {
        let stage = Arc::new(Stage {
            slew: Slew::new(),
            m: AtomicI64::new(START),
            told: AtomicU64::new(0),
            lead,
        });
        stage.watch(&[0]);
        let (first, others) = threads.split_first().expect("a thread");
        let others: alloc::vec::Vec<_> = others
            .iter()
            .map(|strides| {
                let stage = Arc::clone(&stage);
                thread::spawn(move || stage.watch(strides))
            })
            .collect();
        stage.watch(first);
        for other in others {
            other.join().expect("a thread panicked");
        }
        stage.watch(&[0, 1]);
    });
}

/// Set back by 50 lines once the first line is over.
fn back(m: i64) -> i64 {
    if m < START + HOLDS_NS {
        LEAD
    } else {
        LEAD - 50 * HOLDS_NS
    }
}

fn forwards(m: i64) -> i64 {
    if m < START + HOLDS_NS {
        LEAD
    } else {
        LEAD + 50 * HOLDS_NS
    }
}

/// Back, and forwards again with the next look.
fn to_and_fro(m: i64) -> i64 {
    if m < START + 2 * HOLDS_NS {
        back(m)
    } else {
        LEAD
    }
}

/// The first thread sees the step; the second runs ahead of it on the old line, or does not.
#[test]
fn a_one_replaces_while_one_reads() {
    scene(
        "unix a one replaces while one reads",
        Some(2),
        back,
        &[&[10, 1], &[4, 1]],
    );
}

#[test]
fn b_both_replace() {
    scene("unix b both replace", Some(2), back, &[&[10, 10], &[10, 1]]);
}

#[test]
fn c_a_step_forwards() {
    scene(
        "unix c a step forwards",
        Some(2),
        forwards,
        &[&[10, 1], &[4, 10]],
    );
}

#[test]
fn d_to_and_fro() {
    scene(
        "unix d to and fro",
        Some(2),
        to_and_fro,
        &[&[10, 10], &[4, 10]],
    );
}

#[test]
fn e_three_threads() {
    scene("unix e three threads", Some(1), back, &[&[10], &[4], &[1]]);
}
