//! Users who may not do everything.

use ratekeeper::store::{ErrorKind, Namespace};
use ratekeeper::{AsyncStore, KeyedLimiter, Request, SlidingLog};
use ratekeeper_redis::{RedisLimiter, RedisStore};
use ratekeeper_test_servers::{Options, Server};

use crate::support::{FIVE_A_DAY, PATIENT, admitted, kind};

fn as_user(server: &Server, user: &str, namespace: &str) -> RedisStore {
    let url = format!("redis://{user}:secret@{}/", server.address());
    RedisStore::connect(url, Namespace::new(namespace).unwrap())
        .unwrap()
        .with_deadline(PATIENT)
}

/// The rights that the crate's page names suffice.
#[tokio::test]
async fn a_user_with_just_the_documented_rights_can_do_everything() {
    let server = Server::redis(Options::new());
    let rights = "+evalsha +eval +get +set +del +pttl +time +zadd +zcard +zcount +zrange +zrangebyscore +zremrangebyrank +pexpire";
    let mut command = vec![
        "ACL", "SETUSER", "limiter", "on", ">secret", "~rl:*", "+hello",
    ];
    command.extend(rights.split(' '));
    server.command(&command).unwrap();

    let store = as_user(&server, "limiter", "rights");
    let limiter: RedisLimiter = KeyedLimiter::with_store(FIVE_A_DAY, store.clone());
    assert_eq!(admitted(&limiter, "k", 9).await, 5);
    limiter.forget_async("k").await.unwrap();
    assert_eq!(admitted(&limiter, "k", 9).await, 5);
    let log = SlidingLog::per_day(3);
    for passes in [true, true, true, false] {
        assert_eq!(
            store
                .apply_async("log", &log, Request::ONE)
                .await
                .unwrap()
                .is_allowed(),
            passes
        );
    }
    for limit in [FIVE_A_DAY.with_version(1), FIVE_A_DAY.with_version(2)] {
        let decision = store.apply_async("v", &limit, Request::ONE).await.unwrap();
        assert!(decision.is_allowed());
    }
    let receipt = limiter
        .apply_async("r", Request::take(2))
        .await
        .unwrap()
        .into_receipt();
    assert_eq!(
        limiter
            .apply_async("r", Request::refund(1, receipt))
            .await
            .unwrap()
            .remaining(),
        4
    );
}

#[tokio::test]
async fn missing_rights_are_a_matter_of_configuration() {
    let server = Server::redis(Options::new());
    let may_not = |user: &str, rights: &[&str]| {
        let mut command = vec!["ACL", "SETUSER", user, "on", ">secret", "+hello"];
        command.extend(rights);
        server.command(&command).unwrap();
    };
    may_not("no-scripts", &["~rl:*", "+get", "+set", "+time"]);
    may_not("no-set", &["~rl:*", "+eval", "+evalsha", "+get", "+time"]);
    may_not("other-keys", &["~app:*", "+@all"]);
    for user in ["no-scripts", "no-set", "other-keys"] {
        let limiter: RedisLimiter =
            KeyedLimiter::with_store(FIVE_A_DAY, as_user(&server, user, "rights"));
        for _ in 0..2 {
            assert_eq!(
                kind(limiter.check_async("k").await),
                ErrorKind::Config,
                "{user}"
            );
        }
    }
    let limiter: RedisLimiter =
        KeyedLimiter::with_store(FIVE_A_DAY, as_user(&server, "nobody", "rights"));
    assert_eq!(
        kind(limiter.check_async("k").await),
        ErrorKind::Config,
        "an unknown user"
    );
}

#[tokio::test]
async fn addresses_that_are_none_are_a_matter_of_configuration() {
    for url in ["", "http://127.0.0.1/", "redis://127.0.0.1:port/"] {
        let result = RedisStore::connect(url, Namespace::new("n").unwrap());
        assert_eq!(result.unwrap_err().kind(), ErrorKind::Config, "{url:?}");
    }
}
