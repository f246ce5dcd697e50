//! One limit per key.

mod change;
mod for_key;
mod live;
mod under;

use core::borrow::Borrow;
use core::fmt;
use core::hash::Hash;
use core::marker::PhantomData;

pub use self::for_key::ForKey;
pub use self::under::Under;
use crate::algorithm::{Algorithm, TokenBucket};
use crate::decision::Decision;
use crate::invalid_limit::InvalidLimit;
use crate::request::Request;
use crate::state::SameState;
use crate::store::{AsyncStore, DashStore, MemoryStore, SlotState, Store, StoreError, TableStore};
use crate::time::Timestamp;

/// One limit for each key: client address, user, API key, tenant.
///
#[cfg_attr(feature = "dashmap", doc = "```")]
#[cfg_attr(not(feature = "dashmap"), doc = "```ignore")]
/// use std::net::IpAddr;
/// use ratekeeper::{KeyedLimiter, TokenBucket};
///
/// let per_ip = KeyedLimiter::<IpAddr>::new(TokenBucket::per_minute(100).with_burst(20));
/// let client: IpAddr = "192.0.2.7".parse()?;
/// let decision = per_ip.check(&client);
/// assert!(decision.is_allowed());
/// assert_eq!(decision.remaining(), 19);
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
///
/// Keys are looked up borrowed: a `KeyedLimiter<String>` is asked with `check("alice")`. With another
/// algorithm, let it be inferred: `KeyedLimiter::<IpAddr, _>::new(SlidingWindow::per_hour(60))`.
pub struct KeyedLimiter<K: ?Sized, A: Algorithm = TokenBucket, S = DashStore<K, A>> {
    algorithm: A,
    store: S,
    // Covariant in the key, and `Send + Sync` whatever the key is: no key is stored here.
    key: PhantomData<fn() -> *const K>,
}

impl<K: ?Sized, A: Algorithm, S> KeyedLimiter<K, A, S> {
    /// A limiter over a store of the caller's choice. One store serves one limiter.
    ///
    /// Whether the store can keep the limit is not looked at here: [`try_with_store`](Self::try_with_store),
    /// [`try_with_async_store`](Self::try_with_async_store) and [`try_with_blocking_store`](Self::try_with_blocking_store) do, and
    /// are right for limits from outside.
    pub const fn with_store(algorithm: A, store: S) -> Self {
        Self {
            algorithm,
            store,
            key: PhantomData,
        }
    }

    /// [`with_store`](Self::with_store), unless the limit does not fit the store.
    ///
    /// # Errors
    /// [`InvalidLimit`] that names the store's bound, as the store's documentation says; in-memory maps accept every limit.
    pub fn try_with_store(algorithm: A, store: S) -> Result<Self, InvalidLimit>
    where
        K: Sized,
        S: MemoryStore<K, A>,
    {
        store.accepts(&algorithm)?;
        Ok(Self::with_store(algorithm, store))
    }

    /// [`try_with_store`](Self::try_with_store) for stores that may fail.
    ///
    /// # Errors
    /// As there. The store is not asked for a decision.
    pub fn try_with_blocking_store(algorithm: A, store: S) -> Result<Self, InvalidLimit>
    where
        S: Store<K, A>,
    {
        store.try_accepts(&algorithm)?;
        Ok(Self::with_store(algorithm, store))
    }

    /// [`try_with_store`](Self::try_with_store) for async stores.
    ///
    /// # Errors
    /// As there. The store is not asked for a decision.
    pub fn try_with_async_store(algorithm: A, store: S) -> Result<Self, InvalidLimit>
    where
        K: Sync,
        S: AsyncStore<K, A>,
    {
        store.accepts_async(&algorithm)?;
        Ok(Self::with_store(algorithm, store))
    }

    /// The limit of every key.
    pub const fn algorithm(&self) -> &A {
        &self.algorithm
    }

    /// Where the keys' states are kept.
    pub const fn store(&self) -> &S {
        &self.store
    }

