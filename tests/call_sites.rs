//! How the crate is used: each test is a call site that must compile as written and do what it says.

#![allow(clippy::disallowed_methods)] // one test reads the clock as an event loop would

use std::collections::HashMap;
use std::error::Error;
use std::hash::Hash;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};

use ratekeeper::{
    Algorithm, All, AnyAlgorithm, Carry, Clock, DashStore, Decision, FixedWindow, ForKey,
    InvalidLimit, KeyedLimiter, Limiter, LogRing, ManualClock, MemoryStore, Outcome, Report,
    Request, SlidingLog, SlidingWindow, StdClock, Step, Timestamp, TokenBucket, UnixClock, headers,
};

const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

static GLOBAL: Limiter = Limiter::new(TokenBucket::per_second(10).with_burst(20));
static WINDOW: Limiter<SlidingWindow> = Limiter::new(SlidingWindow::per_minute(100));
static LOG: Limiter<SlidingLog> = Limiter::new(SlidingLog::per_minute(100));
static DAILY: Limiter<FixedWindow, UnixClock> =
    Limiter::with_clock(FixedWindow::per_day(100), UnixClock);
static PAIR: Limiter<All<[TokenBucket; 2]>> = Limiter::new(All([
    TokenBucket::per_second(10),
    TokenBucket::per_hour(1000),
]));
static PER_IP: LazyLock<KeyedLimiter<IpAddr>> =
    LazyLock::new(|| KeyedLimiter::new(TokenBucket::per_minute(100)));

#[test]
fn limits_in_statics() {
    assert_eq!(GLOBAL.check().remaining(), 19);
    assert_eq!(WINDOW.check().remaining(), 99);
    assert_eq!(LOG.check().remaining(), 99);
    assert_eq!(DAILY.check().remaining(), 99);
    assert_eq!(PAIR.check().remaining(), 9);
    assert_eq!(PER_IP.check(&CLIENT).remaining(), 99);
}

#[test]
fn limits_in_a_struct() {
    struct Api {
        per_ip: KeyedLimiter<IpAddr>,
        searches: KeyedLimiter<IpAddr, SlidingWindow>,
        exports: KeyedLimiter<IpAddr, SlidingLog>,
        all: Limiter,
    }
    let api = Api {
        per_ip: KeyedLimiter::new(TokenBucket::per_minute(100)),
        searches: KeyedLimiter::new(SlidingWindow::per_hour(60)),
        exports: KeyedLimiter::new(SlidingLog::per_day(3)),
        all: Limiter::new(TokenBucket::per_second(1000)),
    };
    assert!(api.per_ip.check(&CLIENT).is_allowed());
    assert!(api.searches.check(&CLIENT).is_allowed());
    assert!(api.exports.check_n(&CLIENT, 3).is_allowed());
    assert!(!api.exports.check(&CLIENT).is_allowed());
    assert!(api.all.check().is_allowed());
}

#[test]
fn keys_are_looked_up_borrowed() {
    let users = KeyedLimiter::<String>::new(TokenBucket::per_minute(1));
    assert!(users.check("alice").is_allowed());
    assert!(!users.check(&String::from("alice")).is_allowed());
    let by_route = KeyedLimiter::<(u16, IpAddr)>::new(TokenBucket::per_minute(1));
    assert!(by_route.check(&(3, CLIENT)).is_allowed());
    let routes = KeyedLimiter::<&'static str>::new(TokenBucket::per_minute(1));
    assert!(routes.check(&"/login").is_allowed());
}

