//! The store: one script call a decision.

use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use ratekeeper::store::{
    AsyncStore, CasLoop, Item, Key, KeyKind, Namespace, StoreError, answer_at_once,
};
use ratekeeper::{Carry, Clock, Decision, InvalidLimit, Request};
use redis::aio::{ConnectionLike, ConnectionManager};
use redis::{Cmd, ErrorKind as RedisKind, RedisError, ServerErrorKind, Value};

use crate::algorithm::{Call, RedisAlgorithm, Reply, unsupported};
use crate::cas::ByServer;
use crate::error::{deadline_passed, store_error};

/// Limits shared by every process that uses the same Redis and namespace.
///
/// A decision is one round trip: a script that reads the server's clock, decides and stores, in one atomic step. See the
/// [crate's page](crate) for what that means when servers fail.
///
/// The connection is a type parameter: whatever is an async [`ConnectionLike`] and cheap to clone.
/// [`ConnectionManager`] (the default, see [`connect`](RedisStore::connect)) reconnects by itself;
/// `MultiplexedConnection` does not; `ClusterConnection` comes with the feature `cluster`. Do not use a pool: pooled
/// connections carry one request at a time (measured: a quarter of the throughput).
#[derive(Clone)]
pub struct RedisStore<C = ConnectionManager> {
    connection: C,
    pub(crate) namespace: Namespace,
    deadline: Duration,
    grace: Duration,
    clock: Option<Arc<dyn Clock + Send + Sync>>,
    pub(crate) is_cluster: bool,
}

impl<C> RedisStore<C> {
    /// How long a decision may take unless told otherwise.
    pub const DEFAULT_DEADLINE: Duration = Duration::from_millis(100);

    /// Redis expires keys by a clock that it reads, in whole milliseconds, before the script reads its own.
    const SERVER_GRACE: Duration = Duration::from_millis(2);

    /// A store over a connection of your own, for one namespace.
    ///
    /// Give the connection no retries: a command that is sent twice may be counted twice.
    pub const fn new(connection: C, namespace: Namespace) -> Self {
        Self {
            connection,
            namespace,
            deadline: Self::DEFAULT_DEADLINE,
            grace: Self::SERVER_GRACE,
            clock: None,
            is_cluster: false,
        }
    }

    /// Changes how long a decision may take, connecting included, before it is
    /// [`Unknown`](ratekeeper::store::ErrorKind::Unknown).
    #[must_use]
    pub const fn with_deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Tells time by `clock`, in nanoseconds since the Unix epoch, instead of by the server: for tests and replays, with one
    /// clock for all processes. A value from further ahead than its limit reaches counts as proof that this one clock was set
    /// back, so clocks that differ would forgive; and a reading is sent along with the request, so that others may overtake it.
    ///
    /// Keys live `grace` longer than needed, because the server still expires them by its own clock: make it longer than the
    /// two can differ.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock + Send + Sync>, grace: Duration) -> Self {
        self.clock = Some(clock);
        self.grace = grace;
        self
    }

    /// The same server under another namespace.
    #[must_use]
    pub fn with_namespace(mut self, namespace: Namespace) -> Self {
        self.namespace = namespace;
        self
    }

    /// The key space.
    pub const fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// How long a decision may take.
    pub const fn deadline(&self) -> Duration {
        self.deadline
    }

    pub(crate) const fn has_the_servers_time(&self) -> bool {
        self.clock.is_none()
    }

    pub(crate) const fn grace(&self) -> Duration {
        self.grace
    }

    /// The instant to send: nothing for the server's own.
    pub(crate) fn now(&self) -> Result<Vec<u8>, StoreError> {
        /// The scripts add spans of up to 2^53 ns.
        const LAST_NS: u64 = u64::MAX - (1 << 54);

        let Some(clock) = self.clock.as_deref() else {
            return Ok(Vec::new());
        };
        let now_ns = clock.now().as_nanos();
        if now_ns > LAST_NS {
            return Err(unsupported(
                "the clock has reached the end of time, in the year 2554",
            ));
        }
        Ok(now_ns.to_be_bytes().to_vec())
    }
}

impl<C: ConnectionLike + Clone + Send + Sync> RedisStore<C> {
    pub(crate) fn connection(&self) -> C {
        self.connection.clone()
    }

