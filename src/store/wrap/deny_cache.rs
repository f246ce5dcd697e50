//! Remembering refusals.

mod memory;

use alloc::vec::Vec;
use core::hash::Hash;
use core::time::Duration;

use self::memory::{Looked, Memory, Question};
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

/// Answers repeated requests that were refused by itself, until the wait is over.
///
/// A client that hammers a drained key then costs a look into local memory instead of a round trip each time, and the store
/// sees it again exactly when the answer may change.
///
/// ```
/// # #[cfg(feature = "dashmap")] {
/// use core::time::Duration;
/// use ratekeeper::store::{DenyCache, Store};
/// use ratekeeper::{DashStore, ManualClock, Request, TokenBucket};
///
/// let clock = ManualClock::new();
/// let store = DashStore::<String, TokenBucket, _>::with_clock(&clock); // a remote one, usually
/// let store = DenyCache::with_clock(store, &clock);
/// let limit = TokenBucket::per_second(1);
/// let ask = || store.apply("alice", &limit, Request::ONE).unwrap();
/// assert!(ask().is_allowed());
/// assert!(!ask().is_allowed()); // says the store
/// clock.advance(Duration::from_millis(400));
/// assert_eq!(ask().retry_after(), Some(Duration::from_millis(600))); // says the memory
/// assert_eq!(store.hits(), 1);
/// clock.advance(Duration::from_millis(600));
/// assert!(ask().is_allowed());
/// # }
/// ```
///
/// # Bound
/// Never looser than the inner store: it only refuses. It is stricter where a refusal ends before its wait is over: the key
/// was forgotten, changed to another limit or given tokens back in another process, or the store lost its state. The memory
/// of a refusal therefore ends after [`with_max_age`](Self::with_max_age), 1 second by default. What happens through this
/// wrapper takes effect at once: when a request is allowed, tokens are given back, or the key is forgotten or changed, its
/// refusals are forgotten too. (A [cancellation](AsyncStore::cancel) keeps nobody waiting; a refusal that overtakes it is
/// remembered.)
///
/// # Several limits on one key
/// A refusal is told only to who asks under the limit that refused: its wait is that limit's own. What others take on the key
/// only makes it longer, so the store is then asked too early, never too late.
///
/// # What is answered
/// Plain takes, all or nothing and without waiting, are remembered with their cost. The same cost is answered, or a smallest
/// acceptable grant of it, under a limit with the same numbers. Every other request is passed on: smaller
/// costs may pass, and larger ones have longer waits. So is every request under a limit whose numbers can change while the
/// program runs, or whose type is none of this crate's: nothing tells such limits apart. An answer has the remembered
/// numbers, with what is left of the wait; it is not [degraded](Decision::is_degraded). Refusals by a wrapper inside that are
/// degraded are not remembered.
///
/// # Errors
/// The inner store's.
///
/// # Time
/// `clock` measures how much of a wait is over, from just before the store was asked; it is never compared with the store's.
/// If it is stepped back, refusals from before are not used.
///
/// # Memory
/// About 110 bytes for each refusal, allocated at once: 8,192 of them unless
/// [`with_capacity`](Self::with_capacity) says otherwise. When there are more, those that end soonest go first. Keys are kept
/// as 64-bit hashes (`SipHash`-1-3 with a secret key). Two keys with equal hashes would share refusals; among `n` keys that
/// happens with a probability of `n²/2⁶⁵`, 3·10⁻⁸ for a million.
///
/// # Concurrency
/// An answer takes one short lock, shared with one key in a thousand. As an [`AsyncStore`](crate::store::AsyncStore) it needs
/// the feature `std`.
#[derive(Debug)]
pub struct DenyCache<S, C = StdClock> {
    store: S,
    memory: Memory<C>,
}

/// How long a refusal is remembered unless told otherwise.
const DEFAULT_MAX_AGE_NS: u64 = 1_000_000_000;

#[cfg(feature = "std")]
impl<S> DenyCache<S> {
    /// Remembers refusals of `store`, by [`StdClock`].
    pub fn new(store: S) -> Self {
        Self::with_clock(store, StdClock::new())
    }
}

impl<S, C> DenyCache<S, C> {
    /// Remembers refusals of `store`, by `clock`.
    #[cfg(feature = "std")]
    pub fn with_clock(store: S, clock: C) -> Self {
        Self::with_hash(store, clock, KeyedHash::random())
    }

    /// [`with_clock`](Self::with_clock) where there is no source of randomness: whoever knows `seed` can choose keys that
    /// collide.
    pub fn with_seed(store: S, clock: C, seed: u128) -> Self {
        Self::with_hash(store, clock, KeyedHash::with_key(seed))
    }

    fn with_hash(store: S, clock: C, hash: KeyedHash) -> Self {
        let memory = Memory {
            denials: Sets::new(hash),
            clock,
            max_age_ns: DEFAULT_MAX_AGE_NS,
        };
        Self { store, memory }
    }

