//! Running futures: to the end, together, up to some point, or for some time.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::task::Wake;
use alloc::vec::Vec;
use core::future::poll_fn;
use core::pin::{Pin, pin};
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, Thread};

/// Runs a future on this thread until it is done, for futures that need no runtime.
///
/// ```
/// assert_eq!(ratekeeper::conformance::block_on(async { 7 }), 7);
/// ```
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(Thread);

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}

/// Runs futures side by side until all are done, each time in the opposite order: who began first is not always first.
pub(super) async fn join_all<F: Future<Output = ()>>(futures: impl IntoIterator<Item = F>) {
    let mut running: Vec<Pin<Box<F>>> = futures.into_iter().map(Box::pin).collect();
    poll_fn(|context| {
        running.retain_mut(|future| future.as_mut().poll(context).is_pending());
        running.reverse();
        if running.is_empty() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
}

/// Polls a future at most `polls` times, and drops it if that was not enough.
pub(super) async fn up_to_polls<T>(polls: u32, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    let mut polled = 0;
    poll_fn(|context| {
        if polled == polls {
            return Poll::Ready(None);
        }
        polled += 1;
        let done = future.as_mut().poll(context).map(Some);
        if done.is_pending() && polled == polls {
            return Poll::Ready(None);
        }
        done
    })
    .await
}

/// Lets other tasks of this thread run once.
pub(super) async fn yield_once() {
    let mut yielded = false;
    poll_fn(|context| {
        if yielded {
            return Poll::Ready(());
        }
        yielded = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Drops a future that is not done after `time`. A helper thread wakes it then, so that this works in every runtime.
pub(super) async fn up_to_time<T>(time: Duration, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    let mut alarm: Option<(mpsc::Sender<()>, mpsc::Receiver<()>)> = None;
    poll_fn(|context| {
        if let Poll::Ready(value) = future.as_mut().poll(context) {
            return Poll::Ready(Some(value));
        }
        match &alarm {
            Some((_, rang)) if rang.try_recv().is_ok() => return Poll::Ready(None),
            Some(_) => {}
            None => {
                let (done, is_done) = mpsc::channel::<()>();
                let (ring, rang) = mpsc::channel();
                let waker = context.waker().clone();
                thread::spawn(move || {
                    // Dropping `done` ends the thread early.
                    if is_done.recv_timeout(time) == Err(RecvTimeoutError::Timeout) {
                        let _ = ring.send(());
                        waker.wake();
                    }
                });
                alarm = Some((done, rang));
            }
        }
        Poll::Pending
    })
    .await
}

#[cfg(test)]
mod tests {
    use core::future::{pending, ready};

    use super::*;

    #[test]
    fn futures_are_dropped_after_their_share() {
        assert_eq!(block_on(up_to_polls(0, ready(7))), None);
        assert_eq!(block_on(up_to_polls(1, ready(7))), Some(7));
        let twice = || async {
            yield_once().await;
            7
        };
        assert_eq!(block_on(up_to_polls(1, twice())), None);
        assert_eq!(block_on(up_to_polls(2, twice())), Some(7));
        let short = Duration::from_millis(1);
        assert_eq!(block_on(up_to_time(short, pending::<()>())), None);
        let long = Duration::from_secs(3_600);
        assert_eq!(block_on(up_to_time(long, twice())), Some(7));
    }

    #[test]
    fn joined_futures_take_turns() {
        let turns = std::sync::Mutex::new(Vec::new());
        let task = |name| {
            let turns = &turns;
            async move {
                for _ in 0..2 {
                    turns.lock().unwrap().push(name);
                    yield_once().await;
                }
            }
        };
        block_on(join_all(['a', 'b'].map(task)));
        assert_eq!(*turns.lock().unwrap(), ['a', 'b', 'b', 'a']);
    }
}
