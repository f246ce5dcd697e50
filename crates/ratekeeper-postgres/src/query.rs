//! One statement on its way: sent once, answered by one row.

use std::future::poll_fn;
use std::pin::pin;

use futures_util::Stream;
use ratekeeper::store::StoreError;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error, Row, RowStream, Statement};

use crate::clients::Clients;
use crate::error::{closed, prepare_error, statement_error, strange_reply};

/// A parameter and its type.
pub(crate) type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

/// A connection on which a statement is ready to be sent.
pub(crate) struct Ready<C: Clients> {
    held: C::Held,
    statement: Option<Statement>,
}

impl<C: Clients> Ready<C> {
    /// Gets a connection and prepares the statement on it.
    pub(crate) async fn new(clients: &C, sql: &str) -> Result<Self, StoreError> {
        let held = clients.get().await?;
        let mut ready = Self {
            held,
            statement: None,
        };
        ready.prepare(clients, sql).await?;
        Ok(ready)
    }

    /// Prepares another statement instead.
    pub(crate) async fn prepare(&mut self, clients: &C, sql: &str) -> Result<(), StoreError> {
        let prepared = clients.prepare(&self.held, sql).await;
        self.statement = prepared.map_err(prepare_error)?;
        Ok(())
    }

    pub(crate) fn statement(&self) -> Option<Statement> {
        self.statement.clone()
    }

    pub(crate) fn client(&self) -> &Client {
        C::client(&self.held)
    }

    /// Sends the statement and waits for its row.
    pub(crate) async fn run(
        &self,
        sql: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Row, StoreError> {
        run(self.client(), self.statement.as_ref(), sql, parameters).await
    }
}

/// Sends a statement, when it is polled for the first time, and waits for its row.
pub(crate) async fn run(
    client: &Client,
    statement: Option<&Statement>,
    sql: &str,
    parameters: &[Parameter<'_>],
) -> Result<Row, StoreError> {
    if client.is_closed() {
        return Err(closed());
    }
    let sent = match statement {
        Some(statement) => {
            let values = parameters.iter().map(|(value, _)| *value);
            client.query_raw(statement, values).await
        }
        None => {
            client
                .query_typed_raw(sql, parameters.iter().cloned())
                .await
        }
    };
    let mut rows = pin!(sent.map_err(|error| statement_error(error, false))?);
    let mut next = async || -> Option<Result<Row, Error>> {
        poll_fn(|context| RowStream::poll_next(rows.as_mut(), context)).await
    };
    let row = match next().await {
        Some(Ok(row)) => row,
        Some(Err(error)) => return Err(statement_error(error, false)),
        None => return Err(strange_reply()),
    };
    // The transaction is committed only when the stream ends.
    match next().await {
        None => Ok(row),
        Some(Ok(_)) => Err(strange_reply()),
        Some(Err(error)) => Err(statement_error(error, true)),
    }
}
