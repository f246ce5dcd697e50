//! What decisions cost the server.

use std::sync::Arc;
use std::time::Duration;

use ratekeeper::store::{AsyncStore, Item};
use ratekeeper::{
    All, FixedWindow, ManualClock, Receipt, Request, SlidingWindow, Timestamp, TokenBucket,
};
use ratekeeper_postgres::{PostgresAlgorithm, PostgresStore, Schema, Table};
use ratekeeper_test_servers::{Options, Server};

use crate::common::{client, database, sql, store};

/// Not even a transaction number, as a row's lock would. On a server where nobody else does anything.
#[tokio::test]
async fn refusals_leave_no_trace() {
    let server = Server::postgres(Options::new().args(["-c", "autovacuum=off"]));
    let url = server.create_database("traces");
    Schema::default()
        .install(&client(&url).await, Table::Logged)
        .await
        .unwrap();
    let store = store(&url, 1);
    let bucket = TokenBucket::per_day(3);
    let trace = || {
        let rows =
            "SELECT key, state, expires, xmin, xmax, ctid FROM ratekeeper.states_v1 ORDER BY key";
        let numbers = "SELECT pg_snapshot_xmax(pg_current_snapshot()), pg_current_wal_insert_lsn()";
        (
            server.sql("traces", rows).unwrap(),
            server.sql("traces", numbers).unwrap(),
        )
    };
    let take_all = Request::take(3);
    assert!(
        store
            .apply_async("b", &bucket, take_all)
            .await
            .unwrap()
            .is_allowed()
    );
    let (sliding, fixed) = (
        SlidingWindow::per_day(3),
        FixedWindow::per_day(3).anchored(),
    );
    assert!(
        store
            .apply_async("s", &sliding, Request::take(3))
            .await
            .unwrap()
            .is_allowed()
    );
    assert!(
        store
            .apply_async("f", &fixed, Request::take(3))
            .await
            .unwrap()
            .is_allowed()
    );
    let all = All([bucket, TokenBucket::per_hour(100)]);
    assert!(
        store
            .apply_async("a", &all, Request::take(3))
            .await
            .unwrap()
            .is_allowed()
    );
    // The first look at a page tidies it up.
    for _ in 0..2 {
        ask_in_vain(&store, &bucket, "b").await;
    }
    let before = trace();
    for _ in 0..20 {
        ask_in_vain(&store, &bucket, "b").await;
        ask_in_vain(&store, &sliding, "s").await;
        ask_in_vain(&store, &fixed, "f").await;
        ask_in_vain(&store, &all, "a").await;
    }
    assert_eq!(trace(), before);
    assert_eq!(before.0.lines().count(), 4);
}

/// Of a key that is used up, and of one that nobody has asked for.
async fn ask_in_vain<A: PostgresAlgorithm + 'static>(store: &PostgresStore, limit: &A, key: &str) {
    for request in [
        Request::ONE,
        Request::PEEK,
        Request::take(u64::MAX),
        Request::up_to(2),
        Request::up_to(2).at_least(0),
    ] {
        let decision = store.apply_async(key, limit, request).await.unwrap();
        assert_eq!((decision.granted(), decision.remaining()), (0, 0));
    }
    for request in [Request::PEEK, Request::take(4)] {
        let decision = store
            .apply_async("never seen", limit, request)
            .await
            .unwrap();
        assert_eq!((decision.granted(), decision.remaining()), (0, 3));
    }
}

/// What is not there any more cannot be given back: not in this window, and not in the one before.
#[tokio::test]
async fn refunds_of_nothing_write_nothing() {
    let url = database("refunds").await;
    let clock = Arc::new(ManualClock::new());
    let store = store(&url, 1).with_clock(clock.clone(), Duration::from_secs(3_600));
    let start = Timestamp::from_nanos(1_767_225_600_000_000_000);
    let limit = SlidingWindow::per_second(10);
    let refund = |mark: Timestamp| Request::refund(2, Receipt::new(2, mark.as_nanos()));
    clock.set(start);
    for second in 0..2 {
        clock.set(start + Duration::from_secs(second));
        let taken = store
            .apply_async("k", &limit, Request::take(2))
            .await
            .unwrap();
        assert_eq!(taken.granted(), 2);
    }
    for mark in [start, start + Duration::from_secs(1)] {
        let row = || sql(&url, "SELECT state, xmin FROM ratekeeper.states_v1");
        let full = row();
        assert!(
            store
                .apply_async("k", &limit, refund(mark))
                .await
                .unwrap()
                .is_allowed()
        );
        let given_back = row();
        assert_ne!(given_back, full);
        assert!(
            store
                .apply_async("k", &limit, refund(mark))
                .await
                .unwrap()
                .is_allowed()
        );
        assert_eq!(row(), given_back);
    }
}

/// Updates stay on their page, and the table stays small.
#[tokio::test]
async fn updates_touch_no_index() {
    let url = database("hot").await;
    let store = store(&url, 1);
    let limit = TokenBucket::per_second(1_000_000);
    for _ in 0..40 {
        let keys: Vec<u32> = (0..50).collect();
        let mut items: Vec<_> = keys
            .iter()
            .map(|key| Item::new(key, &limit, Request::ONE))
            .collect();
        store.apply_batch_async(&mut items).await;
        for item in items {
            assert!(item.into_result().unwrap().is_allowed());
        }
    }
    // A session reports what it did when it ends.
    drop(store);
    let counts = "SELECT n_tup_ins, n_tup_upd, n_tup_upd - n_tup_hot_upd <= 100 FROM pg_stat_user_tables WHERE relname = 'states_v1'";
    for _ in 0..1_000 {
        if sql(&url, counts) == "50|1950|t" {
            let pages = sql(
                &url,
                "SELECT pg_relation_size('ratekeeper.states_v1') / 8192",
            );
            assert!(pages.parse::<u32>().unwrap() <= 4, "{pages}");
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!(
        "{}",
        sql(
            &url,
            "SELECT n_tup_ins, n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables"
        )
    );
}
