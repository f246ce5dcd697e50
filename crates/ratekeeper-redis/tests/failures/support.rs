//! Limiters over one server, patient ones and one in a hurry.

use std::time::Duration;

use ratekeeper::store::{ErrorKind, Namespace, StoreError};
use ratekeeper::{Decision, KeyedLimiter, TokenBucket};
use ratekeeper_redis::{RedisLimiter, RedisStore};
use ratekeeper_test_servers::Server;

/// No refill while a test runs.
pub(crate) const FIVE_A_DAY: TokenBucket = TokenBucket::per_day(5);

/// For answers that must come: a busy machine may be slow.
pub(crate) const PATIENT: Duration = Duration::from_secs(10);
/// For answers that will not come.
pub(crate) const HURRIED: Duration = Duration::from_millis(200);

pub(crate) fn store(server: &Server) -> RedisStore {
    let url = format!("redis://{}/", server.address());
    RedisStore::connect(url, Namespace::new("test").unwrap())
        .unwrap()
        .with_deadline(PATIENT)
}

pub(crate) fn limiter(server: &Server) -> RedisLimiter {
    KeyedLimiter::with_store(FIVE_A_DAY, store(server))
}

pub(crate) fn hurried(server: &Server) -> RedisLimiter {
    KeyedLimiter::with_store(FIVE_A_DAY, store(server).with_deadline(HURRIED))
}

/// How many of `tries` single tokens pass; every call must be answered.
pub(crate) async fn admitted(limiter: &RedisLimiter, key: &str, tries: u32) -> u32 {
    let mut admitted = 0;
    for _ in 0..tries {
        admitted += u32::from(limiter.check_async(key).await.unwrap().is_allowed());
    }
    admitted
}

pub(crate) fn kind(result: Result<Decision, StoreError>) -> ErrorKind {
    result.unwrap_err().kind()
}

/// Asks until Redis answers again: right after an outage the first calls may still fail.
pub(crate) async fn first_answer(limiter: &RedisLimiter, key: &str) -> Decision {
    for _ in 0..200 {
        match limiter.check_async(key).await {
            Ok(decision) => return decision,
            Err(error) => assert!(error.kind().is_outage(), "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("no answer for two seconds after the outage");
}
