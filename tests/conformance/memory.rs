//! The stores of this process.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ratekeeper::conformance::{Blocking, Need, PausingClock, Spaces, Subject, check_all, clauses};
use ratekeeper::store::{AsyncStore, DynStore, KeyKind, Ready, StoreError};
use ratekeeper::{
    Algorithm, All, Clock, DashStore, Decision, FixedWindow, ManualClock, MemoryStore, Request,
    SlidingLog, SlidingWindow, TableStore, Timestamp, TokenBucket,
};

/// Stores here keep their data to themselves.
const OPAQUE: Need = Need::Backend;
/// And what is ahead of the clock is debt.
const DEBT: Need = Need::Repairs;

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
    check_all(&Dash(Stores::default()), &[OPAQUE, DEBT]);
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
        &[OPAQUE, DEBT, Need::Several, Need::Logs],
    );
}

/// Each key's state, and when it is over.
type States<K, S> = HashMap<(K, KeyKind), (S, Timestamp)>;

/// What a user may write: states in a map behind a mutex, windows of each length for themselves. It cannot forget.
struct MutexMap<K, A: Algorithm> {
    states: Mutex<States<K, A::State>>,
    clock: Arc<PausingClock>,
    flaw: Early,
}

/// When it reads the clock, and what it makes of states that were written later than that.
#[derive(Clone, Copy, Default, PartialEq)]
enum Early {
    #[default]
    No,
    Reads,
    ReadsAndForgives,
}

impl<Q, K, A> MemoryStore<Q, A> for MutexMap<K, A>
where
    Q: ?Sized + Eq + Hash + ToOwned<Owned = K>,
    K: Eq + Hash,
    A: Algorithm,
{
    fn decide(&self, key: &Q, algorithm: &A, request: Request) -> Decision {
        let early = self.clock.now();
        let mut states = self.states.lock().unwrap();
        let now = match self.flaw {
            Early::No => self.clock.now(),
            Early::Reads | Early::ReadsAndForgives => early,
        };
        let key = (key.to_owned(), KeyKind::of(algorithm));
        let found = states.get(&key).cloned();
        let found =
            found.filter(|(_, written)| self.flaw != Early::ReadsAndForgives || *written <= now);
        let mut state = found.map(|(state, _)| state).unwrap_or_default();
        let step = algorithm.step(now, &mut state, &request);
        if step.keep.is_some() {
            states.insert(key, (state, now));
        }
        step.decision
    }

    fn decide_at(&self, _: &Q, _: &A, _: Request, _: Timestamp) -> Decision {
        unreachable!("stores are asked at their own time")
    }
}

#[derive(Default)]
struct Mutexes(Stores, Early);

impl Mutexes {
    fn open<K: MapKey<Q>, A: Algorithm + 'static, Q>(&self, space: &str) -> DynStore<Q, A>
    where
        Q: ?Sized + Eq + Hash + Sync + ToOwned<Owned = K> + 'static,
    {
        let clock = Arc::clone(&self.0.clock);
        let make = || MutexMap::<K, A> {
            states: Mutex::default(),
            clock,
            flaw: self.1,
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
    check_all(
        &Mutexes::default(),
        &[OPAQUE, DEBT, Need::Forgetting, Need::Changes],
    );
}

/// Readings that others have overtaken do no harm, unless they make something of it. That only threads show, and those rarely,
/// unless one is held up.
#[test]
fn a_clock_that_is_read_before_the_lock_does_no_harm_by_itself() {
    let stores = Mutexes(Stores::default(), Early::Reads);
    clauses::stale_readings_forgive_nothing(&stores).unwrap();
    let stores = Mutexes(Stores::default(), Early::ReadsAndForgives);
    let found = clauses::stale_readings_forgive_nothing(&stores).unwrap_err();
    assert!(found.to_string().contains("leaps"), "{found}");
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

/// Whoever tells a store the time, side by side with others and so out of order, finds debt where these were later: all holds.
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
        Need::Changes,
        DEBT,
    ];
    let subjects: [&dyn Subject; 2] = [
        &AtInstants(Dash(Stores::default())),
        &AtInstants(Table(Stores::default())),
    ];
    for subject in subjects {
        let report = Report::of(subject);
        assert_eq!(report.broken(), [""; 0], "{report}");
        assert_eq!(report.lacks().len(), lacks.len());
        assert!(report.lacks().iter().all(|need| lacks.contains(need)));
    }
}
