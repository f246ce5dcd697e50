//! Limits that change from call to call, clocks that differ: the situations in which a shared key once forgave.

use std::sync::Arc;
use std::time::Duration;

use ratekeeper::store::{AsyncStore, CasLoop, ErrorKind, Item, Jitter};
use ratekeeper::{
    All, AnyAlgorithm, Carry, FixedWindow, InvalidLimit, Limits, ManualClock, Outcome, Request,
    SlidingWindow, Timestamp, TokenBucket,
};
use ratekeeper_postgres::tokio_postgres::NoTls;
use ratekeeper_postgres::{Connections, PostgresCas, PostgresStore};

use crate::common::{database, namespace, sql, store};

const NOW: Timestamp = Timestamp::from_nanos(1_767_225_600_000_000_000);
const DAY: Duration = Duration::from_secs(86_400);

/// A store whose clock stands still, and that clock.
async fn still(name: &str) -> (PostgresStore, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new());
    clock.set(NOW);
    let store = store(&database(name).await, 1).with_clock(clock.clone(), DAY);
    (store, clock)
}

/// How many of `times` requests for one token pass, under the limits in turn.
async fn passed_in_turn<A, S>(store: &S, limits: &[A], times: usize) -> u64
where
    A: ratekeeper::Algorithm,
    S: AsyncStore<str, A>,
{
    let mut passed = 0;
    let turns: Vec<usize> = (0..times).collect();
    for part in turns.chunks(500) {
        let mut items: Vec<_> = part
            .iter()
            .map(|turn| Item::new("k", &limits[turn % limits.len()], Request::ONE))
            .collect();
        store.apply_batch_async(&mut items).await;
        for item in items {
            passed += item.into_result().unwrap().granted();
        }
    }
    passed
}

#[tokio::test]
async fn two_limits_in_turn_while_time_stands_still() {
    let (store, _clock) = still("in_turn").await;
    let wide = TokenBucket::per_second(10).with_burst(20);
    let limits = [wide, wide.with_burst(5)];
    assert_eq!(passed_in_turn(&store, &limits, 10_000).await, 20);
    // With versions, the newer one decides as soon as it is met: 1 of 20 taken, then 5 at most.
    let store = store.with_namespace(namespace("versions"));
    let limits = [wide.with_version(1), wide.with_burst(5).with_version(2)];
    assert_eq!(passed_in_turn(&store, &limits, 10_000).await, 1 + 5);
}

#[tokio::test]
async fn a_refusal_under_another_limit_forgives_nothing() {
    let (store, _clock) = still("forgives_nothing").await;
    let limit = TokenBucket::per_minute(1_000);
    let typo = TokenBucket::per_minute(10).with_burst(2);
    let drained = store.apply_async("k", &limit, Request::take(1_000)).await;
    assert!(drained.unwrap().is_allowed());
    let refused = store.apply_async("k", &typo, Request::ONE).await.unwrap();
    assert!(!refused.is_allowed());
    let left = store.apply_async("k", &limit, Request::PEEK).await.unwrap();
    assert_eq!(left.remaining(), 0);
    assert_eq!(left.reset_after(), Duration::from_secs(60));
}

/// Rolling deploys, tiers, two routes. Due: 200 at once, 10 a second for 600 s.
#[tokio::test]
async fn two_bursts_over_ten_minutes() {
    let (store, clock) = still("ten_minutes").await;
    let wide = TokenBucket::per_second(10).with_burst(200);
    let plain = [wide, wide.with_burst(5)];
    let versions = [wide.with_version(1), wide.with_burst(5).with_version(2)];
    for (name, limits) in [("plain", plain), ("versions", versions)] {
        let store = store.clone().with_namespace(namespace(name));
        let mut passed = 0;
        for step in 0..=6_000_u64 {
            clock.set(NOW + Duration::from_millis(step * 100));
            passed += passed_in_turn(&store, &limits, 4).await;
        }
        assert!((5_900..=6_200).contains(&passed), "{name}: {passed}");
    }
}

/// A clock that is stepped back gives nothing; each later step forwards gives what it spans, and no more than a refill.
#[tokio::test]
async fn a_clock_that_goes_to_and_fro() {
    let (store, clock) = still("to_and_fro").await;
    let limit = TokenBucket::per_second(1).with_burst(10);
    let mut passed = 0;
    for turn in 0..200_u64 {
        let back = if turn % 2 == 0 { 0 } else { 3 };
        clock.set(Timestamp::from_nanos(NOW.as_nanos() - back * 1_000_000_000));
        passed += passed_in_turn(&store, &[limit], 5).await;
    }
    assert!(passed <= 10 + 3 * 100, "{passed}");
    // Far back, nobody waits for more than a refill, and is told so exactly.
    clock.set(Timestamp::from_nanos(1_000_000_000));
    let refused = store
        .apply_async("k", &limit, Request::take(10))
        .await
        .unwrap();
    assert_eq!(refused.retry_after(), Some(Duration::from_secs(10)));
    clock.set(Timestamp::from_nanos(11_000_000_000));
    assert!(
        store
            .apply_async("k", &limit, Request::take(10))
            .await
            .unwrap()
            .is_allowed()
    );
}

