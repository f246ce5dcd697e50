//! A receipt is spent where it was handed out. Builds with debug assertions notice when it is not; those without give back
//! what was never charged there, as documented.

use std::sync::atomic::{AtomicBool, Ordering};

use ratekeeper::store::{ErrorKind, FailOpen, Store, StoreError};
use ratekeeper::{
    Algorithm, All, DashStore, Decision, KeyedLimiter, Outcome, Receipt, Request, SlidingWindow,
    TableStore, TokenBucket, UnixClock,
};

const LIMIT: TokenBucket = TokenBucket::per_hour(10);

fn users() -> KeyedLimiter<u64> {
    KeyedLimiter::new(LIMIT)
}

#[cfg(debug_assertions)]
mod spent_elsewhere {
    use super::*;

    #[test]
    #[should_panic(expected = "another key")]
    fn on_another_key_of_a_map() {
        let users = users();
        let receipt = users.check(&1).into_receipt();
        let _ = users.apply(&2, Request::refund(1, receipt));
    }

    #[test]
    #[should_panic(expected = "another key")]
    fn on_another_key_of_a_table() {
        let store = TableStore::<_, TokenBucket>::for_keys(10).unwrap();
        let users = KeyedLimiter::<u64, _, _>::with_store(LIMIT, store);
        let receipt = users.for_key(&1).check().into_receipt();
        let _ = users.for_key(&2).apply(Request::refund(1, receipt));
    }

    #[test]
    #[should_panic(expected = "another limit")]
    fn under_another_limit() {
        let users = users();
        let receipt = users.check(&1).into_receipt();
        let other = LIMIT.with_burst(9);
        let _ = users.under(&other).apply(&1, Request::refund(1, receipt));
    }

    #[test]
    #[should_panic(expected = "another limit")]
    fn under_a_window_of_another_count() {
        let (own, other) = (SlidingWindow::per_hour(10), SlidingWindow::per_hour(11));
        let users = KeyedLimiter::<u64, _>::new(own);
        let receipt = users.under(&other).check(&1).into_receipt();
        let _ = users.try_apply(&1, Request::refund(1, receipt));
    }

    #[tokio::test]
    #[should_panic(expected = "another key")]
    async fn on_another_key_in_a_task() {
        let users = users();
        let receipt = users.check_async(&1).await.unwrap().into_receipt();
        let _ = users.apply_async(&2, Request::refund(1, receipt)).await;
    }

    #[test]
    #[should_panic(expected = "another key")]
    fn in_another_store() {
        let receipt = users().check(&1).into_receipt();
        let _ = users().apply(&1, Request::refund(1, receipt)); // its keys are hashed with another secret
    }
}

/// Where it belongs, by whichever verb, nothing is noticed.
#[test]
fn spent_at_home() {
    let users = users();
    let raised = TokenBucket::per_hour(20);
    let receipt = users.under(&raised).for_key(&1).check_n(4).into_receipt();
    let back = users.under(&raised).apply(&1, Request::refund(4, receipt));
    assert_eq!(back.remaining(), 20);
    let (_, receipt) = users.try_apply(&2, Request::take(3)).unwrap().split();
    assert_eq!(users.apply(&2, Request::refund(3, receipt)).remaining(), 10);
    // Equal limits are one limit, whoever made them.
    let same: TokenBucket = "10/h".parse().unwrap();
    let receipt = users.check(&3).into_receipt();
    let back = users.under(&same).apply(&3, Request::refund(1, receipt));
    assert_eq!(back.remaining(), 10);
}

/// A store that can be switched off.
struct Switched<S>(S, AtomicBool);

impl<A: Algorithm, S: Store<u64, A>> Store<u64, A> for Switched<S> {
    fn apply(&self, key: &u64, algorithm: &A, request: Request) -> Result<Decision, StoreError> {
        if self.1.load(Ordering::Relaxed) {
            return Err(StoreError::new(ErrorKind::NotExecuted, "down"));
        }
        self.0.apply(key, algorithm, request)
    }

    fn try_fingerprint(&self, key: &u64) -> u64 {
        Store::<u64, A>::try_fingerprint(&self.0, key)
    }
}

/// The receipt of an answer in place of the store stands for nothing, and spending it is no mistake: on its key, once the store
/// is back, or while it is still away.
#[test]
fn void_receipts_are_no_mistake() {
    // Void receipts give nothing back on a clock that counts from the Unix epoch.
    let map = DashStore::<u64, TokenBucket, _>::with_clock(UnixClock);
    let store = Switched(map, AtomicBool::new(true));
    let users = KeyedLimiter::<u64, _, _>::with_store(LIMIT, FailOpen::new(&store));
    let ask = |request| users.try_apply(&1, request).unwrap();
    let (first, second) = (ask(Request::take(3)), ask(Request::take(3)));
    assert!(first.is_degraded() && first.granted() == 3);
    let lost = ask(Request::refund(3, first.into_receipt()));
    assert_eq!(lost.outcome(), Outcome::Allowed);
    store.1.store(false, Ordering::Relaxed);
    assert_eq!(ask(Request::take(5)).remaining(), 5);
    let nothing = ask(Request::refund(3, second.into_receipt()));
    assert!(!nothing.is_degraded());
    assert_eq!(nothing.remaining(), 5);
    // A receipt that no limiter handed out names no key and no limit.
    let nothing = ask(Request::refund(3, Receipt::new(3, 0)));
    assert_eq!(nothing.remaining(), 5);
}

/// Charges of several limits differ where one has no room; each gets back what it was charged.
#[test]
fn of_several_limits_each_gets_its_own_back() {
    let limit = All([TokenBucket::per_hour(10), TokenBucket::per_hour(4)]);
    let users = KeyedLimiter::<u64, _>::new(limit);
    let charge = users.apply(&1, Request::charge(7));
    assert_eq!([0, 1, 2].map(|i| charge.charged_to(i)), [7, 4, 0]);
    assert_eq!((charge.granted(), charge.uncharged()), (4, 3));
    let receipt = charge.into_receipt();
    assert_eq!([0, 1, 2, 9].map(|i| receipt.charged_to(i)), [7, 4, 0, 0]);
    // Five back: of seven, and of four.
    let _ = users.apply(&1, Request::refund(5, receipt));
    let parts = [LIMIT, TokenBucket::per_hour(4)].map(KeyedLimiter::<u64>::new);
    for (users, (taken, back)) in parts.iter().zip([(7, 5), (4, 5)]) {
        let receipt = users.check_n(&1, taken).into_receipt();
        let _ = users.apply(&1, Request::refund(back, receipt));
    }
    let least = parts.iter().map(|users| users.peek(&1).remaining()).min();
    assert_eq!(Some(users.peek(&1).remaining()), least);
    assert_eq!(least, Some(4)); // all four of the second, and eight of ten of the first
}
