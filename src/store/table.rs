//! A keyed store of fixed size: no allocation after construction, lock-free, and without the keys.
//!
//! The table is set-associative like a processor's cache. A key's hash chooses a set of four or eight
//! neighbouring slots, one or two cache lines; within the set, 128-bit slots hold a tag (more bits of the
//! hash), a lap counter and the state. See `set` for the protocol that makes a slot change hands without
//! ever giving one key two slots.

mod memory;
#[cfg(all(test, loom))]
mod model;
mod packing;
mod set;
mod sizing;
mod slot;
#[cfg(all(test, feature = "std", not(loom)))]
mod stress;

use core::fmt;
use core::hash::{BuildHasher as _, Hash};
use core::marker::PhantomData;

use self::memory::Memory;
pub use self::packing::SlotState;
use self::set::{Asked, Set};
pub use self::sizing::Ways;
pub use self::slot::Slot;
use crate::algorithm::{Algorithm, Carry, Change, TokenBucket};
use crate::clock::{Clock, StdClock};
use crate::decision::Decision;
use crate::invalid_limit::InvalidLimit;
use crate::request::Request;
use crate::store::counters::Counters;
use crate::store::hash::KeyedHash;
use crate::store::one_kind::OneKind;
#[cfg(feature = "alloc")]
use crate::store::overflow::InvalidCapacity;
use crate::store::overflow::Overflow;
use crate::store::{InProcess, MemoryStore};
use crate::time::Timestamp;

/// A keyed store of fixed size for every algorithm with the state of `A`.
///
/// It never allocates after construction, never blocks, and keeps no keys: only keyed hashes of them, so
/// there is nothing personal to leak. A new key takes the place of one whose state is as good as new;
/// when a set has none, the [`Overflow`] policy answers.
///
#[cfg_attr(feature = "std", doc = "```")]
#[cfg_attr(not(feature = "std"), doc = "```ignore")]
/// use std::net::IpAddr;
/// use ratekeeper::{KeyedLimiter, StdClock, TableStore, TokenBucket};
///
/// // Sized for 100,000 clients that are in debt at the same time: 3.2 MB, whatever happens.
/// let store = TableStore::for_keys(100_000)?;
/// let per_ip: KeyedLimiter<IpAddr, TokenBucket, TableStore> =
///     KeyedLimiter::with_store(TokenBucket::per_minute(100), store);
/// assert!(per_ip.check(&"192.0.2.7".parse()?).is_allowed());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Without an allocator, in memory of your own:
///
/// ```
/// use ratekeeper::{Clock, KeyedLimiter, Slot, TableStore, Timestamp, TokenBucket};
///
/// struct SysTick;
/// impl Clock for SysTick {
///     fn now(&self) -> Timestamp {
///         Timestamp::from_ticks(7, 1_000) // read the timer here
///     }
/// }
///
/// const SEED: u128 = 0x243f_6a88_85a3_08d3_1319_8a2e_0370_7344; // from a random source, if there is one
/// static SLOTS: [Slot; 64] = [const { Slot::new() }; 64];
/// static PER_NODE: KeyedLimiter<u32, TokenBucket, TableStore<SysTick>> = KeyedLimiter::with_store(
///     TokenBucket::per_minute(10),
///     TableStore::from_slots(&SLOTS, SEED, SysTick),
/// );
/// assert!(PER_NODE.check(&17).is_allowed());
/// ```
///
/// # Which limits fit
/// Every algorithm with a 64-bit state: [`TokenBucket`], or one of your own. Sliding and fixed windows
/// ([`TableStore<C, SlidingWindow>`](crate::SlidingWindow)) are packed into 80 bits and run on whole
/// milliseconds: their window must be a whole number of them, their limit at most 524,287, and the clock
/// must not be beyond the year 2109 (counted from 1970). A limit that does not fit is answered with
/// [`Outcome::Unsupported`](crate::Outcome::Unsupported);
/// [`KeyedLimiter::try_with_store`](crate::KeyedLimiter::try_with_store) finds out beforehand. `All`,
/// [`AnyAlgorithm`](crate::AnyAlgorithm) and the exact log need a [`DashStore`](crate::DashStore).
///
/// # When keys share
/// Two keys with one tag in one set are one key to the table: stricter, never looser. With `n` keys held at
/// 4 ways and full slots, about `n · 1.5 · 2⁻⁴⁰` pairs do (one in a million at `n` = 10⁶); for windows, whose
/// tags have 32 bits, `n · 1.5 · 2⁻³²` (one in 3,000). Hashes are `SipHash`-1-3 with a random key per process,
/// so clients cannot look for such pairs. [`with_seed`](Self::with_seed) fixes the key.
///
/// # Bounds
/// With [`Overflow::Inherit`] and [`Overflow::Deny`], no key ever passes more than its limit allows, evicted or
/// not, as long as nothing is given back: a refund, a change of limits, or [`remove`](Self::remove), also forgives part of what
/// a newcomer took over. A thread that sleeps inside a step for exactly a multiple of 2²⁴ owner changes of *one* set (2¹⁶ for
/// windows) may, if the very same word is back by then, give one key one burst too many; the set then heals
/// itself.
///
/// Targets without a native 128-bit compare-exchange get one from `portable-atomic`, which takes a lock around
/// each access: exact, but neither lock-free nor safe to share with an interrupt handler.
pub struct TableStore<C = StdClock, A: Algorithm = TokenBucket> {
    memory: Memory,
    ways: Ways,
    hash: KeyedHash,
    overflow: Overflow,
    clock: C,
    counters: Counters,
    kind: OneKind,
    algorithm: PhantomData<fn() -> A>,
}