#[test]
fn tiers_are_ready_made_limits() {
    enum Tier {
        Free,
        Premium,
    }
    impl Tier {
        fn limit(&self) -> &'static TokenBucket {
            const FREE: TokenBucket = TokenBucket::per_minute(10);
            const PREMIUM: TokenBucket = TokenBucket::per_minute(1000);
            match self {
                Self::Free => &FREE,
                Self::Premium => &PREMIUM,
            }
        }
    }
    let users = KeyedLimiter::<u64>::new(*Tier::Premium.limit());
    let tier = Tier::Free;
    assert_eq!(users.under(tier.limit()).check(&1).remaining(), 9);
    assert_eq!(
        users.under(Tier::Premium.limit()).check(&2).remaining(),
        999
    );
    assert_eq!(
        users.under(tier.limit()).for_key(&1).check_n(4).remaining(),
        5
    );

    // A key changes its tier, once: its tokens go with it.
    let report = users.change(&1, Tier::Free.limit(), Tier::Premium.limit());
    assert_eq!((report.remaining(), report.limit()), (5, 1000));
    let fresh = users.change_with(&1, Tier::Premium.limit(), Tier::Free.limit(), Carry::Full);
    assert_eq!(fresh.remaining(), 10);
}

#[test]
fn a_key_is_named_once() {
    struct Session<'a> {
        quota: ForKey<'a, str, TokenBucket, DashStore<String>>,
    }
    let users = KeyedLimiter::<String>::new(TokenBucket::per_minute(10));
    let name = String::from("alice");
    let session = Session {
        quota: users.for_key(name.as_str()),
    };
    // It is two references and a flag: copied, handed on, asked again.
    let copy = session.quota;
    assert!(copy.check().is_allowed());
    assert_eq!(session.quota.peek().remaining(), 9);
    assert_eq!(session.quota.key(), "alice");
    assert_eq!(session.quota.algorithm(), users.algorithm());
    assert!(session.quota.try_check().unwrap().is_allowed());
    session.quota.try_forget().unwrap();
    assert_eq!(session.quota.peek().remaining(), 10);
    // Limits from a database row, for as long as the call takes.
    let row: TokenBucket = "3/min".parse().unwrap();
    let decision = users.under(&row).check("bob");
    assert_eq!((decision.limit(), decision.remaining()), (3, 2));
    let (any, other) = (
        AnyAlgorithm::from(row),
        AnyAlgorithm::from(SlidingWindow::per_minute(3)),
    );
    let any_users = KeyedLimiter::<u64, _>::new(any);
    assert!(any_users.under(&any).check(&1).is_allowed());
    let refused = any_users.under(&other).check(&1);
    assert_eq!(refused.outcome(), Outcome::Unsupported);
}

#[test]
fn a_report_is_kept_and_the_receipt_spent() {
    #[derive(Default)]
    struct Answer {
        limits: Vec<Report>,
    }
    let tokens = KeyedLimiter::<u64>::new(TokenBucket::per_minute(10_000));
    let mut answer = Answer::default();
    let (report, receipt) = tokens.check_n(&7, 4_000).split();
    answer.limits.push(report);
    let refund = Request::refund(4_000 - 1_234, receipt);
    answer.limits.push(tokens.apply(&7, refund).report());
    let left: Vec<_> = answer.limits.iter().map(Report::remaining).collect();
    assert_eq!(left, [6_000, 8_766]);
    // What was used above the estimate is charged; the report says what there was no room for.
    let more = tokens.apply(&7, Request::charge(9_000)).report();
    assert_eq!((more.granted(), more.uncharged()), (8_766, 234));
    let denied = tokens.check_n(&7, 5_000).into_result().unwrap_err();
    assert_eq!(Report::from(&denied).retry_after(), denied.retry_after());
}

#[test]
fn several_limits_of_different_kinds() {
    let limiter = KeyedLimiter::<u64, _>::new(All((
        TokenBucket::per_second(10),
        SlidingWindow::per_hour(2),
    )));
    assert!(limiter.check(&1).is_allowed());
    assert!(limiter.check(&1).is_allowed());
    let third = limiter.check(&1);
    assert_eq!(
        (third.is_allowed(), third.index(), third.limit()),
        (false, 1, 2)
    );
    let four = Limiter::new(All((
        TokenBucket::per_second(10),
        TokenBucket::per_minute(20),
        SlidingWindow::per_hour(30),
        FixedWindow::per_day(40),
    )));
    assert_eq!(four.check_n(10).remaining(), 0);
}

