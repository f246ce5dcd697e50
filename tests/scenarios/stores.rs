//! Stores that fail, lose races, or keep time in coarse units, and what is wrapped around them.

use std::cell::RefCell;
use std::time::Duration;

use ratekeeper::store::{
    CasLoop, CasStore, ErrorKind, Fallback, Jitter, KeyKind, Leased, Loaded, StateBytes, Store,
    StoreError, Swap,
};
use ratekeeper::{Algorithm, DashStore, Decision, ManualClock, Request, TokenBucket};

use super::Row::{self, Check};
use super::{SECOND, assert_allowed, ms};

/// A compare-and-swap backend for one key, with a time to live in whole seconds.
#[derive(Default)]
struct Backend<'c> {
    cell: RefCell<Option<(StateBytes, Duration)>>,
    clock: Option<&'c ManualClock>,
    /// Exchanges that somebody else wins from now on.
    rivals: RefCell<u32>,
    /// Answers to exchanges that get lost on the way, after the exchange.
    lost_answers: RefCell<u32>,
    exchanges: RefCell<u32>,
}

impl Backend<'_> {
    fn now(&self) -> Duration {
        let now = self.clock.map(|clock| ratekeeper::Clock::now(&clock));
        Duration::from_nanos(now.map_or(0, ratekeeper::Timestamp::as_nanos))
    }

    fn live(&self) -> Option<(StateBytes, Duration)> {
        self.cell
            .borrow()
            .filter(|(_, expires)| self.now() < *expires)
    }
}

impl CasStore<str> for Backend<'_> {
    type Version = ();

    fn load(&self, _key: &str, _kind: &KeyKind) -> Result<Loaded<()>, StoreError> {
        Ok(Loaded {
            state: self.live().map(|(state, _)| state),
            version: (),
            now: None,
        })
    }

    fn compare_exchange(
        &self,
        key: &str,
        kind: &KeyKind,
        seen: &Loaded<()>,
        new: &StateBytes,
        keep: Duration,
    ) -> Result<Swap<()>, StoreError> {
        *self.exchanges.borrow_mut() += 1;
        if take_one(&self.rivals) || self.load(key, kind)?.state != seen.state {
            return Ok(Swap::Conflict(None));
        }
        let seconds = keep.as_nanos().div_ceil(1_000_000_000);
        let expires = self.now() + SECOND * u32::try_from(seconds).unwrap();
        *self.cell.borrow_mut() = Some((*new, expires));
        if take_one(&self.lost_answers) {
            return Err(StoreError::new(ErrorKind::Unknown, "no answer"));
        }
        Ok(Swap::Done)
    }
}

fn take_one(count: &RefCell<u32>) -> bool {
    let mut count = count.borrow_mut();
    let any = *count > 0;
    *count = count.saturating_sub(1);
    any
}

fn stored<'b>(
    backend: &'b Backend<'b>,
    clock: &'b ManualClock,
) -> impl Store<str, TokenBucket> + 'b {
    let jitter = Jitter::new(1, Duration::ZERO, Duration::ZERO);
    CasLoop::with_clock(backend, |_| {}, clock, jitter)
}

/// A store that can be switched off.
struct Switched<S> {
    store: S,
    is_down: RefCell<bool>,
}

impl<A: Algorithm, S: Store<str, A>> Store<str, A> for Switched<S> {
    fn apply(&self, key: &str, algorithm: &A, request: Request) -> Result<Decision, StoreError> {
        if *self.is_down.borrow() {
            return Err(StoreError::new(ErrorKind::NotExecuted, "down"));
        }
        self.store.apply(key, algorithm, request)
    }
}

const LIMIT: TokenBucket = TokenBucket::per_second(10).with_burst(5);