#[cfg(feature = "std")]
impl<A: Algorithm> TableStore<StdClock, A> {
    /// A table with room for `keys` keys in debt at the same time, on [`StdClock`]: two slots of 16 bytes for
    /// each, eight to a set. Keys that are as good as new need no room.
    ///
    /// At that load 0.8 % of the keys in debt find no place and meet the overflow policy; at half of it, one
    /// in 7,000. See [`Ways`].
    ///
    /// # Errors
    /// [`InvalidCapacity`] if `keys` is 0 or above 2²⁵.
    pub fn for_keys(keys: usize) -> Result<Self, InvalidCapacity> {
        let slots = keys.checked_mul(2).ok_or(InvalidCapacity::TooLarge)?;
        Ok(Self::with_clock(slots, StdClock::new())?.with_ways(Ways::Eight))
    }
}

#[cfg(feature = "std")]
impl<A: Algorithm, C> TableStore<C, A> {
    /// A table of `slots` slots (rounded up to whole sets) that tells time by `clock`, with a random hash key.
    ///
    /// # Errors
    /// [`InvalidCapacity`] if `slots` is 0 or above 2²⁶.
    pub fn with_clock(slots: usize, clock: C) -> Result<Self, InvalidCapacity> {
        Ok(Self::over(
            Memory::allocate(slots)?,
            KeyedHash::random(),
            clock,
        ))
    }
}

#[cfg(feature = "alloc")]
impl<A: Algorithm, C> TableStore<C, A> {
    /// A table of `slots` slots (rounded up to whole sets) whose hash key is `seed`: for tests, and where
    /// several tables must place keys alike. Keep the seed secret; who knows it can choose colliding keys.
    ///
    /// # Errors
    /// [`InvalidCapacity`] if `slots` is 0 or above 2²⁶.
    pub fn with_seed(slots: usize, seed: u128, clock: C) -> Result<Self, InvalidCapacity> {
        Ok(Self::over(
            Memory::allocate(slots)?,
            KeyedHash::with_key(seed),
            clock,
        ))
    }
}

impl<A: Algorithm, C> TableStore<C, A> {
    /// A table in memory that the caller brings: a static, or a region of huge pages. Empty if all its bytes
    /// are zero.
    ///
    /// Up to three slots at the front are left unused, so that sets fall on cache lines. One table at a time
    /// may use the memory.
    ///
    /// # Panics
    /// If there are fewer than 11 slots (a set of eight and those three), or more than 2²⁶; in a constant,
    /// that is a compile error.
    pub const fn from_slots(slots: &'static [Slot], seed: u128, clock: C) -> Self {
        Self::over(Memory::borrow(slots), KeyedHash::with_key(seed), clock)
    }

    const fn over(memory: Memory, hash: KeyedHash, clock: C) -> Self {
        Self {
            memory,
            ways: Ways::Four,
            hash,
            overflow: Overflow::Inherit,
            clock,
            counters: Counters::new(),
            kind: OneKind::new(),
            algorithm: PhantomData,
        }
    }

    /// Chooses what happens to new keys when there is no room; [`Overflow::Inherit`] by default.
    #[must_use]
    pub const fn with_overflow(mut self, overflow: Overflow) -> Self {
        self.overflow = overflow;
        self
    }

    /// Chooses how many slots a key may take; [`Ways::Four`] unless made by [`for_keys`](Self::for_keys). Call it
    /// before the first request: keys are not moved.
    #[must_use]
    pub const fn with_ways(mut self, ways: Ways) -> Self {
        self.ways = ways;
        self
    }

