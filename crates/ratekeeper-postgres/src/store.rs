//! The store: one function call a decision.

use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::time::Duration;

use ratekeeper::store::{
    AsyncStore, CasAction, CasDriver, ErrorKind, Item, Jitter, Key, KeyKind, Loaded, Namespace,
    StateBytes, StoreError, Swap, Version, answer_at_once, compare_versions,
};
use ratekeeper::{
    Algorithm, Carry, Change, Clock, Decision, InvalidLimit, Request, Timestamp, UnixClock,
};
use tokio::time::{Instant, timeout_at};
use tokio_postgres::types::Type;
use tokio_postgres::{Config, NoTls, Row};

use crate::algorithm::{Answer, Call, PostgresAlgorithm, Reply, column, disagreement};
use crate::clients::Clients;
use crate::connections::Connections;
use crate::error::{deadline_passed, no_connection_yet};
use crate::numeric::Numeric;
use crate::query::{Parameter, Ready};
use crate::schema::{Schema, Table};

/// Limits shared by every process that uses the same database, schema and namespace.
///
/// A decision is one round trip: a function that reads the server's clock, decides and stores, in one atomic step. See the
/// [crate's page](crate) for what that means when servers fail.
///
/// The source of connections is a type parameter: see [`Clients`].
#[derive(Clone)]
pub struct PostgresStore<C = Connections> {
    pub(crate) clients: C,
    pub(crate) namespace: Namespace,
    pub(crate) schema: Schema,
    deadline: Duration,
    grace: Duration,
    clock: Option<Arc<dyn Clock + Send + Sync>>,
}

impl PostgresStore<Connections> {
    /// A store over [`Connections`] without encryption, as many as by default. `url` is an address
    /// (`postgres://user:password@host/database`) or a list of settings (`host=… user=… dbname=…`).
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if `url` is none of these. An unreachable server is no error here, but one of the first request.
    ///
    /// ```no_run
    /// use ratekeeper::store::Namespace;
    /// use ratekeeper::{KeyedLimiter, TokenBucket};
    /// use ratekeeper_postgres::PostgresStore;
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let store = PostgresStore::connect("postgres://app@127.0.0.1/app", Namespace::new("api")?)?;
    /// store.install().await?; // or as a migration: `Schema::sql`
    /// let users = KeyedLimiter::<str, _, _>::with_store(TokenBucket::per_minute(100), store);
    /// let decision = users.check_async("alice").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn connect(url: &str, namespace: Namespace) -> Result<Self, StoreError> {
        const MESSAGE: &str = "the address of PostgreSQL is none";
        let config: Config = url
            .parse()
            .map_err(|error| StoreError::new(ErrorKind::Config, MESSAGE).with_source(error))?;
        Ok(Self::new(Connections::new(config, NoTls), namespace))
    }
}

impl<C> PostgresStore<C> {
    /// How long a decision may take unless told otherwise.
    pub const DEFAULT_DEADLINE: Duration = Duration::from_millis(250);

    /// The longest grace: a thousand years, which a timestamp of PostgreSQL still has room for.
    const LONGEST_GRACE: Duration = Duration::from_secs(31_556_952_000);

    /// A store over connections of your own, for one namespace.
    pub fn new(clients: C, namespace: Namespace) -> Self {
        Self {
            clients,
            namespace,
            schema: Schema::default(),
            deadline: Self::DEFAULT_DEADLINE,
            grace: Duration::ZERO,
            clock: None,
        }
    }

    /// Changes how long a decision may take, connecting included. One that was not sent in time is
    /// [`NotExecuted`](ErrorKind::NotExecuted), one that was not answered in time [`Unknown`](ErrorKind::Unknown).
    #[must_use]
    pub const fn with_deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Tells time by `clock`, in nanoseconds since the Unix epoch, instead of by the server: for tests and replays. All
    /// processes must then agree on the time: to a reading that is older than the one behind a full debt, that debt looks as if
    /// the clock had been stepped back, and the difference is forgiven. States are kept `grace` longer than needed, because the
    /// server still expires them by its own clock: make it longer than the two can differ.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock + Send + Sync>, grace: Duration) -> Self {
        self.clock = Some(clock);
        self.grace = grace.min(Self::LONGEST_GRACE);
        self
    }

    /// The same database under another namespace.
    #[must_use]
    pub fn with_namespace(mut self, namespace: Namespace) -> Self {
        self.namespace = namespace;
        self
    }

    /// The table and functions of another schema.
    #[must_use]
    pub fn with_schema(mut self, schema: Schema) -> Self {
        self.schema = schema;
        self
    }

    /// The key space.
    pub const fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// Where the table and the functions are.
    pub const fn schema(&self) -> &Schema {
        &self.schema
    }

    /// How long a decision may take.
    pub const fn deadline(&self) -> Duration {
        self.deadline
    }

    /// The clock's present reading; `None` if the server's own counts.
    pub(crate) fn now(&self) -> Option<Timestamp> {
        self.clock.as_deref().map(Clock::now)
    }

    pub(crate) fn sent(&self) -> Sent {
        Sent {
            now: self.now().map(|now| Numeric(now.as_nanos())),
            grace_us: Numeric(micros(self.grace)),
        }
    }

    /// The key's row.
    pub(crate) fn key<K: Key + ?Sized>(&self, key: &K, kind: &KeyKind) -> Vec<u8> {
        self.namespace.key_of_kind(key, kind)
    }
}

