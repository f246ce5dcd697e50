//! A keyed store over `dashmap`: exact keys, states as atomics.
//!
//! A key that is already there takes a *shared* lock on its shard and one compare-exchange on its own
//! state; only new keys take the shard for themselves.

use alloc::borrow::ToOwned;
use core::borrow::Borrow;
use core::fmt;
use core::hash::Hash;
use core::marker::PhantomData;
use std::hash::RandomState;

use dashmap::DashMap;
use dashmap::Entry;

use crate::algorithm::{Algorithm, Step, TokenBucket};
use crate::clock::{Clock, FixedClock, ReadAhead, StdClock};
use crate::decision::Decision;
use crate::request::Request;
use crate::state::State;
use crate::store::MemoryStore;
use crate::store::cell::Cell;
use crate::time::Timestamp;

type CellOf<A> = <<A as Algorithm>::State as State>::Cell;

/// A keyed store over a concurrent map, for every algorithm with the state of `A`.
///
/// Keys are hashed with a random key (`SipHash`), so clients cannot choose keys that collide.
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
/// A key stays until [`prune`](Self::prune) finds it as good as new, or [`remove`](Self::remove) forgets
/// it.
pub struct DashStore<K, A: Algorithm = TokenBucket, C = StdClock> {
    cells: DashMap<K, CellOf<A>, RandomState>,
    clock: C,
    algorithm: PhantomData<fn() -> A>,
}

impl<K: Eq + Hash, A: Algorithm> DashStore<K, A> {
    /// An empty store that tells time by [`StdClock`].
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
    /// An empty store that tells time by `clock`.
    pub fn with_clock(clock: C) -> Self {
        let cells = DashMap::with_hasher(RandomState::new());
        Self {
            cells,
            clock,
            algorithm: PhantomData,
        }
    }

    /// Keys held, including those that are as good as new.
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// Whether no key is held.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// Forgets `key`, as if it had never been seen. Returns whether it was held.
    pub fn remove<Q>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.cells.remove(key).is_some()
    }

    /// Forgets every key.
    pub fn clear(&self) {
        self.cells.clear();
    }

    /// Forgets the keys whose state under `algorithm` is that of a key never seen, which changes no
    /// later decision. Returns how many those were.
    ///
    /// Takes the shards one after the other, each for as long as its keys take. If keys are checked
    /// under several limits, give the one that remembers longest.
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
        let mut pruned = 0;
        self.cells.retain(|_, cell| {
            let peek = cell.apply(algorithm, &Request::PEEK, &FixedClock(now));
            let keep = !peek.decision.reset_after().is_zero();
            pruned += usize::from(!keep);
            keep
        });
        pruned
    }

    #[inline]
    fn apply<Q, B>(&self, key: &Q, algorithm: &B, request: &Request, clock: &impl Clock) -> Decision
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ToOwned<Owned = K> + ?Sized,
        B: Algorithm<State = A::State>,
    {
        if let Some(cell) = self.cells.get(key) {
            return cell.apply(algorithm, request, clock).decision;
        }
        self.apply_to_new(key.to_owned(), algorithm, request, clock)
    }

    #[cold]
    fn apply_to_new<B>(
        &self,
        key: K,
        algorithm: &B,
        request: &Request,
        clock: &impl Clock,
    ) -> Decision
    where
        B: Algorithm<State = A::State>,
    {
        match self.cells.entry(key) {
            // Somebody else brought the key meanwhile.
            Entry::Occupied(entry) => entry.get().apply(algorithm, request, clock).decision,
            Entry::Vacant(entry) => {
                let cell = CellOf::<A>::FRESH;
                let Step { decision, keep, .. } = cell.apply(algorithm, request, clock);
                if keep.is_some() {
                    entry.insert(cell);
                }
                decision
            }
        }
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
    #[inline]
    fn decide(&self, key: &Q, algorithm: &B, request: Request) -> Decision {
        if CellOf::<A>::LOCKS {
            return self.apply(key, algorithm, &request, &self.clock);
        }
        // Read before the lookup, so that turning the reading into a timestamp overlaps with hashing.
        self.apply(key, algorithm, &request, &ReadAhead::new(&self.clock))
    }

    #[inline]
    fn decide_at(&self, key: &Q, algorithm: &B, request: Request, now: Timestamp) -> Decision {
        self.apply(key, algorithm, &request, &FixedClock(now))
    }
}

impl<K: Eq + Hash, A: Algorithm, C> fmt::Debug for DashStore<K, A, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DashStore")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}
