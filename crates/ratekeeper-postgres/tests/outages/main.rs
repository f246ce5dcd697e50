//! Servers that are down, hung, restarted or full, and what the store says then. Each test has a server of its own.
#![allow(
    clippy::disallowed_methods,
    reason = "servers and faults live in real time"
)]

mod last_words;

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use ratekeeper::store::{AsyncStore, ErrorKind, Namespace, StoreError};
use ratekeeper::{Decision, Request, TokenBucket};
use ratekeeper_postgres::tokio_postgres::{self, Client, NoTls};
use ratekeeper_postgres::{Connections, PostgresStore, Schema, Table};
use ratekeeper_test_servers::{Options, Server};

/// Longer than by default, because other tests use the machine.
const DEADLINE: Duration = Duration::from_millis(1_000);
const STATEMENT_TIMEOUT: Duration = Duration::from_millis(600);
/// What a slow machine may add.
const GRACE: Duration = Duration::from_secs(3);
const LIMIT: TokenBucket = TokenBucket::per_day(1_000);

fn store(url: &str, count: usize) -> PostgresStore {
    let connections = Connections::new(url.parse().unwrap(), NoTls)
        .with_count(count)
        .with_statement_timeout(STATEMENT_TIMEOUT);
    PostgresStore::new(connections, Namespace::new("test").unwrap()).with_deadline(DEADLINE)
}

