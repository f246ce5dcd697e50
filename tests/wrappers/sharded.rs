//! `Sharded`: where keys go, what moves them, and how batches are taken apart.

use std::collections::HashMap;
use std::pin::pin;
use std::task::{Context, Waker};

use ratekeeper::store::{
    AsyncStore, ErrorKind, InvalidShards, Item, MemoryStore, Ready, Sharded, Store,
};
use ratekeeper::{
    DashStore, ManualClock, Request, SlidingWindow, TableStore, Timestamp, TokenBucket,
};

use crate::support::{Answer, Call, LIMIT, MODES, Script, asked, block_on};

fn named<const N: usize>(names: [&str; N]) -> Sharded<()> {
    Sharded::new(names.map(|name| (name, ()))).unwrap()
}

const ABC: [&str; 3] = ["redis-a", "redis-b", "redis-c"];

/// Placements computed by another implementation of the same definition, in Python. A change here moves the keys of everybody
/// who upgrades.
#[test]
fn golden_placements() {
    let long = "x".repeat(300);
    let golden = [
        ("alice", "redis-b", "redis-d", "redis-c"),
        ("bob", "redis-c", "redis-c", "redis-a"),
        ("carol", "redis-a", "redis-a", "redis-b"),
        ("dave", "redis-a", "redis-a", "redis-a"),
        ("erin", "redis-b", "redis-b", "redis-c"),
        ("frank", "redis-a", "redis-d", "redis-b"),
        ("", "redis-b", "redis-b", "redis-a"),
        ("42", "redis-b", "redis-b", "redis-a"),
        ("2001:db8::1", "redis-a", "redis-d", "redis-a"),
        (&long, "redis-a", "redis-a", "redis-a"),
    ];
    let three = named(ABC);
    let four = named(["redis-a", "redis-b", "redis-c", "redis-d"]);
    let seed = 0x0123_4567_89ab_cdef_0011_2233_4455_6677;
    let seeded = Sharded::with_seed(seed, ABC.map(|name| (name, ()))).unwrap();
    for (key, of_three, of_four, with_seed) in golden {
        assert_eq!(three.shard_of(key).0, of_three, "{key}");
        assert_eq!(four.shard_of(key).0, of_four, "{key}");
        assert_eq!(seeded.shard_of(key).0, with_seed, "{key}");
    }
    // A key is its bytes, whatever its type.
    assert_eq!(three.shard_of(&42_u16).0, "redis-b");
    assert_eq!(three.shard_of(&("eu", 42_u32)).0, "redis-a");
    assert_eq!(three.shard_of(&String::from("alice")).0, "redis-b");
}

#[test]
fn the_order_of_the_stores_does_not_matter() {
    let one = named(["a", "b", "c", "d"]);
    let other = named(["c", "a", "d", "b"]);
    for key in 0..2_000_u32 {
        assert_eq!(one.shard_of(&key).0, other.shard_of(&key).0);
    }
    assert!(
        other
            .shards()
            .map(|(name, ())| name)
            .eq(["c", "a", "d", "b"])
    );
}

fn shares(store: &Sharded<()>, keys: u32) -> HashMap<&str, u32> {
    let mut shares = HashMap::new();
    for key in 0..keys {
        *shares.entry(store.shard_of(&key).0).or_default() += 1;
    }
    shares
}

/// 100,000 keys on 5 stores: 20,000 each, with a standard deviation of 126.
#[test]
fn keys_are_spread_evenly() {
    let store = named(["s1", "s2", "s3", "s4", "s5"]);
    let shares = shares(&store, 100_000);
    assert_eq!(shares.len(), 5);
    for (name, share) in shares {
        assert!((19_400..=20_600).contains(&share), "{name}: {share}");
    }
}

