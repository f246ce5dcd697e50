//! The lap ring: how the slots of a set change hands so that no key ever owns two.
//!
//! # Problem
//! Two threads bring the same new key. Each finds it absent, each takes a different free slot, and the key has two
//! bursts. Locks would exclude it, and make an interrupt handler wait for ever; marks and nonces need several words.
//!
//! # Protocol
//! Every slot counts *laps*. Read from slot 0, the laps of a set of `W` slots are `n+1` for the first `h` and `n` for
//! the rest; slot `h` is the **head**. Only the head may change its owner or its lap, and doing so raises its lap by
//! one, which makes the next slot the head. So the set is a log: ownership changes in one agreed order, and change
//! number `k` is one exchange on one known slot from one known lap.
//!
//! * A *charge* exchanges the state of the key's slot; owner and lap stay.
//! * An *insert* looks at all slots, and if the key is not there, walks the head to a slot whose state is as good as
//!   new by *rotations* (the lap grows, owner and state stay), and exchanges that slot for the new key with its first
//!   charge. Any lost exchange starts it over.
//!
//! # Why a key owns one slot
//! Whoever wins change `k` saw exactly the laps of "after change `k − 1`", each in a word together with its owner. An
//! owner only changes with its slot's lap and laps do not repeat (but for wrap-around, see the store's documentation),
//! so the owners it saw *are* the owners at that moment. The key was not among them, so it is not in the set before
//! the change, and once after it.
//!
//! Nothing half-done is ever visible: an insert is its last exchange, a charge its only one, a refusal its load. The
//! exchange carries the very state that was found to be as good as new, so an eviction loses nothing. A thread only
//! fails because another one charged or changed an owner, so the set is lock-free.
//!
//! This is Dijkstra's K-state token ring used as a clock hand over the claim and re-scan of Purcell and Harris
//! ("Non-blocking hashtables with open addressing", 2005).
//!
//! # Orderings
//! The argument above needs none: owner, lap and state are one word, and it uses only the order of changes to each single
//! word and the atomicity of exchanges. But `repair` sets a lap back, and to repair a ring that is whole would break the
//! argument: played with everything `Relaxed`, the models end with two slots for one key. So the scan's `Acquire` loads
//! pair with the `Release` half of the exchanges of owners and laps: two scans with the same illegal laps then prove the
//! ring broken, and cannot be two mixtures of old and new words. (The exchanges' acquire half is not needed; it stays
//! because nothing was gained without it.) Charges publish nothing but their own word and are `Relaxed`.

use core::array;
use core::time::Duration;

use super::packing::{SlotState, Word};
use super::slot::{Slot, SlotWord};
use crate::algorithm::{Algorithm, Step};
use crate::decision::Decision;
use crate::request::Request;
use crate::store::counters::Event;
use crate::store::overflow::{Overflow, denied, newcomer, wants_tokens};
use crate::sync::Ordering;
use crate::time::Timestamp;

/// One set of `W` slots.
pub(super) struct Set<'a, const W: usize> {
    slots: &'a [Slot; W],
}

/// A request with all it takes to answer it.
pub(super) struct Asked<'a, A> {
    pub(super) algorithm: &'a A,
    pub(super) request: &'a Request,
    pub(super) now: Timestamp,
}

/// Whether a charge was carried out on the key's own slot.
enum Charged {
    Done(Decision),
    /// The slot is somebody else's by now.
    Lost,
}

impl<'a, const W: usize> Set<'a, W> {
    /// Set number `index` of a table.
    #[inline]
    pub(super) fn of(slots: &'a [Slot], index: usize) -> Self {
        let slots = slots[index * W..].first_chunk();
        Self {
            slots: slots.expect("a table has whole sets"),
        }
    }

    #[inline(always)] // with `charge` and what leads here: 67 against 78 ns, the step copied through memory
    pub(super) fn decide<A>(
        &self,
        tag: u64,
        asked: Asked<'_, A>,
        overflow: Overflow,
        count: impl Fn(Event),
    ) -> Decision
    where
        A: Algorithm<State: SlotState>,
    {
        for slot in self.slots {
            // Relaxed: the word is all there is to know, see "Orderings".
            let word = slot.load(Ordering::Relaxed);
            if word.tag(A::State::LAYOUT) == tag {
                match charge(slot, word, &asked) {
                    Charged::Done(decision) => return decision,
                    Charged::Lost => break,
                }
            }
        }
        self.decide_absent(tag, asked, overflow, count)
    }

