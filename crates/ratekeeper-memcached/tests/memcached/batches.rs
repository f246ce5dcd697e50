//! Several decisions in one call.

use ratekeeper::Request;
use ratekeeper::store::{AsyncStore, Item};
use ratekeeper_test_servers::{Kind, Options, Server};

use crate::support::{bucket, cas, clock, store};

#[tokio::test]
async fn items_of_one_key_are_answered_in_order() {
    let store = store(cas(Server::shared(Kind::Memcached), "batch"), &clock());
    let limit = bucket();
    let keys: Vec<String> = (0..300)
        .map(|number| format!("key {}", number % 50))
        .collect();
    let mut items: Vec<_> = keys
        .iter()
        .map(|key| Item::new(key.as_str(), &limit, Request::ONE))
        .collect();
    store.apply_batch_async(&mut items).await;
    for (number, item) in items.into_iter().enumerate() {
        let decision = item.into_result().unwrap();
        let earlier = number as u64 / 50;
        assert_eq!(decision.is_allowed(), earlier < 5, "{number}");
        assert_eq!(
            decision.remaining(),
            4_u64.saturating_sub(earlier),
            "{number}"
        );
    }
}

#[tokio::test]
async fn each_item_has_its_own_error() {
    let mut server = Server::memcached(Options::new());
    let store = store(cas(&server, "batch"), &clock());
    server.kill();
    let limit = bucket();
    let mut items = ["a", "b", "a"].map(|key| Item::new(key, &limit, Request::ONE));
    store.apply_batch_async(&mut items).await;
    for item in items {
        let error = item.into_result().unwrap_err();
        assert_eq!(error.kind(), ratekeeper::store::ErrorKind::NotExecuted);
    }
}
