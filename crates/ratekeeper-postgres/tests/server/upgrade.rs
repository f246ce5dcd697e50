//! Two versions of this crate on one schema: an earlier one is in use while this one is installed.

use ratekeeper::store::{AsyncStore, ErrorKind, StateBytes};
use ratekeeper::{Request, SlidingWindow, TokenBucket};
use ratekeeper_postgres::{Schema, Table};
use ratekeeper_test_servers::{Kind, Server};

use crate::common::{client, sql, store};

/// 5 per day with room for 5, as an earlier process asks for one token: op, cost, accepted, charged, `run_at`; n, p, burst, reach,
/// longest wait.
const EARLIER: &str = "SELECT encode(new, 'hex') FROM ratekeeper.token_bucket_v1('rl:test:KEY', NULL, NULL, 0, \
    '{0,1,1,0,0, 1,17280000000000,5,86400000000000,0}')";

fn ask_as_before(url: &str, key: &str) -> String {
    sql(url, &EARLIER.replace("KEY", key))
}

fn state(url: &str, key: &str) -> String {
    sql(
        url,
        &format!(
            "SELECT encode(state, 'hex') FROM ratekeeper.states_v1 WHERE key = 'rl:test:{key}'"
        ),
    )
}

#[tokio::test]
async fn earlier_processes_go_on_beside_this_one() {
    let url = Server::shared(Kind::Postgres).create_database("upgrade");
    sql(&url, include_str!("upgrade/earlier.sql"));
    for _ in 0..3 {
        let left = ask_as_before(&url, "alice");
        assert!(left.starts_with("11") && left.len() == 18, "{left}");
        assert_eq!(left, state(&url, "alice"));
    }
    let before = state(&url, "alice");
    let functions = "SELECT count(*) FROM pg_proc WHERE proname LIKE '%\\_v1'";
    let earlier = sql(&url, functions);

    Schema::default()
        .install(&client(&url).await, Table::Unlogged)
        .await
        .unwrap();
    assert_eq!(state(&url, "alice"), before);
    assert!(sql(&url, functions) >= earlier);

    // What an earlier process left is debt: 3 of 5 are taken. Looks and refusals leave it to that.
    let store = store(&url, 1);
    let limit = TokenBucket::per_day(5);
    let ask = async |request| store.apply_async("alice", &limit, request).await.unwrap();
    assert_eq!(ask(Request::PEEK).await.remaining(), 2);
    assert!(!ask(Request::take(3)).await.is_allowed());
    assert_eq!(state(&url, "alice"), before);
    // Both go on, also on a key that earlier ones have made since.
    assert_eq!(ask_as_before(&url, "bob").len(), 18);
    assert!(ask_as_before(&url, "alice").len() == 18);
    assert_eq!(ask(Request::PEEK).await.remaining(), 1);

    // With the first token taken here the value gets its reach, and an earlier process reads it no more: an error, no decision.
    let taken = ask(Request::ONE).await;
    assert_eq!(taken.remaining(), 0);
    let after = state(&url, "alice");
    assert!(after.starts_with("21") && after.len() == 34, "{after}");
    let earlier = client(&url).await;
    let refused = earlier
        .query_one(&EARLIER.replace("KEY", "alice"), &[])
        .await;
    let error = refused.unwrap_err();
    assert_eq!(error.code().map(|code| code.code()), Some("RK001"));
    assert_eq!(state(&url, "alice"), after);
    assert_eq!(ask_as_before(&url, "bob").len(), 18);
}

/// A value of the earlier form is given back to without becoming one of this form: nothing says which limit took.
#[tokio::test]
async fn giving_back_keeps_the_earlier_form() {
    let url = crate::common::database("earlier_form").await;
    let store = store(&url, 1);
    let limit = TokenBucket::per_day(5);
    let taken = store
        .apply_async("k", &limit, Request::take(3))
        .await
        .unwrap();
    sql(
        &url,
        "UPDATE ratekeeper.states_v1 SET state = '\\x11'::bytea || substring(state FROM 2 FOR 8)",
    );
    let refund = Request::refund(1, taken.into_receipt());
    let given_back = store.apply_async("k", &limit, refund).await.unwrap();
    assert_eq!(given_back.remaining(), 3);
    let left = state(&url, "k");
    assert!(left.starts_with("11") && left.len() == 18, "{left}");
    assert!(
        store
            .apply_async("k", &limit, Request::ONE)
            .await
            .unwrap()
            .is_allowed()
    );
    assert!(state(&url, "k").starts_with("21"));
}

/// Windows and several limits had the keys of buckets then. A bucket takes no notice of them; they have keys of their own now.
#[tokio::test]
async fn an_earlier_window_is_no_obstacle() {
    let url = crate::common::database("earlier_window").await;
    let store = store(&url, 1);
    let window = SlidingWindow::per_day(5);
    let (now, mut counts) = (0_u64, Vec::new());
    counts.extend_from_slice(&now.to_be_bytes());
    counts.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 5]);
    let earlier = StateBytes::from_stored(&[&[0x13], &counts[..]].concat()).unwrap();
    let put = "INSERT INTO ratekeeper.states_v1 VALUES ('rl:test:k', $1, 'infinity')";
    let rows = client(&url).await.execute(put, &[&&*earlier]).await;
    assert_eq!(rows.unwrap(), 1);
    let bucket = TokenBucket::per_day(5);
    assert_eq!(
        store
            .apply_async("k", &window, Request::ONE)
            .await
            .unwrap()
            .remaining(),
        4
    );
    assert_eq!(
        store
            .apply_async("k", &bucket, Request::ONE)
            .await
            .unwrap()
            .remaining(),
        4
    );
    assert!(state(&url, "k").starts_with("21"));
    sql(
        &url,
        "UPDATE ratekeeper.states_v1 SET state = 'hello' WHERE key = 'rl:test:k'",
    );
    let error = store
        .apply_async("k", &bucket, Request::ONE)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
}
