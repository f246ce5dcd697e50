//! Buying tokens in advance.

mod ledger;

use alloc::vec::Vec;
use core::hash::Hash;
use core::time::Duration;

use self::ledger::{Errand, Ledger, Planned};
use super::part::Part;
use super::passed_on::passed_on;
use super::sets::Sets;
use crate::algorithm::{Algorithm, Carry};
use crate::clock::{Clock, StdClock};
use crate::decision::Decision;
use crate::invalid_limit::InvalidLimit;
#[cfg(feature = "std")]
use crate::request::Receipt;
use crate::request::Request;
#[cfg(feature = "std")]
use crate::store::async_store::AsyncStore;
use crate::store::batch::Item;
use crate::store::blocking::Store;
use crate::store::error::StoreError;
use crate::store::hash::KeyedHash;
use crate::store::memory::InProcess;
use crate::store::overflow::InvalidCapacity;
use crate::time::{Timestamp, duration_ns};

/// Takes a batch of tokens from the store at a time and hands them out by itself, so that a busy key far from its limit costs a
/// round trip for many requests.
///
/// ```
/// # #[cfg(feature = "dashmap")] {
/// use ratekeeper::store::{Leased, Store};
/// use ratekeeper::{DashStore, ManualClock, Request, TokenBucket};
///
/// let clock = ManualClock::new();
/// let shared = DashStore::<String, TokenBucket, _>::with_clock(&clock); // a remote one, usually
/// let store = Leased::with_clock(&shared, 10, &clock);
/// let limit = TokenBucket::per_minute(100);
/// for _ in 0..10 {
///     assert!(store.apply("alice", &limit, Request::ONE)?.is_allowed());
/// }
/// assert_eq!(store.hits(), 9); // one round trip
/// assert_eq!(shared.apply("alice", &limit, Request::PEEK)?.remaining(), 90);
/// # }
/// # Ok::<(), ratekeeper::StoreError>(())
/// ```
///
/// # How it works
/// A plain take (all or nothing, without waiting) of fewer than `batch` tokens is served from the key's balance, if that covers
/// it. Otherwise the store is asked for as many as it has, up to `batch` and not fewer than needed, and the rest becomes the
/// balance, for [`with_expiry`](Self::with_expiry) at most (1 second by default). While such a lease is under way, other callers
/// with that key ask for what they need. Everything else is passed on: peeks, reservations, partial takes, larger costs.
///
/// Near the limit a lease brings what there is, so nobody is refused who would not be without it, but for tokens that lie in
/// other processes' balances. A [`DenyCache`](crate::store::DenyCache) outside spares the refusals.
///
/// # Bound
/// With `m` processes, over all time never more than the inner store's limit. In any window at most `m · (batch − 1)` tokens
/// more than that limit allows in the window: those that were bought before it. Tokens given back count as not taken. For a
/// bucket of burst `B`, choose `m · (batch − 1)` small against `B`.
///
/// It is stricter by what expires unspent: at most `batch − 1` tokens of each process and key in the time of an expiry, and
/// what is forgotten for want of room, see Memory.
///
/// # Several limits on one key
/// Each has a balance of its own: what was bought under one limit is handed out under that only, so the bound above is each
/// limit's. Requests under a limit whose numbers can change while the program runs, or whose type is none of this crate's, are
/// passed on: nothing tells such limits apart. When a key is [changed](Store::try_change) or forgotten, its balances here are
/// lost; in other processes they last until they expire.
///
/// # Errors
/// The inner store's. It must understand partial takes ([`Request::at_least`]).
///
/// # Receipts
/// A token from a lease can be given back, but only into the balance, while that is there; later, or in another process, the
/// refund is passed on and gives nothing back.
///
/// # Time
/// `clock` measures when balances expire, from just before the store was asked; it is never compared with the store's. If it
/// is stepped back, balances from before are lost.
///
/// # Memory
/// About 110 bytes for each key (and limit), allocated at once, for 8,192 of them unless [`with_capacity`](Self::with_capacity) says
/// otherwise. Let there be more than keys that are active within an expiry: when there is no room, a balance is lost, and a key
/// to which that always happens gets one token of `batch`. Keys are kept as 64-bit hashes (`SipHash`-1-3 with a secret key).
/// Two keys with equal hashes would share a balance; among `n` keys that happens with a probability of `n²/2⁶⁵`.
///
/// # Concurrency
/// An answer takes one short lock, shared with one key in a thousand. As an [`AsyncStore`](crate::store::AsyncStore) it needs
/// the feature `std`.
#[derive(Debug)]
pub struct Leased<S, C = StdClock> {
    store: S,
    ledger: Ledger<C>,
}