#[test]
fn the_test_holds_the_clock_of_an_application() {
    struct App {
        users: KeyedLimiter<String>,
        all: Limiter,
    }
    impl App {
        fn new(clock: StdClock) -> Self {
            Self {
                users: KeyedLimiter::with_clock(TokenBucket::per_second(1), clock.clone()),
                all: Limiter::with_clock(TokenBucket::per_second(1), clock),
            }
        }
    }
    let time = Arc::new(ManualClock::new());
    let app = App::new(time.clone().into());
    for _ in 0..3 {
        assert!(app.users.check("alice").is_allowed() && app.all.check().is_allowed());
        assert!(!app.users.check("alice").is_allowed() && !app.all.check().is_allowed());
        time.advance(Duration::from_secs(1));
    }
    time.set(Timestamp::ZERO); // backwards, too
    assert!(!app.all.check().is_allowed());
}

#[test]
fn the_caller_brings_the_instant() {
    let limiter = Limiter::new(TokenBucket::per_second(1));
    let keyed = KeyedLimiter::<u8>::new(TokenBucket::per_second(1));
    let now = Instant::now();
    assert!(limiter.check_at(now.into()).is_allowed());
    assert!(keyed.check_at(&1, now.into()).is_allowed());
    assert!(
        !limiter
            .check_at((now + Duration::from_millis(999)).into())
            .is_allowed()
    );
    assert!(
        keyed
            .check_at(&1, (now + Duration::from_secs(1)).into())
            .is_allowed()
    );
}

#[test]
fn an_algorithm_of_ones_own_runs_everywhere() {
    /// One request, then none for a while.
    #[derive(Debug)]
    struct Cooldown(Duration);

    impl Algorithm for Cooldown {
        type State = u64;

        fn step(&self, now: Timestamp, until: &mut u64, request: &Request) -> Step {
            let left = Timestamp::from_nanos(*until).saturating_since(now);
            let answer = |outcome, left: Duration| {
                Decision::new(outcome, 1, u64::from(left.is_zero()), left)
            };
            match request {
                Request::Take { cost: 0, .. } => Step::unchanged(answer(Outcome::Allowed, left)),
                Request::Take { .. } if left.is_zero() => {
                    *until = (now + self.0).as_nanos();
                    Step::write(answer(Outcome::Allowed, self.0), self.0)
                }
                Request::Take { .. } => {
                    Step::unchanged(answer(Outcome::Denied { retry_after: left }, left))
                }
                _ => Step::unchanged(answer(Outcome::Unsupported, left)),
            }
        }
    }

    let five = Duration::from_secs(5);
    let one = Limiter::new(Cooldown(five));
    let keyed = KeyedLimiter::<u8, _>::new(Cooldown(five));
    let both = Limiter::new(All((Cooldown(five), TokenBucket::per_second(9))));
    let at = |s: u64| Timestamp::from_nanos(s * 1_000_000_000);
    assert!(one.check_at(at(0)).is_allowed());
    assert_eq!(
        one.check_at(at(2)).retry_after(),
        Some(Duration::from_secs(3))
    );
    assert!(keyed.check_at(&1, at(0)).is_allowed() && !keyed.check_at(&1, at(4)).is_allowed());
    let receipt = both.check_at(at(0)).into_receipt();
    let refund = both.apply_at(Request::refund(1, receipt), at(1));
    assert_eq!(
        (refund.outcome(), refund.index()),
        (Outcome::Unsupported, 0)
    );
    assert_eq!(both.apply_at(Request::PEEK, at(1)).index(), 0);
}

