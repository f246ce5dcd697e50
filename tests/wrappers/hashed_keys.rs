//! `HashedKeys`: against HMAC-SHA-256 from elsewhere, and nothing of the key or the secret shows.

use ratekeeper::store::{
    AsyncStore, HashedKey, HashedKeys, InvalidSecret, Item, Key, MemoryStore, Ready, Store,
};
use ratekeeper::{DashStore, ManualClock, Request, Timestamp, TokenBucket};

use crate::support::{Answer, Call, LIMIT, MODES, Script, asked, give_up};

const SECRET: &[u8] = b"0123456789abcdef";

fn hash(secret: &[u8], key: &(impl Key + ?Sized)) -> String {
    HashedKeys::new((), secret).unwrap().hash(key).to_string()
}

/// RFC 4231, test case 1, and Python's `hmac`.
#[test]
fn known_hashes() {
    assert_eq!(
        hash(&[0x0b; 20], "Hi There"),
        "b0344c61d8db38535ca8afceaf0bf12b"
    );
    for (key, expected) in [
        ("alice", "fdbf8b1cacd3d578e062d0e41104357d"),
        ("", "496dc93fa2d26eae500ec0bc37a12270"),
        ("42", "8d24a2a526d5f556469db8b6280e3a7b"),
        ("2001:db8::1", "875707cfe2bc92e6238d8cba4075a078"),
        (&"x".repeat(300), "8354adb347ed547389bed903cbe48277"),
    ] {
        assert_eq!(hash(SECRET, key), expected, "{key}");
    }
    assert_eq!(hash(SECRET, &42_u32), hash(SECRET, "42"));
    assert_eq!(
        hash(SECRET, &("eu", 42_u32)),
        "1515f87912f614530093fb09cf0d6b57"
    );
    assert_eq!(
        hash(b"0123456789abcdeg", "alice"),
        "bbd19ea0c769a76eddeac2595dfaf8fe"
    );
    assert_eq!(
        hash(&[b'k'; 100], "alice"),
        "bb3371a06e0b7cdbf3413fd51417624e"
    );
}

#[test]
fn short_secrets_are_refused() {
    for secret in [&b""[..], b"0123456789abcde"] {
        assert_eq!(HashedKeys::new((), secret).unwrap_err(), InvalidSecret);
    }
    assert_eq!(HashedKeys::LEAST_SECRET_BYTES, 16);
    assert!(HashedKeys::new((), SECRET).is_ok());
}

#[test]
fn the_secret_is_not_shown() {
    let shown = format!("{:?}", HashedKeys::new(7, SECRET).unwrap());
    assert_eq!(shown, "HashedKeys { store: 7, .. }");
}

/// Text of one length, the same as shown; as a part of a tuple it needs no mark at its end.
#[test]
fn hashed_keys_are_keys() {
    let key = HashedKeys::new((), SECRET).unwrap().hash("alice");
    let (mut alone, mut in_a_tuple) = (Vec::new(), Vec::new());
    key.write_alone(&mut |part| alone.extend_from_slice(part));
    (key, key).write(&mut |part| in_a_tuple.extend_from_slice(part));
    assert_eq!(alone, key.to_string().as_bytes());
    assert_eq!(in_a_tuple, format!("{key}{key}").as_bytes());
    assert_eq!(format!("{key:?}"), format!("HashedKey({key})"));
    let bytes: String = key
        .as_bytes()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert_eq!(bytes, key.to_string());
    assert_eq!(key.to_string().len(), 32);
}

#[test]
fn everything_is_passed_on_under_the_new_key() {
    for mode in MODES {
        let script = Script::new([Answer::Fresh]);
        let store = HashedKeys::new(&script, SECRET).unwrap();
        let hashed = |key: &str| store.hash(key).to_string();
        let decision = mode
            .apply(&store, "alice", &LIMIT, Request::take(3))
            .unwrap();
        assert_eq!(decision.granted(), 3);
        let expected = asked(&hashed("alice"), &LIMIT, &Request::take(3));
        assert_eq!(script.calls(), [Call::Apply(expected)]);

        let mut items: Vec<_> = ["a", "b", "a"]
            .iter()
            .zip(1..)
            .map(|(key, n)| Item::new(*key, &LIMIT, Request::take(n)))
            .collect();
        let request = items[1].take_request().unwrap();
        items[1].set_result(mode.apply(&Script::default(), "b", &LIMIT, request));
        mode.batch(&store, &mut items);
        let expected =
            [("a", 1), ("a", 3)].map(|(key, n)| asked(&hashed(key), &LIMIT, &Request::take(n)));
        assert_eq!(script.calls(), [Call::Batch(expected.to_vec())]);
        for (item, n) in items.into_iter().zip(1..) {
            assert_eq!(item.into_result().unwrap().granted(), n);
        }

        mode.forget(&store, "alice", &LIMIT).unwrap();
        assert_eq!(script.calls(), [Call::Forget(hashed("alice"))]);
    }
    let script = Script::new([Answer::Hang]);
    let store = HashedKeys::new(&script, SECRET).unwrap();
    give_up(store.apply_async("alice", &LIMIT, Request::ONE));
    assert_eq!(script.count(), 1);
}

#[test]
fn stores_in_memory_hold_hashes_only() {
    let clock = ManualClock::new();
    let dash = DashStore::<HashedKey, TokenBucket, _>::with_clock(&clock);
    let store = HashedKeys::new(Ready(dash), SECRET).unwrap();
    assert!(
        store
            .decide("alice", &LIMIT, Request::take(10))
            .is_allowed()
    );
    let now = Timestamp::ZERO;
    assert!(
        !store
            .decide_at(&String::from("alice"), &LIMIT, Request::ONE, now)
            .is_allowed()
    );
    assert!(store.decide("bob", &LIMIT, Request::ONE).is_allowed());
    let key = store.hash("alice");
    assert_eq!(
        store
            .get_ref()
            .decide(&key, &LIMIT, Request::PEEK)
            .remaining(),
        0
    );
    assert!(MemoryStore::<str, _>::accepts(&store, &LIMIT).is_ok());
    assert!(
        !Store::<str, _>::apply(&store, "alice", &LIMIT, Request::ONE)
            .unwrap()
            .is_allowed()
    );
}
