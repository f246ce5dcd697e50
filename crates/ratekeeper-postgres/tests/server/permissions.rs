//! What a role may do, and a database allow.

use ratekeeper::store::{AsyncStore, CasLoop, ErrorKind};
use ratekeeper::{Request, TokenBucket};
use ratekeeper_postgres::PostgresCas;

use crate::common::{database, sql, store};

fn as_role(url: &str, role: &str) -> String {
    url.replacen("postgres@", &format!("{role}@"), 1)
}

/// Those that the documentation names, and no others.
#[tokio::test]
async fn the_documented_rights_are_enough() {
    let url = database("rights").await;
    sql(
        &url,
        "CREATE ROLE app LOGIN; GRANT USAGE ON SCHEMA ratekeeper TO app; \
         GRANT SELECT, INSERT, UPDATE, DELETE ON ratekeeper.states_v1 TO app",
    );
    let store = store(&as_role(&url, "app"), 1);
    let limit = TokenBucket::per_day(3);
    for left in [2, 1, 0, 0] {
        assert_eq!(
            store
                .apply_async("k", &limit, Request::ONE)
                .await
                .unwrap()
                .remaining(),
            left
        );
    }
    let swaps = CasLoop::new(PostgresCas(store.clone()), tokio::time::sleep);
    for left in [2, 1] {
        assert_eq!(
            swaps
                .apply_async("s", &limit, Request::ONE)
                .await
                .unwrap()
                .remaining(),
            left
        );
    }
    store.forget_async("k", &limit).await.unwrap();
    assert_eq!(store.sweep(10).await.unwrap(), 0);
    // It does not own the functions.
    assert_eq!(store.install().await.unwrap_err().kind(), ErrorKind::Config);
}

#[tokio::test]
async fn a_role_without_rights() {
    let url = database("no_rights").await;
    sql(
        &url,
        "CREATE ROLE nobody LOGIN; CREATE ROLE reader LOGIN; GRANT USAGE ON SCHEMA ratekeeper TO reader; \
        GRANT SELECT ON ratekeeper.states_v1 TO reader",
    );
    let limit = TokenBucket::per_day(3);
    for (role, request) in [
        ("nobody", Request::PEEK),
        ("nobody", Request::ONE),
        ("reader", Request::ONE),
    ] {
        let store = store(&as_role(&url, role), 1);
        let error = store.apply_async("k", &limit, request).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config, "{role}: {error:?}");
        assert_eq!(error.message(), "this role may not use the limiter's table");
    }
    let reader = store(&as_role(&url, "reader"), 1);
    assert_eq!(
        reader
            .apply_async("k", &limit, Request::PEEK)
            .await
            .unwrap()
            .remaining(),
        3
    );
}

#[tokio::test]
async fn strangers() {
    let url = database("strangers").await;
    let limit = TokenBucket::per_day(3);
    for url in [
        as_role(&url, "stranger"),
        url.replace("/strangers", "/no_such_database"),
    ] {
        let error = store(&url, 1)
            .apply_async("k", &limit, Request::ONE)
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config, "{error:?}");
    }
}

/// As on a replica: looks and denials go on, the rest was certainly not counted.
#[tokio::test]
async fn a_database_that_is_read_only() {
    let url = database("read_only").await;
    let limit = TokenBucket::per_day(1);
    assert!(
        store(&url, 1)
            .apply_async("k", &limit, Request::ONE)
            .await
            .unwrap()
            .is_allowed()
    );
    sql(
        &url,
        "ALTER DATABASE read_only SET default_transaction_read_only = on",
    );
    let store = store(&url, 1);
    for (key, allowed) in [("k", false), ("k", false)] {
        assert_eq!(
            store
                .apply_async(key, &limit, Request::ONE)
                .await
                .unwrap()
                .is_allowed(),
            allowed
        );
    }
    let error = store
        .apply_async("new", &limit, Request::ONE)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotExecuted, "{error:?}");
    assert_eq!(error.message(), "this PostgreSQL is a read-only replica");
}