#[test]
fn a_store_that_comes_or_goes_moves_only_its_own_keys() {
    const KEYS: u32 = 60_000;
    let five = named(["s1", "s2", "s3", "s4", "s5"]);
    let six = named(["s1", "s2", "s3", "s4", "s5", "new"]);
    let mut moved = 0;
    let mut from: HashMap<&str, u32> = HashMap::new();
    for key in 0..KEYS {
        let (before, after) = (five.shard_of(&key).0, six.shard_of(&key).0);
        if before != after {
            assert_eq!(after, "new");
            moved += 1;
            *from.entry(before).or_default() += 1;
        }
    }
    assert!((9_500..=10_500).contains(&moved), "{moved} of {KEYS} moved");
    // From everywhere alike; read the other way round: a store that goes is shared by all others.
    assert_eq!(from.len(), 5);
    assert!(
        from.values().all(|count| (1_750..=2_250).contains(count)),
        "{from:?}"
    );
}

#[test]
fn names_must_be_some_and_different() {
    assert_eq!(
        Sharded::<()>::new([("", ()); 0]).unwrap_err(),
        InvalidShards::None
    );
    let twice = Sharded::new([("a", ()), ("b", ()), ("a", ())]);
    assert_eq!(twice.unwrap_err(), InvalidShards::EqualNames);
    assert!(Sharded::new([("", ())]).is_ok());
}

#[test]
fn the_seed_is_not_shown() {
    let shown = format!(
        "{:?}",
        Sharded::with_seed(123_456_789, [("a", 1), ("b", 2)]).unwrap()
    );
    assert_eq!(shown, r#"Sharded {"a": 1, "b": 2}"#);
}

fn scripts() -> Sharded<Script> {
    Sharded::new(ABC.map(|name| (name, Script::default()))).unwrap()
}

#[test]
fn calls_go_to_the_keys_store_and_its_errors_stay() {
    for mode in MODES {
        let store = scripts();
        let only = |name: &str, call: Call| {
            for (shard, script) in store.shards() {
                let expected: Vec<_> = Some(call.clone())
                    .filter(|_| shard == name)
                    .into_iter()
                    .collect();
                assert_eq!(script.calls(), expected, "{shard}");
            }
        };
        for (key, name) in [
            ("alice", "redis-b"),
            ("bob", "redis-c"),
            ("carol", "redis-a"),
        ] {
            let call = Call::Apply(asked(key, &LIMIT, &Request::take(2)));
            assert!(mode.apply(&store, key, &LIMIT, Request::take(2)).is_ok());
            only(name, call.clone());
            store
                .shard_of(key)
                .1
                .then([Answer::Fail(ErrorKind::NotExecuted)]);
            let error = mode
                .apply(&store, key, &LIMIT, Request::take(2))
                .unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotExecuted);
            only(name, call);
            mode.forget(&store, key, &LIMIT).unwrap();
            only(name, Call::Forget(key.into()));
        }
    }
}

#[test]
fn a_batch_goes_to_each_store_as_one() {
    for mode in MODES {
        let store = scripts();
        let keys = ["alice", "carol", "erin", "dave", "alice"]; // b a b a b
        store
            .shard_of("alice")
            .1
            .then([Answer::Fresh, Answer::Fail(ErrorKind::Corrupt)]);
        let cost = |place: usize| place as u64 + 1;
        let mut items: Vec<_> = keys
            .iter()
            .enumerate()
            .map(|(place, key)| Item::new(*key, &LIMIT, Request::take(cost(place))))
            .collect();
        mode.batch(&store, &mut items);
        for (place, (item, key)) in items.into_iter().zip(keys).enumerate() {
            match item.into_result() {
                Ok(decision) => assert_eq!(decision.granted(), cost(place), "in place"),
                Err(error) => assert_eq!((key, error.kind()), ("erin", ErrorKind::Corrupt)),
            }
        }
        for (name, script) in store.shards() {
            let asked: Vec<_> = keys
                .iter()
                .enumerate()
                .filter(|(_, key)| store.shard_of(**key).0 == name)
                .map(|(place, key)| asked(key, &LIMIT, &Request::take(cost(place))))
                .collect();
            let expected: Vec<_> = Some(Call::Batch(asked))
                .into_iter()
                .filter(|_| name != "redis-c")
                .collect();
            assert_eq!(script.calls(), expected, "{name}");
        }
    }
}

