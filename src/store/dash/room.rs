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
use crate::decision::Decision;
use crate::request::Request;
use crate::store::cell::Cell;
use crate::store::counters::Event;
use crate::store::overflow::{Overflow, denied, newcomer, wants_tokens};
use crate::time::Timestamp;

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
        now: Timestamp,
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
            return cell.get().apply(algorithm, request, now).decision; // brought meanwhile
        }

        // Decide first, on a state of its own; only a key that was charged takes a place.
        let inherited = self.evicted.get(shard, hash);
        let owes = algorithm.debt_ns(now, &inherited) > 0;
        let (newcomer, step) = newcomer(
            algorithm,
            request,
            inherited,
            |state, request| algorithm.step(now, state, request),
            |state| algorithm.debt_ns(now, state),
        );
        let count_overflow = || {
            if wants_tokens(request) {
                self.counters.count(shard, Event::Overflowed);
            }
        };
        if owes {
            count_overflow();
        }
        let takes_place = step.keep.is_some();
        let policy = self.overflow.for_state::<A::State>();
        // Where new keys are refused for want of room, a peek must say so, too.
        if !takes_place && policy != Overflow::Deny {
            return step.decision;
        }

        let is_full = table.len() >= self.keys_per_shard;
        let grows = takes_place && table.len() == table.capacity();
        if is_full || grows {
            let buckets = table.buckets();
            let (mut seen, mut as_good_as_new) = (0, 0);
            let mut least_in_debt = (0, u64::MAX);
            let sample = if is_full { SAMPLE } else { usize::MAX };
            // Other bits of the hash than those that choose the shard and the key's own bucket.
            #[allow(clippy::cast_possible_truncation)] // reduced to the table
            let start = hash.rotate_right(29) as usize;
            for offset in 0..buckets {
                let index = start.wrapping_add(offset) % buckets;
                // SAFETY: `index` is below `buckets`, and the write lock keeps the table as it is.
                if !unsafe { table.is_bucket_full(index) } {
                    continue;
                }
                // SAFETY: as above; a table with a full bucket is allocated.
                let bucket = unsafe { table.bucket(index) };
                // SAFETY: the bucket is full, and the reference ends with this statement.
                let cell = unsafe { bucket.as_ref() }.1.get();
                let debt_ns = cell.with_state(|state| algorithm.debt_ns(now, state));
                if debt_ns > 0 {
                    if debt_ns < least_in_debt.1 {
                        least_in_debt = (index, debt_ns);
                    }
                } else {
                    as_good_as_new += 1;
                    if takes_place {
                        // SAFETY: the bucket is full and of this table, and is not used again.
                        unsafe { table.erase(bucket) };
                        self.counters.count(shard, Event::Replaced);
                    }
                }
                seen += 1;
                if seen == sample {
                    break;
                }
            }

            if is_full && as_good_as_new == 0 {
                if !owes {
                    count_overflow();
                }
                match policy {
                    Overflow::Inherit => {
                        // SAFETY: this index held an entry under the same lock, and none was erased since.
                        let bucket = unsafe { table.bucket(least_in_debt.0) };
                        // SAFETY: the bucket is full and of this table, and is not used again.
                        let (entry, _) = unsafe { table.remove(bucket) };
                        let state = entry.1.get().with_state(Clone::clone);
                        self.evicted.add(shard, hash_of(&entry), state, |state| {
                            algorithm.debt_ns(now, state)
                        });
                    }
                    Overflow::Deny => {
                        let wait = Duration::from_nanos(least_in_debt.1);
                        return denied(&step.decision, request, wait);
                    }
                    Overflow::Admit => return step.decision,
                }
            } else if grows && as_good_as_new < table.len() {
                // Growing now keeps the next sweep as many inserts away as this one took steps. The last time, there must be
                // twice the room that will be needed: a table more than half full grows when the traces of removed entries
                // have used it up, instead of clearing them.
                let full_size = 2 * self.keys_per_shard;
                let doubled = (2 * table.len()).max(4);
                let size = if doubled > self.keys_per_shard {
                    full_size
                } else {
                    doubled
                };
                let room = size - table.len();
                table.reserve(room, hash_of);
            }
        }
        if takes_place {
            let cell = SharedValue::new(CellOf::<A>::holding(newcomer));
            table.insert(hash, (key.to_owned(), cell), hash_of);
        }
        step.decision
    }
}