/// How long bought tokens are good unless told otherwise.
const DEFAULT_EXPIRY_NS: u64 = 1_000_000_000;

#[cfg(feature = "std")]
impl<S> Leased<S> {
    /// Takes up to `batch` tokens at a time from `store`, by [`StdClock`]. 0 and 1 pass everything on.
    pub fn new(store: S, batch: u64) -> Self {
        Self::with_clock(store, batch, StdClock::new())
    }
}

impl<S, C> Leased<S, C> {
    /// Takes up to `batch` tokens at a time from `store`, by `clock`. 0 and 1 pass everything on.
    #[cfg(feature = "std")]
    pub fn with_clock(store: S, batch: u64, clock: C) -> Self {
        Self::with_hash(store, batch, clock, KeyedHash::random())
    }

    /// [`with_clock`](Self::with_clock) where there is no source of randomness: whoever knows `seed` can choose keys that
    /// collide.
    pub fn with_seed(store: S, batch: u64, clock: C, seed: u128) -> Self {
        Self::with_hash(store, batch, clock, KeyedHash::with_key(seed))
    }

    fn with_hash(store: S, batch: u64, clock: C, hash: KeyedHash) -> Self {
        let ledger = Ledger {
            leases: Sets::new(hash),
            clock,
            batch,
            expiry_ns: DEFAULT_EXPIRY_NS,
        };
        Self { store, ledger }
    }

    /// Changes how many keys can have a balance (rounded up to a multiple of 8); those there are, are lost.
    ///
    /// # Errors
    /// [`InvalidCapacity`] if `keys` is 0, or more than there is memory for.
    pub fn with_capacity(mut self, keys: usize) -> Result<Self, InvalidCapacity> {
        self.ledger.leases = self.ledger.leases.resized(keys)?;
        Ok(self)
    }

    /// Changes how long bought tokens are good. The shorter, the less is lost in processes that have no use for them; much
    /// shorter than it takes to spend a batch, and most are lost.
    #[must_use]
    pub const fn with_expiry(mut self, expiry: Duration) -> Self {
        self.ledger.expiry_ns = duration_ns(expiry);
        self
    }

    /// The inner store.
    pub const fn get_ref(&self) -> &S {
        &self.store
    }

    /// The most tokens it takes at a time.
    pub const fn batch(&self) -> u64 {
        self.ledger.batch
    }

    /// How many requests were answered from balances. Looks at every set.
    pub fn hits(&self) -> u64 {
        self.ledger.leases.hits()
    }

    /// Forgets all balances; what is in them is lost.
    pub fn clear(&self) {
        self.ledger.leases.clear();
    }
}

