//! A keyed store over `dashmap`: exact keys, states as atomics, and a bound on how many.
//!
//! A key that is already there takes a *shared* lock on its shard and one compare-exchange on its own state; only
//! new keys take the shard for themselves.

mod evicted;
mod room;

use alloc::borrow::ToOwned;
use core::borrow::Borrow;
use core::fmt;
use core::hash::{BuildHasher as _, Hash};
use core::marker::PhantomData;
use std::thread;

use dashmap::DashMap;

use self::evicted::EvictedDebts;
use crate::algorithm::{Algorithm, Carry, Change, TokenBucket};
use crate::clock::{Clock, StdClock};
use crate::decision::Decision;
use crate::request::Request;
use crate::state::State;
use crate::store::cell::Cell;
use crate::store::counters::Counters;
use crate::store::hash::KeyedHash;
use crate::store::one_kind::OneKind;
use crate::store::overflow::{InvalidCapacity, Overflow};
use crate::store::prefetch::prefetch;
use crate::store::{InProcess, MemoryStore};
use crate::time::Timestamp;

type CellOf<A> = <<A as Algorithm>::State as State>::Cell;

/// A keyed store over a concurrent map, for every algorithm with the state of `A`.
///
/// It keeps whole keys and can tell how many there are. Keys are hashed with a random key (`SipHash`-1-3), so
/// clients cannot choose keys that collide.
///
/// ```
/// use ratekeeper::{DashStore, KeyedLimiter, TokenBucket};
///
/// let limiter: KeyedLimiter<String> =
///     KeyedLimiter::with_store(TokenBucket::per_minute(2), DashStore::new());
/// assert!(limiter.check("alice").is_allowed());
/// assert_eq!(limiter.store().len(), 1);
/// ```
///
/// # Memory
/// The number of keys is bounded: 1,835,008 unless [`with_capacity`](Self::with_capacity) says otherwise. Nothing runs
/// in the background; new keys make their own room. Before a shard of the map grows, the keys in it that are as good as
/// new are dropped; once it is full, a new key looks at 16 others, drops those that are as good as new, and if there
/// are none meets the [`Overflow`] policy. [`prune`](Self::prune) drops them all at once. What evicted keys owe takes 8
/// bytes for each key the store may hold, from the first eviction of a debtor on.
///
/// # Bounds
/// With [`Overflow::Inherit`] and [`Overflow::Deny`], no key ever passes more than its limit allows, evicted or not.
///
/// After an eviction, [`remove`](Self::remove) still forgets a key that is held, but the key starts with what strangers on its
/// place owed, if they did.
pub struct DashStore<K, A: Algorithm = TokenBucket, C = StdClock> {
    cells: DashMap<K, CellOf<A>, KeyedHash>,
    keys_per_shard: usize,
    overflow: Overflow,
    evicted: EvictedDebts<A::State>,
    clock: C,
    counters: Counters,
    kind: OneKind,
    algorithm: PhantomData<fn() -> A>,
}

/// Keys a store holds unless told otherwise.
const DEFAULT_CAPACITY: usize = 512 * SHARD_TARGET;

/// The most keys per shard. While a shard grows or is swept it is locked, so this bounds the pause: about 0.1 ms. The number
/// itself is half of what hashbrown puts into 8192 buckets; a full shard needs twice its keys (see `room`).
const SHARD_TARGET: usize = 3584;

const MOST_SHARDS: usize = 1 << 20;

const CACHE_LINE: usize = 64;

impl<K: Eq + Hash, A: Algorithm> DashStore<K, A> {
    /// An empty store for up to 1,835,008 keys that tells time by [`StdClock`].
    pub fn new() -> Self {
        Self::with_clock(StdClock::new())
    }
}

impl<K: Eq + Hash, A: Algorithm> Default for DashStore<K, A> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Eq + Hash, A: Algorithm, C> DashStore<K, A, C> {
    /// An empty store for up to 1,835,008 keys that tells time by `clock`.
    pub fn with_clock(clock: C) -> Self {
        Self::bounded(DEFAULT_CAPACITY, clock)
    }

    /// An empty store for up to `keys` keys (rounded up to whole shards) that tells time by `clock`. Takes no memory for
    /// keys before there are any.
    ///
    /// The bound holds for each shard of the map, and hashing fills them unevenly, so the first new keys meet the
    /// overflow policy a few percent below it.
    ///
    /// # Errors
    /// [`InvalidCapacity::Zero`] if `keys` is 0: such a store could limit nobody.
    pub fn with_capacity(keys: usize, clock: C) -> Result<Self, InvalidCapacity> {
        if keys == 0 {
            Err(InvalidCapacity::Zero)
        } else {
            Ok(Self::bounded(keys, clock))
        }
    }

    fn bounded(keys: usize, clock: C) -> Self {
        // Enough shards that threads rarely meet, but not so many that they hold a handful of keys each.
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let wanted = (threads * 4)
            .min(keys / 64)
            .max(keys.div_ceil(SHARD_TARGET))
            .max(2);
        let shards = wanted.min(MOST_SHARDS).next_power_of_two();
        let keys_per_shard = keys.div_ceil(shards);
        Self {
            cells: DashMap::with_hasher_and_shard_amount(KeyedHash::random(), shards),
            keys_per_shard,
            overflow: Overflow::Inherit,
            evicted: EvictedDebts::new(shards, keys_per_shard),
            clock,
            counters: Counters::new(),
            kind: OneKind::new(),
            algorithm: PhantomData,
        }
    }

