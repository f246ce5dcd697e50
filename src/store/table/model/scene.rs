//! The stage of the models: a set of slots, threads with a script each, and what must hold when they are done.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cell::Cell;
use core::ops::RangeInclusive;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use core::time::Duration;
use std::println;
use std::time::Instant;

use super::watched::{self, Memory};
use crate::algorithm::TokenBucket;
use crate::request::{Receipt, Request};
use crate::store::overflow::Overflow;
use crate::store::table::packing::SlotState;
use crate::store::table::set::{Asked, Set};
use crate::store::table::slot::{Slot, SlotWord};
use crate::sync::Ordering;
use crate::time::Timestamp;

/// Nanoseconds per token.
pub(super) const T: u64 = 10;
/// The instant at which all is asked, unless a scene says otherwise.
pub(super) const NOW: u64 = 1_000;

/// What a slot holds before or after a scene.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    tag: u64,
    lap: u64,
    tat: u64,
}

/// A slot that nobody owns.
pub(super) const fn empty(lap: u64) -> Held {
    Held {
        tag: 0,
        lap,
        tat: 0,
    }
}

/// A slot whose key is as good as new.
pub(super) const fn full(tag: u64, lap: u64) -> Held {
    until(tag, lap, NOW - 1)
}

/// A slot whose key took so many tokens just now.
pub(super) const fn owes(tag: u64, lap: u64, tokens: u64) -> Held {
    until(tag, lap, NOW + tokens * T)
}

pub(super) const fn until(tag: u64, lap: u64, tat: u64) -> Held {
    Held { tag, lap, tat }
}

/// One call of one thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    tag: u64,
    what: What,
    now: u64,
}

#[derive(Clone, Copy, Debug)]
enum What {
    TakeOne,
    /// Gives so many tokens back, with the receipt of a charge of as many that left the slot at that TAT.
    Refund(u64, u64),
    Remove,
}

pub(super) const fn take(tag: u64) -> Call {
    Call {
        tag,
        what: What::TakeOne,
        now: NOW,
    }
}

/// Gives back `tokens` of the debt that `held` starts with.
pub(super) const fn refund(held: Held, tokens: u64) -> Call {
    Call {
        what: What::Refund(tokens, held.tat),
        ..take(held.tag)
    }
}

pub(super) const fn remove(tag: u64) -> Call {
    Call {
        what: What::Remove,
        ..take(tag)
    }
}

impl Call {
    /// The same by a thread whose clock shows `now`.
    pub(super) const fn at(self, now: u64) -> Self {
        Self { now, ..self }
    }
}

/// How much of a model is played.
#[derive(Clone, Copy, Debug)]
pub(super) enum Bound {
    /// Every execution.
    All,
    /// Those with so many preemptions at most.
    Preemptions(usize),
}

/// What must add up when all threads are done.
#[derive(Clone, Copy, Debug)]
pub(super) enum Books {
    /// Each resident key owes what it owed before and was granted, less what it gave back; a key that is not there
    /// owes nothing by that count.
    Exact,
    /// All slots together owe what they owed before and all that was granted, less what the refunds found to give
    /// back.
    Together,
    /// Only the limit: no key was granted more than its burst, and these tokens.
    Within(u64),
}

pub(super) struct Scene<const W: usize> {
    pub(super) slots: [Held; W],
    pub(super) burst: u64,
    pub(super) overflow: Overflow,
    /// What each thread calls, one after the other.
    pub(super) threads: Vec<Vec<Call>>,
    pub(super) books: Books,
    /// Tokens granted to all keys, at least and at most.
    pub(super) granted: RangeInclusive<u64>,
    /// Most preemptions per execution in weak and in strong memory.
    pub(super) bounds: [Bound; 2],
}

std::thread_local! {
    /// Repairs in this execution. All threads of a model take turns on one real thread.
    static REPAIRS: Cell<u64> = const { Cell::new(0) };
}

/// Told by `Set::repair`.
pub(in crate::store::table) fn note_repair() {
    REPAIRS.set(REPAIRS.get() + 1);
}

/// What the threads share.
struct Stage<const W: usize> {
    slots: [Slot; W],
}

/// What a call gave and took: its tag, tokens granted, tokens it offered back.
type Entry = (u64, u64, u64);

impl<const W: usize> Scene<W> {
    /// Plays the scene in every order of its threads' steps that the bound allows, in both memories.
    pub(super) fn play(self, name: &str) {
        let scene = Arc::new(self);
        for (memory, bound) in [Memory::Weak, Memory::Strong].into_iter().zip(scene.bounds) {
            scene.play_in(memory, bound, name);
        }
    }

    #[allow(clippy::disallowed_methods)] // how long a model takes
    fn play_in(self: &Arc<Self>, memory: Memory, bound: Bound, name: &str) {
        watched::choose(memory, self.threads.len());
        let mut model = loom::model::Builder::new();
        if let Bound::Preemptions(most) = bound {
            // Or fewer, if the environment says so.
            let asked = model.preemption_bound.unwrap_or(most);
            model.preemption_bound = Some(most.min(asked));
        }
        let bound = model.preemption_bound;
        let executions = Arc::new(AtomicU64::new(0));
        let (scene, count) = (Arc::clone(self), Arc::clone(&executions));
        let start = Instant::now();
        model.check(move || {
            count.fetch_add(1, Relaxed);
            scene.once();
        });
        println!(
            "{name:<52} {memory:?} {} {:>9} executions {:>6.1} s",
            bound.map_or_else(|| String::from("all"), |b| format!("p{b} ")),
            executions.load(Relaxed),
            start.elapsed().as_secs_f64()
        );
    }