/// Compare-and-swap by processes that tell the time themselves: they go by the latest, up to `max_skew`.
#[tokio::test]
async fn processes_whose_clocks_differ() {
    let (store, _clock) = still("skewed").await;
    let limit = TokenBucket::per_second(1).with_burst(5);
    let process = |ahead: Duration| {
        let clock = Arc::new(ManualClock::new());
        clock.set(NOW + ahead);
        let jitter = Jitter::new(1, Duration::from_millis(1), Duration::from_millis(2));
        CasLoop::with_clock(
            PostgresCas(store.clone()),
            tokio::time::sleep,
            clock,
            jitter,
        )
    };
    let processes = [0, 4_000].map(|millis| process(Duration::from_millis(millis)));
    let mut passed = 0;
    for turn in 0..200 {
        let decision = processes[(turn + 1) % 2]
            .apply_async("k", &limit, Request::ONE)
            .await;
        passed += decision.unwrap().granted();
    }
    assert_eq!(passed, 5);
    // A function cannot know that instant, and says so.
    let error = store
        .apply_async("k", &limit, Request::ONE)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
}

#[tokio::test]
async fn limits_of_other_kinds_do_not_meet() {
    let url = database("other_kinds").await;
    let store = store(&url, 1);
    let limits = [
        "5/day",
        "sliding 5/day",
        "fixed 5/day",
        "sliding 5/h",
        "fixed 5/day anchored",
    ]
    .map(|text| text.parse::<AnyAlgorithm>().unwrap());
    // In turn, and again after all of them were changed to another count.
    assert_eq!(passed_in_turn(&store, &limits, 1_000).await, 5 * 5);
    let raised = [
        "7/day",
        "sliding 7/day",
        "fixed 7/day",
        "sliding 7/h",
        "fixed 7/day anchored",
    ]
    .map(|text| text.parse::<AnyAlgorithm>().unwrap());
    assert_eq!(passed_in_turn(&store, &raised[1..], 1_000).await, 4 * 2);
    let keys = "SELECT convert_from(key, 'UTF8') FROM ratekeeper.states_v1 ORDER BY 1";
    let expected = "rl:test/fixed-86400s-anchored:k\nrl:test/fixed-86400s:k\nrl:test/sliding-3600s:k\nrl:test/sliding-86400s:k\nrl:test:k";
    let mut seen: Vec<_> = sql(&url, keys).lines().map(str::to_owned).collect();
    seen.sort();
    assert_eq!(seen.join("\n"), expected);
    // Each is forgotten by itself.
    store.forget_async("k", &limits[1]).await.unwrap();
    assert_eq!(passed_in_turn(&store, &limits, 100).await, 5);
}

/// By a member that has no room for the whole charge, the others are charged all the same; and each gives back its own.
#[tokio::test]
async fn charges_and_refunds_of_several() {
    let (store, _clock) = still("several").await;
    let limit = All([
        TokenBucket::per_day(3),
        TokenBucket::per_day(10),
        TokenBucket::UNLIMITED,
    ]);
    let ask = async |request| store.apply_async("k", &limit, request).await.unwrap();
    let charged = ask(Request::charge(7)).await;
    assert_eq!((charged.granted(), charged.uncharged()), (3, 4));
    let receipt = charged.into_receipt();
    assert_eq!([0, 1, 2].map(|index| receipt.charged_to(index)), [3, 7, 7]);
    assert_eq!(ask(Request::refund(7, receipt)).await.remaining(), 3);
    let second = ask(Request::up_to(20)).await;
    assert_eq!(second.granted(), 3);
    let blocked = All([
        TokenBucket::BLOCKED,
        TokenBucket::per_day(10),
        TokenBucket::UNLIMITED,
    ]);
    let refused = store
        .apply_async("k", &blocked, Request::ONE)
        .await
        .unwrap();
    assert_eq!((refused.outcome(), refused.index()), (Outcome::TooLarge, 0));
}

