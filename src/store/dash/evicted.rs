//! What evicted keys still owe.
//!
//! A full map looks at a few keys only and evicts the one of them with the least debt. That key may come back to find room,
//! or to other neighbours that owe less, and would be forgiven. So each shard keeps a row of words: the place that a key's hash
//! chooses remembers the largest debt evicted from there, and every key that is new to the map starts with its place's debt.
//! Nobody who comes back finds less than it left; strangers on one place share the stricter debt, as they share a slot in a
//! `TableStore`. The row is allocated with the first eviction, and takes 8 bytes for each key the shard may hold.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use crate::state::State;
use crate::sync::Lock;

#[derive(Debug)]
pub(super) struct EvictedDebts<S> {
    shards: Box<[Lock<Vec<S>>]>,
    places: usize,
}

impl<S: State> EvictedDebts<S> {
    pub(super) fn new(shards: usize, keys_per_shard: usize) -> Self {
        Self {
            shards: (0..shards).map(|_| Lock::new(Vec::new())).collect(),
            places: keys_per_shard,
        }
    }

    /// The state a new key with `hash` starts with.
    pub(super) fn get(&self, shard: usize, hash: u64) -> S {
        self.shards[shard].with(|debts| debts.get(self.place(hash)).cloned().unwrap_or_default())
    }

    /// Remembers the state of an evicted key, if it owes more than those before it. `debt_ns` tells what a state owes; the words
    /// themselves cannot be compared, since they may mean different things.
    pub(super) fn add(&self, shard: usize, hash: u64, state: S, debt_ns: impl Fn(&S) -> u64) {
        let place = self.place(hash);
        self.shards[shard].with(|debts| {
            if debts.is_empty() {
                *debts = vec![S::FRESH; self.places];
            }
            if debt_ns(&debts[place]) < debt_ns(&state) {
                debts[place] = state;
            }
        });
    }

    /// Frees rows in which `is_paid` holds for every debt.
    pub(super) fn forget_if(&self, is_paid: impl Fn(&S) -> bool) {
        for shard in &self.shards {
            shard.with(|debts| {
                if debts.iter().all(&is_paid) {
                    *debts = Vec::new();
                }
            });
        }
    }

    /// Other bits of the hash than those that choose the shard.
    #[allow(clippy::cast_possible_truncation)] // reduced to the row
    fn place(&self, hash: u64) -> usize {
        hash.rotate_right(17) as usize % self.places
    }
}
