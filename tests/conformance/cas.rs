//! Compare-and-swap stores, made stores by [`CasLoop`].

use std::future::poll_fn;
use std::marker::PhantomData;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use ratekeeper::conformance::{Backend, Blocking, Fault, Need, Repairs, Subject, check_all};
use ratekeeper::store::{
    AsyncCasStore, CasDriver, CasLoop, CasStore, DynStore, ErrorKind, Jitter, Key, KeyKind, Loaded,
    StateBytes, StoreError, Swap,
};
use ratekeeper::{
    Algorithm, All, Clock, FixedWindow, ManualClock, SlidingWindow, Timestamp, TokenBucket,
};

use crate::server::{Data, Server};

/// A connection to the server that can read and compare and swap; `CLOCK` says whether the server tells the time.
pub(crate) struct Cas<const CLOCK: bool> {
    server: Arc<Server>,
    space: String,
}

type Version = u64;

/// The version of a key that is not there.
const ABSENT: Version = 0;

impl<const CLOCK: bool> Cas<CLOCK> {
    fn name(&self, key: &(impl Key + ?Sized), kind: &KeyKind) -> Vec<u8> {
        let mut bytes = Vec::new();
        key.write_alone(&mut |part| bytes.extend_from_slice(part));
        Server::name_of_kind(&self.space, &bytes, kind)
    }

    fn loaded(
        &self,
        name: &[u8],
        now: Timestamp,
        data: &mut Data,
    ) -> Result<Loaded<Version>, StoreError> {
        let clock = CLOCK.then_some(now);
        let Some(value) = data.get(name, now) else {
            return Ok(Loaded {
                state: None,
                version: ABSENT,
                now: clock,
            });
        };
        let Some(bytes) = &value.bytes else {
            return Err(StoreError::new(ErrorKind::Corrupt, "a list is stored here"));
        };
        let state = Some(StateBytes::from_stored(bytes)?);
        Ok(Loaded {
            state,
            version: value.version,
            now: clock,
        })
    }

    fn load(&self, name: &[u8]) -> Result<Loaded<Version>, StoreError> {
        let mut data = self.server.lock();
        match data.fault {
            None => self.loaded(name, self.server.now(), &mut data),
            // Reading counts nothing, so whatever became of it, the request was not counted.
            Some(_) => Err(StoreError::new(
                ErrorKind::NotExecuted,
                "the server does not answer",
            )),
        }
    }

    fn exchange(
        &self,
        name: &[u8],
        seen: &Loaded<Version>,
        new: &StateBytes,
        keep: Duration,
    ) -> Result<Swap<Version>, StoreError> {
        let mut data = self.server.lock();
        if data.fault == Some(Fault::Refuse) {
            return Err(StoreError::new(
                ErrorKind::NotExecuted,
                "the server refuses connections",
            ));
        }
        let now = self.server.now();
        let there = self.loaded(name, now, &mut data)?;
        let is_same = there.version == seen.version;
        if is_same {
            data.put(name, new, keep, now);
        }
        match data.fault {
            Some(_) => Err(StoreError::new(ErrorKind::Unknown, "the connection broke")),
            None if is_same => Ok(Swap::Done),
            None => Ok(Swap::Conflict(Some(there))),
        }
    }

    fn delete(&self, name: &[u8]) {
        self.server.lock().values.remove(name);
    }
}

impl<K: Key + ?Sized, const CLOCK: bool> CasStore<K> for Cas<CLOCK> {
    type Version = Version;

    fn load(&self, key: &K, kind: &KeyKind) -> Result<Loaded<Version>, StoreError> {
        let loaded = Self::load(self, &self.name(key, kind));
        std::thread::yield_now(); // let others come in between
        loaded
    }

    fn compare_exchange(
        &self,
        key: &K,
        kind: &KeyKind,
        seen: &Loaded<Version>,
        new: &StateBytes,
        keep: Duration,
    ) -> Result<Swap<Version>, StoreError> {
        self.exchange(&self.name(key, kind), seen, new, keep)
    }

    fn remove(&self, key: &K, kind: &KeyKind) -> Result<(), StoreError> {
        self.delete(&self.name(key, kind));
        Ok(())
    }
}

impl<K: Key + ?Sized, const CLOCK: bool> AsyncCasStore<K> for Cas<CLOCK> {
    type Version = Version;

    async fn load_async(&self, key: &K, kind: &KeyKind) -> Result<Loaded<Version>, StoreError> {
        let name = self.name(key, kind);
        yield_once().await;
        let loaded = Self::load(self, &name);
        yield_once().await;
        loaded
    }

    async fn compare_exchange_async(
        &self,
        key: &K,
        kind: &KeyKind,
        seen: &Loaded<Version>,
        new: &StateBytes,
        keep: Duration,
    ) -> Result<Swap<Version>, StoreError> {
        let name = self.name(key, kind);
        yield_once().await;
        let swap = self.exchange(&name, seen, new, keep);
        yield_once().await;
        swap
    }

    async fn remove_async(&self, key: &K, kind: &KeyKind) -> Result<(), StoreError> {
        let name = self.name(key, kind);
        yield_once().await;
        self.delete(&name);
        Ok(())
    }
}

