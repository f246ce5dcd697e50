//! A bounded map from keys to short-lived notes, for wrappers that remember something.
//!
//! Set-associative: a key's note lives in one of the places of one set, and each set has its own lock. A new note takes the
//! place of the one that ends soonest. Keys are kept only as 64-bit hashes under a secret key, so two keys in a map of `n`
//! are taken for one with a probability of `n²/2⁶⁵`.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use core::hash::{BuildHasher as _, Hash};

use crate::store::hash::KeyedHash;
use crate::store::overflow::InvalidCapacity;
use crate::sync::Lock;

/// Places in a set.
const WAYS: usize = 8;

/// Keys remembered unless told otherwise.
const DEFAULT_CAPACITY: usize = 8_192;

/// Something to remember for a while.
pub(super) trait Note {
    /// From when on it is worth nothing, in nanoseconds.
    fn ends_ns(&self) -> u64;
}

pub(super) struct Sets<N> {
    sets: Box<[Lock<Set<N>>]>,
    hash: KeyedHash,
}

impl<N: Note> Sets<N> {
    /// Room for 8,192 keys.
    pub(super) fn new(hash: KeyedHash) -> Self {
        Self::in_sets(Vec::new(), DEFAULT_CAPACITY / WAYS, hash)
    }

    /// An empty map under the same key, with room for about `keys` keys, rounded up to whole sets.
    pub(super) fn resized(&self, keys: usize) -> Result<Self, InvalidCapacity> {
        if keys == 0 {
            return Err(InvalidCapacity::Zero);
        }
        let (count, mut sets) = (keys.div_ceil(WAYS), Vec::new());
        sets.try_reserve_exact(count)
            .map_err(|_| InvalidCapacity::TooLarge)?;
        Ok(Self::in_sets(sets, count, self.hash.clone()))
    }

    fn in_sets(mut sets: Vec<Lock<Set<N>>>, count: usize, hash: KeyedHash) -> Self {
        sets.resize_with(count, || Lock::new(Set::new()));
        let sets = sets.into_boxed_slice();
        Self { sets, hash }
    }

    #[allow(clippy::cast_possible_truncation)] // below the number of sets
    pub(super) fn place<K: Hash + ?Sized>(&self, key: &K) -> Place<'_, N> {
        let tag = self.hash.hash_one(key);
        let index = (u128::from(tag) * self.sets.len() as u128) >> 64;
        let set = &self.sets[index as usize];
        Place { set, tag }
    }

    /// Forgets everything but the counts.
    pub(super) fn clear(&self) {
        for set in &self.sets {
            set.with(|set| {
                set.notes = [const { None }; WAYS];
                set.version = set.version.wrapping_add(1);
            });
        }
    }

    /// Requests answered from notes.
    pub(super) fn hits(&self) -> u64 {
        self.sets
            .iter()
            .fold(0, |sum, set| sum.saturating_add(set.with(|set| set.hits)))
    }
}

/// Where a key's notes are.
pub(super) struct Place<'a, N> {
    set: &'a Lock<Set<N>>,
    pub(super) tag: u64,
}

impl<N: Note> Place<'_, N> {
    /// Looks at the key's set, alone.
    pub(super) fn with<R>(&self, f: impl FnOnce(&mut Set<N>) -> R) -> R {
        self.set.with(f)
    }
}

pub(super) struct Set<N> {
    tags: [u64; WAYS],
    notes: [Option<N>; WAYS],
    /// Requests answered from notes.
    pub(super) hits: u64,
    /// Moves when notes were dropped that somebody may be about to write again.
    pub(super) version: u64,
}

impl<N: Note> Set<N> {
    const fn new() -> Self {
        Self {
            tags: [0; WAYS],
            notes: [const { None }; WAYS],
            hits: 0,
            version: 0,
        }
    }

    /// The note with this tag that satisfies `wanted`.
    pub(super) fn find(&mut self, tag: u64, wanted: impl Fn(&N) -> bool) -> Option<&mut N> {
        self.tags
            .iter()
            .zip(&mut self.notes)
            .filter(|(found, _)| **found == tag)
            .find_map(|(_, note)| note.as_mut().filter(|note| wanted(note)))
    }

    /// Remembers a note, in place of the one that `replaced` says or else of the one that ends soonest.
    pub(super) fn put(&mut self, tag: u64, note: N, replaced: impl Fn(&N) -> bool) {
        if let Some(old) = self.find(tag, replaced) {
            *old = note;
            return;
        }
        let ends_ns = |note: &Option<N>| note.as_ref().map_or(0, Note::ends_ns);
        let places = self.tags.iter_mut().zip(&mut self.notes);
        if let Some((place_tag, place)) = places.min_by_key(|(_, note)| ends_ns(note)) {
            *place_tag = tag;
            *place = Some(note);
        }
    }

    /// Forgets every note with this tag.
    pub(super) fn remove(&mut self, tag: u64) {
        for (found, note) in self.tags.iter().zip(&mut self.notes) {
            if *found == tag {
                *note = None;
            }
        }
    }
}

impl<N: Note> fmt::Debug for Sets<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sets")
            .field("places", &(self.sets.len() * WAYS))
            .field("hits", &self.hits())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Bytes for each note, its share of the lock included.
    pub(in crate::store::wrap) const fn bytes_per_note<N>() -> usize {
        size_of::<Lock<Set<N>>>().div_ceil(WAYS)
    }
}