    /// Waits no longer than the deadline.
    pub(crate) async fn within_deadline<T>(
        &self,
        work: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        match tokio::time::timeout(self.deadline, work).await {
            Ok(result) => result,
            Err(_) => Err(deadline_passed()),
        }
    }

    /// Runs a script for a key, within the deadline.
    pub(crate) async fn run(&self, key: &[u8], call: &Call) -> Result<Reply, StoreError> {
        self.within_deadline(self.run_once(key, call)).await
    }

    /// Runs a script for a key.
    pub(crate) async fn run_once(&self, key: &[u8], call: &Call) -> Result<Reply, StoreError> {
        let now = self.now()?;
        let by_hash = call.script.by_hash(key, &now, &call.arguments);
        let mut connection = self.connection();
        let mut result = send(&mut connection, &by_hash).await;
        // What the server did not run may be sent again: once with the text if it does not know the script, and once
        // if the cluster has moved the key.
        if result.as_ref().is_err_and(has_moved) {
            result = send(&mut connection, &by_hash).await;
        }
        if result.as_ref().is_err_and(is_unknown_script) {
            let by_text = call.script.by_text(key, &now, &call.arguments);
            result = send(&mut connection, &by_text).await;
        }
        Reply::new(result.map_err(store_error)?)
    }

    pub(crate) async fn delete(&self, key: &[u8]) -> Result<(), StoreError> {
        self.within_deadline(async {
            let mut command = redis::cmd("DEL");
            command.arg(key);
            send(&mut self.connection(), &command)
                .await
                .map_err(store_error)?;
            Ok(())
        })
        .await
    }
}

async fn send(connection: &mut impl ConnectionLike, command: &Cmd) -> Result<Value, RedisError> {
    connection
        .req_packed_command(command)
        .await?
        .extract_error()
}

/// After a restart, a `SCRIPT FLUSH`, a failover: script caches are neither saved nor replicated.
pub(crate) fn is_unknown_script(error: &RedisError) -> bool {
    error.kind() == RedisKind::Server(ServerErrorKind::NoScript)
}

fn has_moved(error: &RedisError) -> bool {
    use ServerErrorKind::{Ask, Moved, TryAgain};
    matches!(error.kind(), RedisKind::Server(Moved | Ask | TryAgain))
}

impl<K, A, C> AsyncStore<K, A> for RedisStore<C>
where
    K: Key + ?Sized,
    A: RedisAlgorithm,
    C: ConnectionLike + Clone + Send + Sync,
{
    async fn apply_async(
        &self,
        key: &K,
        algorithm: &A,
        request: Request,
    ) -> Result<Decision, StoreError> {
        if let Some(decision) = answer_at_once(algorithm, &request) {
            return Ok(decision);
        }
        let key = self.namespace.key_of_kind(key, &KeyKind::of(algorithm));
        self.within_deadline(self.decide(&key, algorithm, &request))
            .await
    }

    async fn apply_batch_async(&self, items: &mut [Item<'_, K, A>]) {
        crate::batch::apply(self, items).await;
    }

    async fn forget_async(&self, key: &K, algorithm: &A) -> Result<(), StoreError> {
        let key = self.namespace.key_of_kind(key, &KeyKind::of(algorithm));
        self.delete(&key).await
    }

    /// A read and a compare-and-swap, and again as long as somebody else is faster, up to 16 times.
    async fn change_async(
        &self,
        key: &K,
        old: &A,
        new: &A,
        carry: Carry,
    ) -> Result<Decision, StoreError> {
        let by_exchange = CasLoop::new(ByServer(self), tokio::time::sleep);
        let change = by_exchange.change_async(key, old, new, carry);
        self.within_deadline(change).await
    }

    fn accepts_async(&self, algorithm: &A) -> Result<(), InvalidLimit> {
        if answer_at_once(algorithm, &Request::PEEK).is_some() {
            return Ok(());
        }
        let misfit = |error: StoreError| InvalidLimit::DoesNotFitStore {
            bound: error.message(),
        };
        algorithm.call(&Request::ONE, self.grace).map_err(misfit)?;
        Ok(())
    }

    fn fingerprint_of(&self, key: &K) -> u64 {
        static SECRET: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        SECRET.hash_one(self.namespace.key(key))
    }
}

impl<C> fmt::Debug for RedisStore<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore")
            .field("namespace", &self.namespace.name())
            .field("deadline", &self.deadline)
            .field("server_time", &self.clock.is_none())
            .finish_non_exhaustive()
    }
}
