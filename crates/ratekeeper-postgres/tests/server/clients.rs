//! Every source of connections.

use std::sync::Arc;

use ratekeeper::store::{AsyncStore, ErrorKind, Item, StoreError};
use ratekeeper::{Request, SlidingWindow, TokenBucket};
use ratekeeper_postgres::tokio_postgres::{Client, Error, NoTls, SimpleQueryMessage, Statement};
use ratekeeper_postgres::{Clients, PostgresStore, Session};

use crate::common::{PATIENT, client, database, namespace};

struct Pool(deadpool_postgres::Pool);

impl Clients for Pool {
    type Held = deadpool_postgres::Object;

    async fn get(&self) -> Result<Self::Held, StoreError> {
        let none = |error| {
            StoreError::new(ErrorKind::NotExecuted, "no connection from the pool")
                .with_source(error)
        };
        self.0.get().await.map_err(none)
    }

    fn client(held: &Self::Held) -> &Client {
        held
    }

    async fn prepare(&self, held: &Self::Held, sql: &str) -> Result<Option<Statement>, Error> {
        held.prepare_cached(sql).await.map(Some)
    }
}

/// Single decisions, a batch and `forget`, with 8 tasks at a time.
async fn works<C: Clients + 'static>(clients: C, name: &str) {
    let store = Arc::new(PostgresStore::new(clients, namespace(name)).with_deadline(PATIENT));
    let limit = TokenBucket::per_day(100);
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                for _ in 0..10 {
                    let decision = store.apply_async("k", &limit, Request::ONE).await.unwrap();
                    assert!(decision.is_allowed());
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let mut items: Vec<_> = (0..10)
        .map(|_| Item::new("k", &limit, Request::ONE))
        .collect();
    store.apply_batch_async(&mut items).await;
    for item in items {
        assert!(item.into_result().unwrap().is_allowed());
    }
    let window = SlidingWindow::per_hour(3);
    let decision = store
        .apply_async("w", &window, Request::take(2))
        .await
        .unwrap();
    assert_eq!(decision.remaining(), 1);
    assert_eq!(
        store
            .apply_async("k", &limit, Request::PEEK)
            .await
            .unwrap()
            .remaining(),
        10
    );
    store.forget_async("k", &limit).await.unwrap();
    assert_eq!(
        store
            .apply_async("k", &limit, Request::PEEK)
            .await
            .unwrap()
            .remaining(),
        100
    );
}

#[tokio::test]
async fn a_client_of_ones_own() {
    let url = database("own_client").await;
    works(Arc::new(client(&url).await), "client").await;
    works(Arc::new(Session::new(client(&url).await)), "session").await;
}

#[tokio::test]
async fn a_pool() {
    let url = database("pool").await;
    let manager = deadpool_postgres::Manager::new(url.parse().unwrap(), NoTls);
    let pool = deadpool_postgres::Pool::builder(manager)
        .max_size(3)
        .build()
        .unwrap();
    works(Pool(pool), "pool").await;
}

/// However many ask for it at the same time.
#[tokio::test]
async fn a_statement_is_prepared_once() {
    let url = database("prepared_once").await;
    let session = Arc::new(Session::new(client(&url).await));
    let store = PostgresStore::new(Arc::clone(&session), namespace("test")).with_deadline(PATIENT);
    let limit = TokenBucket::per_day(100);
    let tasks: Vec<_> = (0..20)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move {
                assert!(
                    store
                        .apply_async("k", &limit, Request::ONE)
                        .await
                        .unwrap()
                        .is_allowed()
                );
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let rows = session
        .client()
        .simple_query("SELECT FROM pg_prepared_statements")
        .await
        .unwrap();
    let count = rows
        .iter()
        .filter(|row| matches!(row, SimpleQueryMessage::Row(_)))
        .count();
    assert_eq!(count, 1);
}

/// A client that was closed long ago is no mystery.
#[tokio::test]
async fn a_closed_client_sends_nothing() {
    let url = database("closed_client").await;
    let (closed, connection) = ratekeeper_postgres::tokio_postgres::connect(&url, NoTls)
        .await
        .unwrap();
    let driver = tokio::spawn(connection);
    driver.abort();
    let _ = driver.await;
    let store = PostgresStore::new(Arc::new(closed), namespace("test"));
    let error = store
        .apply_async("k", &TokenBucket::per_day(1), Request::ONE)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotExecuted, "{error}");
}
