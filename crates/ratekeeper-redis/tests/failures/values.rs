//! Values that are no states: errors, left as they are.

use std::time::Duration;

use ratekeeper::store::{AsyncStore, CasLoop, ErrorKind, KeyKind, Namespace};
use ratekeeper::{
    Algorithm, All, FixedWindow, KeyedLimiter, Request, SlidingLog, SlidingWindow, TokenBucket,
};
use ratekeeper_redis::{RedisAlgorithm, RedisCas, RedisStore};
use ratekeeper_test_servers::{Kind, Server};

use crate::support::{FIVE_A_DAY, kind, store};

const KEY: &str = "rl:values:k";

/// Where a limit looks for the value.
fn key_of(limit: &impl Algorithm) -> Vec<u8> {
    let namespace = Namespace::new("values").unwrap();
    namespace.key_of_kind("k", &KeyKind::of(limit))
}

fn space(server: &Server) -> RedisStore {
    store(server).with_namespace(Namespace::new("values").unwrap())
}

async fn all_requests_are_corrupt(limit: impl RedisAlgorithm, store: &RedisStore, what: &str) {
    for request in [
        Request::ONE,
        Request::PEEK,
        Request::up_to(3),
        Request::take(u64::MAX),
    ] {
        let limiter = KeyedLimiter::<str, _, _>::with_store(&limit, store);
        let result = limiter.apply_async("k", request).await;
        assert_eq!(kind(result), ErrorKind::Corrupt, "{limit:?} over {what}");
    }
}

#[tokio::test]
async fn foreign_values_are_corrupt_and_left_alone() {
    // A server of its own: the key is the same in all cases.
    let server = Server::redis(ratekeeper_test_servers::Options::new());
    let store = space(&server);
    let good = [0x11, 0x17, 0x97, 0x9c, 0xfe, 0x3c, 0x1f, 0xe1, 0x00];
    let values: [&[u8]; 9] = [
        b"hello",
        b"42",
        b"",
        &[0x21, 0, 0, 0, 0, 0, 0, 0, 0],
        &[0x12, 0, 0, 0, 0, 0, 0, 0, 0],
        &[0x11],
        &good[..8],
        &[&good[..], &[0]].concat(),
        &[0x11; 500],
    ];
    for value in values {
        let what = format!("{value:02x?}");
        server
            .command(&[b"SET", KEY.as_bytes(), value, b"PX", b"100000"])
            .unwrap();
        for key in [
            key_of(&SlidingWindow::per_day(5)),
            key_of(&FixedWindow::per_day(5)),
            key_of(&SlidingLog::per_day(5)),
            key_of(&All([FIVE_A_DAY, FIVE_A_DAY])),
        ] {
            server
                .command(&[b"SET", &key[..], value, b"PX", b"100000"])
                .unwrap();
        }
        all_requests_are_corrupt(FIVE_A_DAY, &store, &what).await;
        all_requests_are_corrupt(FIVE_A_DAY.with_version(1), &store, &what).await;
        all_requests_are_corrupt(SlidingWindow::per_day(5), &store, &what).await;
        all_requests_are_corrupt(FixedWindow::per_day(5), &store, &what).await;
        all_requests_are_corrupt(SlidingLog::per_day(5), &store, &what).await;
        all_requests_are_corrupt(All([FIVE_A_DAY, FIVE_A_DAY]), &store, &what).await;
        let cas = CasLoop::new(RedisCas(store.clone()), tokio::time::sleep);
        let result = cas.apply_async("k", &FIVE_A_DAY, Request::ONE).await;
        assert_eq!(kind(result), ErrorKind::Corrupt, "{what}");
        let dump = server.command(&["STRLEN", KEY]).unwrap();
        assert_eq!(dump, value.len().to_string(), "{what}");
    }
}

#[tokio::test]
async fn values_of_another_redis_type_are_corrupt() {
    let server = Server::redis(ratekeeper_test_servers::Options::new());
    let store = space(&server);
    server.command(&["RPUSH", KEY, "a"]).unwrap();
    let log = String::from_utf8(key_of(&SlidingLog::per_day(5))).unwrap();
    server.command(&["RPUSH", &log, "a"]).unwrap();
    all_requests_are_corrupt(FIVE_A_DAY, &store, "a list").await;
    all_requests_are_corrupt(SlidingLog::per_day(5), &store, "a list").await;
    assert_eq!(server.command(&["LLEN", KEY]).unwrap(), "1");

    for key in [KEY, &log] {
        server.command(&["DEL", key]).unwrap();
        server
            .command(&["ZADD", key, "1", "a member of somebody else"])
            .unwrap();
    }
    all_requests_are_corrupt(FIVE_A_DAY, &store, "a sorted set").await;
    assert_eq!(
        kind(
            store
                .apply_async("k", &SlidingLog::per_day(5), Request::ONE)
                .await
        ),
        ErrorKind::Corrupt
    );
    assert_eq!(server.command(&["ZCARD", &log]).unwrap(), "1");
}

#[tokio::test]
async fn limits_beyond_the_numbers_of_redis_are_refused_before_anything_is_sent() {
    let store = space(Server::shared(Kind::Redis));
    let years = |n: u64| Duration::from_secs(n * 365 * 86_400);
    let kind_of =
        async |limit: TokenBucket| kind(store.apply_async("big", &limit, Request::ONE).await);
    assert_eq!(
        kind_of(TokenBucket::per(1, years(1))).await,
        ErrorKind::Unsupported
    );
    assert_eq!(
        kind_of(TokenBucket::per_day(7).with_burst(7 * 60)).await,
        ErrorKind::Unsupported
    );
    assert_eq!(
        kind_of(TokenBucket::per_second(5_000_000_000_000_001)).await,
        ErrorKind::Unsupported
    );
    assert_eq!(
        kind_of(TokenBucket::per_second(1).with_max_wait(years(1))).await,
        ErrorKind::Unsupported
    );
    let window = SlidingWindow::per(1, years(1));
    assert_eq!(
        kind(store.apply_async("big", &window, Request::ONE).await),
        ErrorKind::Unsupported
    );
    let log = SlidingLog::per_day(10_001);
    assert_eq!(
        kind(store.apply_async("big", &log, Request::ONE).await),
        ErrorKind::Unsupported
    );
    // And the largest that fit.
    for limit in [
        TokenBucket::per(1, Duration::from_nanos(9_000_000_000_000_000)),
        TokenBucket::new(7, Duration::from_secs(30 * 86_400), 12).unwrap(),
        TokenBucket::per_second(4_500_000_000_000_000),
    ] {
        assert!(
            store
                .apply_async(&format!("{limit}")[..], &limit, Request::ONE)
                .await
                .unwrap()
                .is_allowed()
        );
    }
}
