//! Where a store gets its connection from.

use std::collections::HashMap;
use std::fmt;
use std::future::ready;
use std::sync::{Arc, Mutex, PoisonError};

use ratekeeper::store::StoreError;
use tokio::sync::OnceCell;
use tokio_postgres::{Client, Error, Statement};

/// A source of connections: one for each decision, or one for all.
///
/// Requests that are made over one connection at the same time are sent at once, without waiting for each other's answers,
/// and executed in order.
///
/// | source | connects again | statements | use |
/// |---|---|---|---|
/// | [`Connections`](crate::Connections) | yes | prepared | unless there is a reason not to |
/// | `Arc<Session>` | no | prepared | a connection of your own |
/// | `Arc<Client>` | no | planned for each call | a connection through a pooler that keeps no session |
/// | your pool | yes | as you say | to share its connections; waits for a free one |
///
/// ```no_run
/// use ratekeeper::store::{ErrorKind, Namespace, StoreError};
/// use ratekeeper_postgres::{Clients, PostgresStore};
/// use ratekeeper_postgres::tokio_postgres::{Client, Error, Statement};
///
/// struct Pool(deadpool_postgres::Pool);
///
/// impl Clients for Pool {
///     type Held = deadpool_postgres::Object;
///
///     async fn get(&self) -> Result<Self::Held, StoreError> {
///         let none = |error| StoreError::new(ErrorKind::NotExecuted, "no connection from the pool").with_source(error);
///         self.0.get().await.map_err(none)
///     }
///
///     fn client(held: &Self::Held) -> &Client {
///         held
///     }
///
///     async fn prepare(&self, held: &Self::Held, sql: &str) -> Result<Option<Statement>, Error> {
///         held.prepare_cached(sql).await.map(Some)
///     }
/// }
/// # fn store(pool: deadpool_postgres::Pool) -> Result<(), Box<dyn std::error::Error>> {
/// let store = PostgresStore::new(Pool(pool), Namespace::new("api")?);
/// # Ok(())
/// # }
/// ```
///
/// The connection must not be inside of a transaction: what was counted in one that is rolled back was not counted, and
/// until it ends, everybody else waits for the keys that it has changed.
pub trait Clients: Send + Sync {
    /// A connection in use; given back when it is dropped.
    type Held: Send + Sync;

    /// A connection for the next request.
    ///
    /// # Errors
    /// There is none. Nothing has been sent, so the kind is [`NotExecuted`](ratekeeper::store::ErrorKind::NotExecuted), or
    /// [`Config`](ratekeeper::store::ErrorKind::Config) if trying again will not help.
    fn get(&self) -> impl Future<Output = Result<Self::Held, StoreError>> + Send;

    /// The client behind it.
    fn client(held: &Self::Held) -> &Client;

    /// The statement, prepared on this connection and kept for next time; `None`, the default, to have the server plan it
    /// for each call.
    ///
    /// # Errors
    /// The server's.
    fn prepare(
        &self,
        held: &Self::Held,
        sql: &str,
    ) -> impl Future<Output = Result<Option<Statement>, Error>> + Send {
        let _ = (held, sql);
        ready(Ok(None))
    }
}

impl Clients for Arc<Client> {
    type Held = Self;

    async fn get(&self) -> Result<Self, StoreError> {
        Ok(Self::clone(self))
    }

    fn client(held: &Self) -> &Client {
        held
    }
}

/// A client with the statements that were prepared on it.
pub struct Session {
    client: Client,
    statements: Mutex<HashMap<String, Arc<OnceCell<Statement>>>>,
}

impl Session {
    /// A session of a client whose connection somebody drives.
    pub fn new(client: Client) -> Self {
        Self {
            client,
            statements: Mutex::default(),
        }
    }

    /// The client.
    pub const fn client(&self) -> &Client {
        &self.client
    }

    /// Prepares a statement once, however many ask for it at the same time.
    pub(crate) async fn prepared(&self, sql: &str) -> Result<Statement, Error> {
        let statement = {
            // Nobody panics while holding the lock.
            let mut known = self
                .statements
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            match known.get(sql) {
                Some(statement) => Arc::clone(statement),
                None => Arc::clone(known.entry(sql.to_owned()).or_default()),
            }
        };
        let statement = statement.get_or_try_init(|| self.client.prepare(sql)).await;
        statement.cloned()
    }
}

impl Clients for Arc<Session> {
    type Held = Self;

    async fn get(&self) -> Result<Self, StoreError> {
        Ok(Self::clone(self))
    }

    fn client(held: &Self) -> &Client {
        &held.client
    }

    async fn prepare(&self, held: &Self, sql: &str) -> Result<Option<Statement>, Error> {
        held.prepared(sql).await.map(Some)
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("is_closed", &self.client.is_closed())
            .finish_non_exhaustive()
    }
}
