//! Real threads on one table, with a frozen clock: afterwards the books must balance. `model` plays small scenes in
//! every order; this plays large ones in whatever order the machine has.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::time::Duration;
use std::sync::Barrier;
use std::thread;

use super::packing::SlotState;
use super::{TableStore, Ways};
use crate::algorithm::TokenBucket;
use crate::clock::ManualClock;
use crate::request::Request;
use crate::store::MemoryStore;
use crate::store::overflow::Overflow;
use crate::sync::Ordering;
use crate::time::Timestamp;

const ROUNDS: u64 = 10;
const THREADS: u64 = 3;
const CALLS: u64 = 20_000;
const KEYS: u64 = 24;
const BURST: u64 = 1_000;
const T: u64 = 1_000_000;
const NOW: u64 = 5_000_000_000;

type Table = TableStore<ManualClock>;
/// Tokens for each key.
type Book = BTreeMap<u64, u64>;

fn table(slots: usize, ways: Ways, overflow: Overflow, round: u64) -> Table {
    let clock = ManualClock::new();
    clock.set(Timestamp::from_nanos(NOW));
    TableStore::with_seed(slots, round.into(), clock)
        .expect("a legal capacity")
        .with_ways(ways)
        .with_overflow(overflow)
}

/// Every thread asks for random keys, and gives every `refund_every`th token back. Returns what each key kept.
fn hammer(table: &Table, round: u64, refund_every: Option<u64>) -> Book {
    let bucket = TokenBucket::new(1, Duration::from_nanos(T), BURST).expect("a legal limit");
    let start = Barrier::new(THREADS.try_into().expect("few threads"));
    let work = |thread: u64| {
        let mut random = (round * THREADS + thread + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut book = Book::new();
        start.wait();
        for call in 0..CALLS {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let key = random % KEYS;
            let decision = table.decide(&key, &bucket, Request::ONE);
            let granted = decision.granted();
            if granted > 0 && refund_every.is_some_and(|n| call % n == 0) {
                let refund = Request::refund(1, decision.into_receipt());
                let _ = table.decide(&key, &bucket, refund);
            } else {
                *book.entry(key).or_default() += granted;
            }
        }
        book
    };
    let mut total = Book::new();
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|i| scope.spawn(move || work(i))).collect();
        for thread in threads {
            for (key, granted) in thread.join().expect("a thread panicked") {
                *total.entry(key).or_default() += granted;
            }
        }
    });
    total
}

/// What the slots say each tag of each set owes. Panics if a key has two.
fn debts(table: &Table) -> BTreeMap<(usize, u64), u64> {
    let layout = u64::LAYOUT;
    let mut debts = BTreeMap::new();
    let sets = table.memory.slots().chunks_exact(table.ways.count());
    for (set, slots) in sets.take(table.memory.sets(table.ways)).enumerate() {
        for slot in slots {
            let word = slot.load(Ordering::Relaxed);
            if word.tag(layout) == 0 {
                continue;
            }
            let tat = u64::try_from(word.state(layout)).expect("64 bits");
            let twice = debts.insert((set, word.tag(layout)), tat.saturating_sub(NOW) / T);
            assert_eq!(twice, None, "a key owns two slots");
        }
    }
    debts
}

/// Each key owes what it was granted, and one that is not there was granted nothing.
fn assert_exact(table: &Table, granted: &Book) {
    let debts = debts(table);
    let places: BTreeSet<_> = (0..KEYS).map(|key| table.locate(&key)).collect();
    assert_eq!(places.len() as u64, KEYS, "two keys share a tag");
    for (key, tokens) in granted {
        let (tag, set) = table.locate(key);
        let owed = debts.get(&(set, tag)).copied().unwrap_or(0);
        assert_eq!(owed, *tokens, "key {key}");
    }
}

#[test]
fn with_room_for_all_every_key_gets_its_burst() {
    for round in 0..ROUNDS {
        let table = table(64, Ways::Eight, Overflow::Inherit, round);
        let granted = hammer(&table, round, None);
        assert_exact(&table, &granted);
        assert_eq!(granted.into_values().sum::<u64>(), KEYS * BURST);
    }
}

#[test]
fn debt_stays_in_a_table_that_is_too_small() {
    for round in 0..ROUNDS {
        let table = table(16, Ways::Four, Overflow::Inherit, round);
        let granted = hammer(&table, round, None);
        let over = granted.iter().find(|(_, tokens)| **tokens > BURST);
        assert_eq!(over, None, "a key passed more than its limit");
        let owed: u64 = debts(&table).into_values().sum();
        assert_eq!(granted.into_values().sum::<u64>(), owed);
    }
}

#[test]
fn refunds_and_refusals_keep_exact_books() {
    for round in 0..ROUNDS {
        let table = table(16, Ways::Four, Overflow::Deny, round);
        let kept = hammer(&table, round, Some(3));
        assert_exact(&table, &kept);
        assert!(kept.into_values().all(|tokens| tokens <= BURST));
    }
}
