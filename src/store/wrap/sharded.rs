//! Spreading keys over several backends.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::error::Error;
use core::fmt;
use core::future::poll_fn;
use core::hash::{BuildHasher as _, Hasher as _};
use core::pin::Pin;
use core::task::Poll;

use super::part::Part;
use crate::algorithm::{Algorithm, Carry};
use crate::decision::Decision;
use crate::invalid_limit::InvalidLimit;
use crate::request::{Receipt, Request};
use crate::store::async_store::AsyncStore;
use crate::store::batch::Item;
use crate::store::blocking::Store;
use crate::store::error::StoreError;
use crate::store::hash::KeyedHash;
use crate::store::key::Key;
use crate::store::memory::{InProcess, MemoryStore};
use crate::time::Timestamp;

/// Several stores as one: each key lives in one of them, chosen by the names of the stores alone.
///
/// ```
/// use ratekeeper::store::Sharded;
///
/// let store = Sharded::new([("redis-a", ()), ("redis-b", ()), ("redis-c", ())])?;
/// assert_eq!(store.shard_of("alice").0, "redis-b");
/// assert_eq!(store.shard_of("bob").0, "redis-c");
/// // One more takes about a quarter of the keys, and moves no others.
/// let larger = Sharded::new([("redis-a", ()), ("redis-b", ()), ("redis-c", ()), ("redis-d", ())])?;
/// assert_eq!(larger.shard_of("alice").0, "redis-d");
/// assert_eq!(larger.shard_of("bob").0, "redis-c");
/// # Ok::<(), ratekeeper::store::InvalidShards>(())
/// ```
///
/// # Placement
/// Rendezvous hashing (D. Thaler, C. Ravishankar: *A Name-Based Mapping Scheme for Rendezvous*, 1996): each store draws a
/// number from its name and the key's [bytes](Key), and the largest draws the key. It is the same in every process, on every
/// platform and in every version of this crate; the order of the stores does not matter. The names are what counts, so keep
/// them when a store moves to another machine.
///
/// Whoever can choose keys can choose their stores. To prevent that, choose a secret [seed](Self::with_seed), the same in every
/// process.
///
/// # Bound
/// Each key's is that of its store. A key that moves, because stores were added, removed or renamed, is a key never seen in
/// its new place: that forgives it at most one burst. Of `n` stores, one that is added or removed moves one key in `n`, and
/// only to or from itself. While processes disagree about the stores, a moving key has one limit in each of both places.
///
/// # Errors
/// Those of the key's store: no other one is asked in its place. A batch goes to each store as one batch, in async code to all
/// of them at once; what has been answered when the future is dropped stays answered.
pub struct Sharded<S> {
    shards: Vec<Shard<S>>,
    hash: KeyedHash,
}

struct Shard<S> {
    name: String,
    draw: KeyedHash,
    store: S,
}

/// Public on purpose: every process has to draw the same numbers. The first digits of e.
const DEFAULT_SEED: u128 = 0x2b7e_1516_28ae_d2a6_abf7_1588_09cf_4f3c;

impl<S> Sharded<S> {
    /// Spreads keys over these stores, each with its name.
    ///
    /// # Errors
    /// [`InvalidShards`] if there are none, or two of one name.
    pub fn new<N: Into<String>>(
        shards: impl IntoIterator<Item = (N, S)>,
    ) -> Result<Self, InvalidShards> {
        Self::with_seed(DEFAULT_SEED, shards)
    }