    /// The same keys under another limit, such as that of a client's tier: a view with this limiter's verbs.
    ///
    #[cfg_attr(feature = "dashmap", doc = "```")]
    #[cfg_attr(not(feature = "dashmap"), doc = "```ignore")]
    /// use ratekeeper::{KeyedLimiter, TokenBucket};
    ///
    /// const FREE: TokenBucket = TokenBucket::per_minute(10);
    /// const PREMIUM: TokenBucket = TokenBucket::per_minute(1000);
    ///
    /// let users = KeyedLimiter::<u64>::new(FREE);
    /// assert_eq!(users.check(&1).limit(), 10);
    /// assert_eq!(users.under(&PREMIUM).check(&2).limit(), 1000);
    /// let user = users.under(&PREMIUM).for_key(&2);
    /// assert!(user.check_n(5).is_allowed());
    /// ```
    ///
    /// # Several limits on one key
    /// Safe in any order: a bucket's state is a debt in time, which none of them forgives. The price: a key that took its tokens
    /// under a slow limit pays that time before a fast one lets it pass (10 tokens of `10/h` are an hour). When a key moves to
    /// another tier, [`change`](Self::change) it once, and it keeps its tokens instead.
    ///
    /// A window's counts mean something only to windows of the same kind, length, offset and anchoring; the limit may differ. A
    /// call under any other is [`Outcome::Unsupported`](crate::Outcome::Unsupported), or an error of kind
    /// [`Unsupported`](crate::store::ErrorKind::Unsupported).
    #[inline]
    pub fn under<'a, B: Algorithm>(&'a self, limit: &'a B) -> Under<'a, K, B, S>
    where
        B::State: SameState<A::State>,
    {
        let fits = self.algorithm.state_kind() == limit.state_kind();
        Under::new(limit, &self.store, fits)
    }

    /// The limit of one key: a view with the verbs of a [`Limiter`](crate::Limiter).
    ///
    #[cfg_attr(feature = "dashmap", doc = "```")]
    #[cfg_attr(not(feature = "dashmap"), doc = "```ignore")]
    /// use ratekeeper::{KeyedLimiter, TokenBucket};
    ///
    /// let users = KeyedLimiter::<String>::new(TokenBucket::per_minute(2));
    /// let alice = users.for_key("alice");
    /// assert!(alice.check().is_allowed());
    /// assert_eq!(alice.peek().remaining(), 1);
    /// ```
    #[inline]
    pub const fn for_key<'a, Q: ?Sized>(&'a self, key: &'a Q) -> ForKey<'a, Q, A, S>
    where
        K: Borrow<Q>,
    {
        ForKey::new(key, &self.algorithm, &self.store, true)
    }

    /// This limiter as a view: what its own verbs do.
    #[inline]
    const fn own(&self) -> Under<'_, K, A, S> {
        Under::new(&self.algorithm, &self.store, true)
    }

    /// Asks for one token for `key`.
    #[inline]
    pub fn check<Q: ?Sized>(&self, key: &Q) -> Decision
    where
        K: Borrow<Q>,
        S: MemoryStore<Q, A>,
    {
        self.apply(key, Request::ONE)
    }

    /// Asks for `n` tokens for `key`, all or nothing; 0 is a peek.
    #[inline]
    pub fn check_n<Q: ?Sized>(&self, key: &Q, n: u64) -> Decision
    where
        K: Borrow<Q>,
        S: MemoryStore<Q, A>,
    {
        self.apply(key, Request::take(n))
    }

    /// Looks at `key` without taking.
    #[inline]
    pub fn peek<Q: ?Sized>(&self, key: &Q) -> Decision
    where
        K: Borrow<Q>,
        S: MemoryStore<Q, A>,
    {
        self.apply(key, Request::PEEK)
    }

    /// Asks for one token for `key` at `now`; the store's clock is not read. See
    /// [`MemoryStore::decide_at`] on instants that run backwards.
    #[inline]
    pub fn check_at<Q: ?Sized>(&self, key: &Q, now: Timestamp) -> Decision
    where
        K: Borrow<Q>,
        S: MemoryStore<Q, A>,
    {
        self.apply_at(key, Request::ONE, now)
    }

    /// Answers `request` for `key`.
    ///
    /// # Panics
    /// In builds with debug assertions, if the request gives back a receipt of another key or another limit.
    #[inline(always)] // or the decision is copied through memory
    pub fn apply<Q: ?Sized>(&self, key: &Q, request: Request) -> Decision
    where
        K: Borrow<Q>,
        S: MemoryStore<Q, A>,
    {
        self.own().apply(key, request)
    }

    /// Answers `request` for `key` at `now`; the store's clock is not read.
    #[inline]
    pub fn apply_at<Q: ?Sized>(&self, key: &Q, request: Request, now: Timestamp) -> Decision
    where
        K: Borrow<Q>,
        S: MemoryStore<Q, A>,
    {
        self.own().apply_at(key, request, now)
    }
}

/// Over stores that may fail.
impl<K: ?Sized, A: Algorithm, S> KeyedLimiter<K, A, S> {
    /// Asks for one token for `key`.
    ///
    /// # Errors
    /// No decision was made: see [`ErrorKind`](crate::store::ErrorKind). A refusal is `Ok`.
    pub fn try_check<Q: ?Sized>(&self, key: &Q) -> Result<Decision, StoreError>
    where
        K: Borrow<Q>,
        S: Store<Q, A>,
    {
        self.try_apply(key, Request::ONE)
    }