#[tokio::test]
async fn a_key_is_moved_to_another_limit() {
    let (store, clock) = still("change").await;
    let (free, paid) = (TokenBucket::per_hour(10), TokenBucket::per_second(1_000));
    let drained = store.apply_async("k", &free, Request::take(10)).await;
    assert!(drained.unwrap().is_allowed());
    let moved = store
        .change_async("k", &free, &paid, Carry::Tokens)
        .await
        .unwrap();
    assert_eq!((moved.remaining(), moved.limit()), (0, 1_000));
    assert_eq!(moved.reset_after(), Duration::from_secs(1));
    clock.set(NOW + Duration::from_millis(1));
    assert_eq!(passed_in_turn(&store, &[paid], 10).await, 1);
    for (carry, remaining) in [(Carry::Empty, 0), (Carry::Debt, 0), (Carry::Full, 1_000)] {
        let moved = store.change_async("k", &paid, &paid, carry).await.unwrap();
        assert_eq!(moved.remaining(), remaining, "{carry:?}");
    }
    // A key never seen, and a limit of another kind.
    let moved = store
        .change_async("new", &free, &paid, Carry::Empty)
        .await
        .unwrap();
    assert_eq!(moved.remaining(), 0);
    let (day, hour) = (SlidingWindow::per_day(5), SlidingWindow::per_hour(5));
    let moved = store
        .change_async("w", &day, &hour, Carry::Tokens)
        .await
        .unwrap();
    assert_eq!(moved.outcome(), Outcome::Unsupported);
    // Counts of windows stay.
    assert_eq!(passed_in_turn(&store, &[day], 9).await, 5);
    let raised = SlidingWindow::per_day(8);
    let moved = store.change_async("k", &day, &raised, Carry::Tokens);
    assert_eq!(moved.await.unwrap().remaining(), 3);
}

/// While others take, nothing is lost and nothing is counted twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_are_moved_under_load() {
    let store = store(&database("change_load").await, 4);
    let slow = TokenBucket::per(1, 10 * DAY).with_burst(400);
    let other = TokenBucket::per(2, 10 * DAY).with_burst(400);
    let tasks: Vec<_> = (0..6)
        .map(|task| {
            let store = store.clone();
            tokio::spawn(async move {
                let mut granted = 0;
                for _ in 0..60 {
                    let limit = if task % 2 == 0 { slow } else { other };
                    granted += store
                        .apply_async("k", &limit, Request::ONE)
                        .await
                        .unwrap()
                        .granted();
                }
                granted
            })
        })
        .collect();
    let mut changes = 0;
    for _ in 0..20 {
        // Debt in time is the same under both.
        let moved = store.change_async("k", &slow, &other, Carry::Debt).await;
        changes += u32::from(moved.is_ok());
    }
    let mut granted = 0;
    for task in tasks {
        granted += task.await.unwrap();
    }
    assert!(granted <= 400, "{granted}");
    assert_eq!(changes, 20);
}

#[tokio::test]
async fn what_the_functions_cannot_keep_is_said_beforehand() {
    let store = store(&database("accepts").await, 1);
    let accepts = |text: &str| {
        let limits: Limits = text.parse().unwrap();
        AsyncStore::<str, Limits>::accepts_async(&store, &limits)
    };
    assert_eq!(accepts("10/s; 100/h; unlimited; blocked"), Ok(()));
    assert_eq!(accepts("unlimited"), Ok(()));
    for text in ["10/s; sliding 100/h", "fixed 3/s", "10/s v1; 100/h"] {
        let error = accepts(text).unwrap_err();
        assert!(
            matches!(error, InvalidLimit::DoesNotFitStore { .. }),
            "{text}: {error:?}"
        );
        let limits: Limits = text.parse().unwrap();
        let error = store
            .apply_async("k", &limits, Request::ONE)
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{text}");
    }
    let versioned = All([TokenBucket::per_day(1).with_version(1)]);
    assert!(AsyncStore::<str, _>::accepts_async(&store, &versioned).is_err());
    assert!(AsyncStore::<str, _>::accepts_async(&store, &FixedWindow::per_day(1)).is_ok());
    // Several buckets from a text are several buckets.
    let limits: Limits = "3/day; 5/day".parse().unwrap();
    assert_eq!(passed_in_turn(&store, &[limits], 10).await, 3);
    let all = All([TokenBucket::per_day(3), TokenBucket::per_day(5)]);
    assert_eq!(passed_in_turn(&store, &[all], 10).await, 0);
}

/// Limits that count nothing ask nobody.
#[tokio::test]
async fn unlimited_and_blocked_need_no_server() {
    let nowhere: Connections = Connections::new(
        "postgres://postgres@127.0.0.1:1/none".parse().unwrap(),
        NoTls,
    );
    let store = PostgresStore::new(nowhere, namespace("test"));
    let ask = async |limit| store.apply_async("k", &limit, Request::ONE).await.unwrap();
    assert!(ask(TokenBucket::UNLIMITED).await.is_allowed());
    assert_eq!(ask(TokenBucket::BLOCKED).await.outcome(), Outcome::TooLarge);
    let counted = TokenBucket::per_day(1);
    let mut items = [
        Item::new("k", &TokenBucket::UNLIMITED, Request::ONE),
        Item::new("k", &counted, Request::ONE),
    ];
    store.apply_batch_async(&mut items).await;
    let [unlimited, counted] = items.map(Item::into_result);
    assert!(unlimited.unwrap().is_allowed());
    assert_eq!(counted.unwrap_err().kind(), ErrorKind::NotExecuted);
}
