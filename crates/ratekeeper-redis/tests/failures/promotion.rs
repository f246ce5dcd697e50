//! A replica that takes over.

use ratekeeper::store::ErrorKind;
use ratekeeper_test_servers::{Options, Server};

use crate::support::{admitted, kind, limiter};

fn replica_of(primary: &Server) -> Server {
    let port = primary.port().to_string();
    let replica = Server::redis(Options::new().args([
        "--replicaof",
        "127.0.0.1",
        &port,
        "--repl-diskless-sync-delay",
        "0",
    ]));
    replica.wait_for_info("replication", "master_link_status:up");
    replica
}

/// Returns when the replica holds the same state.
fn wait_for_replication(primary: &Server, replica: &Server) {
    let state = |server: &Server| {
        server
            .command(&["GETRANGE", "rl:test:k", "0", "-1"])
            .unwrap()
    };
    for _ in 0..500 {
        let expected = state(primary);
        if !expected.is_empty() && state(replica) == expected {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("the replica did not follow within five seconds");
}

/// States arrive as plain `SET`s with absolute expiry, so a promoted replica knows them, though not the scripts.
#[tokio::test]
async fn a_promoted_replica_goes_on_where_the_primary_stopped() {
    let mut primary = Server::redis(Options::new());
    let replica = replica_of(&primary);
    assert_eq!(admitted(&limiter(&primary), "k", 3).await, 3);
    wait_for_replication(&primary, &replica);

    let promoted = limiter(&replica);
    // Not before it is promoted: a refusal would be stale, and a grant would be forgotten.
    assert_eq!(
        kind(promoted.check_async("k").await),
        ErrorKind::NotExecuted
    );
    primary.kill();
    replica.command(&["REPLICAOF", "NO", "ONE"]).unwrap();
    assert_eq!(admitted(&promoted, "k", 9).await, 2);
}

/// What the replica had not seen yet is forgotten: at most one burst per key and failover.
#[tokio::test]
async fn writes_that_were_not_replicated_are_forgiven() {
    let mut primary = Server::redis(Options::new());
    let replica = replica_of(&primary);
    assert_eq!(admitted(&limiter(&primary), "k", 2).await, 2);
    wait_for_replication(&primary, &replica);
    // Cut off from here on.
    replica.command(&["REPLICAOF", "NO", "ONE"]).unwrap();
    assert_eq!(admitted(&limiter(&primary), "k", 9).await, 3);
    primary.kill();
    assert_eq!(admitted(&limiter(&replica), "k", 9).await, 3);
}
