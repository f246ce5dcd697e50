//! memcached as a backend that compares and swaps.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ratekeeper::store::{
    AsyncCasStore, ErrorKind, Key, KeyKind, Loaded, Namespace, StateBytes, StoreError, Swap,
};
use ratekeeper::{Clock, TokenBucket, UnixClock};
use tokio::runtime::Handle;
use tokio::time::{Instant, timeout_at};

use crate::connection::{Answer, Connection, ConnectionId, Failure, Reply};
use crate::error::Asked;
use crate::expiry::time_to_live;
use crate::key::legal_key;

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
    grace: Duration,
}

/// Which value of a key was seen and how long that was to live, or that there was none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version(Option<Seen>);

/// memcached's number for a value. It counts them for all keys together, from 1 when it starts: on another connection,
/// behind which the server may be a new one, the number says nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    cas: u64,
    connection: ConnectionId,
    /// Seconds.
    left_s: u64,
}

impl MemcachedCas {
    /// How long a decision may take unless told otherwise.
    pub const DEFAULT_DEADLINE: Duration = Duration::from_millis(100);

    /// The longest deadline; a longer one is this one. States are kept a minute longer than they matter, so that no exchange
    /// that was delayed for less finds nothing where there was something meanwhile.
    const LONGEST_DEADLINE: Duration = Duration::from_secs(60);

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
            grace: Duration::ZERO,
        })
    }

    /// Changes how long a decision or a batch may take, connecting and lost races included; a minute at most. In a
    /// [`CasLoop`](ratekeeper::store::CasLoop) it is each request to memcached that may take so long.
    #[must_use]
    pub const fn with_deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Lets values live `grace` longer than needed, because the server expires them by its own clock: longer than that and the
    /// clock by which limits are decided can differ, where this is one for tests or replays.
    #[must_use]
    pub const fn with_grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
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

    /// The name under which memcached holds `key` for token buckets, for those who want to look with its own tools.
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
        self.name_of_kind(key, &KeyKind::of(&TokenBucket::per_second(1)))
    }

    /// The same for limits of this kind: `/` and the kind follow the namespace. Where that makes a name longer than the 250
    /// bytes which memcached takes, the key is replaced by its hash.
    ///
    /// ```
    /// # use ratekeeper::SlidingWindow;
    /// # use ratekeeper::store::{KeyKind, Namespace};
    /// # use ratekeeper_memcached::MemcachedCas;
    /// let server = MemcachedCas::connect("127.0.0.1:11211", Namespace::new("api")?)?;
    /// let kind = KeyKind::of(&SlidingWindow::per_minute(60));
    /// assert_eq!(server.name_of_kind("alice", &kind), "rl:api/sliding-60s:alice");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn name_of_kind<K: Key + ?Sized>(&self, key: &K, kind: &KeyKind) -> String {
        legal_key(&self.namespace, key, kind)
    }

    const fn absent() -> Loaded<Version> {
        Loaded {
            state: None,
            version: Version(None),
            now: None,
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
        let request = format!("mg {name} c t v\r\n").into_bytes();
        let answer = self.ask(Asked::Load, request, None, deadline).await?;
        let answer = answer.map_err(|failure| Asked::Load.failed(failure))?;
        match answer.reply {
            Reply::Miss => Ok(Self::absent()),
            Reply::Value { cas: 0, .. } => {
                const MESSAGE: &str = "memcached runs without versions (its option -C)";
                Err(StoreError::new(ErrorKind::Config, MESSAGE))
            }
            Reply::Value { state, cas, left_s } => {
                const MESSAGE: &str = "the stored value has no state's length";
                let state = state.ok_or(StoreError::new(ErrorKind::Corrupt, MESSAGE))?;
                let seen = Seen {
                    cas,
                    connection: answer.connection,
                    left_s,
                };
                Ok(Loaded {
                    state: Some(state),
                    version: Version(Some(seen)),
                    now: None,
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
        let left_s = seen.version.0.map_or(0, |seen| seen.left_s);
        let keep = keep.saturating_add(self.grace);
        let time_to_live = time_to_live(keep, left_s, unix_time_s());
        let condition = match seen.version.0 {
            Some(Seen { cas, .. }) => format!("C{cas}"),
            None => "ME".to_owned(),
        };
        let len = new.len();
        let mut request = format!("ms {name} {len} T{time_to_live} {condition}\r\n").into_bytes();
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
            Reply::NotFound => Ok(Swap::Conflict(Some(Self::absent()))),
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

    async fn load_async(&self, key: &K, kind: &KeyKind) -> Result<Loaded<Version>, StoreError> {
        let (name, deadline) = (self.name_of_kind(key, kind), self.deadline_from_now());
        self.load(&name, deadline).await
    }

    async fn compare_exchange_async(
        &self,
        key: &K,
        kind: &KeyKind,
        seen: &Loaded<Version>,
        new: &StateBytes,
        keep: Duration,
    ) -> Result<Swap<Version>, StoreError> {
        let (name, deadline) = (self.name_of_kind(key, kind), self.deadline_from_now());
        self.exchange(&name, seen, new, keep, deadline).await
    }

    async fn remove_async(&self, key: &K, kind: &KeyKind) -> Result<(), StoreError> {
        let (name, deadline) = (self.name_of_kind(key, kind), self.deadline_from_now());
        self.delete(&name, deadline).await
    }
}

/// For expiry only.
fn unix_time_s() -> u64 {
    UnixClock.now().as_nanos() / 1_000_000_000
}

impl fmt::Debug for MemcachedCas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemcachedCas")
            .field("address", &self.connection.address())
            .field("namespace", &self.namespace.name())
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}
