//! Keys of every kind.

use ratekeeper::Request;
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
        assert_eq!((line.as_str(), value[0]), ("VA 9", 0x11), "{key:?}");
    }
}
