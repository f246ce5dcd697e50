//! A few connections that connect again by themselves.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ratekeeper::store::{ErrorKind, StoreError};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{Client, Config, Error, NoTls, Socket, Statement};

use crate::clients::{Clients, Session};
use crate::error::{closed, connect_error};

/// A fixed number of connections to one server, opened when they are first needed and again whenever they break.
///
/// Requests take turns on them; on each, those made at the same time share round trips. A connection is one process of the
/// server, so their number is how many of its cores can work for this store: a few, not as many as in a pool.
///
/// Opening goes on in the background, once at a time for each connection, and outlasts the deadline of the request that
/// asked for it. After it has failed, requests fail at once for [`RETRY`](Self::RETRY), and then the next one tries again.
/// Of several hosts, `target_session_attrs=read-write` finds the primary.
///
/// ```no_run
/// use ratekeeper::store::Namespace;
/// use ratekeeper_postgres::tokio_postgres::{Config, NoTls};
/// use ratekeeper_postgres::{Connections, PostgresStore};
///
/// # fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let config: Config = "host=db.internal user=app dbname=app".parse()?;
/// let connections = Connections::new(config, NoTls).with_count(4); // or a connector of tokio-postgres-rustls
/// let store = PostgresStore::new(connections, Namespace::new("api")?);
/// # Ok(())
/// # }
/// ```
pub struct Connections<T = NoTls> {
    config: Arc<Config>,
    tls: T,
    statement_timeout: Duration,
    slots: Arc<[Slot]>,
    turn: Arc<AtomicUsize>,
}

/// A place for a connection: what has become of the latest one, if any was asked for.
#[derive(Default)]
struct Slot(Mutex<Option<Opening>>);

/// `None` while it is being opened.
type Opening = watch::Receiver<Option<Result<Arc<Session>, Failure>>>;

#[derive(Clone)]
struct Failure {
    /// `None` if it took too long.
    error: Option<Arc<Error>>,
    at: Instant,
}

impl<T> Connections<T> {
    /// How many connections unless told otherwise.
    pub const DEFAULT_COUNT: usize = 4;

    /// How long the server may work on a statement unless told otherwise.
    pub const DEFAULT_STATEMENT_TIMEOUT: Duration = Duration::from_millis(200);

    /// How long after a failure nobody tries to connect: a server that comes up again has other things to do.
    pub const RETRY: Duration = Duration::from_millis(100);

    /// A peer that is silent for so long is gone: without this, the kernel keeps a dead connection for minutes.
    const SILENCE: Duration = Duration::from_secs(5);

    /// Connections as `config` says. What it leaves open is set for a limiter: a dead server is noticed after 5 seconds.
    pub fn new(mut config: Config, tls: T) -> Self {
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(Self::SILENCE);
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(Self::SILENCE);
        }
        if config.get_application_name().is_none() {
            config.application_name("ratekeeper");
        }
        config.keepalives_idle(Self::SILENCE.min(config.get_keepalives_idle()));
        Self {
            config: Arc::new(config),
            tls,
            statement_timeout: Self::DEFAULT_STATEMENT_TIMEOUT,
            slots: slots(Self::DEFAULT_COUNT),
            turn: Arc::default(),
        }
    }

    /// Changes the number of connections; at least 1. None that is open already is kept.
    #[must_use]
    pub fn with_count(mut self, count: usize) -> Self {
        self.slots = slots(count.max(1));
        self
    }

    /// Changes how long the server may work on a statement, waiting for locks included, before it gives it up: then it
    /// was certainly not executed. Keep it below the store's deadline, after which that is not known, and keep it short,
    /// because on each connection the requests behind it wait. Set by a statement of its own when a connection is
    /// opened; zero leaves the server's setting alone.
    #[must_use]
    pub const fn with_statement_timeout(mut self, timeout: Duration) -> Self {
        self.statement_timeout = timeout;
        self
    }
}

impl Failure {
    fn now(error: Option<Error>) -> Self {
        Self {
            error: error.map(Arc::new),
            at: Instant::now(),
        }
    }
}

fn slots(count: usize) -> Arc<[Slot]> {
    (0..count).map(|_| Slot::default()).collect()
}

