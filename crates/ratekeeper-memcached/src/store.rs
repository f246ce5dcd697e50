//! The store: a compare-and-swap loop over memcached.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use ratekeeper::store::{
    AsyncStore, CasAction, CasDriver, CasLoop, ErrorKind, Item, Jitter, Key, KeyKind, Namespace,
    StoreError, answer_at_once,
};
use ratekeeper::{Algorithm, Carry, Change, Clock, Decision, Request, UnixClock};
use tokio::time::{Instant, timeout_at};

use crate::cas::{MemcachedCas, Version};
use crate::turns::Turns;

/// Limits shared by every process that uses the same memcached server and namespace.
///
/// A decision is one round trip if it changes nothing, as refusals and peeks do, and two otherwise. Callers of one store who
/// change the same key take turns; a race lost against another store costs two more round trips. See the [crate's
/// page](crate) for what that means.
///
/// ```no_run
/// use ratekeeper::store::Namespace;
/// use ratekeeper::{KeyedLimiter, TokenBucket};
/// use ratekeeper_memcached::MemcachedStore;
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let store = MemcachedStore::connect("127.0.0.1:11211", Namespace::new("api")?)?;
/// let users = KeyedLimiter::<str, _, _>::with_store(TokenBucket::per_minute(100), store);
/// let decision = users.check_async("alice").await?;
/// # Ok(())
/// # }
/// ```
pub struct MemcachedStore {
    server: MemcachedCas,
    clock: Arc<dyn Clock + Send + Sync>,
    max_attempts: u32,
    max_skew: Duration,
    turns: Turns,
    jitter: Jitter,
}

impl MemcachedStore {
    /// The most attempts a request makes unless told otherwise.
    pub const DEFAULT_MAX_ATTEMPTS: u32 = CasLoop::<(), (), ()>::DEFAULT_MAX_ATTEMPTS;

    /// By how much the clocks of processes may differ unless told otherwise.
    pub const DEFAULT_MAX_SKEW: Duration = CasLoop::<(), (), ()>::DEFAULT_MAX_SKEW;

    /// How long a caller waits after two lost races: up to 1 ms; after another one up to 2 ms, and so on.
    const WAIT: Duration = Duration::from_millis(1);
    const LONGEST_WAIT: Duration = Duration::from_millis(16);

    /// A store over the server at `address`, `host:port`, which is connected to by the first request, and again whenever
    /// the connection breaks. For other than the default settings, see [`new`](Self::new).
    ///
    /// # Errors
    /// [`Config`](ErrorKind::Config) if `address` is none. An unreachable server is none here, but one of the first request.
    pub fn connect(address: impl Into<String>, namespace: Namespace) -> Result<Self, StoreError> {
        Ok(Self::new(MemcachedCas::connect(address, namespace)?))
    }

    /// A store over a server with settings of your own.
    pub fn new(server: MemcachedCas) -> Self {
        let seed = RandomState::new().hash_one(0_u8);
        Self {
            server,
            clock: Arc::new(UnixClock),
            max_attempts: Self::DEFAULT_MAX_ATTEMPTS,
            max_skew: Self::DEFAULT_MAX_SKEW,
            turns: Turns::new(),
            jitter: Jitter::new(seed, Self::WAIT, Self::LONGEST_WAIT),
        }
    }

    /// Changes how many races a request may lose before it gives up with [`Contention`](ErrorKind::Contention); at least 1.
    #[must_use]
    pub const fn with_max_attempts(mut self, max_attempts: u32) -> Self {
        self.max_attempts = max_attempts;
        self
    }

    /// Changes by how much the clocks of processes may differ. A process whose clock is behind by so much or less decides by the
    /// instant of the key's last write; one that is further behind forgives a key a burst: see [Time](crate#time).
    ///
    /// It is also by how much a clock may be set back while its process restarts, and all that happens is that keys stand still
    /// until it has caught up.
    #[must_use]
    pub const fn with_max_skew(mut self, max_skew: Duration) -> Self {
        self.max_skew = max_skew;
        self
    }

