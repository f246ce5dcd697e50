//! What the tests share.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ratekeeper::store::{KeyKind, Namespace};
use ratekeeper::{KeyedLimiter, ManualClock, Timestamp, TokenBucket};
use ratekeeper_memcached::{MemcachedCas, MemcachedStore};
use ratekeeper_test_servers::{Kind, Server};

pub(crate) type Clock = Arc<ManualClock>;
pub(crate) type Limiter<K = str> = KeyedLimiter<K, TokenBucket, MemcachedStore>;

/// A deadline that is no test's subject.
const PATIENT: Duration = Duration::from_secs(10);

/// 10 per second, 5 at once.
pub(crate) fn bucket() -> TokenBucket {
    TokenBucket::per_second(10).with_burst(5)
}

/// The kind of its keys.
pub(crate) fn kind() -> KeyKind {
    KeyKind::of(&bucket())
}

/// A clock that stands at 2026-01-01.
pub(crate) fn clock() -> Clock {
    let clock = ManualClock::new();
    clock.set(Timestamp::from_nanos(1_767_225_600_000_000_000));
    Arc::new(clock)
}

/// A namespace on a server; patient.
pub(crate) fn cas(server: &Server, namespace: &str) -> MemcachedCas {
    MemcachedCas::connect(server.address(), Namespace::new(namespace).unwrap())
        .unwrap()
        .with_deadline(PATIENT)
}

/// A store with a clock of its own, and a minute's grace while that stands still.
pub(crate) fn store(cas: MemcachedCas, clock: &Clock) -> MemcachedStore {
    let clock = Arc::clone(clock);
    MemcachedStore::new(cas.with_grace(Duration::from_secs(60))).with_clock(clock)
}

/// A limiter over a connection of its own to the server that all tests share. No two tests use the same namespace.
pub(crate) fn shared(namespace: &str, limit: TokenBucket) -> Limiter {
    let cas = cas(Server::shared(Kind::Memcached), namespace);
    Limiter::<str>::with_store(limit, store(cas, &clock()))
}

/// The way around the store, for one request at a time.
pub(crate) struct Raw(BufReader<TcpStream>);

impl Raw {
    pub(crate) fn new(server: &Server) -> Self {
        let stream = TcpStream::connect(server.address()).unwrap();
        stream.set_read_timeout(Some(PATIENT)).unwrap();
        Self(BufReader::new(stream))
    }

    /// The answer's line, without its end, and the value, if there is one.
    pub(crate) fn ask(&mut self, request: impl AsRef<[u8]>) -> (String, Vec<u8>) {
        self.0.get_mut().write_all(request.as_ref()).unwrap();
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        let mut value = Vec::new();
        if let Some(rest) = line.strip_prefix("VA ") {
            let size = rest
                .split_whitespace()
                .next()
                .unwrap()
                .parse::<usize>()
                .unwrap();
            value.resize(size + 2, 0);
            self.0.read_exact(&mut value).unwrap();
            value.truncate(size);
        }
        (line.trim_end().to_owned(), value)
    }

    pub(crate) fn set(&mut self, name: &str, value: &[u8]) {
        let mut request = format!("ms {name} {} T600\r\n", value.len()).into_bytes();
        request.extend(value);
        request.extend(b"\r\n");
        assert_eq!(self.ask(request).0, "HD");
    }

    /// What `mg` says about a key's seconds to live and version, without touching it.
    pub(crate) fn life(&mut self, name: &str) -> String {
        self.ask(format!("mg {name} t c u\r\n")).0
    }

    /// Seconds to live.
    pub(crate) fn time_to_live(&mut self, name: &str) -> Option<u64> {
        let line = self.ask(format!("mg {name} t u\r\n")).0;
        line.strip_prefix("HD t")
            .map(|seconds| seconds.parse().unwrap())
    }
}

/// Asks until there is an answer.
pub(crate) fn wait_for<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(
            start.elapsed() < Duration::from_secs(15),
            "waited too long for {what}"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Random numbers, the same in every run.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}