    /// The key was not seen: charge it if it is there now, insert it if not.
    #[cold]
    #[inline(never)]
    fn decide_absent<A>(
        &self,
        tag: u64,
        asked: Asked<'_, A>,
        overflow: Overflow,
        count: impl Fn(Event),
    ) -> Decision
    where
        A: Algorithm<State: SlotState>,
    {
        let layout = A::State::LAYOUT;
        let count_overflow = || {
            if wants_tokens(asked.request) {
                count(Event::Overflowed);
            }
        };
        let mut broken = None;
        loop {
            // Acquire pairs with the AcqRel of `change_owner`, for the sake of `repair`.
            let words: [SlotWord; W] = array::from_fn(|i| self.slots[i].load(Ordering::Acquire));
            if let Some(i) = words.iter().position(|word| word.tag(layout) == tag) {
                match charge(&self.slots[i], words[i], &asked) {
                    Charged::Done(decision) => return decision,
                    Charged::Lost => continue,
                }
            }
            let Some(head) = self.head::<A::State>(&words) else {
                let owners = words.map(|word| word.owner(layout));
                if broken == Some(owners) {
                    self.repair::<A::State>(&words);
                    broken = None;
                } else {
                    broken = Some(owners); // perhaps a mixture of old and new words: look again
                }
                continue;
            };
            broken = None;

            let place = self.place(&words, head, &asked);
            if place.overflows {
                match overflow.for_state::<A::State>() {
                    Overflow::Inherit => {}
                    Overflow::Deny => {
                        count_overflow();
                        let wait = Duration::from_nanos(place.debt_ns);
                        return denied(&fresh_step(&asked).decision, asked.request, wait);
                    }
                    Overflow::Admit => {
                        count_overflow();
                        return fresh_step(&asked).decision;
                    }
                }
            }
            let word = words[place.index];
            let inherited = if place.overflows {
                word.state(layout)
            } else {
                0
            };
            let (state, step) = step_newcomer(&asked, inherited);
            let done = step.keep.is_none()
                || self.insert::<A::State>(&words, head, place.index, tag, state);
            if done {
                if place.overflows {
                    count_overflow();
                } else if step.keep.is_some() && word.tag(layout) != 0 {
                    count(Event::Replaced);
                }
                return step.decision;
            }
        }
    }

    /// The slot whose turn it is, if the laps are legal.
    #[inline]
    fn head<S: SlotState>(&self, words: &[SlotWord; W]) -> Option<usize> {
        let layout = S::LAYOUT;
        let first = words[0].lap(layout);
        let behind = first.wrapping_sub(1) & layout.lap_mask();
        let head = words
            .iter()
            .position(|word| word.lap(layout) != first)
            .unwrap_or(0);
        let rest_is_behind = words[head..].iter().all(|word| word.lap(layout) == behind);
        (head == 0 || rest_is_behind).then_some(head)
    }

