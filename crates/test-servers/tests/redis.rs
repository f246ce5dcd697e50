//! What only servers like Redis do.

mod common;

use common::eventually;
use ratekeeper_test_servers::{Kind, Options, Server};

#[test]
fn nothing_is_persisted_by_default() {
    for kind in Kind::REDIS_LIKE {
        let server = Server::shared(kind);
        assert_eq!(
            server.command(&["CONFIG", "GET", "save"]).unwrap(),
            "save\n"
        );
        assert_eq!(
            server.command(&["CONFIG", "GET", "appendonly"]).unwrap(),
            "appendonly\nno"
        );
    }
}

#[test]
fn options_win_over_the_defaults() {
    for kind in Kind::REDIS_LIKE {
        let memory = ["--maxmemory", "4mb", "--maxmemory-policy", "allkeys-lru"];
        let options = Options::new().args(memory).args(["--save", "60", "1"]);
        let server = Server::start(kind, options);
        let get = |name: &str| server.command(&["CONFIG", "GET", name]).unwrap();
        assert_eq!(get("maxmemory"), "maxmemory\n4194304");
        assert_eq!(get("maxmemory-policy"), "maxmemory-policy\nallkeys-lru");
        assert_eq!(get("save"), "save\n60 1");
    }
}

#[test]
fn a_password_is_no_obstacle() {
    let server = Server::redis(Options::new().args(["--requirepass", "secret"]));
    let error = server.command(&["PING"]).unwrap_err().to_string();
    assert!(error.starts_with("NOAUTH"), "{error}");
}

#[test]
fn what_was_persisted_survives_a_kill() {
    let durable = ["--appendonly", "yes", "--appendfsync", "always"];
    for kind in Kind::REDIS_LIKE {
        let mut kept = Server::start(kind, Options::new().args(durable));
        let mut lost = Server::start(kind, Options::new());
        for server in [&mut kept, &mut lost] {
            server.command(&["SET", "key", "value"]).unwrap();
            server.restart();
        }
        assert_eq!(kept.command(&["GET", "key"]).unwrap(), "value");
        assert_eq!(lost.command(&["GET", "key"]).unwrap(), "(nil)");
    }
}

#[test]
fn a_replica_follows() {
    for kind in Kind::REDIS_LIKE {
        let primary = Server::start(kind, Options::new());
        let replica_of = ["--replicaof", "127.0.0.1", &primary.port().to_string()];
        let replica = Server::start(kind, Options::new().args(replica_of));
        replica.wait_for_info("replication", "master_link_status:up");
        primary.command(&["SET", "key", "value"]).unwrap();
        eventually("the replica has it", || {
            replica.command(&["GET", "key"]).unwrap() == "value"
        });
    }
}

#[test]
fn commands_carry_any_bytes() {
    let server = Server::shared(Kind::Redis);
    let key: Vec<u8> = (0..=255).collect();
    assert_eq!(
        server.command(&[&b"SET"[..], &key, b"\r\n$5\r\n"]).unwrap(),
        "OK"
    );
    assert_eq!(server.command(&[&b"GET"[..], &key]).unwrap(), "\r\n$5\r\n");
    assert_eq!(server.command(&[&b"STRLEN"[..], &key]).unwrap(), "6");
    let error = server.command(&["NONSENSE"]).unwrap_err().to_string();
    assert!(error.starts_with("ERR unknown command"), "{error}");
}