#[test]
fn a_store_of_ones_own_takes_two_methods() {
    struct MapStore<K>(Mutex<HashMap<K, u64>>, StdClock);

    impl<K: Clone + Eq + Hash, A: Algorithm<State = u64>> MemoryStore<K, A> for MapStore<K> {
        fn decide(&self, key: &K, algorithm: &A, request: Request) -> Decision {
            self.decide_at(key, algorithm, request, self.1.now())
        }

        fn decide_at(&self, key: &K, algorithm: &A, request: Request, now: Timestamp) -> Decision {
            let mut map = self.0.lock().unwrap();
            algorithm
                .step(now, map.entry(key.clone()).or_default(), &request)
                .decision
        }
    }

    let store = MapStore(Mutex::default(), StdClock::new());
    let limiter = KeyedLimiter::<u8, _, _>::with_store(TokenBucket::per_hour(1), store);
    assert!(limiter.check(&7).is_allowed() && !limiter.check(&7).is_allowed());
    let by_reference =
        KeyedLimiter::<u8, _, _>::with_store(TokenBucket::per_hour(1), limiter.store());
    assert!(!by_reference.check(&7).is_allowed());
}

#[test]
fn refusals_are_errors_where_errors_are_wanted() {
    fn serve(limiter: &Limiter) -> Result<&'static str, Box<dyn Error + Send + Sync>> {
        limiter.check().into_result()?;
        Ok("served")
    }
    let limiter = Limiter::with_clock(TokenBucket::per_minute(1), frozen());
    assert_eq!(serve(&limiter).unwrap(), "served");
    assert_eq!(
        serve(&limiter).unwrap_err().to_string(),
        "rate limited: retry after 60s"
    );
    let denied = limiter.check().into_result().unwrap_err();
    assert_eq!(denied.retry_after(), Some(Duration::from_secs(60)));
    assert_eq!(denied.decision(), limiter.check());
    assert!(
        limiter
            .check_n(2)
            .into_result()
            .unwrap_err()
            .to_string()
            .contains("limit of 1")
    );
}

#[test]
fn header_values() {
    let limiter = Limiter::with_clock(TokenBucket::per_minute(1), frozen());
    let allowed = limiter.check();
    assert_eq!(headers::retry_after(&allowed), None);
    let denied = limiter.check();
    assert_eq!(headers::retry_after(&denied), Some(60));
    let value = headers::RateLimit("default", &denied).to_string();
    assert_eq!(value, r#""default";r=0;t=60"#);
}

#[test]
fn limits_from_a_configuration() {
    let limit: TokenBucket = "100/min burst 20".parse().unwrap();
    assert_eq!(limit, TokenBucket::per_minute(100).with_burst(20));
    let routes = [
        ("/", "10/s burst 20"),
        ("/search", "sliding 60/min"),
        ("/x", "fixed 9/day"),
    ];
    let limiters: Result<HashMap<_, _>, InvalidLimit> = routes
        .into_iter()
        .map(|(route, limit)| {
            Ok((
                route,
                KeyedLimiter::<IpAddr, AnyAlgorithm>::new(limit.parse()?),
            ))
        })
        .collect();
    let limiters = limiters.unwrap();
    assert_eq!(limiters["/"].check(&CLIENT).remaining(), 19);
    assert_eq!(limiters["/search"].check(&CLIENT).remaining(), 59);
    assert_eq!(limiters["/x"].check(&CLIENT).remaining(), 8);
}

#[test]
fn everything_can_be_shared_and_printed() {
    fn shareable<T: Send + Sync + std::fmt::Debug + 'static>() {}
    shareable::<Limiter>();
    shareable::<Limiter<SlidingLog>>();
    shareable::<Limiter<All<[SlidingWindow; 4]>, UnixClock>>();
    shareable::<KeyedLimiter<str, TokenBucket, DashStore<String>>>();
    shareable::<KeyedLimiter<std::rc::Rc<u8>, SlidingLog, DashStore<u8, SlidingLog>>>();
    shareable::<DashStore<String>>();
    shareable::<Decision>();
    shareable::<LogRing>();
    // Code that is generic over the algorithm may share its limiter.
    fn generic<A: Algorithm + 'static>() {
        shareable::<Limiter<A>>();
    }
    generic::<SlidingLog>();
}

fn frozen() -> StdClock {
    Arc::new(ManualClock::new()).into()
}
