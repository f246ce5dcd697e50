//! memcached as a backend that compares and swaps.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ratekeeper::store::{
    AsyncCasStore, ErrorKind, Key, Loaded, Namespace, StateBytes, StoreError, Swap,
};
use ratekeeper::{Clock, UnixClock};
use tokio::runtime::Handle;
use tokio::time::{Instant, timeout_at};

use crate::connection::{Answer, Connection, ConnectionId, Failure, Reply};
use crate::error::Asked;
use crate::expiry::time_to_live;
use crate::key::legal_key;
use crate::stamp::{latest, stamp};

/// One memcached server and a namespace in it, which can be read and compare-and-swapped.
///
/// [`MemcachedStore`](crate::MemcachedStore) makes decisions with it, and so can
/// [`CasLoop`](ratekeeper::store::CasLoop). Clones share one connection.
///
/// ```no_run
/// use std::time::Duration;
/// use ratekeeper::store::Namespace;
/// use ratekeeper_memcached::{MemcachedCas, MemcachedStore};
///
/// # fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let server = MemcachedCas::connect("127.0.0.1:11211", Namespace::new("api")?)?.with_deadline(Duration::from_millis(20));
/// let searches = MemcachedStore::new(server.clone().with_namespace(Namespace::new("searches")?));
/// let uploads = MemcachedStore::new(server.with_namespace(Namespace::new("uploads")?));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct MemcachedCas {
    connection: Arc<Connection>,
    namespace: Namespace,
    deadline: Duration,
    clock: Arc<dyn Clock + Send + Sync>,
    grace: Duration,
    max_skew: Duration,
}

/// Which value of a key was seen, or that there was none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version(Option<Seen>);

/// memcached's number for a value. It counts them for all keys together, from 1 when it starts: on another connection,
/// behind which the server may be a new one, the number says nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    cas: u64,
    connection: ConnectionId,
}

impl MemcachedCas {
    /// How long a decision may take unless told otherwise.
    pub const DEFAULT_DEADLINE: Duration = Duration::from_millis(100);

    /// The longest deadline; a longer one is this one. States are kept a minute longer than they matter, so that no exchange
    /// that was delayed for less finds nothing where there was something meanwhile.
    const LONGEST_DEADLINE: Duration = Duration::from_secs(60);

    /// How far the clocks of processes may differ unless told otherwise.
    pub const DEFAULT_MAX_SKEW: Duration = Duration::from_secs(1);

    /// The server at `address`, `host:port`, and a namespace in it. The connection is made by the first request, and made
    /// again whenever it breaks.
    ///
    /// # Errors
    /// [`Config`](ErrorKind::Config) if `address` is none. An unreachable server is none here, but one of the first request.
    pub fn connect(address: impl Into<String>, namespace: Namespace) -> Result<Self, StoreError> {
        let address = address.into();
        let host_and_port = address.rsplit_once(':');
        if !host_and_port
            .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
        {
            const MESSAGE: &str = "memcached's address must be of the form host:port";
            return Err(StoreError::new(ErrorKind::Config, MESSAGE).with_source(address));
        }
        Ok(Self {
            connection: Arc::new(Connection::new(address)),
            namespace,
            deadline: Self::DEFAULT_DEADLINE,
            clock: Arc::new(UnixClock),
            grace: Duration::ZERO,
            max_skew: Self::DEFAULT_MAX_SKEW,
        })
    }