impl<T> Connections<T>
where
    T: MakeTlsConnect<Socket> + Clone + Send + Sync + 'static,
    T::Stream: Send,
    T::TlsConnect: Send,
    <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
{
    /// The session in this slot, or the opening of a new one.
    fn look(&self, slot: &Slot) -> Result<Result<Arc<Session>, Opening>, StoreError> {
        // Nobody panics while holding the lock.
        let mut opening = slot.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(latest) = &*opening {
            match &*latest.borrow() {
                Some(Ok(session)) if !session.client().is_closed() => {
                    return Ok(Ok(Arc::clone(session)));
                }
                Some(Err(failure)) if failure.at.elapsed() < Self::RETRY => {
                    return Err(connect_error(failure.error.clone()));
                }
                None if latest.has_changed().is_ok() => return Ok(Err(latest.clone())),
                _ => {}
            }
        }
        let new = self.open()?;
        *opening = Some(new.clone());
        Ok(Err(new))
    }

    /// Opens a connection in a task of its own.
    fn open(&self) -> Result<Opening, StoreError> {
        const MESSAGE: &str = "connections are opened inside of a Tokio runtime";
        let runtime = Handle::try_current()
            .map_err(|error| StoreError::new(ErrorKind::Config, MESSAGE).with_source(error))?;
        let (done, opening) = watch::channel(None);
        let (config, tls) = (Arc::clone(&self.config), self.tls.clone());
        let timeout_ms = self.statement_timeout.as_millis().min(i32::MAX as u128);
        let limit = config
            .get_connect_timeout()
            .copied()
            .unwrap_or(Self::SILENCE);
        let driver = runtime.clone();
        runtime.spawn(async move {
            let opened = async {
                let (client, connection) = config.connect(tls).await?;
                // Ends with the client or with the connection; whoever uses it learns of errors.
                driver.spawn(async move { drop(connection.await) });
                if timeout_ms > 0 {
                    client
                        .batch_execute(&format!("SET statement_timeout = {timeout_ms}"))
                        .await?;
                }
                Ok(Arc::new(Session::new(client)))
            };
            // The client's own timeout covers a part of it only.
            let opened = match timeout(limit, opened).await {
                Ok(Ok(session)) => Ok(session),
                Ok(Err(error)) => Err(Failure::now(Some(error))),
                Err(_) => Err(Failure::now(None)),
            };
            done.send_replace(Some(opened));
        });
        Ok(opening)
    }
}

impl<T> Clients for Connections<T>
where
    T: MakeTlsConnect<Socket> + Clone + Send + Sync + 'static,
    T::Stream: Send,
    T::TlsConnect: Send,
    <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
{
    type Held = Arc<Session>;

    async fn get(&self) -> Result<Arc<Session>, StoreError> {
        let first = self.turn.fetch_add(1, Ordering::Relaxed);
        // Whichever is open, beginning with the one whose turn it is; those that are not are opened meanwhile.
        let mut wait = None;
        for index in 0..self.slots.len() {
            let slot = &self.slots[first.wrapping_add(index) % self.slots.len()];
            match self.look(slot) {
                Ok(Ok(session)) => return Ok(session),
                Ok(Err(opening)) => wait = Some(Ok(opening)),
                Err(error) => wait = wait.or(Some(Err(error))),
            }
        }
        let mut opening = wait.unwrap_or_else(|| Err(closed()))?;
        match opening.wait_for(Option::is_some).await.as_deref() {
            Ok(Some(Ok(session))) => Ok(Arc::clone(session)),
            Ok(Some(Err(failure))) => Err(connect_error(failure.error.clone())),
            Ok(None) | Err(_) => Err(closed()), // the runtime that opened it has ended
        }
    }

    fn client(held: &Arc<Session>) -> &Client {
        held.client()
    }

    async fn prepare(&self, held: &Arc<Session>, sql: &str) -> Result<Option<Statement>, Error> {
        held.prepared(sql).await.map(Some)
    }
}

impl<T: Clone> Clone for Connections<T> {
    /// The same connections once more.
    fn clone(&self) -> Self {
        Self {
            config: Arc::clone(&self.config),
            tls: self.tls.clone(),
            statement_timeout: self.statement_timeout,
            slots: Arc::clone(&self.slots),
            turn: Arc::clone(&self.turn),
        }
    }
}

impl<T> fmt::Debug for Connections<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connections")
            .field("config", &self.config)
            .field("count", &self.slots.len())
            .field("statement_timeout", &self.statement_timeout)
            .finish_non_exhaustive()
    }
}
