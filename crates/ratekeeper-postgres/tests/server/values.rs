//! Values that are no states.

use ratekeeper::store::{AsyncStore, CasLoop, ErrorKind, KeyKind};
use ratekeeper::{All, Carry, FixedWindow, Receipt, Request, SlidingWindow, TokenBucket};
use ratekeeper_postgres::tokio_postgres::Client;
use ratekeeper_postgres::{PostgresAlgorithm, PostgresCas, PostgresStore};

use crate::common::{client, database, store};

const ROW: &str = "SELECT state, expires::text, xmin::text, ctid::text FROM ratekeeper.states_v1";

/// The only row there is.
async fn row(client: &Client) -> (Vec<u8>, [String; 3]) {
    let row = client.query_one(ROW, &[]).await.unwrap();
    (row.get(0), [1, 2, 3].map(|column| row.get(column)))
}

async fn put(client: &Client, key: &[u8], value: &[u8]) {
    const PUT: &str = "INSERT INTO ratekeeper.states_v1 VALUES ($1, $2, 'infinity') \
        ON CONFLICT (key) DO UPDATE SET state = excluded.state";
    client
        .execute("DELETE FROM ratekeeper.states_v1", &[])
        .await
        .unwrap();
    client.execute(PUT, &[&key, &value]).await.unwrap();
}

/// Every value but that of `length` and `tag`, and those that are `legal` besides, is an error for every request, and stays as
/// it is.
async fn refuses<A>(
    client: &Client,
    store: &PostgresStore,
    limit: A,
    (tag, length): (u8, usize),
    legal: fn(&[u8]) -> bool,
) where
    A: PostgresAlgorithm + Copy + 'static,
{
    let key = store.namespace().key_of_kind("k", &KeyKind::of(&limit));
    let swaps = CasLoop::new(PostgresCas(store.clone()), tokio::time::sleep);
    let mut values = vec![
        vec![],
        b"hello".to_vec(),
        vec![tag],
        vec![0; length],
        vec![tag; 500],
        vec![0x17; 75],
        vec![0x70; 9 + length],
        // A limit of zeros.
        [&[0x31][..], &[0; 42]].concat(),
    ];
    values.extend([length - 1, length + 1].map(|length| vec![tag; length]));
    let others = [
        0x11_u8, 0x13, 0x14, 0x15, 0x17, 0x21, 0x24, 0x27, 0x31, 0x80,
    ];
    for length in [9, 17, 33, 43] {
        values.extend(others.map(|other| vec![other; length]));
    }
    values.retain(|value| !legal(value) && (value.first(), value.len()) != (Some(&tag), length));
    assert!(values.len() > 20);
    for value in values {
        put(client, &key, &value).await;
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
        let change = store.change_async("k", &limit, &limit, Carry::Full).await;
        assert_eq!(change.unwrap_err().kind(), ErrorKind::Corrupt, "{value:x?}");
        assert_eq!(row(client).await, before);
    }
    // And the right one is a state.
    let mut value = vec![0; length];
    value[0] = tag;
    put(client, &key, &value).await;
    assert!(
        store
            .apply_async("k", &limit, Request::ONE)
            .await
            .unwrap()
            .is_allowed()
    );
}

/// What earlier versions left under a bucket's key, and another version of the limit.
fn of_buckets(value: &[u8]) -> bool {
    match (value.first(), value.len()) {
        (Some(0x11), 9) | (Some(0x13 | 0x15 | 0x17), 17) | (Some(0x17), 33 | 43) => true,
        (Some(0x14), 9 | 17 | 33) => true,
        (Some(0x31), 43) => value[1] > 0,
        _ => false,
    }
}

#[tokio::test]
async fn are_errors_to_every_limit() {
    let url = database("values").await;
    let (client, store) = (client(&url).await, store(&url, 1));
    let bucket = TokenBucket::per_day(5);
    let none = |_: &[u8]| false;
    refuses(&client, &store, bucket, (0x21, 17), of_buckets).await;
    refuses(&client, &store, SlidingWindow::per_day(5), (0x13, 17), none).await;
    refuses(&client, &store, FixedWindow::per_day(5), (0x15, 17), none).await;
    refuses(&client, &store, All([bucket, bucket]), (0x24, 33), none).await;
    refuses(&client, &store, All([bucket; 3]), (0x24, 49), none).await;
}