    /// Answers `request` for `key`.
    ///
    /// # Errors
    /// As [`try_check`](Self::try_check).
    pub fn try_apply<Q: ?Sized>(&self, key: &Q, request: Request) -> Result<Decision, StoreError>
    where
        K: Borrow<Q>,
        S: Store<Q, A>,
    {
        self.own().try_apply(key, request)
    }

    /// Forgets `key`, as if it had never been seen.
    ///
    /// # Errors
    /// As [`try_check`](Self::try_check), and if the store cannot forget.
    pub fn try_forget<Q: ?Sized>(&self, key: &Q) -> Result<(), StoreError>
    where
        K: Borrow<Q>,
        S: Store<Q, A>,
    {
        self.store.forget(key, &self.algorithm)
    }

    /// Asks for one token for `key`.
    ///
    /// # Errors
    /// As [`try_check`](Self::try_check).
    pub fn check_async<Q: ?Sized + Sync>(
        &self,
        key: &Q,
    ) -> impl Future<Output = Result<Decision, StoreError>> + Send
    where
        K: Borrow<Q>,
        S: AsyncStore<Q, A>,
    {
        self.apply_async(key, Request::ONE)
    }

    /// Answers `request` for `key`.
    ///
    /// # Errors
    /// As [`try_check`](Self::try_check).
    pub fn apply_async<Q: ?Sized + Sync>(
        &self,
        key: &Q,
        request: Request,
    ) -> impl Future<Output = Result<Decision, StoreError>> + Send
    where
        K: Borrow<Q>,
        S: AsyncStore<Q, A>,
    {
        self.own().apply_async(key, request)
    }

    /// Forgets `key`, as if it had never been seen.
    ///
    /// # Errors
    /// As [`try_forget`](Self::try_forget).
    pub fn forget_async<Q: ?Sized + Sync>(
        &self,
        key: &Q,
    ) -> impl Future<Output = Result<(), StoreError>> + Send
    where
        K: Borrow<Q>,
        S: AsyncStore<Q, A>,
    {
        self.store.forget_async(key, &self.algorithm)
    }
}

impl<K: ?Sized, A: Algorithm, C> KeyedLimiter<K, A, TableStore<C, A>> {
    /// Forgets `key`, as if it had never been seen. Returns whether a slot held it in a state other than that.
    pub fn remove<Q>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
        Q: Hash + ?Sized,
        A::State: SlotState,
    {
        self.store.remove(key)
    }
}

#[cfg(feature = "dashmap")]
mod over_dash_store {
    use core::borrow::Borrow;
    use core::hash::Hash;

    use super::KeyedLimiter;
    use crate::algorithm::Algorithm;
    use crate::clock::{Clock, StdClock};
    use crate::store::DashStore;

    impl<K: Eq + Hash, A: Algorithm> KeyedLimiter<K, A> {
        /// A limiter over a new [`DashStore`] on [`StdClock`].
        pub fn new(algorithm: A) -> Self {
            Self::with_clock(algorithm, StdClock::new())
        }
    }

    impl<K: Eq + Hash, A: Algorithm, C> KeyedLimiter<K, A, DashStore<K, A, C>> {
        /// A limiter over a new [`DashStore`] that tells time by `clock`.
        pub fn with_clock(algorithm: A, clock: C) -> Self {
            Self::with_store(algorithm, DashStore::with_clock(clock))
        }

        /// Keys held, including those that are as good as new.
        pub fn len(&self) -> usize {
            self.store.len()
        }

        /// Whether no key is held.
        pub fn is_empty(&self) -> bool {
            self.store.is_empty()
        }

        /// Forgets `key`, as if it had never been seen. Returns whether it was held.
        pub fn remove<Q>(&self, key: &Q) -> bool
        where
            K: Borrow<Q>,
            Q: Eq + Hash + ?Sized,
        {
            self.store.remove(key)
        }

        /// Forgets the keys that are as good as new, which changes no later decision. Returns how many
        /// those were. See [`DashStore::prune`].
        ///
        /// ```
        /// use core::time::Duration;
        /// use ratekeeper::{KeyedLimiter, ManualClock, TokenBucket};
        ///
        /// let clock = ManualClock::new();
        /// let users = KeyedLimiter::<u64, _, _>::with_clock(TokenBucket::per_second(2), &clock);
        /// users.check_n(&1, 1).into_receipt();
        /// users.check_n(&2, 2).into_receipt();
        /// clock.advance(Duration::from_millis(600));
        /// assert_eq!(users.prune(), 1); // key 1 is full again, key 2 is not
        /// assert_eq!(users.len(), 1);
        /// ```
        pub fn prune(&self) -> usize
        where
            C: Clock,
        {
            self.store.prune(&self.algorithm)
        }
    }
}

impl<K: ?Sized, A: Algorithm, S: fmt::Debug> fmt::Debug for KeyedLimiter<K, A, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedLimiter")
            .field("algorithm", &self.algorithm)
            .field("store", &self.store)
            .finish()
    }
}