/// All stores are asked before one is waited for, and what has been answered when the future is dropped stays.
#[test]
fn stores_are_asked_at_once() {
    let store = scripts();
    store.shard_of("alice").1.then([Answer::Hang]);
    let mut items = ["alice", "bob", "carol"].map(|key| Item::new(key, &LIMIT, Request::ONE));
    {
        let mut future = pin!(store.apply_batch_async(&mut items));
        let mut context = Context::from_waker(Waker::noop());
        assert!(future.as_mut().poll(&mut context).is_pending());
        for (name, script) in store.shards() {
            assert_eq!(script.count(), 1, "{name}");
        }
    }
    let [alice, bob, carol] = items.map(Item::into_result);
    assert_eq!(alice.unwrap_err().kind(), ErrorKind::Unknown);
    assert!(bob.unwrap().is_allowed() && carol.unwrap().is_allowed());
}

/// While a store is added, and then taken out again: a key that moves gets a burst in each place, the others none.
#[test]
fn a_key_that_moves_is_forgiven_one_burst() {
    let clock = ManualClock::new();
    let stores = [(); 4].map(|()| DashStore::<String, TokenBucket, _>::with_clock(&clock));
    let names = ["redis-a", "redis-b", "redis-c", "redis-d"];
    let of = |n: usize| Sharded::new(names.into_iter().zip(&stores).take(n)).unwrap();
    let (three, four) = (of(3), of(4));
    let mut moved = 0;
    for key in (0..500).map(|n| n.to_string()) {
        let drain = |store: &Sharded<_>| {
            let ask = || Store::<str, _>::apply(store, &key, &LIMIT, Request::ONE).unwrap();
            (0..15).map(|_| ask().granted()).sum::<u64>()
        };
        let moves = three.shard_of(&key).0 != four.shard_of(&key).0;
        let granted = drain(&three) + drain(&four) + drain(&three);
        assert_eq!(granted, if moves { 20 } else { 10 }, "{key}");
        moved += u64::from(moves);
    }
    assert!((90..160).contains(&moved), "{moved}");
}

#[test]
fn stores_in_memory_are_sharded_too() {
    let clock = ManualClock::new();
    let dash = || Ready(DashStore::<String, TokenBucket, _>::with_clock(&clock));
    let store = Sharded::new([("a", dash()), ("b", dash())]).unwrap();
    let at = |key, n| store.decide_at(key, &LIMIT, Request::take(n), Timestamp::ZERO);
    for key in ["alice", "bob", "carol"] {
        assert!(at(key, 10).is_allowed());
        assert!(!store.decide(key, &LIMIT, Request::ONE).is_allowed());
        let holder = store.shard_of(key).1;
        assert_eq!(holder.decide(key, &LIMIT, Request::PEEK).remaining(), 0);
    }
    assert!(
        block_on(store.apply_async("dave", &LIMIT, Request::ONE))
            .unwrap()
            .is_allowed()
    );
    assert!(
        Store::<str, _>::apply(&store, "dave", &LIMIT, Request::take(9))
            .unwrap()
            .is_allowed()
    );

    // A limit must fit every store.
    let window = SlidingWindow::per(10, std::time::Duration::from_micros(1));
    let table = || TableStore::<_, SlidingWindow>::with_seed(64, 7, &clock).unwrap();
    let store = Sharded::new([("a", table()), ("b", table())]).unwrap();
    assert!(MemoryStore::<str, _>::accepts(&store, &window).is_err());
    assert!(MemoryStore::<str, _>::accepts(&store, &SlidingWindow::per_second(9)).is_ok());
}
