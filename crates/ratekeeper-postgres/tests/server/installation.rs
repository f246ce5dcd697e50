//! What is put into a database.

use std::sync::Arc;

use ratekeeper::store::{AsyncStore, ErrorKind};
use ratekeeper::{Request, TokenBucket};
use ratekeeper_postgres::{Schema, Table};
use ratekeeper_test_servers::{Kind, Server};

use crate::common::{client, database, namespace, sql, store};

const KIND: &str = "SELECT relpersistence FROM pg_class WHERE relname = 'states_v1'";

/// By many at once, and again.
#[tokio::test]
async fn installing_again_changes_nothing() {
    let url = Server::shared(Kind::Postgres).create_database("install_again");
    let store = Arc::new(store(&url, 1));
    let everybody: Vec<_> = (0..8)
        .map(|_| {
            let url = url.clone();
            tokio::spawn(async move {
                Schema::default()
                    .install(&client(&url).await, Table::Unlogged)
                    .await
            })
        })
        .collect();
    for one in everybody {
        one.await.unwrap().unwrap();
    }
    let limit = TokenBucket::per_day(5);
    assert!(
        store
            .apply_async("k", &limit, Request::ONE)
            .await
            .unwrap()
            .is_allowed()
    );
    store.install().await.unwrap();
    Schema::default()
        .install(&client(&url).await, Table::Logged)
        .await
        .unwrap();
    assert_eq!(
        store
            .apply_async("k", &limit, Request::ONE)
            .await
            .unwrap()
            .remaining(),
        3
    );
    assert_eq!(sql(&url, KIND), "u");
}

#[tokio::test]
async fn a_logged_table() {
    let url = Server::shared(Kind::Postgres).create_database("logged");
    sql(&url, &Schema::default().sql(Table::Logged));
    assert_eq!(sql(&url, KIND), "p");
    let limit = TokenBucket::per_day(5);
    let decision = store(&url, 1)
        .apply_async("k", &limit, Request::ONE)
        .await
        .unwrap();
    assert_eq!(decision.remaining(), 4);
}

/// Also one whose name is a word of SQL.
#[tokio::test]
async fn schemas_and_namespaces_do_not_meet() {
    let url = database("apart").await;
    let store = store(&url, 2);
    let schema = Schema::new("user").unwrap();
    let elsewhere = store.clone().with_schema(schema);
    elsewhere.install().await.unwrap();
    let limit = TokenBucket::per_day(3);
    let other = namespace("other");
    for store in [
        store.clone(),
        store.with_namespace(other.clone()),
        elsewhere.clone(),
        elsewhere.with_namespace(other),
    ] {
        assert_eq!(
            store
                .apply_async("k", &limit, Request::take(2))
                .await
                .unwrap()
                .remaining(),
            1
        );
        assert!(
            !store
                .apply_async("k", &limit, Request::take(2))
                .await
                .unwrap()
                .is_allowed()
        );
    }
    let keys = "SELECT convert_from(key, 'UTF8') FROM ratekeeper.states_v1 ORDER BY 1";
    assert_eq!(sql(&url, keys), "rl:other:k\nrl:test:k");
    assert_eq!(
        sql(&url, &keys.replace("ratekeeper", "\"user\"")),
        "rl:other:k\nrl:test:k"
    );
}

#[tokio::test]
async fn what_is_missing_is_said() {
    let url = Server::shared(Kind::Postgres).create_database("nothing_there");
    let store = store(&url, 1);
    let limit = TokenBucket::per_day(5);
    let missing = async || {
        let error = store
            .apply_async("k", &limit, Request::ONE)
            .await
            .unwrap_err();
        (error.kind(), error.message())
    };
    assert_eq!(
        missing().await,
        (ErrorKind::Config, "the limiter's schema is not installed")
    );
    sql(&url, "CREATE SCHEMA ratekeeper");
    assert_eq!(
        missing().await,
        (
            ErrorKind::Config,
            "the limiter's functions are not installed"
        )
    );
    store.install().await.unwrap();
    assert!(
        store
            .apply_async("k", &limit, Request::ONE)
            .await
            .unwrap()
            .is_allowed()
    );
    sql(&url, "DROP TABLE ratekeeper.states_v1");
    assert_eq!(
        missing().await,
        (ErrorKind::Config, "the limiter's table is not installed")
    );
}
