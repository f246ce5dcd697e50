//! Values that are no states.

use ratekeeper::store::{AsyncStore, CasLoop, ErrorKind};
use ratekeeper::{All, FixedWindow, Receipt, Request, SlidingWindow, TokenBucket};
use ratekeeper_postgres::tokio_postgres::Client;
use ratekeeper_postgres::{PostgresAlgorithm, PostgresCas, PostgresStore};

use crate::common::{client, database, store};

const ROW: &str = "SELECT state, expires::text, xmin::text, ctid::text FROM ratekeeper.states_v1";

/// The only row there is.
async fn row(client: &Client) -> (Vec<u8>, [String; 3]) {
    let row = client.query_one(ROW, &[]).await.unwrap();
    (row.get(0), [1, 2, 3].map(|column| row.get(column)))
}

async fn put(client: &Client, value: &[u8]) {
    const PUT: &str = "INSERT INTO ratekeeper.states_v1 VALUES ('rl:test:k', $1, 'infinity') \
        ON CONFLICT (key) DO UPDATE SET state = excluded.state";
    client.execute(PUT, &[&value]).await.unwrap();
}

/// Every value but that of `length` and `tag` is an error for every request, and stays as it is.
async fn refuses<A>(client: &Client, store: &PostgresStore, limit: A, tag: u8, length: usize)
where
    A: PostgresAlgorithm + Copy + 'static,
{
    let swaps = CasLoop::new(PostgresCas(store.clone()), tokio::time::sleep);
    let mut values = vec![
        vec![],
        b"hello".to_vec(),
        vec![tag],
        vec![0; length],
        vec![tag; 500],
    ];
    values.extend([length - 1, length + 1].map(|length| vec![tag; length]));
    let others = [0x11_u8, 0x13, 0x14, 0x15, 0x17, 0x21, 0x80]
        .into_iter()
        .filter(|other| *other != tag);
    values.extend(others.map(|other| vec![other; length]));
    for value in values {
        put(client, &value).await;
        let before = row(client).await;
        let requests = || {
            let refund = Request::refund(1, Receipt::new(1, u64::MAX));
            [
                Request::PEEK,
                Request::ONE,
                Request::take(u64::MAX),
                Request::up_to(3),
                refund,
            ]
        };
        for request in requests() {
            let error = store.apply_async("k", &limit, request).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{value:x?}: {error:?}");
        }
        for request in requests() {
            let error = swaps.apply_async("k", &limit, request).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{value:x?}: {error:?}");
        }
        assert_eq!(row(client).await, before);
    }
    // And the right one is a state.
    let mut value = vec![0; length];
    value[0] = tag;
    put(client, &value).await;
    assert!(
        store
            .apply_async("k", &limit, Request::ONE)
            .await
            .unwrap()
            .is_allowed()
    );
}

#[tokio::test]
async fn are_errors_to_every_limit() {
    let url = database("values").await;
    let (client, store) = (client(&url).await, store(&url, 1));
    let bucket = TokenBucket::per_day(5);
    refuses(&client, &store, bucket, 0x11, 9).await;
    refuses(&client, &store, SlidingWindow::per_day(5), 0x13, 17).await;
    refuses(&client, &store, FixedWindow::per_day(5), 0x15, 17).await;
    refuses(&client, &store, All([bucket, bucket]), 0x14, 17).await;
    refuses(&client, &store, All([bucket, bucket, bucket]), 0x14, 25).await;
}