    fn once(self: &Arc<Self>) {
        REPAIRS.set(0);
        let stage = Arc::new(Stage {
            slots: self.slots.map(|held| {
                let lap = held.lap & u64::LAYOUT.lap_mask();
                Slot::holding(SlotWord::new(u64::LAYOUT, held.tag, lap, held.tat))
            }),
        });
        let others = 1..self.threads.len();
        let threads: Vec<_> = others
            .map(|i| {
                let (scene, stage) = (Arc::clone(self), Arc::clone(&stage));
                loom::thread::spawn(move || scene.perform(i, &stage))
            })
            .collect();
        let mut entries = self.perform(0, &stage);
        for thread in threads {
            entries.extend(thread.join().expect("a thread panicked"));
        }
        let end = stage.slots.each_ref().map(|slot| {
            let word = slot.load(Ordering::Relaxed);
            let layout = u64::LAYOUT;
            until(word.tag(layout), word.lap(layout), word.state(layout))
        });
        self.check(&end, &entries);
    }

    /// What thread `i` does.
    fn perform(&self, i: usize, stage: &Stage<W>) -> Vec<Entry> {
        watched::enter(i);
        let calls = self.threads[i].iter();
        calls
            .map(|call| call.make(stage, self.burst, self.overflow))
            .collect()
    }

    fn check(&self, end: &[Held; W], entries: &[Entry]) {
        for (i, held) in end.iter().enumerate() {
            let twice = held.tag != 0 && end[..i].iter().any(|other| other.tag == held.tag);
            assert!(!twice, "a key owns two slots: {end:?}");
        }
        assert!(legal(end), "illegal laps: {end:?}");
        if legal(&self.slots) {
            assert_eq!(REPAIRS.get(), 0, "repaired a ring that was whole");
        }

        let mut granted: BTreeMap<u64, u64> = BTreeMap::new();
        let mut offered: BTreeMap<u64, u64> = BTreeMap::new();
        for (tag, grant, back) in entries {
            *granted.entry(*tag).or_default() += grant;
            *offered.entry(*tag).or_default() += back;
        }
        let of = |book: &BTreeMap<u64, u64>, tag| book.get(&tag).copied().unwrap_or(0) * T;
        let before = |tag| {
            self.slots
                .iter()
                .find(|held| held.tag == tag)
                .map_or(0, debt)
        };
        let total: u64 = granted.values().sum();
        assert!(
            self.granted.contains(&total),
            "{total} granted instead of {:?}: {entries:?}",
            self.granted
        );

        let slack = if let Books::Within(extra) = self.books {
            extra
        } else {
            0
        };
        for &tag in granted.keys() {
            assert!(
                before(tag) + of(&granted, tag) <= (self.burst + slack) * T + of(&offered, tag),
                "key {tag} was granted more than its limit: {entries:?} {end:?}"
            );
        }
        match self.books {
            Books::Exact => {
                let known = self.slots.iter().map(|held| held.tag);
                for tag in known.chain(granted.keys().copied()).filter(|tag| *tag != 0) {
                    let owed = before(tag) + of(&granted, tag) - of(&offered, tag);
                    let found = end.iter().find(|held| held.tag == tag).map_or(0, debt);
                    assert_eq!(found, owed, "debt of key {tag}: {entries:?} {end:?}");
                }
            }
            Books::Together => {
                let sum = |slots: &[Held; W]| slots.iter().map(debt).sum::<u64>();
                let owed = sum(&self.slots) + total * T;
                let most_back = offered.values().sum::<u64>() * T;
                let back = owed.checked_sub(sum(end)).expect("debt from nowhere");
                assert!(back <= most_back, "debt was lost: {entries:?} {end:?}");
            }
            Books::Within(_) => {}
        }
    }
}

impl Call {
    fn make<const W: usize>(&self, stage: &Stage<W>, burst: u64, overflow: Overflow) -> Entry {
        let bucket = TokenBucket::new(1, Duration::from_nanos(T), burst).expect("a legal limit");
        let set = Set::<W>::of(&stage.slots, 0);
        let (request, offered) = match self.what {
            What::TakeOne => (Request::ONE, 0),
            What::Refund(tokens, tat) => {
                (Request::refund(tokens, Receipt::new(tokens, tat)), tokens)
            }
            What::Remove => {
                let forgiven = if set.remove::<u64>(self.tag) {
                    burst
                } else {
                    0
                };
                return (self.tag, 0, forgiven);
            }
        };
        let asked = Asked {
            algorithm: &bucket,
            request: &request,
            now: Timestamp::from_nanos(self.now),
        };
        let decision = set.decide(self.tag, asked, overflow, |_| {});
        (self.tag, decision.granted(), offered)
    }
}

/// Nanoseconds until the slot's key is as good as new.
fn debt(held: &Held) -> u64 {
    held.tat.saturating_sub(NOW)
}

/// `n + 1` for the first slots, `n` for the rest.
fn legal(slots: &[Held]) -> bool {
    let mask = u64::LAYOUT.lap_mask();
    let behind = |held: &Held| slots[0].lap.wrapping_sub(held.lap) & mask;
    let steps: Vec<u64> = slots.iter().map(behind).collect();
    steps.is_sorted() && steps.iter().all(|step| *step <= 1)
}
