//! Callers of one store who change the same key.

use std::future::poll_fn;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::pin::{Pin, pin};
use std::sync::{Arc, mpsc};
use std::task::Poll;
use std::thread;
use std::time::Duration;

use ratekeeper::store::{ErrorKind, Namespace};
use ratekeeper::{KeyedLimiter, TokenBucket};
use ratekeeper_memcached::{MemcachedCas, MemcachedStore};
use ratekeeper_test_servers::{Kind, Server};

use crate::support::{Limiter, bucket, cas, clock, store};

/// The callers of one store may lose a race, for what they read before their turn, but no second one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_of_one_store_take_turns() {
    let store = store(cas(Server::shared(Kind::Memcached), "turns"), &clock());
    let limit = TokenBucket::per_second(10).with_burst(1_000);
    let limiter = Limiter::<str>::with_store(limit, store.with_max_attempts(2));
    let limiter = Arc::new(limiter);
    let tasks = (0..64).map(|_| {
        let limiter = Arc::clone(&limiter);
        tokio::spawn(async move {
            let mut granted = 0;
            for _ in 0..20 {
                granted += limiter.check_async("hot").await.unwrap().granted();
            }
            granted
        })
    });
    let tasks: Vec<_> = tasks.collect();
    let mut granted = 0;
    for task in tasks {
        granted += task.await.unwrap();
    }
    assert_eq!(granted, 1_000);
}

/// A server that answers what reads, with "nothing there", and not what writes: it tells of that instead.
fn half_hung() -> (String, mpsc::Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut answers = stream.try_clone().unwrap();
        for line in BufReader::new(stream).split(b'\n').map_while(Result::ok) {
            if line.starts_with(b"mg ") {
                answers.write_all(b"EN\r\n").unwrap();
            } else if line.starts_with(b"ms ") {
                tell.send(()).unwrap();
            }
        }
    });
    (address, told)
}

async fn poll_once<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    let mut future = future;
    poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await
}

/// Who waits for a turn has a deadline, too, and was not counted.
#[tokio::test]
async fn nobody_waits_for_a_turn_for_ever() {
    const DEADLINE: Duration = Duration::from_secs(1);
    let (address, writes) = half_hung();
    let cas = MemcachedCas::connect(address, Namespace::new("hung").unwrap()).unwrap();
    let store = MemcachedStore::new(cas.with_deadline(DEADLINE));
    let limiter = KeyedLimiter::<str, _, _>::with_store(bucket(), store);
    let mut early = pin!(limiter.check_async("hot"));
    let mut late = pin!(limiter.check_async("hot"));
    assert!(poll_once(early.as_mut()).await.is_pending());
    tokio::time::sleep(DEADLINE / 2).await;
    // Takes its turn, although the other one began earlier.
    while writes.try_recv().is_err() {
        assert!(poll_once(late.as_mut()).await.is_pending());
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let (early, late) = tokio::join!(early, late);
    assert_eq!(early.unwrap_err().kind(), ErrorKind::Contention);
    assert_eq!(late.unwrap_err().kind(), ErrorKind::Unknown);
}
