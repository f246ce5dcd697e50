//! Clusters of three primaries.

mod common;

use common::{assert_no_process_in, state};
use ratekeeper_test_servers::{Cluster, Kind, Options};

fn serves_every_key_at_its_owner(kind: Kind) {
    let cluster = Cluster::start(3, kind);
    assert_eq!(cluster.addresses().len(), 3);
    let mut keys_of = [0; 3];
    for key in 0..300 {
        let key = format!("key:{key}");
        let owner = cluster.owner_of(&key);
        keys_of[owner] += 1;
        for (index, node) in cluster.nodes().iter().enumerate() {
            match node.command(&["SET", &key, "value"]) {
                Ok(reply) => assert_eq!((reply.as_str(), index), ("OK", owner)),
                Err(error) => {
                    let error = error.to_string();
                    let there = cluster.nodes()[owner].address();
                    assert!(
                        error.starts_with("MOVED") && error.ends_with(&there),
                        "{error}"
                    );
                    assert_ne!(index, owner);
                }
            }
        }
    }
    assert!(keys_of.iter().all(|&keys| keys > 50), "{keys_of:?}");

    let nodes: Vec<_> = cluster
        .nodes()
        .iter()
        .map(|node| (node.pid(), node.folder().to_owned()))
        .collect();
    drop(cluster);
    for (pid, folder) in nodes {
        assert_eq!(state(pid), None);
        assert_no_process_in(&folder);
        assert!(!folder.exists());
    }
}

#[test]
fn redis() {
    serves_every_key_at_its_owner(Kind::Redis);
}

#[test]
fn redis62() {
    serves_every_key_at_its_owner(Kind::Redis62);
}

#[test]
fn valkey() {
    serves_every_key_at_its_owner(Kind::Valkey);
}

#[test]
fn a_node_dies_and_comes_back() {
    let options = [
        "--cluster-node-timeout",
        "500",
        "--cluster-require-full-coverage",
        "no",
    ];
    let mut cluster = Cluster::start_with(3, Kind::Redis, Options::new().args(options));
    let dead = cluster.owner_of("key");
    cluster.nodes_mut()[dead].kill();
    for (index, node) in cluster.nodes().iter().enumerate() {
        if index != dead {
            node.command(&["PING"]).unwrap();
        }
    }
    assert_eq!(cluster.owner_of("key"), dead, "the other nodes know");

    cluster.nodes_mut()[dead].restart();
    cluster.wait_until_ok();
    assert_eq!(
        cluster.nodes()[dead]
            .command(&["SET", "key", "value"])
            .unwrap(),
        "OK"
    );
}