    /// Changes how long a decision or a batch may take, connecting and lost races included; a minute at most. In a
    /// [`CasLoop`](ratekeeper::store::CasLoop) it is each request to memcached that may take so long.
    #[must_use]
    pub const fn with_deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Tells time by `clock`, in nanoseconds since the Unix epoch, instead of by this machine's: for tests and replays.
    /// Values live `grace` longer than needed, because the server still expires them by its own clock: make it longer than
    /// the two can differ.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock + Send + Sync>, grace: Duration) -> Self {
        self.clock = clock;
        self.grace = grace;
        self
    }

    /// Changes how far the clocks of processes may differ: at most 500 seconds. A process whose clock is behind by so much or
    /// less decides by the time of the key's last write; see [Time](crate#time).
    ///
    /// It is also by how much a clock may be set back, and all that happens is that keys stand still until it has caught up.
    /// [`Duration::ZERO`] leaves clocks that are set back to the [algorithm](ratekeeper::Algorithm), and takes it that no two
    /// of them differ.
    #[must_use]
    pub const fn with_max_skew(mut self, max_skew: Duration) -> Self {
        self.max_skew = max_skew;
        self
    }

    /// The same server and connection under another namespace.
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

    /// The name under which memcached holds `key`, for those who want to look with its own tools.
    ///
    /// It is `rl:namespace:key` if all of the key's bytes can be printed, `rl:namespace=` and the key in base64 (RFC 4648,
    /// the alphabet for file names, no padding) if not, and `rl:namespace#` and the key's SHA-256 if it is longer than
    /// [`Namespace::MAX_KEY_BYTES`]. No two keys have the same name.
    ///
    /// ```
    /// # use ratekeeper::store::Namespace;
    /// # use ratekeeper_memcached::MemcachedCas;
    /// let server = MemcachedCas::connect("127.0.0.1:11211", Namespace::new("api")?)?;
    /// assert_eq!(server.name_of("alice"), "rl:api:alice");
    /// assert_eq!(server.name_of("zoë"), "rl:api=em_Dqw");
    /// assert_eq!(server.name_of(&("eu", 42_u32)), "rl:api=ZXX_NDL_");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn name_of<K: Key + ?Sized>(&self, key: &K) -> String {
        legal_key(&self.namespace, key)
    }

    fn absent(&self) -> Loaded<Version> {
        Loaded {
            state: None,
            version: Version(None),
            now: Some(self.clock.now()),
        }
    }

    /// When what begins now must have ended.
    pub(crate) fn deadline_from_now(&self) -> Instant {
        Instant::now() + self.deadline.min(Self::LONGEST_DEADLINE)
    }

    /// Sends a request and waits for its answer, until the deadline.
    async fn ask(
        &self,
        asked: Asked,
        bytes: Vec<u8>,
        only_on: Option<ConnectionId>,
        deadline: Instant,
    ) -> Result<Result<Answer, Failure>, StoreError> {
        let Ok(runtime) = Handle::try_current() else {
            const MESSAGE: &str = "memcached is asked from outside of a tokio runtime";
            return Err(StoreError::new(ErrorKind::Config, MESSAGE));
        };
        let connection = &self.connection;
        let ask = async {
            let first = connection.ask(&runtime, bytes.clone(), only_on, deadline);
            let first = first.await;
            // The server closed an idle connection, or restarted, and this request was the first to notice.
            let again = match &first {
                Err(Failure::NotSent) => true,
                Err(Failure::Broken(_)) => asked == Asked::Load,
                _ => false,
            };
            if !again {
                return first;
            }
            connection.ask(&runtime, bytes, only_on, deadline).await
        };
        let result = timeout_at(deadline, ask).await;
        result.map_err(|_| asked.deadline_passed())
    }

    /// Reads what is there under a [name](Self::name_of).
    pub(crate) async fn load(
        &self,
        name: &str,
        deadline: Instant,
    ) -> Result<Loaded<Version>, StoreError> {
        let request = format!("mg {name} c f v\r\n").into_bytes();
        let answer = self.ask(Asked::Load, request, None, deadline).await?;
        let answer = answer.map_err(|failure| Asked::Load.failed(failure))?;
        match answer.reply {
            Reply::Miss => Ok(self.absent()),
            Reply::Value { cas: 0, .. } => {
                const MESSAGE: &str = "memcached runs without versions (its option -C)";
                Err(StoreError::new(ErrorKind::Config, MESSAGE))
            }
            Reply::Value { state, cas, flags } => {
                const MESSAGE: &str = "the stored value has no state's length";
                let state = state.ok_or(StoreError::new(ErrorKind::Corrupt, MESSAGE))?;
                let connection = answer.connection;
                Ok(Loaded {
                    state: Some(state),
                    version: Version(Some(Seen { cas, connection })),
                    now: Some(latest(self.clock.now(), flags, self.max_skew)),
                })
            }
            Reply::Error(line) => Err(Asked::Load.refused(line)),
            _ => Err(Asked::Load.strange_reply()),
        }
    }

    /// Writes under a [name](Self::name_of) if what is there is still what was seen.
    pub(crate) async fn exchange(
        &self,
        name: &str,
        seen: &Loaded<Version>,
        new: &StateBytes,
        keep: Duration,
        deadline: Instant,
    ) -> Result<Swap<Version>, StoreError> {
        let time_to_live = time_to_live(keep.saturating_add(self.grace), unix_time_s());
        let condition = match seen.version.0 {
            Some(Seen { cas, .. }) => format!("C{cas}"),
            None => "ME".to_owned(),
        };
        let len = new.len();
        // The time of the decision.
        let stamp = stamp(seen.now.unwrap_or_else(|| self.clock.now()));
        let mut request =
            format!("ms {name} {len} T{time_to_live} F{stamp} {condition}\r\n").into_bytes();
        request.extend_from_slice(new);
        request.extend_from_slice(b"\r\n");

        let only_on = seen.version.0.map(|seen| seen.connection);
        let answer = self.ask(Asked::Change, request, only_on, deadline).await?;
        let answer = match answer {
            Ok(answer) => answer,
            Err(Failure::OtherConnection) => return Ok(Swap::Conflict(None)),
            Err(failure) => return Err(Asked::Change.failed(failure)),
        };
        match answer.reply {
            Reply::Done => Ok(Swap::Done),
            Reply::Exists | Reply::NotStored => Ok(Swap::Conflict(None)),
            Reply::NotFound => Ok(Swap::Conflict(Some(self.absent()))),
            Reply::Error(line) => Err(Asked::Change.refused(line)),
            Reply::Value { .. } | Reply::Miss => Err(Asked::Change.strange_reply()),
        }
    }

    /// Deletes what is there under a [name](Self::name_of).
    pub(crate) async fn delete(&self, name: &str, deadline: Instant) -> Result<(), StoreError> {
        let request = format!("md {name}\r\n").into_bytes();
        let answer = self.ask(Asked::Change, request, None, deadline).await?;
        let answer = answer.map_err(|failure| Asked::Change.failed(failure))?;
        match answer.reply {
            Reply::Done | Reply::NotFound => Ok(()),
            Reply::Error(line) => Err(Asked::Change.refused(line)),
            _ => Err(Asked::Change.strange_reply()),
        }
    }
}

impl<K: Key + ?Sized> AsyncCasStore<K> for MemcachedCas {
    type Version = Version;

    async fn load_async(&self, key: &K) -> Result<Loaded<Version>, StoreError> {
        self.load(&self.name_of(key), self.deadline_from_now())
            .await
    }

    async fn compare_exchange_async(
        &self,
        key: &K,
        seen: &Loaded<Version>,
        new: &StateBytes,
        keep: Duration,
    ) -> Result<Swap<Version>, StoreError> {
        let (name, deadline) = (self.name_of(key), self.deadline_from_now());
        self.exchange(&name, seen, new, keep, deadline).await
    }

    async fn remove_async(&self, key: &K) -> Result<(), StoreError> {
        self.delete(&self.name_of(key), self.deadline_from_now())
            .await
    }
}

/// For expiry only: decisions go by the store's clock.
fn unix_time_s() -> u64 {
    UnixClock.now().as_nanos() / 1_000_000_000
}

impl fmt::Debug for MemcachedCas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemcachedCas")
            .field("address", &self.connection.address())
            .field("namespace", &self.namespace.name())
            .field("deadline", &self.deadline)
            .field("max_skew", &self.max_skew)
            .finish_non_exhaustive()
    }
}