    /// Spreads keys over these stores, each with its name, in a way that nobody can foretell who does not know `seed`.
    ///
    /// # Errors
    /// [`InvalidShards`] if there are none, or two of one name.
    pub fn with_seed<N: Into<String>>(
        seed: u128,
        shards: impl IntoIterator<Item = (N, S)>,
    ) -> Result<Self, InvalidShards> {
        let hash = KeyedHash::with_key(seed);
        let shards: Vec<_> = shards
            .into_iter()
            .map(|(name, store)| {
                let name = name.into();
                let draw = KeyedHash::with_key(key_of(&hash, &name));
                Shard { name, draw, store }
            })
            .collect();
        let mut names: Vec<_> = shards.iter().map(|shard| &shard.name).collect();
        names.sort_unstable();
        if names.is_empty() {
            Err(InvalidShards::None)
        } else if names.windows(2).any(|pair| pair[0] == pair[1]) {
            Err(InvalidShards::EqualNames)
        } else {
            Ok(Self { shards, hash })
        }
    }

    /// The name and the store of `key`.
    pub fn shard_of<K: Key + ?Sized>(&self, key: &K) -> (&str, &S) {
        let shard = &self.shards[self.place(key)];
        (&shard.name, &shard.store)
    }

    /// All names and stores, in the order in which they were given.
    pub fn shards(&self) -> impl Iterator<Item = (&str, &S)> {
        self.shards
            .iter()
            .map(|shard| (shard.name.as_str(), &shard.store))
    }

    fn place<K: Key + ?Sized>(&self, key: &K) -> usize {
        let mut hasher = self.hash.build_hasher();
        key.write_alone(&mut |part| hasher.write(part));
        let hash = hasher.finish().to_le_bytes();
        let drawn = self.shards.iter().enumerate().max_by_key(|(_, shard)| {
            let mut hasher = shard.draw.build_hasher();
            hasher.write(&hash);
            (hasher.finish(), Reverse(&shard.name))
        });
        drawn.map_or(0, |(place, _)| place)
    }

    fn store<K: Key + ?Sized>(&self, key: &K) -> &S {
        self.shard_of(key).1
    }

    fn scattered<'b, 'a, K, A>(&self, whole: &'b mut [Item<'a, K, A>]) -> Scattered<'b, 'a, K, A>
    where
        K: Key + ?Sized,
        A: Algorithm,
    {
        let mut parts: Vec<_> = self.shards.iter().map(|_| Part::new()).collect();
        for (place, item) in whole.iter_mut().enumerate() {
            if let Some(request) = item.take_request() {
                let part: &mut Part<'_, _, _> = &mut parts[self.place(item.key())];
                part.push(place, item.key(), item.algorithm(), request);
            }
        }
        Scattered { whole, parts }
    }
}

/// 128 bits from a name.
fn key_of(hash: &KeyedHash, name: &str) -> u128 {
    let half = |salt| {
        let mut hasher = hash.build_hasher();
        hasher.write(name.as_bytes());
        hasher.write(&[salt]);
        u128::from(hasher.finish())
    };
    half(1) << 64 | half(0)
}

/// A batch taken apart, a part for each store. Dropping it puts the answers where they belong.
struct Scattered<'b, 'a, K: ?Sized, A: Algorithm> {
    whole: &'b mut [Item<'a, K, A>],
    parts: Vec<Part<'a, K, A>>,
}

impl<K: ?Sized, A: Algorithm> Drop for Scattered<'_, '_, K, A> {
    fn drop(&mut self) {
        for part in self.parts.drain(..) {
            part.settle(self.whole);
        }
    }
}

/// Stores that cannot share keys among themselves.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InvalidShards {
    /// There are none.
    None,
    /// Two have the same name.
    EqualNames,
}

impl fmt::Display for InvalidShards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "there must be a store to put keys in",
            Self::EqualNames => "two stores have the same name",
        })
    }
}

impl Error for InvalidShards {}

impl<K, A, S> MemoryStore<K, A> for Sharded<S>
where
    K: Key + ?Sized,
    A: Algorithm,
    S: MemoryStore<K, A>,
{
    fn decide(&self, key: &K, algorithm: &A, request: Request) -> Decision {
        self.store(key).decide(key, algorithm, request)
    }

    fn decide_at(&self, key: &K, algorithm: &A, request: Request, now: Timestamp) -> Decision {
        self.store(key).decide_at(key, algorithm, request, now)
    }

    fn accepts(&self, algorithm: &A) -> Result<(), InvalidLimit> {
        self.shards
            .iter()
            .try_for_each(|shard| shard.store.accepts(algorithm))
    }

    fn change(&self, key: &K, old: &A, new: &A, carry: Carry) -> Decision {
        self.store(key).change(key, old, new, carry)
    }

    fn fingerprint(&self, key: &K) -> u64 {
        self.store(key).fingerprint(key)
    }
}

