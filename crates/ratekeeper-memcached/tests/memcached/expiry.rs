//! How long values live.

use std::time::{Duration, Instant};

use ratekeeper::store::{AsyncCasStore, StateBytes, Swap};
use ratekeeper::{KeyedLimiter, Request, TokenBucket};
use ratekeeper_memcached::{MemcachedCas, MemcachedStore};
use ratekeeper_test_servers::{Kind, Server};

use crate::support::{Limiter, Raw, bucket, cas, clock, kind, store, wait_for};

const DAY: Duration = Duration::from_secs(86_400);

fn strict(namespace: &str) -> MemcachedCas {
    cas(Server::shared(Kind::Memcached), namespace)
}

fn raw() -> Raw {
    Raw::new(Server::shared(Kind::Memcached))
}

/// Written at forty moments of a second, for which memcached's clock ticks once.
#[tokio::test]
async fn nothing_expires_early() {
    const KEEP: Duration = Duration::from_secs(1);
    let cas = strict("early");
    let state = StateBytes::from_stored(b"state").unwrap();
    let mut written = Vec::new();
    for key in 0..40_u32 {
        let absent = cas.load_async(&key, &kind()).await.unwrap();
        let before = Instant::now();
        let swap = cas
            .compare_exchange_async(&key, &kind(), &absent, &state, KEEP)
            .await
            .unwrap();
        assert!(matches!(swap, Swap::Done));
        written.push((key, before));
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    for (key, before) in written {
        tokio::time::sleep(KEEP.saturating_sub(before.elapsed())).await;
        let asked_after = before.elapsed();
        let loaded = cas.load_async(&key, &kind()).await.unwrap();
        // On a busy machine the question may come too late to mean anything.
        if asked_after < KEEP + Duration::from_millis(500) {
            assert!(
                loaded.state.is_some(),
                "key {key} is gone after {asked_after:?}"
            );
        }
    }
}

#[tokio::test]
async fn nothing_is_immortal() {
    let cas = strict("mortal");
    let name = cas.name_of("alice");
    let state = StateBytes::from_stored(b"state").unwrap();
    let absent = cas.load_async("alice", &kind()).await.unwrap();
    let keep = Duration::from_millis(100);
    let swap = cas
        .compare_exchange_async("alice", &kind(), &absent, &state, keep)
        .await;
    assert!(matches!(swap, Ok(Swap::Done)));
    let mut raw = raw();
    // A tenth of a second is one, and three of grace.
    let seconds = raw.time_to_live(&name).unwrap();
    assert!((2..=4).contains(&seconds), "{seconds}");
    wait_for("the key to expire", || {
        raw.time_to_live(&name).is_none().then_some(())
    });
    assert!(
        cas.load_async("alice", &kind())
            .await
            .unwrap()
            .state
            .is_none()
    );
}

/// A store keeps states a minute longer than they matter, for exchanges that were delayed.
#[tokio::test]
async fn stores_keep_states_a_minute_longer() {
    let cas = strict("minute");
    let name = cas.name_of("alice");
    let limiter = KeyedLimiter::<str, _, _>::with_store(bucket(), MemcachedStore::new(cas));
    let _ = limiter.check_async("alice").await.unwrap();
    let seconds = raw().time_to_live(&name).unwrap();
    assert!((60..=64).contains(&seconds), "{seconds}");
}

#[tokio::test]
async fn debts_of_months_are_kept() {
    let cas = strict("months");
    let names = ["29", "60", "4000", "30000"].map(|days| cas.name_of(days));
    let mut raw = raw();
    for (days, name) in [29, 60, 4_000, 30_000].into_iter().zip(names) {
        let limit = TokenBucket::per(1, DAY * days);
        let limiter =
            KeyedLimiter::<str, _, _>::with_store(limit, MemcachedStore::new(cas.clone()));
        let key = days.to_string();
        assert!(
            limiter
                .check_async(key.as_str())
                .await
                .unwrap()
                .is_allowed()
        );
        let left = Duration::from_secs(raw.time_to_live(&name).expect("the key is not there"));
        let keep = DAY * days;
        // memcached counts to 19 January 2038.
        let end = Duration::from_secs(2_147_483_647);
        let end = end.saturating_sub(std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap());
        let (least, most) = (
            keep.min(end - DAY / 100),
            (keep + DAY * 2).min(end + DAY / 100),
        );
        assert!((least..=most).contains(&left), "{days} days: {left:?}");
        assert!(
            !limiter
                .check_async(key.as_str())
                .await
                .unwrap()
                .is_allowed()
        );
    }
}

#[tokio::test]
async fn refusals_and_peeks_touch_nothing() {
    let server = Server::shared(Kind::Memcached);
    let clock = clock();
    let cas = cas(server, "untouched");
    let (name, fresh) = (cas.name_of("alice"), cas.name_of("fresh"));
    let limiter = Limiter::<str>::with_store(bucket(), store(cas, &clock));
    let _ = limiter
        .apply_async("alice", Request::take(5))
        .await
        .unwrap();
    let mut raw = Raw::new(server);
    let version = |life: &str| {
        life.rsplit_once(" c")
            .map(|(_, version)| version.to_owned())
    };
    let before = raw.time_to_live(&name).unwrap();
    let version_before = version(&raw.life(&name)).unwrap();
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    for request in [
        Request::ONE,
        Request::PEEK,
        Request::take(6),
        Request::take(u64::MAX),
    ] {
        let asked = format!("{request:?}");
        let _ = limiter.apply_async("alice", request).await.unwrap();
        assert!(raw.time_to_live(&name).unwrap() < before, "{asked}");
        assert_eq!(
            version(&raw.life(&name)).unwrap(),
            version_before,
            "{asked}"
        );
    }
    for request in [Request::PEEK, Request::take(6)] {
        let asked = format!("{request:?}");
        let _ = limiter.apply_async("fresh", request).await.unwrap();
        assert_eq!(raw.life(&fresh), "EN", "{asked}");
    }
}

/// Of two writes the longer keep counts, in seconds and in days.
#[tokio::test]
async fn no_write_shortens_what_is_left() {
    let cas = strict("kept");
    let state = StateBytes::from_stored(b"state").unwrap();
    let mut raw = raw();
    for (key, long) in [
        ("hour", DAY / 24),
        ("month", DAY * 29),
        ("months", DAY * 60),
    ] {
        let name = cas.name_of(key);
        let mut lives = Vec::new();
        for keep in [long, Duration::from_secs(1), Duration::ZERO, long / 2] {
            let seen = cas.load_async(key, &kind()).await.unwrap();
            let kind = kind();
            let swap = cas.compare_exchange_async(key, &kind, &seen, &state, keep);
            assert!(matches!(swap.await.unwrap(), Swap::Done));
            lives.push(raw.time_to_live(&name).unwrap());
        }
        // Less by the seconds that went by meanwhile, and more by none that did not.
        let (first, last) = (lives[0], lives[3]);
        assert!((first - 5..=first).contains(&last), "{key}: {lives:?}");
    }
}

/// A bucket that is full under the smaller limit would come back full under the larger.
#[tokio::test]
async fn newer_versions_and_refunds_keep_the_expiry() {
    let (cas, clock) = (strict("kept-versions"), clock());
    let slow = TokenBucket::per_second(1).with_burst(3_600).with_version(1);
    let fast = TokenBucket::per_second(3_600).with_version(2);
    let old = Limiter::<str>::with_store(slow, store(cas.clone(), &clock));
    let new = Limiter::<str>::with_store(fast, store(cas.clone(), &clock));
    let mut raw = raw();
    let _ = old
        .apply_async("alice", Request::take(3_600))
        .await
        .unwrap();
    let name = cas.name_of("alice");
    let before = raw.time_to_live(&name).unwrap();
    assert!(before >= 3_600, "{before}");
    assert!(!new.check_async("alice").await.unwrap().is_allowed());
    let after = raw.time_to_live(&name).unwrap();
    assert!((before - 5..=before).contains(&after), "{before} {after}");

    let taken = old.apply_async("bob", Request::take(3_600)).await.unwrap();
    let refund = Request::refund(3_600, taken.into_receipt());
    let _ = old.apply_async("bob", refund).await.unwrap();
    let after = raw.time_to_live(&cas.name_of("bob")).unwrap();
    assert!(
        (before - 5..=before + 1).contains(&after),
        "{before} {after}"
    );
}
