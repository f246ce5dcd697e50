//! What a server says before a session ends, and when it says so: played by a server of our own, because a real one cannot
//! be made to stop between two words.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use ratekeeper::Request;
use ratekeeper::store::{AsyncStore, ErrorKind, Namespace};
use ratekeeper_postgres::PostgresStore;

use crate::{DEADLINE, LIMIT, client};

/// A message: its letter, its length, its body.
fn message(letter: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).unwrap();
    [&[letter], &length.to_be_bytes()[..], body].concat()
}

fn error(severity: &str, code: &str) -> Vec<u8> {
    message(
        b'E',
        format!("S{severity}\0V{severity}\0C{code}\0Mlast words\0\0").as_bytes(),
    )
}

fn ready() -> Vec<u8> {
    message(b'Z', b"I")
}

/// All that precedes a row: three columns, a `numeric` and two `bytea`.
fn before_the_row() -> Vec<u8> {
    let mut columns = 3_u16.to_be_bytes().to_vec();
    for (name, oid) in [("now_ns", 1700_u32), ("old", 17), ("new", 17)] {
        columns.extend_from_slice(name.as_bytes());
        columns.extend_from_slice(&[0; 7]);
        columns.extend_from_slice(&oid.to_be_bytes());
        columns.extend_from_slice(&[0; 8]);
    }
    [
        message(b'1', b""),
        message(b'2', b""),
        message(b't', &[0, 0]),
        message(b'T', &columns),
    ]
    .concat()
}

/// The row of a request that was counted: at 10,000 ns, nothing found, a full day owed.
fn row() -> Vec<u8> {
    let now = [0, 1, 0, 1, 0, 0, 0, 0, 0, 1];
    let token_ns = 86_400_000_000_u64;
    let tat = (10_000 + token_ns).to_be_bytes();
    let reach = (1_000 * token_ns).to_be_bytes();
    let mut values = 3_u16.to_be_bytes().to_vec();
    values.extend_from_slice(&10_u32.to_be_bytes());
    values.extend_from_slice(&now);
    values.extend_from_slice(&u32::MAX.to_be_bytes()); // NULL
    values.extend_from_slice(&17_u32.to_be_bytes());
    values.push(0x21);
    values.extend_from_slice(&tat);
    values.extend_from_slice(&reach);
    [message(b'D', &values), message(b'C', b"SELECT 1\0")].concat()
}

/// Lets one client in, and says `words` to its first request.
fn say(words: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let mut length = [0; 4];
        client.read_exact(&mut length).unwrap();
        let mut startup = vec![0; u32::from_be_bytes(length) as usize - 4];
        client.read_exact(&mut startup).unwrap();
        client
            .write_all(&[message(b'R', &[0; 4]), ready()].concat())
            .unwrap();
        until_sync(&mut client);
        client.write_all(&words).unwrap();
    });
    format!("postgres://nobody@{address}/nothing")
}

fn until_sync(client: &mut TcpStream) {
    loop {
        let mut head = [0; 5];
        client.read_exact(&mut head).unwrap();
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        client.read_exact(&mut vec![0; length - 4]).unwrap();
        if head[0] == b'S' {
            return;
        }
    }
}

/// The kind of error that a request ends with; `None` if it is answered.
async fn kind_after(words: &[Vec<u8>]) -> Option<ErrorKind> {
    let client = client(&say(words.concat())).await;
    let store = PostgresStore::new(Arc::new(client), Namespace::new("test").unwrap());
    let store = store.with_deadline(DEADLINE * 10);
    match store.apply_async("k", &LIMIT, Request::ONE).await {
        Ok(decision) => {
            assert_eq!(decision.remaining(), LIMIT.burst() - 1);
            None
        }
        Err(error) => Some(error.kind()),
    }
}

#[tokio::test]
async fn an_error_after_the_row_may_come_after_the_commit() {
    use ErrorKind::{Corrupt, NotExecuted, Unknown};

    assert_eq!(kind_after(&[before_the_row(), row(), ready()]).await, None);
    // The end of a session.
    let end = || error("FATAL", "57P01");
    assert_eq!(kind_after(&[end()]).await, Some(NotExecuted));
    assert_eq!(
        kind_after(&[before_the_row(), end()]).await,
        Some(NotExecuted)
    );
    assert_eq!(
        kind_after(&[before_the_row(), row(), end()]).await,
        Some(Unknown)
    );
    assert_eq!(
        kind_after(&[before_the_row(), row(), error("PANIC", "53100")]).await,
        Some(Unknown)
    );
    // The commit was refused.
    assert_eq!(
        kind_after(&[before_the_row(), row(), error("ERROR", "40001"), ready()]).await,
        Some(NotExecuted)
    );
    // No last words.
    assert_eq!(kind_after(&[]).await, Some(Unknown));
    assert_eq!(kind_after(&[before_the_row()]).await, Some(Unknown));
    assert_eq!(kind_after(&[before_the_row(), row()]).await, Some(Unknown));
    // A pooler, about its connection to the server.
    assert_eq!(kind_after(&[error("FATAL", "08P01")]).await, Some(Unknown));
    // No row, or two.
    let none = message(b'C', b"SELECT 0\0");
    assert_eq!(
        kind_after(&[before_the_row(), none, ready()]).await,
        Some(Corrupt)
    );
    assert_eq!(
        kind_after(&[before_the_row(), row(), row(), ready()]).await,
        Some(Corrupt)
    );
}
