//! Processes whose clocks disagree.

use std::time::Duration;

use ratekeeper::{FixedWindow, KeyedLimiter, SlidingWindow, TokenBucket};
use ratekeeper_memcached::MemcachedCas;
use ratekeeper_test_servers::{Kind, Server};

use crate::support::{Limiter, Random, cas, clock, store};

const LIMIT: TokenBucket = TokenBucket::per_second(100).with_burst(50);

fn shared_cas(namespace: &str) -> MemcachedCas {
    cas(Server::shared(Kind::Memcached), namespace)
}

/// Three processes ask in turn, at a single instant, 600 times.
#[tokio::test]
async fn clocks_that_differ_share_one_burst() {
    for (skew_ms, order) in [
        (0, "none"),
        (1, "ms"),
        (10, "token"),
        (250, "many"),
        (999, "most"),
    ] {
        let limiters = [0, skew_ms, skew_ms / 2].map(|ahead_ms| {
            let clock = clock();
            clock.advance(Duration::from_millis(ahead_ms));
            Limiter::<str>::with_store(LIMIT, store(shared_cas("skew"), &clock))
        });
        let mut random = Random(skew_ms);
        let mut granted = 0;
        for _ in 0..600 {
            let limiter = &limiters[usize::try_from(random.below(3)).unwrap()];
            granted += limiter.check_async(order).await.unwrap().granted();
        }
        // What the clock that is ahead sees refilled, once.
        let most = 50 + skew_ms / 10;
        assert!(
            (50..=most).contains(&granted),
            "{skew_ms} ms: {granted}, not 50 to {most}"
        );
    }
}

/// A minute of three processes, of which each second's worth is asked for many times over.
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
                .apply_async("bucket", ratekeeper::Request::up_to(5))
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
    // Six seconds, and 0.7 for the clocks.
    assert!((600..=50 + 670).contains(&of_bucket), "{of_bucket}");
    assert!((50..=10 + 67).contains(&of_sliding), "{of_sliding}");
    assert!((50..=10 + 70).contains(&of_fixed), "{of_fixed}");
}

#[tokio::test]
async fn a_clock_that_is_set_back_a_little_stands_still() {
    let clock = clock();
    let limiter = Limiter::<str>::with_store(LIMIT, store(shared_cas("back"), &clock));
    for _ in 0..50 {
        assert!(limiter.check_async("alice").await.unwrap().is_allowed());
    }
    let then = ratekeeper::Clock::now(&clock);
    clock.set(
        ratekeeper::Timestamp::ZERO
            + then.saturating_since(ratekeeper::Timestamp::ZERO + Duration::from_millis(900)),
    );
    for _ in 0..9 {
        let refused = limiter.check_async("alice").await.unwrap();
        assert_eq!(refused.retry_after(), Some(Duration::from_millis(10)));
        clock.advance(Duration::from_millis(100));
    }
    clock.advance(Duration::from_millis(10));
    assert!(limiter.check_async("alice").await.unwrap().is_allowed());
    assert!(!limiter.check_async("alice").await.unwrap().is_allowed());
}

/// What is not the skew of a clock in order is left to the algorithm: nobody waits for more than a refill.
#[tokio::test]
async fn a_clock_that_is_far_ahead_locks_nobody_out() {
    let (right, wrong) = (clock(), clock());
    wrong.advance(Duration::from_secs(3_600));
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
