//! Servers that are none, or too old, or in the way.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use ratekeeper::store::{AsyncCasStore, ErrorKind, Namespace, StateBytes, Swap};
use ratekeeper::{TokenBucket, UnixClock};
use ratekeeper_memcached::{MemcachedCas, MemcachedLimiter, MemcachedStore};
use ratekeeper_test_servers::{Kind, Server};

use crate::support::kind;

/// Answers the first request of each of `connections` with `answer`, and hangs up.
fn impostor(connections: usize, answer: &'static [u8]) -> (String, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let thread = thread::spawn(move || {
        for _ in 0..connections {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 1024]).unwrap();
            stream.write_all(answer).unwrap();
        }
    });
    (address, thread)
}

fn cas(address: String) -> MemcachedCas {
    let cas = MemcachedCas::connect(address, Namespace::new("misunderstandings").unwrap()).unwrap();
    cas.with_deadline(Duration::from_secs(10))
}

fn limiter(address: String) -> MemcachedLimiter {
    MemcachedLimiter::with_store(
        TokenBucket::per_second(1),
        MemcachedStore::new(cas(address)),
    )
}

#[tokio::test]
async fn other_servers_are_errors_not_decisions() {
    use ErrorKind::{Config, Corrupt, NotExecuted};
    for (answer, kind) in [
        (b"ERROR\r\n".as_slice(), Config),
        (b"CLIENT_ERROR unauthenticated\r\n", Config),
        (b"ERROR Too many open connections\r\n", NotExecuted),
        (b"SERVER_ERROR proxy timeout\r\n", NotExecuted),
        (b"-ERR unknown command 'mg'\r\n", NotExecuted),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", NotExecuted),
        (b"HD\r\n", NotExecuted),
        (b"VA 9 c1\r\n123", NotExecuted),
        (b"VA 9 c1\r\n123456789\r\n", Corrupt),
        (b"", NotExecuted),
    ] {
        let (address, thread) = impostor(1, answer);
        let error = limiter(address).check_async("alice").await.unwrap_err();
        assert_eq!(error.kind(), kind, "{answer:?}: {error}");
        thread.join().unwrap();
    }
}

/// After a misunderstanding the next request has a connection of its own.
#[tokio::test]
async fn nothing_follows_a_misunderstanding() {
    let (address, thread) = impostor(2, b"ERROR\r\nEN\r\nHD\r\n");
    let limiter = limiter(address);
    for _ in 0..2 {
        let error = limiter.check_async("alice").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config, "{error}");
    }
    thread.join().unwrap();
}

/// Nor an answer that nobody has asked for: the next one would be as doubtful.
#[tokio::test]
async fn surplus_answers_end_the_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let thread = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 1024]).unwrap();
        stream.write_all(b"EN\r\nHD\r\n").unwrap();
        let is_used_again = matches!(stream.read(&mut [0; 1024]), Ok(1..));
        if is_used_again {
            stream.write_all(b"HD\r\n").unwrap();
        } else {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 1024]).unwrap();
            stream.write_all(b"NS\r\n").unwrap();
        }
        is_used_again
    });
    let cas = cas(address);
    let absent = cas.load_async("alice", &kind()).await.unwrap();
    assert!(absent.state.is_none());
    let state = StateBytes::from_stored(b"state").unwrap();
    let minute = Duration::from_secs(60);
    let swap = cas
        .compare_exchange_async("alice", &kind(), &absent, &state, minute)
        .await;
    assert!(!thread.join().unwrap(), "the connection was used again");
    assert!(matches!(swap, Ok(Swap::Conflict(None))), "{swap:?}");
}

#[test]
fn addresses_have_hosts_and_ports() {
    let connect = |address| MemcachedCas::connect(address, Namespace::new("api").unwrap());
    for address in [
        "",
        "localhost",
        ":11211",
        "localhost:",
        "localhost:x",
        "localhost:65536",
        "memcached://localhost",
    ] {
        assert_eq!(
            connect(address).unwrap_err().kind(),
            ErrorKind::Config,
            "{address:?}"
        );
    }
    for address in [
        "localhost:11211",
        "127.0.0.1:1",
        "[::1]:65535",
        "cache.example:11211",
    ] {
        connect(address).unwrap();
    }
}

#[test]
fn settings_are_the_stores() {
    let cas =
        MemcachedCas::connect("localhost:11211", Namespace::new("settings").unwrap()).unwrap();
    assert_eq!(cas.deadline(), MemcachedCas::DEFAULT_DEADLINE);
    let store =
        MemcachedStore::new(cas.with_deadline(Duration::from_millis(5))).with_max_attempts(3);
    assert_eq!(store.get_ref().deadline(), Duration::from_millis(5));
    assert_eq!(store.get_ref().namespace().name(), "settings");
    assert!(format!("{store:?}").contains("localhost:11211"));
}

#[tokio::test]
async fn extreme_settings_are_harmless() {
    let server = Server::shared(Kind::Memcached);
    for extreme in [Duration::ZERO, Duration::MAX] {
        let cas = MemcachedCas::connect(server.address(), Namespace::new("extreme").unwrap())
            .unwrap()
            .with_grace(extreme);
        let patient = MemcachedLimiter::<str>::with_store(
            TokenBucket::per_second(1),
            MemcachedStore::new(cas.clone().with_deadline(Duration::MAX))
                .with_clock(Arc::new(UnixClock))
                .with_max_skew(extreme)
                .with_max_attempts(0),
        );
        let key = format!("{extreme:?}");
        assert!(
            patient
                .check_async(key.as_str())
                .await
                .unwrap()
                .is_allowed()
        );
        let hasty = cas.with_deadline(extreme);
        let _ = hasty.load_async("alice", &kind()).await;
    }
}