/// The first store's clock, for all of them tell the time by one.
impl<S: InProcess> InProcess for Sharded<S> {
    fn now(&self) -> Timestamp {
        self.shards[0].store.now()
    }
}

impl<K: Key + ?Sized, A: Algorithm, S: Store<K, A>> Store<K, A> for Sharded<S> {
    fn apply(&self, key: &K, algorithm: &A, request: Request) -> Result<Decision, StoreError> {
        self.store(key).apply(key, algorithm, request)
    }

    fn apply_batch(&self, items: &mut [Item<'_, K, A>]) {
        let mut scattered = self.scattered(items);
        for (shard, part) in self.shards.iter().zip(&mut scattered.parts) {
            if !part.is_empty() {
                shard.store.apply_batch(&mut part.items);
            }
        }
    }

    fn forget(&self, key: &K, algorithm: &A) -> Result<(), StoreError> {
        self.store(key).forget(key, algorithm)
    }

    fn try_change(&self, key: &K, old: &A, new: &A, carry: Carry) -> Result<Decision, StoreError> {
        self.store(key).try_change(key, old, new, carry)
    }

    fn try_accepts(&self, algorithm: &A) -> Result<(), InvalidLimit> {
        self.shards
            .iter()
            .try_for_each(|shard| shard.store.try_accepts(algorithm))
    }

    fn try_fingerprint(&self, key: &K) -> u64 {
        self.store(key).try_fingerprint(key)
    }
}

type BoxFuture<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

impl<K: Key + ?Sized, A: Algorithm, S: AsyncStore<K, A>> AsyncStore<K, A> for Sharded<S> {
    fn apply_async(
        &self,
        key: &K,
        algorithm: &A,
        request: Request,
    ) -> impl Future<Output = Result<Decision, StoreError>> + Send {
        self.store(key).apply_async(key, algorithm, request)
    }

    async fn apply_batch_async(&self, items: &mut [Item<'_, K, A>]) {
        let mut scattered = self.scattered(items);
        let parts = self.shards.iter().zip(&mut scattered.parts);
        let mut pending: Vec<BoxFuture<'_>> = parts
            .filter(|(_, part)| !part.is_empty())
            .map(|(shard, part)| -> BoxFuture<'_> {
                Box::pin(shard.store.apply_batch_async(&mut part.items))
            })
            .collect();
        poll_fn(|context| {
            pending.retain_mut(|future| future.as_mut().poll(context).is_pending());
            if pending.is_empty() {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }

    fn forget_async(
        &self,
        key: &K,
        algorithm: &A,
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        self.store(key).forget_async(key, algorithm)
    }

    fn change_async(
        &self,
        key: &K,
        old: &A,
        new: &A,
        carry: Carry,
    ) -> impl Future<Output = Result<Decision, StoreError>> + Send {
        self.store(key).change_async(key, old, new, carry)
    }

    fn accepts_async(&self, algorithm: &A) -> Result<(), InvalidLimit> {
        self.shards
            .iter()
            .try_for_each(|shard| shard.store.accepts_async(algorithm))
    }

    fn cancel(&self, key: &K, algorithm: &A, receipt: Receipt) {
        self.store(key).cancel(key, algorithm, receipt);
    }

    fn fingerprint_of(&self, key: &K) -> u64 {
        self.store(key).fingerprint_of(key)
    }
}

/// Without the seed.
impl<S: fmt::Debug> fmt::Debug for Sharded<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sharded ")?;
        f.debug_map().entries(self.shards()).finish()
    }
}