pub(crate) const ROWS: &[Row] = &[
    Check("S18", "a state and its time to live are one write", || {
        // The trait has no other: an exchange without a time to live cannot be expressed.
        let clock = ManualClock::new();
        let backend = Backend {
            clock: Some(&clock),
            ..Backend::default()
        };
        let store = stored(&backend, &clock);
        assert_allowed(&store.apply("k", &LIMIT, Request::ONE).unwrap(), 4);
        clock.advance(61 * SECOND);
        assert!(backend.live().is_none(), "immortal");
    }),
    Check(
        "S34",
        "an answer that got lost: unknown, counted once, not repeated",
        || {
            let clock = ManualClock::new();
            let backend = Backend {
                lost_answers: 1.into(),
                ..Backend::default()
            };
            let backend = Backend {
                clock: Some(&clock),
                ..backend
            };
            let store = stored(&backend, &clock);
            let error = store.apply("k", &LIMIT, Request::ONE).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unknown);
            assert_eq!(*backend.exchanges.borrow(), 1);
            assert_allowed(&store.apply("k", &LIMIT, Request::PEEK).unwrap(), 4);
        },
    ),
    Check(
        "S35",
        "lost races while there are tokens: contention, not a refusal",
        || {
            let clock = ManualClock::new();
            let backend = Backend {
                rivals: 16.into(),
                clock: Some(&clock),
                ..Backend::default()
            };
            let store = stored(&backend, &clock);
            let error = store.apply("k", &LIMIT, Request::ONE).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Contention);
            assert_eq!(*backend.exchanges.borrow(), 16);
            assert_allowed(&store.apply("k", &LIMIT, Request::PEEK).unwrap(), 5);
            *backend.rivals.borrow_mut() = 15;
            assert_allowed(&store.apply("k", &LIMIT, Request::ONE).unwrap(), 4);
        },
    ),
    Check(
        "S36",
        "the store refuses: the fallback is not asked",
        || {
            let clock = ManualClock::new();
            let first = DashStore::<String, TokenBucket, _>::with_clock(&clock);
            let second = DashStore::<String, TokenBucket, _>::with_clock(&clock);
            let store = Fallback::new(&first, &second);
            for _ in 0..5 {
                assert!(store.apply("k", &LIMIT, Request::ONE).unwrap().is_allowed());
            }
            let refused = store.apply("k", &LIMIT, Request::ONE).unwrap();
            assert!(!refused.is_allowed() && !refused.is_degraded());
            assert!(second.is_empty());
        },
    ),
    Check("S38", "1.9 s to live in whole seconds: two", || {
        let clock = ManualClock::new();
        let backend = Backend {
            clock: Some(&clock),
            ..Backend::default()
        };
        let store = stored(&backend, &clock);
        let limit = TokenBucket::per(1, Duration::from_millis(1_900));
        assert_allowed(&store.apply("k", &limit, Request::ONE).unwrap(), 0);
        // And the minute for exchanges that are under way.
        assert_eq!(
            backend.live().map(|(_, expires)| expires),
            Some(62 * SECOND)
        );
        clock.set(ms(1_500));
        let refused = store.apply("k", &limit, Request::ONE).unwrap();
        assert_eq!(refused.retry_after(), Some(Duration::from_millis(400)));
    }),
    Check(
        "S47",
        "a lease is not spent after its expiry, also while the store is away",
        || {
            let clock = ManualClock::new();
            let store = Switched {
                store: DashStore::<String, TokenBucket, _>::with_clock(&clock),
                is_down: false.into(),
            };
            let leased = Leased::with_clock(&store, 5, &clock).with_expiry(SECOND);
            assert!(
                leased
                    .apply("k", &LIMIT, Request::ONE)
                    .unwrap()
                    .is_allowed()
            );
            *store.is_down.borrow_mut() = true;
            // Four are left of the lease.
            assert!(
                leased
                    .apply("k", &LIMIT, Request::ONE)
                    .unwrap()
                    .is_allowed()
            );
            clock.advance(SECOND);
            let error = leased.apply("k", &LIMIT, Request::ONE).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotExecuted);
        },
    ),
];
