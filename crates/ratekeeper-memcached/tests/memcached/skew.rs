//! Processes whose clocks disagree.

use std::sync::Arc;
use std::time::Duration;

use ratekeeper::store::{CasLoop, Jitter};
use ratekeeper::{
    Clock as _, FixedWindow, KeyedLimiter, Request, SlidingWindow, Timestamp, TokenBucket,
};
use ratekeeper_memcached::{MemcachedCas, MemcachedStore};
use ratekeeper_test_servers::{Kind, Server};

use crate::support::{Clock, Limiter, Random, cas, clock, store};

const LIMIT: TokenBucket = TokenBucket::per_second(100).with_burst(50);

fn shared_cas(namespace: &str) -> MemcachedCas {
    cas(Server::shared(Kind::Memcached), namespace)
}

fn clock_ahead_by(ahead: Duration) -> Clock {
    let clock = clock();
    clock.advance(ahead);
    clock
}

/// Up to the largest skew that is allowed for, and while no clock shows a token more: not one is forgiven.
#[tokio::test]
async fn five_are_due_and_five_are_admitted() {
    let limit = TokenBucket::per_minute(5);
    for skew_ms in [0, 1, 10, 250, 999, 5_000, 10_000] {
        let limiters = [0, skew_ms].map(|ahead_ms| {
            let clock = clock_ahead_by(Duration::from_millis(ahead_ms));
            Limiter::<str>::with_store(limit, store(shared_cas("five"), &clock))
        });
        let key = skew_ms.to_string();
        let mut granted = 0;
        for i in 0..200 {
            granted += limiters[i % 2]
                .check_async(key.as_str())
                .await
                .unwrap()
                .granted();
        }
        assert_eq!(granted, 5, "{skew_ms} ms");
    }
}

/// Three processes ask in turn, at a single instant, 600 times: B + Δ/T.
#[tokio::test]
async fn clocks_that_differ_share_one_burst() {
    for skew_ms in [0, 1, 10, 250, 999, 9_999] {
        let limiters = [0, skew_ms, skew_ms / 2].map(|ahead_ms| {
            let clock = clock_ahead_by(Duration::from_millis(ahead_ms));
            Limiter::<str>::with_store(LIMIT, store(shared_cas("skew"), &clock))
        });
        let mut random = Random(skew_ms);
        let key = skew_ms.to_string();
        let mut granted = 0;
        for _ in 0..600 {
            let limiter = &limiters[usize::try_from(random.below(3)).unwrap()];
            granted += limiter.check_async(key.as_str()).await.unwrap().granted();
        }
        // What the clock that is ahead sees refilled, once; of that, no more than was asked for.
        let most = 50 + skew_ms / 10;
        assert!(
            (50..=most).contains(&granted),
            "{skew_ms} ms: {granted}, not 50 to {most}"
        );
    }
}

/// Two processes with clocks 1.6 s apart, for 100 s: 110 are due, and the difference once. With the other's loop, too.
#[tokio::test]
async fn clocks_that_differ_share_one_rate_for_long() {
    let limit = TokenBucket::per_second(1).with_burst(10);
    let clocks = [clock(), clock_ahead_by(Duration::from_millis(1_600))];
    let one = Limiter::<str>::with_store(limit, store(shared_cas("long"), &clocks[0]));
    let jitter = Jitter::new(1, Duration::ZERO, Duration::ZERO);
    let cas = shared_cas("long").with_grace(Duration::from_secs(60));
    let clock = Arc::clone(&clocks[1]);
    let other = CasLoop::with_clock(cas, tokio::time::sleep, clock, jitter);
    let other = KeyedLimiter::<str, _, _>::with_store(limit, other);
    let mut granted = 0;
    for _ in 0..2_000 {
        granted += one.check_async("alice").await.unwrap().granted();
        granted += other.check_async("alice").await.unwrap().granted();
        for clock in &clocks {
            clock.advance(Duration::from_millis(50));
        }
    }
    // B + (W + Δ)/T with W = 99.95 s.
    assert!((109..=111).contains(&granted), "{granted}");
}