/// Lets other tasks come in between, as a request over a network does.
pub(crate) async fn yield_once() {
    let mut yielded = false;
    poll_fn(|context| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Waits that take no time: the tests hold the clock.
fn no_wait() -> Jitter {
    Jitter::new(1, Duration::ZERO, Duration::ZERO)
}

struct Sync;
struct Async;

/// Makes a store of a connection, in one way or the other.
trait Open<const CLOCK: bool> {
    fn open<K, A>(cas: Cas<CLOCK>, clock: OwnClock<CLOCK>) -> DynStore<K, A>
    where
        K: Key + ?Sized + 'static,
        A: Algorithm + 'static;
}

impl<const CLOCK: bool> Open<CLOCK> for Sync {
    fn open<K, A>(cas: Cas<CLOCK>, clock: OwnClock<CLOCK>) -> DynStore<K, A>
    where
        K: Key + ?Sized + 'static,
        A: Algorithm + 'static,
    {
        let sleep = |_| std::thread::yield_now();
        DynStore::new(Blocking(CasLoop::with_clock(cas, sleep, clock, no_wait())))
    }
}

impl<const CLOCK: bool> Open<CLOCK> for Async {
    fn open<K, A>(cas: Cas<CLOCK>, clock: OwnClock<CLOCK>) -> DynStore<K, A>
    where
        K: Key + ?Sized + 'static,
        A: Algorithm + 'static,
    {
        let sleep = |_| yield_once();
        DynStore::new(CasLoop::with_clock(cas, sleep, clock, no_wait()))
    }
}

/// The loop's own clock: the server's, from afar, unless that is told with the values.
struct OwnClock<const UNUSED: bool>(Arc<Server>);

impl<const UNUSED: bool> Clock for OwnClock<UNUSED> {
    fn now(&self) -> Timestamp {
        assert!(!UNUSED, "the server tells the time, and nobody else");
        self.0.now()
    }
}

struct CasStores<O, const CLOCK: bool> {
    server: Arc<Server>,
    open: PhantomData<fn() -> O>,
}

impl<O: Open<CLOCK>, const CLOCK: bool> CasStores<O, CLOCK> {
    fn on(server: Arc<Server>) -> Self {
        Self {
            server,
            open: PhantomData,
        }
    }

    fn open<K, A>(&self, space: &str) -> DynStore<K, A>
    where
        K: Key + ?Sized + 'static,
        A: Algorithm + 'static,
    {
        let cas = Cas {
            server: Arc::clone(&self.server),
            space: space.to_owned(),
        };
        O::open(cas, OwnClock::<CLOCK>(Arc::clone(&self.server)))
    }
}

impl<O: Open<CLOCK>, const CLOCK: bool> Subject for CasStores<O, CLOCK> {
    fn buckets(&self, space: &str) -> DynStore<str, TokenBucket> {
        self.open(space)
    }

    fn windows(&self, space: &str) -> Option<DynStore<str, SlidingWindow>> {
        Some(self.open(space))
    }

    fn fixed_windows(&self, space: &str) -> Option<DynStore<str, FixedWindow>> {
        Some(self.open(space))
    }

    fn several(&self, space: &str) -> Option<DynStore<str, All<[TokenBucket; 3]>>> {
        Some(self.open(space))
    }

    fn tuple_keys(&self, space: &str) -> Option<DynStore<(String, String), TokenBucket>> {
        Some(self.open(space))
    }

    fn byte_keys(&self, space: &str) -> Option<DynStore<[u8], TokenBucket>> {
        Some(self.open(space))
    }

    fn clock(&self) -> Option<&ManualClock> {
        self.server.clock.as_deref()
    }

    fn backend(&self) -> Option<&dyn Backend> {
        Some(&*self.server)
    }

    fn repairs(&self) -> Repairs {
        if CLOCK {
            return Repairs::Proven;
        }
        let max_skew = CasDriver::<TokenBucket, Version>::DEFAULT_MAX_SKEW;
        Repairs::Stamped { max_skew }
    }

    fn deadline(&self) -> Option<Duration> {
        Some(Duration::from_secs(1))
    }
}

#[test]
fn cas_loop_blocking() {
    let server = Server::on_manual_clock;
    check_all(&CasStores::<Sync, false>::on(server()), &[Need::Logs]);
    check_all(&CasStores::<Sync, true>::on(server()), &[Need::Logs]);
}

#[test]
fn cas_loop_async() {
    let server = Server::on_manual_clock;
    check_all(&CasStores::<Async, false>::on(server()), &[Need::Logs]);
    check_all(&CasStores::<Async, true>::on(server()), &[Need::Logs]);
}

/// As a server runs: nobody can move its clock. What needs that does not apply; all the rest holds.
#[test]
fn on_a_clock_that_nobody_holds() {
    let lacks = [Need::Clock, Need::Logs];
    check_all(
        &CasStores::<Sync, true>::on(Server::on_real_clock()),
        &lacks,
    );
    check_all(
        &CasStores::<Async, false>::on(Server::on_real_clock()),
        &lacks,
    );
}