    /// Where a newcomer goes: to the first slot that is as good as new, else to the one with the least debt.
    #[inline]
    fn place<A>(&self, words: &[SlotWord; W], head: usize, asked: &Asked<'_, A>) -> Place
    where
        A: Algorithm<State: SlotState>,
    {
        let mut least = Place {
            index: head,
            debt_ns: u64::MAX,
            overflows: true,
        };
        // From the head on, so that a free slot costs the fewest rotations.
        for offset in 0..W {
            let index = (head + offset) % W;
            let debt_ns = debt_ns(words[index], asked.algorithm, asked.now);
            if debt_ns == 0 {
                return Place {
                    index,
                    debt_ns,
                    overflows: false,
                };
            }
            if debt_ns < least.debt_ns {
                least = Place {
                    index,
                    debt_ns,
                    overflows: true,
                };
            }
        }
        least
    }

    /// Walks the head to slot `victim` and gives that to `tag`. Fails at the first word that is not as it was seen.
    #[inline]
    fn insert<S: SlotState>(
        &self,
        words: &[SlotWord; W],
        head: usize,
        victim: usize,
        tag: u64,
        state: Word,
    ) -> bool {
        let layout = S::LAYOUT;
        let next_lap = |word: SlotWord| (word.lap(layout) + 1) & layout.lap_mask();
        let mut index = head;
        while index != victim {
            let word = words[index];
            if !change_owner(
                &self.slots[index],
                word,
                word.with_lap(layout, next_lap(word)),
            ) {
                return false;
            }
            index = (index + 1) % W;
        }
        let word = words[victim];
        change_owner(
            &self.slots[victim],
            word,
            SlotWord::new(layout, tag, next_lap(word), state),
        )
    }

    /// Heals laps that a wrap-around left illegal, by copying each from its predecessor where the order breaks.
    #[cold]
    fn repair<S: SlotState>(&self, words: &[SlotWord; W]) {
        #[cfg(all(test, loom))]
        super::model::note_repair();
        let layout = S::LAYOUT;
        let first = words[0].lap(layout);
        let mut expected = first;
        for (slot, word) in self.slots.iter().zip(words).skip(1) {
            let lap = word.lap(layout);
            let one_behind = expected.wrapping_sub(1) & layout.lap_mask();
            if lap == expected || (expected == first && lap == one_behind) {
                expected = lap;
            } else {
                // Lost or won, the next scan decides anew.
                change_owner(slot, *word, word.with_lap(layout, expected));
                return;
            }
        }
    }

    /// Makes the key's state that of a key never seen. Returns whether it was there, in another state.
    pub(super) fn remove<S: SlotState>(&self, tag: u64) -> bool {
        for slot in self.slots {
            let mut word = slot.load(Ordering::Relaxed);
            while word.tag(S::LAYOUT) == tag {
                if word.state(S::LAYOUT) == 0 {
                    return false;
                }
                match slot.exchange(word, word.with_state(S::LAYOUT, 0), Ordering::Relaxed) {
                    Ok(()) => return true,
                    Err(newer) => word = newer,
                }
            }
        }
        false
    }
}

/// Where a newcomer goes.
struct Place {
    index: usize,
    /// What the slot's key owes; 0 if losing it loses nothing.
    debt_ns: u64,
    /// No slot was free of debt, and this one has the least.
    overflows: bool,
}

/// Steps the state in `slot`, which held `word` of the right key.
#[inline(always)]
fn charge<A>(slot: &Slot, mut word: SlotWord, asked: &Asked<'_, A>) -> Charged
where
    A: Algorithm<State: SlotState>,
{
    let layout = A::State::LAYOUT;
    let tag = word.tag(layout);
    loop {
        let mut state = word.state(layout);
        let step = A::State::step_packed(asked.algorithm, asked.now, &mut state, asked.request);
        if step.keep.is_none() {
            return Charged::Done(step.decision);
        }
        // Relaxed: nothing but the word itself is published, see "Orderings".
        match slot.exchange(word, word.with_state(layout, state), Ordering::Relaxed) {
            Ok(()) => return Charged::Done(step.decision),
            // Charged or passed over by another thread, still this key's: decide on the newer state.
            Err(newer) if newer.tag(layout) == tag => word = newer,
            Err(_) => return Charged::Lost,
        }
    }
}

/// Exchanges a word for one with another lap, and perhaps another owner.
#[inline]
fn change_owner(slot: &Slot, old: SlotWord, new: SlotWord) -> bool {
    // Release pairs with the Acquire of the scan in `decide_absent`: who sees this lap sees all that came before it, and so
    // does not take a mixture of words for a broken ring.
    slot.exchange(old, new, Ordering::AcqRel).is_ok()
}

/// How long until the state in `word` is as good as new; an empty slot is.
#[inline]
fn debt_ns<A>(word: SlotWord, algorithm: &A, now: Timestamp) -> u64
where
    A: Algorithm<State: SlotState>,
{
    debt_ns_of(word.state(A::State::LAYOUT), algorithm, now)
}

#[inline]
fn debt_ns_of<A>(state: Word, algorithm: &A, now: Timestamp) -> u64
where
    A: Algorithm<State: SlotState>,
{
    if state == 0 {
        return 0;
    }
    A::State::debt_packed(algorithm, now, state)
}

/// Whether a slot is free to be taken.
pub(super) fn is_fresh<A>(slot: &Slot, algorithm: &A, now: Timestamp) -> bool
where
    A: Algorithm<State: SlotState>,
{
    debt_ns(slot.load(Ordering::Relaxed), algorithm, now) == 0
}

/// What a key never seen would be answered.
fn fresh_step<A>(asked: &Asked<'_, A>) -> Step
where
    A: Algorithm<State: SlotState>,
{
    A::State::step_packed(asked.algorithm, asked.now, &mut 0, asked.request)
}

/// The first step of a key that starts with `inherited`; see [`newcomer`].
fn step_newcomer<A>(asked: &Asked<'_, A>, inherited: Word) -> (Word, Step)
where
    A: Algorithm<State: SlotState>,
{
    let Asked {
        algorithm,
        request,
        now,
    } = *asked;
    newcomer(
        algorithm,
        request,
        inherited,
        |state, request| A::State::step_packed(algorithm, now, state, request),
        |state| debt_ns_of(*state, algorithm, now),
    )
}