/// Six seconds of three processes, of which each second's worth is asked for many times over.
#[tokio::test]
async fn clocks_that_differ_share_one_rate() {
    let clocks = [clock(), clock(), clock()];
    clocks[1].advance(Duration::from_millis(30));
    clocks[2].advance(Duration::from_millis(700));
    let cas = shared_cas("rates");
    let stores = || clocks.each_ref().map(|clock| store(cas.clone(), clock));
    let buckets = stores().map(|store| KeyedLimiter::<str, _, _>::with_store(LIMIT, store));
    let sliding = SlidingWindow::per_second(10);
    let sliding = stores().map(|store| KeyedLimiter::<str, _, _>::with_store(sliding, store));
    let fixed = FixedWindow::per_second(10);
    let fixed = stores().map(|store| KeyedLimiter::<str, _, _>::with_store(fixed, store));
    let (mut of_bucket, mut of_sliding, mut of_fixed) = (0, 0, 0);
    let mut random = Random(60);
    for _ in 0..600 {
        for _ in 0..5 {
            let one = usize::try_from(random.below(3)).unwrap();
            of_bucket += buckets[one]
                .apply_async("bucket", Request::up_to(5))
                .await
                .unwrap()
                .granted();
            of_sliding += sliding[one].check_async("sliding").await.unwrap().granted();
            of_fixed += fixed[one].check_async("fixed").await.unwrap().granted();
        }
        for clock in &clocks {
            clock.advance(Duration::from_millis(10));
        }
    }
    // 5.99 seconds, and 0.7 for the clocks: seven windows.
    assert!((600..=50 + 669).contains(&of_bucket), "{of_bucket}");
    assert!((50..=10 + 67).contains(&of_sliding), "{of_sliding}");
    assert!((60..=70).contains(&of_fixed), "{of_fixed}");
}

/// By no more than clocks may differ: nothing is refilled twice.
#[tokio::test]
async fn a_clock_that_is_set_back_a_little_stands_still() {
    let clock = clock();
    let limiter = Limiter::<str>::with_store(LIMIT, store(shared_cas("back"), &clock));
    for _ in 0..50 {
        assert!(limiter.check_async("alice").await.unwrap().is_allowed());
    }
    let back_ns = clock.now().as_nanos() - 9_000_000_000;
    clock.set(Timestamp::from_nanos(back_ns));
    for _ in 0..90 {
        let refused = limiter.check_async("alice").await.unwrap();
        assert_eq!(refused.retry_after(), Some(Duration::from_millis(10)));
        clock.advance(Duration::from_millis(100));
    }
    clock.advance(Duration::from_millis(10));
    assert!(limiter.check_async("alice").await.unwrap().is_allowed());
    assert!(!limiter.check_async("alice").await.unwrap().is_allowed());
}

/// What no clock in order can have left is repaired: nobody waits for more than a refill.
#[tokio::test]
async fn a_clock_that_is_far_ahead_locks_nobody_out() {
    let (right, wrong) = (clock(), clock_ahead_by(Duration::from_secs(3_600)));
    let wrong = Limiter::<str>::with_store(LIMIT, store(shared_cas("far"), &wrong));
    let limiter = Limiter::<str>::with_store(LIMIT, store(shared_cas("far"), &right));
    for _ in 0..50 {
        assert!(wrong.check_async("alice").await.unwrap().is_allowed());
    }
    let refused = limiter.check_async("alice").await.unwrap();
    assert_eq!(refused.retry_after(), Some(Duration::from_millis(10)));
    right.advance(Duration::from_millis(10));
    assert!(limiter.check_async("alice").await.unwrap().is_allowed());
}

/// The price of such a clock, as the documentation states it: a burst for each repair, to the one whose clock is wrong.
#[tokio::test]
async fn a_clock_that_is_far_ahead_gets_a_burst_per_repair() {
    const ROUNDS: u64 = 4;
    for (max_skew_s, bursts) in [(10, ROUNDS), (3_600, 1)] {
        let namespace = format!("beyond-{max_skew_s}");
        let [right, wrong] = [0, 3_600].map(|ahead_s| {
            let clock = clock_ahead_by(Duration::from_secs(ahead_s));
            let store = store(shared_cas(&namespace), &clock);
            let store: MemcachedStore = store.with_max_skew(Duration::from_secs(max_skew_s));
            Limiter::<str>::with_store(LIMIT, store)
        });
        let (mut by_right, mut by_wrong) = (0, 0);
        for _ in 0..ROUNDS {
            for _ in 0..60 {
                by_wrong += wrong.check_async("alice").await.unwrap().granted();
            }
            for _ in 0..60 {
                by_right += right.check_async("alice").await.unwrap().granted();
            }
        }
        assert_eq!((by_right, by_wrong), (0, 50 * bursts), "{max_skew_s} s");
    }
}