    /// Changes how many refusals are remembered (rounded up to a multiple of 8), and forgets all there are.
    ///
    /// # Errors
    /// [`InvalidCapacity`] if `refusals` is 0, or more than there is memory for.
    pub fn with_capacity(mut self, refusals: usize) -> Result<Self, InvalidCapacity> {
        self.memory.denials = self.memory.denials.resized(refusals)?;
        Ok(self)
    }

    /// Changes how long a refusal is remembered at most, however long its wait is. Zero remembers nothing.
    #[must_use]
    pub const fn with_max_age(mut self, max_age: Duration) -> Self {
        self.memory.max_age_ns = duration_ns(max_age);
        self
    }

    /// The inner store.
    pub const fn get_ref(&self) -> &S {
        &self.store
    }

    /// How many requests were answered from memory. Looks at every set.
    pub fn hits(&self) -> u64 {
        self.memory.denials.hits()
    }

    /// Forgets all refusals, as after many keys were changed elsewhere.
    pub fn clear(&self) {
        self.memory.denials.clear();
    }
}

impl<S, C: Clock> DenyCache<S, C> {
    /// Answers the items that it can; the others are what the store is asked, with what to learn from the answers.
    fn unknown<'a, 'm, K, A>(
        &'m self,
        items: &mut [Item<'a, K, A>],
    ) -> (Part<'a, K, A>, Vec<Question<'m>>)
    where
        K: Hash + ?Sized,
        A: Algorithm,
    {
        let (mut part, mut questions) = (Part::new(), Vec::new());
        for (place, item) in items.iter_mut().enumerate() {
            let Some(request) = item.take_request() else {
                continue;
            };
            let (key, algorithm) = (item.key(), item.algorithm());
            match self.memory.look(key, algorithm, &request, &questions) {
                Looked::Known(decision) => item.set_result(Ok(decision)),
                Looked::Ask(question) => {
                    part.push(place, key, algorithm, request);
                    questions.push(question);
                }
            }
        }
        (part, questions)
    }

    fn learn<K: ?Sized, A: Algorithm>(
        part: Part<'_, K, A>,
        questions: Vec<Question<'_>>,
        items: &mut [Item<'_, K, A>],
    ) {
        for ((place, result), question) in part.into_results().zip(questions) {
            question.answered(&result);
            if let Some(item) = items.get_mut(place) {
                item.set_result(result);
            }
        }
    }
}

passed_on!(InProcess for DenyCache<S, C>);

impl<K, A, S, C> Store<K, A> for DenyCache<S, C>
where
    K: Hash + ?Sized,
    A: Algorithm,
    S: Store<K, A>,
    C: Clock,
{
    fn apply(&self, key: &K, algorithm: &A, request: Request) -> Result<Decision, StoreError> {
        match self.memory.look(key, algorithm, &request, &[]) {
            Looked::Known(decision) => Ok(decision),
            Looked::Ask(question) => {
                let result = self.store.apply(key, algorithm, request);
                question.answered(&result);
                result
            }
        }
    }

    fn apply_batch(&self, items: &mut [Item<'_, K, A>]) {
        let (mut part, questions) = self.unknown(items);
        if !part.is_empty() {
            self.store.apply_batch(&mut part.items);
            Self::learn(part, questions, items);
        }
    }

    fn forget(&self, key: &K, algorithm: &A) -> Result<(), StoreError> {
        let _forgetting = self.memory.forgetting(key);
        self.store.forget(key, algorithm)
    }

    fn try_change(&self, key: &K, old: &A, new: &A, carry: Carry) -> Result<Decision, StoreError> {
        let _forgetting = self.memory.forgetting(key);
        self.store.try_change(key, old, new, carry)
    }

    passed_on!(Store);
}

#[cfg(feature = "std")]
impl<K, A, S, C> AsyncStore<K, A> for DenyCache<S, C>
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
        match self.memory.look(key, algorithm, &request, &[]) {
            Looked::Known(decision) => Ok(decision),
            Looked::Ask(question) => {
                let result = self.store.apply_async(key, algorithm, request).await;
                question.answered(&result);
                result
            }
        }
    }

    async fn apply_batch_async(&self, items: &mut [Item<'_, K, A>]) {
        let (mut part, questions) = self.unknown(items);
        if !part.is_empty() {
            self.store.apply_batch_async(&mut part.items).await;
            Self::learn(part, questions, items);
        }
    }

    async fn forget_async(&self, key: &K, algorithm: &A) -> Result<(), StoreError> {
        let _forgetting = self.memory.forgetting(key);
        self.store.forget_async(key, algorithm).await
    }

    async fn change_async(
        &self,
        key: &K,
        old: &A,
        new: &A,
        carry: Carry,
    ) -> Result<Decision, StoreError> {
        let _forgetting = self.memory.forgetting(key);
        self.store.change_async(key, old, new, carry).await
    }

    fn cancel(&self, key: &K, algorithm: &A, receipt: Receipt) {
        let _forgetting = self.memory.forgetting(key);
        self.store.cancel(key, algorithm, receipt);
    }

    passed_on!(AsyncStore);
}