    /// Decides by `clock`, in nanoseconds since the Unix epoch, instead of by this machine's: for tests and replays. See
    /// [`MemcachedCas::with_grace`].
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock + Send + Sync>) -> Self {
        self.clock = clock;
        self
    }

    /// The server.
    pub const fn get_ref(&self) -> &MemcachedCas {
        &self.server
    }

    fn name_of<K: Key + ?Sized, A: Algorithm>(&self, key: &K, algorithm: &A) -> String {
        self.server.name_of_kind(key, &KeyKind::of(algorithm))
    }

    /// What [`CasLoop`] does, with turns, and one deadline for all.
    async fn decide<A: Algorithm>(
        &self,
        name: &str,
        algorithm: &A,
        request: Request,
        deadline: Instant,
    ) -> Result<Decision, StoreError> {
        if let Some(decision) = answer_at_once(algorithm, &request) {
            return Ok(decision);
        }
        let driver = CasDriver::<_, Version>::new(algorithm, request, self.max_attempts);
        let mut driver = driver.with_max_skew(self.max_skew);
        let mut turn = None;
        let mut action = CasAction::Load;
        loop {
            action = match action {
                CasAction::Load => {
                    driver.loaded(self.server.load(name, deadline).await?, &self.clock)?
                }
                CasAction::Exchange { new, keep } => {
                    turn = turn.or_else(|| self.turns.try_take(name));
                    match driver.seen() {
                        Some(seen) if turn.is_some() => {
                            let swap = self.server.exchange(name, seen, &new, keep, deadline);
                            driver.exchanged(swap.await?, &self.clock)?
                        }
                        // What was seen will have changed by the time it is this caller's turn.
                        _ => {
                            turn = Some(in_time(deadline, self.turns.take(name)).await?);
                            CasAction::Load
                        }
                    }
                }
                CasAction::BackOff { lost } => {
                    let wait = self.jitter.wait(lost.saturating_sub(1));
                    in_time(deadline, tokio::time::sleep(wait)).await?;
                    CasAction::Load
                }
                CasAction::Done(decision) => return Ok(decision),
            };
        }
    }
}

/// Waits, if there is the time.
async fn in_time<T>(deadline: Instant, wait: impl Future<Output = T>) -> Result<T, StoreError> {
    const MESSAGE: &str = "others changed the key until the deadline";
    let result = timeout_at(deadline, wait).await;
    result.map_err(|_| StoreError::new(ErrorKind::Contention, MESSAGE))
}

impl<K: Key + ?Sized, A: Algorithm> AsyncStore<K, A> for MemcachedStore {
    async fn apply_async(
        &self,
        key: &K,
        algorithm: &A,
        request: Request,
    ) -> Result<Decision, StoreError> {
        let deadline = self.server.deadline_from_now();
        let name = self.name_of(key, algorithm);
        self.decide(&name, algorithm, request, deadline).await
    }

    /// All keys at once, the items of one key in order, and one deadline for all.
    async fn apply_batch_async(&self, items: &mut [Item<'_, K, A>]) {
        let deadline = self.server.deadline_from_now();
        let mut by_name: HashMap<String, Vec<&mut Item<'_, K, A>>> = HashMap::new();
        for item in items {
            let name = self.name_of(item.key(), item.algorithm());
            by_name.entry(name).or_default().push(item);
        }
        join_all(by_name.into_iter().map(|(name, of_one_key)| async move {
            for item in of_one_key {
                if let Some(request) = item.take_request() {
                    let algorithm = item.algorithm();
                    let result = self.decide(&name, algorithm, request, deadline).await;
                    item.set_result(result);
                }
            }
        }))
        .await;
    }

    async fn forget_async(&self, key: &K, algorithm: &A) -> Result<(), StoreError> {
        let deadline = self.server.deadline_from_now();
        let name = self.name_of(key, algorithm);
        self.server.delete(&name, deadline).await
    }

    async fn change_async(
        &self,
        key: &K,
        old: &A,
        new: &A,
        carry: Carry,
    ) -> Result<Decision, StoreError> {
        let deadline = self.server.deadline_from_now();
        let change = Change { old, new, carry };
        let name = self.name_of(key, &change);
        self.decide(&name, &change, Request::PEEK, deadline).await
    }
}

impl fmt::Debug for MemcachedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemcachedStore")
            .field("server", &self.server)
            .field("max_attempts", &self.max_attempts)
            .field("max_skew", &self.max_skew)
            .finish_non_exhaustive()
    }
}
