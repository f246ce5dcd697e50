//! Keys of every kind.

use std::time::Duration;

use ratekeeper::store::KeyKind;
use ratekeeper::{AnyAlgorithm, FixedWindow, KeyedLimiter, Request, SlidingWindow};
use ratekeeper_test_servers::{Kind, Server};

use crate::support::{Limiter, Raw, bucket, cas, clock, shared, store};

#[tokio::test]
async fn odd_keys_have_states_of_their_own() {
    let limiter = shared("odd-keys", bucket());
    let long = "x".repeat(4096);
    let longer = "x".repeat(4097);
    let (at_limit, over) = ("é".repeat(64), "é".repeat(64) + "x");
    let keys = [
        "",
        " ",
        "a",
        "ab",
        "a:b",
        "a b",
        "\0",
        "a\0",
        "\r\n",
        "a\r\nmg b v",
        "{a}b",
        "{}",
        "zoë",
        "日本",
        "$5",
        "%s",
        "a=",
        "=YQ",
        "YQ",
        "#",
        "T0",
        "a T1",
        &long,
        &longer,
        &at_limit,
        &over,
    ];
    for key in keys {
        assert!(
            limiter
                .apply_async(key, Request::take(5))
                .await
                .unwrap()
                .is_allowed(),
            "{key:?}"
        );
    }
    for key in keys {
        assert!(
            !limiter.check_async(key).await.unwrap().is_allowed(),
            "{key:?}"
        );
    }
}

#[tokio::test]
async fn every_byte_is_a_key() {
    let store = store(cas(Server::shared(Kind::Memcached), "bytes"), &clock());
    let limiter = Limiter::<[u8]>::with_store(bucket(), store);
    for byte in 0..=255 {
        for key in [&[byte][..], &[b'k', byte]] {
            assert_eq!(
                limiter.check_async(key).await.unwrap().remaining(),
                4,
                "{key:?}"
            );
        }
    }
}

/// What is stored is under the documented name, also the longest.
#[tokio::test]
async fn names_are_those_in_memcached() {
    let server = Server::shared(Kind::Memcached);
    let namespace = "n".repeat(64);
    let cas = cas(server, &namespace);
    let longest = "\u{7f}".repeat(128);
    let names = ["alice", "al ice", &longest].map(|key| cas.name_of(key));
    assert_eq!(names[2].len(), 239);
    let limiter = Limiter::<str>::with_store(bucket(), store(cas, &clock()));
    let mut raw = Raw::new(server);
    for (key, name) in ["alice", "al ice", &longest].into_iter().zip(names) {
        assert_eq!(raw.ask(format!("mg {name} v\r\n")).0, "EN");
        let _ = limiter.check_async(key).await.unwrap();
        let (line, value) = raw.ask(format!("mg {name} v\r\n"));
        assert_eq!((line.as_str(), value[0]), ("VA 26", 0x70), "{key:?}");
    }
}

/// Windows of other lengths have other keys, however little room there is.
#[tokio::test]
async fn kinds_have_keys_of_their_own() {
    let server = Server::shared(Kind::Memcached);
    let cas = cas(server, &"k".repeat(64));
    let clock = clock();
    let odd = FixedWindow::new(5, Duration::from_nanos(1_234_567_890_123_456_789)).unwrap();
    let limits = [
        AnyAlgorithm::from(bucket()),
        SlidingWindow::per_hour(5).into(),
        SlidingWindow::per_day(5).into(),
        FixedWindow::per_hour(5).into(),
        FixedWindow::per_hour(5).anchored().into(),
        odd.with_offset(Duration::from_nanos(123_456_789_012_345_678))
            .into(),
    ];
    let mut raw = Raw::new(server);
    for key in ["alice", "al ice", &"x".repeat(128), &"\u{7f}".repeat(128)] {
        for limit in limits {
            let name = cas.name_of_kind(key, &KeyKind::of(&limit));
            assert_eq!(raw.life(&name), "EN", "{limit:?}");
            let limiter = KeyedLimiter::<str, _, _>::with_store(limit, store(cas.clone(), &clock));
            for remaining in [4, 3, 2, 1, 0] {
                let decision = limiter.check_async(key).await.unwrap();
                assert!(
                    decision.is_allowed() && decision.remaining() == remaining,
                    "{limit:?}"
                );
            }
            assert!(!limiter.check_async(key).await.unwrap().is_allowed());
            assert!(raw.life(&name).starts_with("HD"), "{name}");
        }
        for limit in limits {
            let limiter = KeyedLimiter::<str, _, _>::with_store(limit, store(cas.clone(), &clock));
            limiter.forget_async(key).await.unwrap();
            assert_eq!(
                limiter.check_async(key).await.unwrap().remaining(),
                4,
                "{limit:?}"
            );
        }
    }
}