/// A duration in microseconds, rounded up.
fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000)).unwrap_or(u64::MAX)
}

impl<C: Clients> PostgresStore<C> {
    /// Creates what is missing in the database: [`Schema::install`], with an [unlogged](Table::Unlogged) table.
    ///
    /// # Errors
    /// As there.
    pub async fn install(&self) -> Result<(), StoreError> {
        let held = self.clients.get().await?;
        self.schema.install(C::client(&held), Table::Unlogged).await
    }

    /// Deletes up to `most` expired rows, of all namespaces in the schema, and returns how many there were.
    ///
    /// Nothing else ever deletes rows: call it from a timer, in one process or in several (they do not wait for each
    /// other), until it returns less than `most`. Once a minute will do, because expiry is rounded up to whole minutes.
    /// Decisions do not depend on it: to them, an expired row is absent. Keep `most` small, about 1000, because a batch
    /// must end within the statement timeout and holds up its connection.
    ///
    /// ```no_run
    /// # use ratekeeper::store::{Namespace, StoreError};
    /// # use ratekeeper_postgres::PostgresStore;
    /// # fn example(store: PostgresStore) {
    /// tokio::spawn(async move {
    ///     let mut minute = tokio::time::interval(std::time::Duration::from_secs(60));
    ///     loop {
    ///         minute.tick().await;
    ///         while matches!(store.sweep(1000).await, Ok(1000)) {}
    ///     }
    /// });
    /// # }
    /// ```
    ///
    /// # Errors
    /// As a decision; try again at the next tick.
    pub async fn sweep(&self, most: u32) -> Result<u64, StoreError> {
        let most = i64::from(most);
        let row = self
            .query(&self.schema.sweep(), &[(&most, Type::INT8)], self.due())
            .await?;
        Ok(column::<i64>(&row, 0)?.unsigned_abs())
    }

    /// When an answer must be there that is asked for now.
    pub(crate) fn due(&self) -> Instant {
        // More than that, and the sum might not be an instant.
        const LONGEST: Duration = Duration::from_secs(31_556_952);
        Instant::now() + self.deadline.min(LONGEST)
    }