    /// Chooses what happens to new keys when there is no room; [`Overflow::Inherit`] by default.
    #[must_use]
    pub fn with_overflow(mut self, overflow: Overflow) -> Self {
        self.overflow = overflow;
        self
    }

    /// The most keys that are ever held.
    pub fn capacity(&self) -> usize {
        self.cells.shards().len() * self.keys_per_shard
    }

    /// Keys held, including those that are as good as new.
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// Whether no key is held.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// How often a key that was as good as new made room for a new one, which loses nothing.
    pub fn replaced(&self) -> u64 {
        self.counters.replaced()
    }

    /// How often a new key that wanted tokens found no such key among those it looked at, so that the overflow policy
    /// answered.
    pub fn overflowed(&self) -> u64 {
        self.counters.overflowed()
    }

    /// Forgets `key`, as if it had never been seen. Returns whether it was held.
    pub fn remove<Q>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.cells.remove(key).is_some()
    }

    /// Forgets every key, and what evicted ones owed.
    pub fn clear(&self) {
        self.cells.clear();
        self.evicted.forget_if(|_| true);
        self.kind.forget();
    }

    /// Forgets the keys whose state under `algorithm` is that of a key never seen, which changes no
    /// later decision. Returns how many those were: 0 if `algorithm` does not share states with those that the store holds, a
    /// window of another length for one, because it cannot tell.
    ///
    /// Takes the shards one after the other, each for as long as its keys take.
    pub fn prune<B>(&self, algorithm: &B) -> usize
    where
        B: Algorithm<State = A::State>,
        C: Clock,
    {
        self.prune_at(algorithm, self.clock.now())
    }

    /// [`prune`](Self::prune) as of `now`.
    pub fn prune_at<B>(&self, algorithm: &B, now: Timestamp) -> usize
    where
        B: Algorithm<State = A::State>,
    {
        if !self.kind.understands(algorithm) {
            return 0;
        }
        let mut pruned = 0;
        let owes = |state: &A::State| algorithm.debt_ns(now, state) > 0;
        self.cells.retain(|_, cell| {
            let keep = cell.with_state(owes);
            pruned += usize::from(!keep);
            keep
        });
        self.evicted.forget_if(|state| !owes(state));
        pruned
    }

    #[inline(always)] // or the decision is copied through memory while the shard is locked: 49 against 45 ns
    fn apply<Q, B>(
        &self,
        key: &Q,
        algorithm: &B,
        request: &Request,
        now: impl FnOnce() -> Timestamp,
    ) -> Decision
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ToOwned<Owned = K> + ?Sized,
        B: Algorithm<State = A::State>,
    {
        if !self.kind.admits(algorithm) {
            return Decision::unsupported();
        }
        let hash = self.cells.hasher().hash_one(key);
        let table = self.cells.shards()[self.shard_of(hash)].read();

        // Where the key's entry will be sought: a group of control bytes, and the entries that belong to them, which lie
        // the other way, first to last, from the same address.
        let end = table.data_end().as_ptr().cast_const();
        #[allow(clippy::cast_possible_truncation)] // masked
        let position = hash as usize & (table.buckets() - 1);
        let entry = end.wrapping_sub(position + 1).cast::<u8>();
        prefetch(end.cast::<u8>().wrapping_add(position));
        prefetch(entry);
        prefetch(entry.wrapping_sub(CACHE_LINE));

        // The clock takes about as long as a cache miss; the lines come meanwhile.
        let now = now();
        if let Some((_, cell)) = table.get(hash, |(held, _)| held.borrow() == key) {
            return cell.get().apply(algorithm, request, now).decision;
        }
        drop(table);
        self.apply_to_new(key, hash, algorithm, request, now)
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation)] // as the map itself does
    fn shard_of(&self, hash: u64) -> usize {
        self.cells.determine_shard(hash as usize)
    }
}

impl<K, Q, A, B, C> MemoryStore<Q, B> for DashStore<K, A, C>
where
    K: Eq + Hash + Borrow<Q>,
    Q: Eq + Hash + ToOwned<Owned = K> + ?Sized,
    A: Algorithm,
    B: Algorithm<State = A::State>,
    C: Clock,
{
    #[inline(always)] // as `apply`
    fn decide(&self, key: &Q, algorithm: &B, request: Request) -> Decision {
        self.apply(key, algorithm, &request, || self.clock.now())
    }

    #[inline]
    fn decide_at(&self, key: &Q, algorithm: &B, request: Request, now: Timestamp) -> Decision {
        self.apply(key, algorithm, &request, || now)
    }

    fn change(&self, key: &Q, old: &B, new: &B, carry: Carry) -> Decision {
        self.decide(key, &Change { old, new, carry }, Request::PEEK)
    }

    fn fingerprint(&self, key: &Q) -> u64 {
        self.cells.hasher().hash_one(key)
    }
}

impl<K: Eq + Hash, A: Algorithm, C: Clock> InProcess for DashStore<K, A, C> {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

impl<K: Eq + Hash, A: Algorithm, C> fmt::Debug for DashStore<K, A, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DashStore")
            .field("len", &self.len())
            .field("capacity", &self.capacity())
            .field("overflow", &self.overflow)
            .field("replaced", &self.replaced())
            .field("overflowed", &self.overflowed())
            .finish_non_exhaustive()
    }
}
