//! A server that is full: what each `maxmemory-policy` makes of limits, while a flood of new keys comes in.

use ratekeeper::store::ErrorKind;
use ratekeeper::{KeyedLimiter, Request, TokenBucket};
use ratekeeper_redis::RedisLimiter;
use ratekeeper_test_servers::{Options, Server};

use crate::support::{kind, store};

const DRAINED: usize = 300;
const FLOOD: usize = 40_000;

/// Drains keys, floods the server with new ones that owe little, and asks for the drained ones again.
struct Outcome {
    readmitted: usize,
    /// Calls of the flood that were not answered; all of them must be `NotExecuted`.
    refused: usize,
    limiter: RedisLimiter,
    server: Server,
}

async fn flood(policy: &str) -> Outcome {
    let server =
        Server::redis(Options::new().args(["--maxmemory", "5mb", "--maxmemory-policy", policy]));
    // A drained key owes hours; one with a single token taken, minutes.
    let limit = TokenBucket::per_day(300).with_burst(60);
    let limiter: RedisLimiter = KeyedLimiter::with_store(limit, store(&server));
    for key in 0..DRAINED {
        let drained = limiter
            .apply_async(&format!("drained-{key}")[..], Request::take(60))
            .await
            .unwrap();
        assert!(drained.is_allowed());
    }
    let mut refused = 0;
    for first in (0..FLOOD).step_by(400) {
        let keys: Vec<String> = (first..first + 400)
            .map(|key| format!("flood-{key}"))
            .collect();
        let mut items: Vec<_> = keys
            .iter()
            .map(|key| ratekeeper::store::Item::new(&key[..], &limit, Request::ONE))
            .collect();
        ratekeeper::AsyncStore::apply_batch_async(limiter.store(), &mut items).await;
        for item in items {
            if let Err(error) = item.into_result() {
                assert_eq!(error.kind(), ErrorKind::NotExecuted, "{policy}: {error}");
                refused += 1;
            }
        }
    }
    let mut readmitted = 0;
    for key in 0..DRAINED {
        // A drained key that is still there refuses, also on a server that is full: refusals write nothing.
        match limiter
            .apply_async(&format!("drained-{key}")[..], Request::take(59))
            .await
        {
            Ok(decision) => readmitted += usize::from(decision.is_allowed()),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::NotExecuted, "{policy}: {error}");
                readmitted += 1; // forgotten, and only the memory was missing
            }
        }
    }
    Outcome {
        readmitted,
        refused,
        limiter,
        server,
    }
}

/// The right policy for a server of its own: what is nearest to its reset goes first, and owes least.
#[tokio::test]
async fn volatile_ttl_forgets_nobody_who_is_limited() {
    let outcome = flood("volatile-ttl").await;
    assert_eq!((outcome.readmitted, outcome.refused), (0, 0));
}

/// Nothing is forgotten; new keys are errors, for the failure policy to decide, and the rest goes on.
#[tokio::test]
async fn noeviction_makes_new_keys_errors_and_still_answers_the_others() {
    let outcome = flood("noeviction").await;
    assert_eq!(outcome.readmitted, 0);
    assert!(
        outcome.refused > FLOOD / 10,
        "{} refused: the server was not full",
        outcome.refused
    );
    // The flood ended near the brim; now well below it.
    outcome
        .server
        .command(&["CONFIG", "SET", "maxmemory", "1mb"])
        .unwrap();
    let limiter = &outcome.limiter;
    assert_eq!(
        kind(limiter.check_async("new").await),
        ErrorKind::NotExecuted
    );
    assert_eq!(
        limiter
            .apply_async("new", Request::PEEK)
            .await
            .unwrap()
            .remaining(),
        60
    );
    assert!(!limiter.check_async("drained-0").await.unwrap().is_allowed());
}

/// Lets a flood reset the limits of others: documented as what not to use. Still no errors, and no wrong numbers.
#[tokio::test]
async fn lru_and_random_policies_forget_drained_keys() {
    for policy in [
        "allkeys-lru",
        "volatile-lru",
        "allkeys-random",
        "volatile-random",
    ] {
        let outcome = flood(policy).await;
        assert_eq!(outcome.refused, 0, "{policy}");
        assert!(
            outcome.readmitted > DRAINED / 20,
            "{policy}: {} readmitted",
            outcome.readmitted
        );
    }
}

/// Keys asked once go before keys asked often, so a flood of new ones evicts itself. Drained keys here were asked once
/// as well, so nothing is promised but answers.
#[tokio::test]
async fn lfu_policies_answer_without_errors() {
    for policy in ["allkeys-lfu", "volatile-lfu"] {
        assert_eq!(flood(policy).await.refused, 0, "{policy}");
    }
}