    /// Sends a statement that answers with one row.
    pub(crate) async fn query(
        &self,
        sql: &str,
        parameters: &[Parameter<'_>],
        due: Instant,
    ) -> Result<Row, StoreError> {
        let ready = timeout_at(due, Ready::new(&self.clients, sql)).await;
        let ready = ready.unwrap_or_else(|_| Err(no_connection_yet()))?;
        let answer = timeout_at(due, ready.run(sql, parameters)).await;
        answer.unwrap_or_else(|_| Err(deadline_passed()))
    }

    /// A decision: under the limit, or under a newer version of it that the key has met.
    pub(crate) async fn decide<A: PostgresAlgorithm>(
        &self,
        key: &[u8],
        algorithm: &A,
        request: &Request,
        due: Instant,
    ) -> Result<Decision, StoreError> {
        let mut adopted = None;
        for _ in 0..Self::ATTEMPTS {
            let limit = adopted.as_ref().unwrap_or(algorithm);
            let call = limit.call(request)?;
            match self.run(key, &call, due).await? {
                Answer::Reply(reply) => return limit.answer(request, &reply),
                Answer::OtherVersion { now, found } => {
                    match compare_versions(limit, now, &found)? {
                        Version::Newer(newer) => adopted = Some(newer),
                        Version::Older(write) => {
                            // If somebody else was faster, the next round says with what.
                            self.swap(key, Some(&found), &write.value, write.keep, due)
                                .await?;
                        }
                        Version::Same => return Err(disagreement()),
                    }
                }
            }
        }
        Err(ever_another_value())
    }

    /// How often a decision, or a change, that finds another value each time is begun again.
    const ATTEMPTS: u32 = 16;

    async fn run(&self, key: &[u8], call: &Call, due: Instant) -> Result<Answer, StoreError> {
        let sql = self.schema.decision(call.function);
        let sent = self.sent();
        let row = self.query(&sql, &sent.parameters(&key, call), due).await?;
        Answer::new(&row)
    }

    /// What is there.
    pub(crate) async fn look(&self, key: &[u8], due: Instant) -> Result<Reply, StoreError> {
        self.run(key, &Call::look(), due).await?.into_reply()
    }

    /// Puts `new` in the place of `seen`, if that is what is there; otherwise the reply says what is, and nothing is left.
    pub(crate) async fn swap(
        &self,
        key: &[u8],
        seen: Option<&StateBytes>,
        new: &StateBytes,
        keep: Duration,
        due: Instant,
    ) -> Result<Reply, StoreError> {
        /// A longer life is as good as endless, and a timestamp of PostgreSQL has room for it: ten thousand years.
        const LONGEST_LIFE: Duration = Duration::from_secs(315_569_520_000);

        let keep = keep.saturating_add(self.grace).min(LONGEST_LIFE);
        let (now, keep_us) = (self.sent().now, Numeric(micros(keep)));
        let (seen, new) = (seen.map(|seen| &**seen), &**new);
        let parameters = [
            (&key as _, Type::BYTEA),
            (&now as _, Type::NUMERIC),
            (&keep_us as _, Type::NUMERIC),
            (&seen as _, Type::BYTEA),
            (&new as _, Type::BYTEA),
        ];
        let row = self.query(&self.schema.swap(), &parameters, due).await?;
        Answer::new(&row)?.into_reply()
    }

    /// Moves a key's state from one limit to another, by compare-and-swap on the clock of its decisions.
    async fn change<A: Algorithm>(
        &self,
        key: &[u8],
        change: &Change<'_, A>,
        due: Instant,
    ) -> Result<Decision, StoreError> {
        let loaded = |reply: Reply| Loaded {
            state: reply.old,
            version: (),
            now: Some(reply.now),
        };
        let seed = RandomState::new().hash_one(key);
        let jitter = Jitter::new(seed, Duration::from_millis(1), Duration::from_millis(64));
        let mut driver = CasDriver::new(change, Request::PEEK, Self::ATTEMPTS);
        let mut action = CasAction::Load;
        loop {
            action = match action {
                CasAction::Load => driver.loaded(loaded(self.look(key, due).await?), &UnixClock)?,
                CasAction::Exchange { new, keep } => {
                    let seen = driver.seen().and_then(|seen| seen.state);
                    let reply = self.swap(key, seen.as_ref(), &new, keep, due).await?;
                    let swap = match reply.new {
                        Some(_) => Swap::Done,
                        None => Swap::Conflict(Some(loaded(reply))),
                    };
                    driver.exchanged(swap, &UnixClock)?
                }
                CasAction::BackOff { lost } => {
                    tokio::time::sleep(jitter.wait(lost)).await;
                    CasAction::Load
                }
                CasAction::Done(decision) => return Ok(decision),
            };
        }
    }

    pub(crate) async fn delete(&self, key: &[u8]) -> Result<(), StoreError> {
        let row = self
            .query(&self.schema.forget(), &[(&key, Type::BYTEA)], self.due())
            .await?;
        column::<i64>(&row, 0)?;
        Ok(())
    }
}

const fn ever_another_value() -> StoreError {
    const MESSAGE: &str = "each time, the key had another version of the limit";
    StoreError::new(ErrorKind::Contention, MESSAGE)
}

/// What is sent with every decision, besides key and call.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    now: Option<Numeric>,
    grace_us: Numeric,
}

impl Sent {
    pub(crate) fn parameters<'a>(&'a self, key: &'a &[u8], call: &'a Call) -> [Parameter<'a>; 4] {
        [
            (key, Type::BYTEA),
            (&self.now, Type::NUMERIC),
            (&self.grace_us, Type::NUMERIC),
            (&call.arguments, Type::NUMERIC_ARRAY),
        ]
    }
}

impl<K, A, C> AsyncStore<K, A> for PostgresStore<C>
where
    K: Key + ?Sized,
    A: PostgresAlgorithm,
    C: Clients,
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
        let key = self.key(key, &KeyKind::of(algorithm));
        self.decide(&key, algorithm, &request, self.due()).await
    }

    async fn apply_batch_async(&self, items: &mut [Item<'_, K, A>]) {
        crate::batch::apply(self, items).await;
    }

    async fn forget_async(&self, key: &K, algorithm: &A) -> Result<(), StoreError> {
        self.delete(&self.key(key, &KeyKind::of(algorithm))).await
    }

    async fn change_async(
        &self,
        key: &K,
        old: &A,
        new: &A,
        carry: Carry,
    ) -> Result<Decision, StoreError> {
        let due = self.due();
        let change = Change { old, new, carry };
        let key = self.key(key, &KeyKind::of(&change));
        timeout_at(due, self.change(&key, &change, due))
            .await
            .unwrap_or_else(|_| Err(deadline_passed()))
    }

    /// Whether there is a function for it.
    fn accepts_async(&self, algorithm: &A) -> Result<(), InvalidLimit> {
        if answer_at_once(algorithm, &Request::PEEK).is_some() {
            return Ok(());
        }
        let call = algorithm.call(&Request::ONE);
        let bound = |error: StoreError| InvalidLimit::DoesNotFitStore {
            bound: error.message(),
        };
        call.map(drop).map_err(bound)
    }
}

impl<C> fmt::Debug for PostgresStore<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore")
            .field("schema", &self.schema.name())
            .field("namespace", &self.namespace.name())
            .field("deadline", &self.deadline)
            .field("server_time", &self.clock.is_none())
            .finish_non_exhaustive()
    }
}