impl<S, C: Clock> Leased<S, C> {
    /// Answers the items that it can; the others are what the store is asked, with what to do about the answers.
    fn planned<'a, 'm, K, A>(
        &'m self,
        items: &mut [Item<'a, K, A>],
    ) -> (Part<'a, K, A>, Vec<Errand<'m>>)
    where
        K: Hash + ?Sized,
        A: Algorithm,
    {
        let (mut part, mut errands) = (Part::new(), Vec::new());
        for (place, item) in items.iter_mut().enumerate() {
            let Some(request) = item.take_request() else {
                continue;
            };
            match self.ledger.plan(item.key(), item.algorithm(), request) {
                Planned::Answered(decision) => item.set_result(Ok(decision)),
                Planned::Ask(request, errand) => {
                    part.push(place, item.key(), item.algorithm(), request);
                    errands.push(errand);
                }
            }
        }
        (part, errands)
    }

    fn settle<K: ?Sized, A: Algorithm>(
        part: Part<'_, K, A>,
        errands: Vec<Errand<'_>>,
        items: &mut [Item<'_, K, A>],
    ) {
        for ((place, result), errand) in part.into_results().zip(errands) {
            let result = errand.answered(result);
            if let Some(item) = items.get_mut(place) {
                item.set_result(result);
            }
        }
    }
}

passed_on!(InProcess for Leased<S, C>);

impl<K, A, S, C> Store<K, A> for Leased<S, C>
where
    K: Hash + ?Sized,
    A: Algorithm,
    S: Store<K, A>,
    C: Clock,
{
    fn apply(&self, key: &K, algorithm: &A, request: Request) -> Result<Decision, StoreError> {
        match self.ledger.plan(key, algorithm, request) {
            Planned::Answered(decision) => Ok(decision),
            Planned::Ask(request, errand) => {
                errand.answered(self.store.apply(key, algorithm, request))
            }
        }
    }

    fn apply_batch(&self, items: &mut [Item<'_, K, A>]) {
        let (mut part, errands) = self.planned(items);
        if !part.is_empty() {
            self.store.apply_batch(&mut part.items);
            Self::settle(part, errands, items);
        }
    }

    fn forget(&self, key: &K, algorithm: &A) -> Result<(), StoreError> {
        let _forgetting = self.ledger.forgetting(key);
        self.store.forget(key, algorithm)
    }

    fn try_change(&self, key: &K, old: &A, new: &A, carry: Carry) -> Result<Decision, StoreError> {
        let _forgetting = self.ledger.forgetting(key);
        self.store.try_change(key, old, new, carry)
    }

    passed_on!(Store);
}

#[cfg(feature = "std")]
impl<K, A, S, C> AsyncStore<K, A> for Leased<S, C>
where
    K: Hash + Sync + ?Sized,
    A: Algorithm,
    S: AsyncStore<K, A>,
    C: Clock + Send + Sync,
{
    async fn apply_async(
        &self,
        key: &K,
        algorithm: &A,
        request: Request,
    ) -> Result<Decision, StoreError> {
        match self.ledger.plan(key, algorithm, request) {
            Planned::Answered(decision) => Ok(decision),
            Planned::Ask(request, errand) => {
                errand.answered(self.store.apply_async(key, algorithm, request).await)
            }
        }
    }

    async fn apply_batch_async(&self, items: &mut [Item<'_, K, A>]) {
        let (mut part, errands) = self.planned(items);
        if !part.is_empty() {
            self.store.apply_batch_async(&mut part.items).await;
            Self::settle(part, errands, items);
        }
    }

    async fn forget_async(&self, key: &K, algorithm: &A) -> Result<(), StoreError> {
        let _forgetting = self.ledger.forgetting(key);
        self.store.forget_async(key, algorithm).await
    }

    async fn change_async(
        &self,
        key: &K,
        old: &A,
        new: &A,
        carry: Carry,
    ) -> Result<Decision, StoreError> {
        let _forgetting = self.ledger.forgetting(key);
        self.store.change_async(key, old, new, carry).await
    }

    fn cancel(&self, key: &K, algorithm: &A, receipt: Receipt) {
        let request = Request::refund(receipt.charged(), receipt);
        if let Planned::Ask(Request::Refund { receipt, .. }, _errand) =
            self.ledger.plan(key, algorithm, request)
        {
            self.store.cancel(key, algorithm, receipt);
        }
    }

    passed_on!(AsyncStore);
}
