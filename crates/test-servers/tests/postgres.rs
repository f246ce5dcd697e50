//! What only PostgreSQL does.

mod common;

use std::{fs, panic};

use common::{assert_no_process_in, eventually, state};
use ratekeeper_test_servers::{Kind, Options, Server};

#[test]
fn databases_are_apart() {
    let server = Server::shared(Kind::Postgres);
    for name in ["apart_1", "apart_2"] {
        let address = server.create_database(name);
        assert_eq!(
            address,
            format!("postgres://postgres@127.0.0.1:{}/{name}", server.port())
        );
        // Would fail the second time in one and the same database.
        server.sql(name, "CREATE TABLE t (a int, b text)").unwrap();
    }
    server
        .sql("apart_1", "INSERT INTO t VALUES (1, 'x'), (2, 'y')")
        .unwrap();
    assert_eq!(
        server
            .sql("apart_1", "SELECT a, b FROM t ORDER BY a")
            .unwrap(),
        "1|x\n2|y"
    );
    assert_eq!(
        server.sql("apart_2", "SELECT count(*) FROM t").unwrap(),
        "0"
    );

    let error = server
        .sql("apart_1", "SELECT nonsense")
        .unwrap_err()
        .to_string();
    assert!(error.contains("nonsense"), "{error}");
    assert!(panic::catch_unwind(|| server.create_database("apart_1")).is_err());
}

#[test]
fn a_kill_loses_nothing_that_was_committed() {
    let mut server = Server::postgres(Options::new().args(["-c", "max_connections=20"]));
    assert_eq!(
        server.sql("postgres", "SHOW max_connections").unwrap(),
        "20"
    );
    server
        .sql("postgres", "CREATE TABLE t AS SELECT 1 AS a")
        .unwrap();
    server.restart();
    assert_eq!(server.sql("postgres", "SELECT a FROM t").unwrap(), "1");
}

/// The system keeps System V shared memory until somebody removes it.
#[test]
fn no_end_leaves_shared_memory() {
    let exists = |creator: &str| {
        let segments = fs::read_to_string("/proc/sysvipc/shm").unwrap();
        segments
            .lines()
            .any(|line| line.split_whitespace().nth(4) == Some(creator))
    };
    let mut server = Server::postgres(Options::new());
    let creator = server.pid().to_string();
    assert!(exists(&creator));
    server.kill();
    assert!(!exists(&creator), "killed");

    server.restart();
    let creator = server.pid().to_string();
    assert!(exists(&creator));
    server.pause();
    drop(server);
    assert!(!exists(&creator), "dropped");
}

/// Each connection is served by a process of its own: those have to stop, too, and to die.
#[test]
fn sessions_share_the_fate_of_the_server() {
    let mut server = Server::postgres(Options::new());
    std::thread::scope(|scope| {
        let (port, folder) = (server.port(), server.folder().to_owned());
        let query = scope.spawn(move || {
            let psql = [
                "psql",
                "-X",
                "-h",
                "127.0.0.1",
                "-U",
                "postgres",
                "-c",
                "SELECT pg_sleep(60)",
            ];
            std::process::Command::new(psql[0])
                .args(&psql[1..])
                .args(["-p", &port.to_string()])
                .output()
                .unwrap()
        });
        let asleep = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
        let mut session = None;
        eventually("the query runs", || {
            session = server.sql("postgres", asleep).unwrap().parse::<u32>().ok();
            session.is_some()
        });
        let session = session.unwrap();

        server.pause();
        assert_eq!(state(session), Some('T'));
        server.resume();
        eventually("the session goes on", || state(session) != Some('T'));
        server.pause();
        server.kill();
        assert_eq!(state(session), None);
        assert_no_process_in(&folder);
        assert!(!query.join().unwrap().status.success());
    });
}
