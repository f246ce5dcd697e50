//! The stores of this process.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ratekeeper::conformance::{Blocking, Need, PausingClock, Spaces, Subject, check_all, clauses};
use ratekeeper::store::{AsyncStore, DynStore, Ready, StoreError};
use ratekeeper::{
    Algorithm, All, Clock, DashStore, Decision, FixedWindow, ManualClock, MemoryStore, Request,
    SlidingLog, SlidingWindow, TableStore, Timestamp, TokenBucket,
};

/// Stores here keep their data to themselves.
const OPAQUE: Need = Need::Backend;

#[derive(Default)]
struct Stores {
    clock: Arc<PausingClock>,
    spaces: Spaces,
}

/// The methods of a subject that open stores of whole keys, all by one function.
macro_rules! opens {
    ($($method:ident: $key:ty, $owned:ty, $algorithm:ty;)+) => {
        fn buckets(&self, space: &str) -> DynStore<str, TokenBucket> {
            self.open::<String, TokenBucket, str>(space)
        }

        $(fn $method(&self, space: &str) -> Option<DynStore<$key, $algorithm>> {
            Some(self.open::<$owned, $algorithm, $key>(space))
        })+

        fn clock(&self) -> Option<&ManualClock> {
            Some(&self.0.clock)
        }

        fn pausing_clock(&self) -> Option<&PausingClock> {
            Some(&self.0.clock)
        }
    };
    () => {
        opens! {
            windows: str, String, SlidingWindow;
            fixed_windows: str, String, FixedWindow;
            several: str, String, All<[TokenBucket; 3]>;
            logs: str, String, SlidingLog;
            tuple_keys: (String, String), (String, String), TokenBucket;
            byte_keys: [u8], Vec<u8>, TokenBucket;
        }
    };
}

/// The bounds of keys that are looked up borrowed in a map.
trait MapKey<Q: ?Sized>: Eq + Hash + Send + Sync + std::borrow::Borrow<Q> + 'static {}
impl<Q: ?Sized, K: Eq + Hash + Send + Sync + std::borrow::Borrow<Q> + 'static> MapKey<Q> for K {}

struct Dash(Stores);

impl Dash {
    fn open<K: MapKey<Q>, A: Algorithm + 'static, Q>(&self, space: &str) -> DynStore<Q, A>
    where
        Q: ?Sized + Eq + Hash + Sync + ToOwned<Owned = K> + 'static,
    {
        let clock = Arc::clone(&self.0.clock);
        let make = || DashStore::<K, A, _>::with_clock(clock);
        DynStore::new(self.0.spaces.open(space, make))
    }
}

impl Subject for Dash {
    opens!();
}

#[test]
fn dash_store() {
    check_all(&Dash(Stores::default()), &[OPAQUE]);
}

struct Table(Stores);

impl Table {
    fn open<A, Q>(&self, space: &str) -> DynStore<Q, A>
    where
        A: Algorithm<State: ratekeeper::SlotState> + 'static,
        Q: ?Sized + Hash + Sync + 'static,
    {
        let clock = Arc::clone(&self.0.clock);
        let make = || TableStore::<_, A>::with_clock(4_096, clock).unwrap();
        DynStore::new(self.0.spaces.open(space, make))
    }
}

impl Subject for Table {
    fn buckets(&self, space: &str) -> DynStore<str, TokenBucket> {
        self.open(space)
    }

    fn windows(&self, space: &str) -> Option<DynStore<str, SlidingWindow>> {
        Some(self.open(space))
    }

    fn fixed_windows(&self, space: &str) -> Option<DynStore<str, FixedWindow>> {
        Some(self.open(space))
    }

    fn tuple_keys(&self, space: &str) -> Option<DynStore<(String, String), TokenBucket>> {
        Some(self.open(space))
    }

    fn byte_keys(&self, space: &str) -> Option<DynStore<[u8], TokenBucket>> {
        Some(self.open(space))
    }

    fn clock(&self) -> Option<&ManualClock> {
        Some(&self.0.clock)
    }

    fn pausing_clock(&self) -> Option<&PausingClock> {
        Some(&self.0.clock)
    }

    fn window_tick(&self) -> Duration {
        Duration::from_millis(1)
    }
}

#[test]
fn table_store() {
    check_all(
        &Table(Stores::default()),
        &[OPAQUE, Need::Several, Need::Logs],
    );
}

/// What a user may write: states in a map behind a mutex. It cannot forget.
struct MutexMap<K, A: Algorithm> {
    states: Mutex<HashMap<K, A::State>>,
    clock: Arc<PausingClock>,
    reads_the_clock_early: bool,
}

