//! Each kind of server: started, paused, killed, restarted and dropped.

mod common;

use std::fs;
use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use common::{
    answers, answers_within, assert_no_process_in, eventually, processes_in, refuses, state,
};
use ratekeeper_test_servers::{Kind, Options, Server};

/// One test for each kind, so that they run at the same time.
macro_rules! for_each_kind {
    ($test:ident) => {
        mod $test {
            use super::*;

            #[test]
            fn redis() {
                super::$test(Kind::Redis);
            }

            #[test]
            fn redis62() {
                super::$test(Kind::Redis62);
            }

            #[test]
            fn valkey() {
                super::$test(Kind::Valkey);
            }

            #[test]
            fn memcached() {
                super::$test(Kind::Memcached);
            }

            #[test]
            fn postgres() {
                super::$test(Kind::Postgres);
            }
        }
    };
}

for_each_kind!(starts_and_ends);
fn starts_and_ends(kind: Kind) {
    let one = Server::start(kind, Options::new());
    let two = Server::start(kind, Options::new());
    assert_ne!(one.port(), two.port());
    assert_ne!(one.pid(), two.pid());
    assert_ne!(one.folder(), two.folder());
    for server in [&one, &two] {
        assert_eq!(server.kind(), kind);
        assert_eq!(server.address(), format!("127.0.0.1:{}", server.port()));
        assert!(processes_in(server.folder()).contains(&server.pid()));
        assert!(answers(server));
    }

    let (pid, folder) = (one.pid(), one.folder().to_owned());
    drop(one);
    assert_eq!(state(pid), None);
    assert!(!folder.exists());
    assert_no_process_in(&folder);
    assert!(answers(&two));
}

for_each_kind!(pauses_and_resumes);
fn pauses_and_resumes(kind: Kind) {
    let mut server = Server::start(kind, Options::new());
    server.pause();
    let processes = processes_in(server.folder());
    assert!(processes.contains(&server.pid()));
    // The watchdog, which works there too, must not sleep.
    let running = processes.iter().filter(|&&pid| state(pid) != Some('T'));
    assert!(running.count() <= 1, "{processes:?}");
    assert!(!answers_within(&server, Duration::from_millis(200)));

    server.resume();
    server.wait_until_ready();
    assert!(answers(&server));

    server.pause();
    let (pid, folder) = (server.pid(), server.folder().to_owned());
    drop(server);
    assert_eq!(state(pid), None, "a paused server survives its drop");
    assert_no_process_in(&folder);
}

for_each_kind!(dies_and_comes_back);
fn dies_and_comes_back(kind: Kind) {
    let mut server = Server::start(kind, Options::new());
    let (port, pid) = (server.port(), server.pid());
    server.kill();
    assert!(refuses(&server));
    assert_eq!(state(pid), None);
    eventually("the watchdog goes too", || {
        processes_in(server.folder()).is_empty()
    });
    assert!(server.folder().exists());

    server.restart();
    assert_eq!(server.port(), port);
    assert_ne!(server.pid(), pid);
    assert!(answers(&server));

    // Killed while paused, restarted while running.
    server.pause();
    server.kill();
    server.restart();
    let pid = server.pid();
    server.restart();
    assert_eq!(state(pid), None);
    assert!(answers(&server));

    let folder = server.folder().to_owned();
    server.kill();
    drop(server);
    assert!(!folder.exists());
}

for_each_kind!(waits_for_its_port);
fn waits_for_its_port(kind: Kind) {
    let mut server = Server::start(kind, Options::new());
    let log = server.folder().join("log");
    server.kill();
    let squatter = TcpListener::bind(server.address()).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| server.restart());
        eventually("the server misses its port", || {
            fs::read_to_string(&log)
                .unwrap()
                .contains("Address already in use")
        });
        drop(squatter);
    });
    assert!(answers(&server));
}

for_each_kind!(says_why_it_does_not_start);
fn says_why_it_does_not_start(kind: Kind) {
    let nonsense = Options::new().args(["--no-such-option", "1"]);
    let error = Server::try_start(kind, nonsense).unwrap_err().to_string();
    assert!(error.starts_with(&format!("{kind} on port ")), "{error}");
    assert!(error.contains("instead of serving"), "{error}");
    assert!(error.contains("no-such-option"), "{error}");
}

for_each_kind!(is_shared);
fn is_shared(kind: Kind) {
    let pids: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| scope.spawn(move || Server::shared(kind).pid()))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    assert_eq!(pids, [pids[0]; 4]);
    assert!(answers(Server::shared(kind)));
}
