//! `Deadline`, on tokio's paused clock.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use ratekeeper::store::{AsyncStore, Deadline, ErrorKind, Item, StoreError};
use ratekeeper::{Algorithm, Decision, Request, TokenBucket};
use tokio::time::{Instant, sleep};

use crate::support::{Answer, LIMIT, NOW, Script, block_on, ms};

/// Takes its time, and says when it is dropped without having had it.
struct Slow(Duration, Arc<AtomicBool>);

struct Guard(Arc<AtomicBool>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl<A: Algorithm> AsyncStore<str, A> for Slow {
    async fn apply_async(
        &self,
        _: &str,
        limit: &A,
        request: Request,
    ) -> Result<Decision, StoreError> {
        let guard = Guard(Arc::clone(&self.1));
        sleep(self.0).await;
        std::mem::forget(guard);
        Ok(limit.step(NOW, &mut A::State::default(), &request).decision)
    }

    async fn forget_async(&self, _: &str, _: &A) -> Result<(), StoreError> {
        sleep(self.0).await;
        Ok(())
    }
}

fn slow(time: Duration) -> (Slow, Arc<AtomicBool>) {
    let dropped = Arc::new(AtomicBool::new(false));
    (Slow(time, Arc::clone(&dropped)), dropped)
}

#[tokio::test(start_paused = true)]
async fn answers_in_time_pass() {
    for time in [0, 1, 49, 50] {
        let (store, dropped) = slow(ms(time));
        let store = Deadline::new(store, ms(50), sleep);
        let decision = store.apply_async("a", &LIMIT, Request::ONE).await.unwrap();
        assert!(decision.is_allowed());
        assert!(
            AsyncStore::<str, _>::forget_async(&store, "a", &LIMIT)
                .await
                .is_ok()
        );
        assert!(!dropped.load(Ordering::Relaxed));
    }
}

#[tokio::test(start_paused = true)]
async fn later_ones_are_given_up_at_the_deadline() {
    for time in [ms(51), ms(80), Duration::from_secs(86_400)] {
        let (store, dropped) = slow(time);
        let store = Deadline::new(store, ms(50), sleep);
        let start = Instant::now();
        let error = store
            .apply_async("a", &LIMIT, Request::ONE)
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unknown);
        assert_eq!(start.elapsed(), ms(50));
        assert!(dropped.load(Ordering::Relaxed));
        let error = AsyncStore::<str, _>::forget_async(&store, "a", &LIMIT)
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unknown);
    }
}

#[tokio::test(start_paused = true)]
async fn errors_of_the_store_stay_as_they_are() {
    let script = Script::new([Answer::Late(Box::new(Answer::Fail(ErrorKind::Corrupt)))]);
    let store = Deadline::new(script, ms(50), sleep);
    let error = store
        .apply_async("a", &LIMIT, Request::ONE)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
}

#[tokio::test(start_paused = true)]
async fn of_a_batch_the_answered_items_stay() {
    let script = Script::new([
        Answer::Fresh,
        Answer::Hang,
        Answer::Ignore,
        Answer::Fail(ErrorKind::Config),
    ]);
    let store = Deadline::new(script, ms(50), sleep);
    let mut items = ["a", "b", "c", "d"].map(|key| Item::new(key, &LIMIT, Request::ONE));
    store.apply_batch_async(&mut items).await;
    assert!(items.iter_mut().all(|item| item.take_request().is_none()));
    assert!(items.iter().all(|item| item.result().is_some()));
    let [a, b, c, d] = items.map(Item::into_result);
    assert!(a.unwrap().is_allowed());
    assert_eq!(b.unwrap_err().kind(), ErrorKind::Unknown);
    assert_eq!(c.unwrap_err().kind(), ErrorKind::NotExecuted);
    assert_eq!(d.unwrap_err().kind(), ErrorKind::Config);
}

/// The store is asked first, so an answer that is there needs no timer, and one that comes with the deadline wins.
#[test]
fn the_store_comes_first() {
    let timers = AtomicU32::new(0);
    let at_once = |_: Duration| {
        timers.fetch_add(1, Ordering::Relaxed);
        std::future::ready(())
    };
    let store = Deadline::new(Script::default(), Duration::ZERO, at_once);
    assert!(block_on(store.apply_async("a", &LIMIT, Request::ONE)).is_ok());
    assert_eq!(timers.load(Ordering::Relaxed), 0);

    let (script, timers) = (
        Script::new([Answer::Late(Box::new(Answer::Fresh))]),
        AtomicU32::new(0),
    );
    let second_poll = |_: Duration| {
        timers.fetch_add(1, Ordering::Relaxed);
        crate::support::once_pending()
    };
    let store = Deadline::new(script, Duration::ZERO, second_poll);
    assert!(block_on(store.apply_async("a", &LIMIT, Request::ONE)).is_ok());
    assert_eq!(timers.load(Ordering::Relaxed), 1);
}

/// The timer is polled in the turn in which the store first keeps the caller waiting: nothing else may wake the task.
#[test]
fn the_timer_runs_from_the_first_wait() {
    let over = |_| std::future::ready(());
    let store = Deadline::new(Script::new([Answer::Hang]), ms(50), over);
    let mut future = pin!(store.apply_async("a", &LIMIT, Request::ONE));
    let mut context = Context::from_waker(Waker::noop());
    let Poll::Ready(result) = future.as_mut().poll(&mut context) else {
        panic!("asleep for ever");
    };
    assert_eq!(result.unwrap_err().kind(), ErrorKind::Unknown);
}

/// Nor is the store polled twice in that turn.
#[test]
fn one_poll_a_turn() {
    struct Counted(AtomicU32);

    impl AsyncStore<str, TokenBucket> for Counted {
        async fn apply_async(
            &self,
            _: &str,
            _: &TokenBucket,
            _: Request,
        ) -> Result<Decision, StoreError> {
            std::future::poll_fn(|_| {
                self.0.fetch_add(1, Ordering::Relaxed);
                Poll::Pending
            })
            .await
        }
    }

    let never = |_| std::future::pending();
    let store = Deadline::new(Counted(AtomicU32::new(0)), ms(50), never);
    let mut future = pin!(store.apply_async("a", &LIMIT, Request::ONE));
    let mut context = Context::from_waker(Waker::noop());
    for turn in 1..4 {
        assert!(future.as_mut().poll(&mut context).is_pending());
        assert_eq!(store.get_ref().0.load(Ordering::Relaxed), turn);
    }
}