async fn client(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

async fn started(options: Options, table: Table) -> (Server, String) {
    let server = Server::postgres(options);
    let url = server.create_database("limits");
    Schema::default()
        .install(&client(&url).await, table)
        .await
        .unwrap();
    (server, url)
}

/// Asks, and checks that the answer is there in time.
async fn ask(store: &PostgresStore, request: Request) -> Result<Decision, StoreError> {
    let begun = Instant::now();
    let answer = store.apply_async("k", &LIMIT, request).await;
    let elapsed = begun.elapsed();
    assert!(elapsed < DEADLINE + GRACE, "{elapsed:?}: {answer:?}");
    answer
}

async fn fails(store: &PostgresStore, kind: ErrorKind) -> StoreError {
    let error = ask(store, Request::ONE).await.unwrap_err();
    assert_eq!(error.kind(), kind, "{error:?}");
    error
}

/// Asks until there is an answer again; returns what is left.
async fn recovers(store: &PostgresStore) -> u64 {
    let begun = Instant::now();
    loop {
        match ask(store, Request::PEEK).await {
            Ok(decision) => return decision.remaining(),
            Err(error) => assert!(begun.elapsed() < Duration::from_secs(20), "{error:?}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Waits until the store knows that its connections are gone, all of them.
async fn notices(store: &PostgresStore) {
    let mut in_a_row = 0;
    while in_a_row < 3 {
        match ask(store, Request::PEEK).await {
            Err(error) if error.kind() == ErrorKind::NotExecuted => in_a_row += 1,
            _ => in_a_row = 0,
        }
    }
}

#[tokio::test]
async fn a_crash_empties_an_unlogged_table() {
    let (mut server, url) = started(Options::new(), Table::Unlogged).await;
    let store = store(&url, 2);
    assert!(ask(&store, Request::take(400)).await.unwrap().is_allowed());
    server.kill();
    notices(&store).await;
    for _ in 0..3 {
        fails(&store, ErrorKind::NotExecuted).await;
    }
    server.restart();
    assert_eq!(recovers(&store).await, 1_000);
}

#[tokio::test]
async fn a_crash_does_not_empty_a_logged_table() {
    let (mut server, url) = started(Options::new(), Table::Logged).await;
    let store = store(&url, 2);
    assert!(ask(&store, Request::take(400)).await.unwrap().is_allowed());
    server.restart();
    assert_eq!(recovers(&store).await, 600);
}

/// What was sent may be counted when the server goes on; what could not be sent is not.
#[tokio::test]
async fn a_server_that_hangs() {
    let (mut server, url) = started(Options::new(), Table::Unlogged).await;
    let (open, unopened) = (store(&url, 1), store(&url, 1));
    assert!(ask(&open, Request::ONE).await.unwrap().is_allowed());
    server.pause();
    fails(&open, ErrorKind::Unknown).await;
    fails(&unopened, ErrorKind::NotExecuted).await;
    fails(&open, ErrorKind::Unknown).await;
    server.resume();
    let left = recovers(&open).await;
    assert!((997..=999).contains(&left), "{left}");
    assert_eq!(recovers(&unopened).await, left);
}

/// Nobody listens, or nobody answers who listens.
#[tokio::test]
async fn no_server_at_all() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let silent = store(&format!("postgres://postgres@{address}/limits"), 2);
    for _ in 0..2 {
        let error = fails(&silent, ErrorKind::NotExecuted).await;
        assert_eq!(
            error.message(),
            "no connection to PostgreSQL within the deadline"
        );
    }
    drop(listener);
    let refusing = store(&format!("postgres://postgres@{address}/limits"), 2);
    for _ in 0..2 {
        fails(&refusing, ErrorKind::NotExecuted).await;
    }
}

/// A listener that hangs up on everybody, or keeps everybody waiting; and how many have come.
fn doorman(keeps_waiting: bool) -> (String, Arc<AtomicU32>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!(
        "postgres://postgres@{}/limits",
        listener.local_addr().unwrap()
    );
    let knocked = Arc::new(AtomicU32::new(0));
    let knocks = Arc::clone(&knocked);
    std::thread::spawn(move || {
        let mut waiting = Vec::new();
        for caller in listener.incoming() {
            knocks.fetch_add(1, Ordering::Relaxed);
            waiting.extend(caller.ok().filter(|_| keeps_waiting));
        }
    });
    (url, knocked)
}

/// A server that is down, or busy coming up, is not asked by every request.
#[tokio::test]
async fn nobody_knocks_all_the_time() {
    let (url, knocked) = doorman(false);
    let hung_up = store(&url, 1);
    let begun = Instant::now();
    for _ in 0..200 {
        fails(&hung_up, ErrorKind::NotExecuted).await;
    }
    let most = begun
        .elapsed()
        .div_duration_f64(Connections::<NoTls>::RETRY)
        + 1.0;
    let knocked = f64::from(knocked.load(Ordering::Relaxed));
    assert!((1.0..=most).contains(&knocked), "{knocked} of {most}");

    let (url, knocked) = doorman(true);
    let waiting = store(&url, 1);
    let requests: Vec<_> = (0..20)
        .map(|_| {
            let waiting = waiting.clone();
            tokio::spawn(async move {
                fails(&waiting, ErrorKind::NotExecuted).await;
            })
        })
        .collect();
    for request in requests {
        request.await.unwrap();
    }
    assert_eq!(knocked.load(Ordering::Relaxed), 1);
}

/// Somebody's open transaction holds the key up: the server gives up before the deadline, and nothing was counted. Other
/// connections serve other keys meanwhile.
#[tokio::test]
async fn a_key_that_is_locked() {
    let (_server, url) = started(Options::new(), Table::Unlogged).await;
    let store = store(&url, 1);
    assert!(ask(&store, Request::ONE).await.unwrap().is_allowed());
    let other = client(&url).await;
    other
        .batch_execute("BEGIN; SELECT FROM ratekeeper.states_v1 FOR UPDATE")
        .await
        .unwrap();
    let error = fails(&store, ErrorKind::NotExecuted).await;
    assert_eq!(error.message(), "PostgreSQL cancelled the statement");
    assert_eq!(
        ask(&store, Request::PEEK).await.unwrap().remaining(),
        999,
        "who only looks needs no lock"
    );
    other.batch_execute("COMMIT").await.unwrap();
    assert_eq!(ask(&store, Request::ONE).await.unwrap().remaining(), 998);
}

#[tokio::test]
async fn no_connection_is_free() {
    let options = Options::new().args([
        "-c",
        "max_connections=5",
        "-c",
        "superuser_reserved_connections=3",
    ]);
    let (server, url) = started(options, Table::Unlogged).await;
    server.sql("limits", "CREATE ROLE app LOGIN").unwrap();
    let url = url.replacen("postgres@", "app@", 1);
    // Those that were used until now are free only after a moment.
    let mut held = Vec::new();
    while held.len() < 2 {
        match tokio_postgres::connect(&url, NoTls).await {
            Ok((client, connection)) => {
                tokio::spawn(connection);
                held.push(client);
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
    let error = fails(&store(&url, 1), ErrorKind::NotExecuted).await;
    assert_eq!(error.message(), "PostgreSQL has no free connection");
}

/// Sessions are ended under load; whatever is said about a request is true.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_that_are_ended() {
    let (_server, url) = started(Options::new(), Table::Unlogged).await;
    let store = store(&url, 3);
    let operator = client(&url).await;
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move {
                let (mut counted, mut unknown, mut not) = (0, 0, 0);
                for _ in 0..100 {
                    match ask(&store, Request::ONE).await {
                        Ok(decision) => counted += decision.granted(),
                        Err(error) if error.kind() == ErrorKind::Unknown => unknown += 1,
                        Err(error) => {
                            assert_eq!(error.kind(), ErrorKind::NotExecuted, "{error:?}");
                            not += 1;
                        }
                    }
                    tokio::task::yield_now().await;
                }
                (counted, unknown, not)
            })
        })
        .collect();
    const END: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'ratekeeper'";
    let mut ended = 0;
    while !tasks.iter().all(tokio::task::JoinHandle::is_finished) {
        ended += operator.query(END, &[]).await.unwrap().len();
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
    let (mut counted, mut unknown, mut not) = (0, 0, 0);
    for task in tasks {
        let (c, u, n) = task.await.unwrap();
        (counted, unknown, not) = (counted + c, unknown + u, not + n);
    }
    let taken = 1_000 - recovers(&store).await;
    assert!(
        (counted..=counted + unknown).contains(&taken),
        "{counted} {unknown} {not} {taken}"
    );
    assert!(
        ended > 0 && counted > 0 && unknown + not > 0,
        "{ended} {counted} {unknown} {not}"
    );
}

/// A shutdown in good order tells everybody, and loses nothing, not even an unlogged table.
#[tokio::test]
async fn a_server_that_is_shut_down() {
    let (mut server, url) = started(Options::new(), Table::Unlogged).await;
    let store = store(&url, 2);
    assert!(ask(&store, Request::take(400)).await.unwrap().is_allowed());
    let status = std::process::Command::new("kill")
        .args(["-INT", &server.pid().to_string()])
        .status();
    assert!(status.unwrap().success());
    notices(&store).await;
    fails(&store, ErrorKind::NotExecuted).await;
    let begun = Instant::now();
    while server.folder().join("data/postmaster.pid").exists() {
        assert!(
            begun.elapsed() < Duration::from_secs(20),
            "it does not end: {}",
            server.log()
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    server.restart();
    assert_eq!(recovers(&store).await, 600);
}