impl<Q, K, A> MemoryStore<Q, A> for MutexMap<K, A>
where
    Q: ?Sized + Eq + Hash + ToOwned<Owned = K>,
    K: Eq + Hash + std::borrow::Borrow<Q>,
    A: Algorithm,
{
    fn decide(&self, key: &Q, algorithm: &A, request: Request) -> Decision {
        let early = self.clock.now();
        let mut states = self.states.lock().unwrap();
        let now = if self.reads_the_clock_early {
            early
        } else {
            self.clock.now()
        };
        let mut state = states.get(key).cloned().unwrap_or_default();
        let step = algorithm.step(now, &mut state, &request);
        if step.keep.is_some() {
            states.insert(key.to_owned(), state);
        }
        step.decision
    }

    fn decide_at(&self, _: &Q, _: &A, _: Request, _: Timestamp) -> Decision {
        unreachable!("stores are asked at their own time")
    }
}

#[derive(Default)]
struct Mutexes(Stores, bool);

impl Mutexes {
    fn open<K: MapKey<Q>, A: Algorithm + 'static, Q>(&self, space: &str) -> DynStore<Q, A>
    where
        Q: ?Sized + Eq + Hash + Sync + ToOwned<Owned = K> + 'static,
    {
        let clock = Arc::clone(&self.0.clock);
        let make = || MutexMap::<K, A> {
            states: Mutex::default(),
            clock,
            reads_the_clock_early: self.1,
        };
        let store = self.0.spaces.open(space, make);
        // Once as an async store, once as one that blocks, and once more behind a pointer.
        DynStore::new(DynStore::new(Blocking(Ready(store))))
    }
}

impl Subject for Mutexes {
    opens!();
}

#[test]
fn ready_over_a_map_of_ones_own() {
    check_all(&Mutexes::default(), &[OPAQUE, Need::Forgetting]);
}

/// A flaw that only threads show, and those rarely, unless one is held up.
#[test]
fn a_clock_that_is_read_before_the_lock_is_found() {
    let stores = Mutexes(Stores::default(), true);
    let found = clauses::stale_readings_repair_nothing(&stores).unwrap_err();
    assert!(found.to_string().contains("overtakes"), "{found}");
}

/// A memory store that is always told the time.
struct Told<S> {
    store: S,
    clock: Arc<PausingClock>,
}

impl<K, A, S> AsyncStore<K, A> for Told<S>
where
    K: ?Sized + Sync,
    A: Algorithm,
    S: MemoryStore<K, A> + Send + Sync,
{
    async fn apply_async(
        &self,
        key: &K,
        algorithm: &A,
        request: Request,
    ) -> Result<Decision, StoreError> {
        let now = self.clock.now();
        Ok(self.store.decide_at(key, algorithm, request, now))
    }
}

/// [`DashStore`] and [`TableStore`] asked at an instant, on clocks of their own that stand at zero.
struct AtInstants<S>(S);

impl Subject for AtInstants<Dash> {
    fn buckets(&self, space: &str) -> DynStore<str, TokenBucket> {
        let Stores { clock, spaces } = &self.0.0;
        let make = || DashStore::<String, TokenBucket, _>::with_clock(ManualClock::new());
        let (store, clock) = (spaces.open(space, make), Arc::clone(clock));
        DynStore::new(Told { store, clock })
    }

    fn clock(&self) -> Option<&ManualClock> {
        self.0.clock()
    }
}

impl Subject for AtInstants<Table> {
    fn buckets(&self, space: &str) -> DynStore<str, TokenBucket> {
        let Stores { clock, spaces } = &self.0.0;
        let make = || TableStore::<_, TokenBucket>::with_clock(4_096, ManualClock::new()).unwrap();
        let (store, clock) = (spaces.open(space, make), Arc::clone(clock));
        DynStore::new(Told { store, clock })
    }

    fn clock(&self) -> Option<&ManualClock> {
        self.0.clock()
    }
}

/// Whoever tells a store the time must do so in order; callers side by side do not, and the contract of `decide_at` says what
/// that may cost. Everything else holds.
#[test]
fn stores_that_are_told_the_time() {
    use ratekeeper::conformance::Report;

    let lacks = [
        OPAQUE,
        Need::Windows,
        Need::FixedWindows,
        Need::Several,
        Need::Logs,
        Need::TupleKeys,
        Need::ByteKeys,
        Need::Forgetting,
    ];
    let subjects: [&dyn Subject; 2] = [
        &AtInstants(Dash(Stores::default())),
        &AtInstants(Table(Stores::default())),
    ];
    for subject in subjects {
        let report = Report::of(subject);
        let mut broken = report.broken();
        broken.retain(|clause| *clause != "stale_readings_repair_nothing");
        assert_eq!(broken, [""; 0], "{report}");
        assert_eq!(report.lacks().len(), lacks.len());
        assert!(report.lacks().iter().all(|need| lacks.contains(need)));
    }
}
