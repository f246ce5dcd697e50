//! Three primaries: every key on its own node, and the failure of one.
#![cfg(feature = "cluster")]

use std::time::Duration;

use ratekeeper::store::{CasLoop, ErrorKind, Item, Namespace};
use ratekeeper::{AsyncStore, KeyedLimiter, Request, TokenBucket};
use ratekeeper_redis::{RedisCas, RedisStore};
use ratekeeper_test_servers::{Cluster, Kind, Options};
use redis::cluster_async::ClusterConnection;

const LIMIT: TokenBucket = TokenBucket::per_day(3);

async fn store(cluster: &Cluster, namespace: &str) -> RedisStore<ClusterConnection> {
    let nodes = cluster
        .addresses()
        .into_iter()
        .map(|address| format!("redis://{address}/"));
    let store = RedisStore::connect_cluster(nodes, Namespace::new(namespace).unwrap())
        .await
        .unwrap();
    store.with_deadline(Duration::from_secs(10))
}

fn keys() -> Vec<String> {
    let odd = [
        "", " ", "a:b", "{a}b", "{}", "a{", "\r\n", "\0", "ключ", "{{x}}",
    ];
    odd.into_iter()
        .map(String::from)
        .chain((0..200).map(|n| format!("user-{n}")))
        .collect()
}

async fn works(cluster: &Cluster) {
    let store = store(cluster, "keys").await;
    let limiter = KeyedLimiter::<str, _, _>::with_store(LIMIT, store.clone());
    let keys = keys();
    for passes in [true, true, true, false] {
        for key in &keys {
            let decision = limiter.check_async(key.as_str()).await.unwrap();
            assert_eq!(decision.is_allowed(), passes, "{key:?}");
        }
    }
    let batch = store
        .clone()
        .with_namespace(Namespace::new("batch").unwrap());
    let mut items: Vec<_> = (0..5)
        .flat_map(|_| &keys)
        .map(|key| Item::new(&key[..], &LIMIT, Request::ONE))
        .collect();
    batch.apply_batch_async(&mut items).await;
    for (index, item) in items.into_iter().enumerate() {
        assert_eq!(
            item.into_result().unwrap().is_allowed(),
            index < 3 * keys.len(),
            "item {index}"
        );
    }
    let cas = store.with_namespace(Namespace::new("cas").unwrap());
    let cas = CasLoop::new(RedisCas(cas), tokio::time::sleep);
    for passes in [true, true, true, false] {
        for key in keys.iter().take(20) {
            assert_eq!(
                cas.apply_async(&key[..], &LIMIT, Request::ONE)
                    .await
                    .unwrap()
                    .is_allowed(),
                passes,
                "{key:?}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_key_works_wherever_it_lives() {
    works(&Cluster::start(3, Kind::Redis)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_valkey_too() {
    works(&Cluster::start(3, Kind::Valkey)).await;
}

/// Without `cluster-require-full-coverage no` the whole cluster refuses when one node is gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_node_fails_its_own_keys_soon_and_no_others() {
    let options = Options::new().args([
        "--cluster-require-full-coverage",
        "no",
        "--cluster-node-timeout",
        "60000",
    ]);
    let mut cluster = Cluster::start_with(3, Kind::Redis, options);
    let store = store(&cluster, "dead")
        .await
        .with_deadline(Duration::from_secs(3));
    let limiter = KeyedLimiter::<str, _, _>::with_store(LIMIT, store);
    let keys: Vec<String> = (0..60).map(|n| format!("user-{n}")).collect();
    let owner = |key: &str| cluster.owner_of(&format!("rl:dead:{key}"));
    let owners: Vec<usize> = keys.iter().map(|key| owner(key)).collect();
    assert!((0..3).all(|node| owners.contains(&node)));
    for key in &keys {
        assert!(limiter.check_async(&key[..]).await.unwrap().is_allowed());
    }

    cluster.nodes_mut()[1].kill();
    for (key, owner) in keys.iter().zip(&owners) {
        let result = limiter.check_async(&key[..]).await;
        if *owner == 1 {
            let kind = result.unwrap_err().kind();
            assert!(
                matches!(kind, ErrorKind::NotExecuted | ErrorKind::Unknown),
                "{kind:?}"
            );
        } else {
            assert_eq!(result.unwrap().remaining(), 1, "{key}");
        }
    }
}
