//! Room for new keys in a bounded map, made by the new keys themselves.
//!
//! A full shard must give one entry up. To look at all of them (`retain`) takes 35 µs for 4000 keys, for every new key
//! of a flood; looking at 16 neighbours of a place that the new key's hash chooses takes 0.15 µs, and the keyed hash makes
//! them a random sample. hashbrown's raw table offers that through unchecked indices only.
#![allow(unsafe_code)] // see above

use alloc::borrow::ToOwned;
use core::borrow::Borrow;
use core::hash::{BuildHasher as _, Hash};
use core::time::Duration;

use dashmap::SharedValue;

use super::{CellOf, DashStore};
use crate::algorithm::Algorithm;
use crate::clock::{Clock, FixedClock};
use crate::decision::Decision;
use crate::request::Request;
use crate::store::cell::Cell;
use crate::store::counters::Event;
use crate::store::overflow::{Overflow, denied, of_newcomer};

/// Entries that a new key looks at in a full shard.
const SAMPLE: usize = 16;

impl<K: Eq + Hash, A: Algorithm, C> DashStore<K, A, C> {
    /// Answers a request for a key that was not there a moment ago.
    #[cold]
    #[inline(never)]
    pub(super) fn apply_to_new<Q, B>(
        &self,
        key: &Q,
        hash: u64,
        algorithm: &B,
        request: &Request,
        clock: &impl Clock,
    ) -> Decision
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ToOwned<Owned = K> + ?Sized,
        B: Algorithm<State = A::State>,
    {
        let shard = self.shard_of(hash);
        let hash_of = |entry: &(K, SharedValue<CellOf<A>>)| self.cells.hasher().hash_one(&entry.0);
        let mut table = self.cells.shards()[shard].write();
        if let Some((_, cell)) = table.get(hash, |(held, _)| held.borrow() == key) {
            return cell.get().apply(algorithm, request, clock).decision; // brought meanwhile
        }

        let is_full = table.len() >= self.keys_per_shard;
        let must_grow = table.len() == table.capacity();
        let mut least_in_debt: Option<(usize, Duration)> = None;
        if is_full || must_grow {
            let now = FixedClock(clock.now());
            let buckets = table.buckets();
            let (mut seen, mut dropped) = (0, 0);
            let sample = if is_full { SAMPLE } else { usize::MAX };
            // Other bits of the hash than those that choose the shard and the key's own bucket.
            #[allow(clippy::cast_possible_truncation)] // reduced to the table
            let start = hash.rotate_right(29) as usize;
            for offset in 0..buckets {
                let index = start.wrapping_add(offset) % buckets;
                // SAFETY: `index` is below `buckets`, the table is allocated if it has any full bucket, and the write
                // lock keeps it as it is.
                if !unsafe { table.is_bucket_full(index) } {
                    continue;
                }
                // SAFETY: as above; the bucket is full, so it holds an entry.
                let bucket = unsafe { table.bucket(index) };
                // SAFETY: the reference does not outlive this statement, before anything is erased.
                let cell = unsafe { bucket.as_ref() }.1.get();
                let peek = cell.apply(algorithm, &Request::PEEK, &now).decision;
                let debt = peek.reset_after();
                if debt.is_zero() {
                    // SAFETY: the bucket is full and of this table, and is not used again.
                    unsafe { table.erase(bucket) };
                    self.counters.count(shard, Event::Replaced);
                    dropped += 1;
                } else if least_in_debt.is_none_or(|(_, least)| debt < least) {
                    least_in_debt = Some((index, debt));
                }
                seen += 1;
                if seen == sample {
                    break;
                }
            }
            if dropped > 0 {
                least_in_debt = None; // there is room
            }
            if !is_full && dropped < table.len() / 2 {
                // Growing now keeps the next sweep as many inserts away as this one took steps.
                let room = table.len().max(3);
                table.reserve(room, hash_of);
            }
        }

        if let (true, Some((index, debt))) = (is_full, least_in_debt) {
            self.counters.count(shard, Event::Overflowed);
            match self.overflow {
                Overflow::Inherit => {
                    // SAFETY: this index held an entry under the same lock, and none was erased since.
                    let bucket = unsafe { table.bucket(index) };
                    // SAFETY: the reference ends before the entry is removed.
                    let cell = unsafe { bucket.as_ref() }.1.get();
                    let step = cell.apply(algorithm, of_newcomer(request), clock);
                    if step.keep.is_some() && step.decision.is_allowed() {
                        // SAFETY: the bucket is full and of this table, and is not used again.
                        let ((_, cell), _) = unsafe { table.remove(bucket) };
                        table.insert(hash, (key.to_owned(), cell), hash_of);
                    }
                    return step.decision;
                }
                Overflow::Deny => {
                    let fresh = CellOf::<A>::FRESH.apply(algorithm, request, clock).decision;
                    return denied(&fresh, request, debt);
                }
                Overflow::Admit => {
                    return CellOf::<A>::FRESH.apply(algorithm, request, clock).decision;
                }
            }
        }

        let cell = CellOf::<A>::FRESH;
        let step = cell.apply(algorithm, request, clock);
        if step.keep.is_some() {
            table.insert(hash, (key.to_owned(), SharedValue::new(cell)), hash_of);
        }
        step.decision
    }
}
