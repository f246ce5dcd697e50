//! Batches on a server that does not know the scripts, or not all of them.

use ratekeeper::store::Item;
use ratekeeper::{AsyncStore, Decision, Request};
use ratekeeper_test_servers::{Options, Server};

use crate::support::{FIVE_A_DAY, limiter, store};

/// Take, give back, take: in another order the second take would be refused.
#[tokio::test]
async fn items_of_one_key_keep_their_order_whatever_the_server_knows() {
    let server = Server::redis(Options::new());
    let store = store(&server);
    let limiter = limiter(&server);
    for round in 0..3 {
        let key = format!("k{round}");
        let receipt = limiter
            .apply_async(&key[..], Request::take(5))
            .await
            .unwrap()
            .into_receipt();
        server.command(&["SCRIPT", "FLUSH"]).unwrap();
        if round > 0 {
            // The script for takes, but not the one for refunds.
            drop(limiter.check_async("other").await.unwrap());
        }
        let requests = [Request::refund(5, receipt), Request::take(5), Request::PEEK];
        let mut items: Vec<_> = requests
            .into_iter()
            .map(|request| Item::new(&key[..], &FIVE_A_DAY, request))
            .collect();
        store.apply_batch_async(&mut items).await;
        let decisions: Vec<Decision> = items
            .into_iter()
            .map(|item| item.into_result().unwrap())
            .collect();
        let remaining: Vec<u64> = decisions.iter().map(Decision::remaining).collect();
        assert_eq!(remaining, [5, 0, 0], "round {round}");
        assert!(decisions[1].is_allowed());
    }
}

/// 1,200 items are three pipelines; two keys with a limit each.
#[tokio::test]
async fn large_batches_count_each_item_once_cold_and_warm() {
    let server = Server::redis(Options::new());
    let store = store(&server);
    let limit = FIVE_A_DAY.with_burst(400);
    let batch = async || {
        let mut items: Vec<_> = (0..1_200)
            .map(|n| {
                Item::new(
                    if n % 2 == 0 { "even" } else { "odd" },
                    &limit,
                    Request::ONE,
                )
            })
            .collect();
        store.apply_batch_async(&mut items).await;
        items
            .into_iter()
            .filter(|item| matches!(item.result(), Some(Ok(decision)) if decision.is_allowed()))
            .count()
    };
    assert_eq!(batch().await, 800);
    assert_eq!(batch().await, 0);
}