    /// Slots in use for keys.
    pub fn capacity(&self) -> usize {
        self.memory.sets(self.ways) * self.ways.count()
    }

    /// Slots that hold a key in debt under `algorithm`, counted by looking at each: for monitoring, not for every
    /// request.
    pub fn occupied<B>(&self, algorithm: &B) -> usize
    where
        B: Algorithm<State = A::State>,
        A::State: SlotState,
        C: Clock,
    {
        let now = self.clock.now();
        let slots = self.memory.slots().iter();
        slots
            .filter(|slot| !set::is_fresh::<B>(slot, algorithm, now))
            .count()
    }

    /// How often a new key took the place of one that was as good as new, which loses nothing.
    pub fn replaced(&self) -> u64 {
        self.counters.replaced()
    }

    /// How often a new key that wanted tokens found no such place, so that the overflow policy answered.
    pub fn overflowed(&self) -> u64 {
        self.counters.overflowed()
    }

    /// Forgets `key`, as if it had never been seen. Returns whether a slot held it in a state other than that.
    ///
    /// The key must have the type that the limiter checks: a literal `7` is an `i32` here. Better ask
    /// [`KeyedLimiter::remove`](crate::KeyedLimiter::remove), which knows.
    pub fn remove<Q: Hash + ?Sized>(&self, key: &Q) -> bool
    where
        A::State: SlotState,
    {
        let (tag, set) = self.locate(key);
        match self.ways {
            Ways::Four => Set::<4>::of(self.memory.slots(), set).remove::<A::State>(tag),
            Ways::Eight => Set::<8>::of(self.memory.slots(), set).remove::<A::State>(tag),
        }
    }

    /// The key's tag and the number of its set, from disjoint bits of its hash.
    #[inline]
    fn locate<Q: Hash + ?Sized>(&self, key: &Q) -> (u64, usize)
    where
        A::State: SlotState,
    {
        let hash = self.hash.hash_one(key);
        (
            packing::tag_of::<A::State>(hash),
            sizing::set_of(hash, self.memory.sets(self.ways)),
        )
    }

    #[inline(always)] // as `Set::decide`
    fn decide_in<B>(&self, tag: u64, set: usize, asked: Asked<'_, B>) -> Decision
    where
        B: Algorithm<State = A::State>,
        A::State: SlotState,
    {
        if !self.kind.admits(asked.algorithm) {
            return Decision::unsupported();
        }
        let slots = self.memory.slots();
        let count = |event| self.counters.count(set, event);
        match self.ways {
            Ways::Four => Set::<4>::of(slots, set).decide(tag, asked, self.overflow, count),
            Ways::Eight => Set::<8>::of(slots, set).decide(tag, asked, self.overflow, count),
        }
    }
}

impl<Q, A, B, C> MemoryStore<Q, B> for TableStore<C, A>
where
    Q: Hash + ?Sized,
    A: Algorithm,
    A::State: SlotState,
    B: Algorithm<State = A::State>,
    C: Clock,
{
    #[inline(always)] // as `Set::decide`
    fn decide(&self, key: &Q, algorithm: &B, request: Request) -> Decision {
        let (tag, set) = self.locate(key);
        // The clock takes about as long as a cache miss; the line comes meanwhile.
        self.memory.prefetch(set, self.ways);
        let now = self.clock.now();
        let asked = Asked {
            algorithm,
            request: &request,
            now,
        };
        self.decide_in(tag, set, asked)
    }

    #[inline]
    fn decide_at(&self, key: &Q, algorithm: &B, request: Request, now: Timestamp) -> Decision {
        let (tag, set) = self.locate(key);
        let asked = Asked {
            algorithm,
            request: &request,
            now,
        };
        self.decide_in(tag, set, asked)
    }

    fn accepts(&self, algorithm: &B) -> Result<(), InvalidLimit> {
        <A::State as SlotState>::accepts(algorithm)
    }

    fn change(&self, key: &Q, old: &B, new: &B, carry: Carry) -> Decision {
        self.decide(key, &Change { old, new, carry }, Request::PEEK)
    }

    fn fingerprint(&self, key: &Q) -> u64 {
        self.hash.hash_one(key)
    }
}

impl<A: Algorithm, C: Clock> InProcess for TableStore<C, A> {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

impl<C, A: Algorithm> fmt::Debug for TableStore<C, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableStore")
            .field("capacity", &self.capacity())
            .field("ways", &self.ways)
            .field("overflow", &self.overflow)
            .field("replaced", &self.replaced())
            .field("overflowed", &self.overflowed())
            .finish_non_exhaustive()
    }
}
