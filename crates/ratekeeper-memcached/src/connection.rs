//! One connection, which many requests share.

mod driver;
mod reply;

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

pub(crate) use self::reply::Reply;

/// Requests that wait to be sent. More callers wait for a place, within their deadlines.
const QUEUE: usize = 1024;

/// A connection to one server, made on first use and made again after it broke.
///
/// A task of its own writes the requests of all callers and hands each answer to its caller, in order. A caller that gives
/// up leaves its place in that order, so nobody is given another's answer.
pub(crate) struct Connection {
    address: String,
    queue: Mutex<Option<mpsc::Sender<Request>>>,
}

/// What a task is asked to send.
struct Request {
    bytes: Vec<u8>,
    /// The one connection on which it makes sense, if only one.
    only_on: Option<ConnectionId>,
    /// When its caller stops waiting.
    deadline: Instant,
    answer_to: oneshot::Sender<Result<Answer, Failure>>,
}

/// Distinguishes all connections of this process.
///
/// memcached numbers versions anew when it starts, so a version says nothing on another connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConnectionId(u64);

/// An answer and where it came from.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) reply: Reply,
    pub(crate) connection: ConnectionId,
}

/// Why there is no answer.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// No connection could be made: nothing was sent.
    Unreachable(Arc<io::Error>),
    /// Nothing was sent, because the connection broke before.
    NotSent,
    /// Nothing was sent, because this is not the connection on which it would have made sense.
    OtherConnection,
    /// The request was sent, and then the connection broke.
    Broken(Arc<io::Error>),
}

impl Connection {
    pub(crate) fn new(address: String) -> Self {
        Self {
            address,
            queue: Mutex::new(None),
        }
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Sends `bytes`, one whole request, and waits for its answer: forever, perhaps. Nothing is sent twice. A new connection
    /// is made on `runtime`.
    pub(crate) async fn ask(
        &self,
        runtime: &Handle,
        bytes: Vec<u8>,
        only_on: Option<ConnectionId>,
        deadline: Instant,
    ) -> Result<Answer, Failure> {
        let (answer_to, answer) = oneshot::channel();
        let request = Request {
            bytes,
            only_on,
            deadline,
            answer_to,
        };
        if self.queue(runtime).send(request).await.is_err() {
            return Err(Failure::NotSent);
        }
        answer.await.unwrap_or_else(|_| {
            let message = "the runtime that ran the connection has ended";
            Err(Failure::Broken(Arc::new(io::Error::other(message))))
        })
    }

    /// The present task's queue; a new task's if that has ended, because its connection broke or its runtime is gone.
    fn queue(&self, runtime: &Handle) -> mpsc::Sender<Request> {
        static NEXT: AtomicU64 = AtomicU64::new(1);

        // Nothing panics while it is locked.
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        match &*queue {
            Some(sender) if !sender.is_closed() => sender.clone(),
            _ => {
                let (sender, requests) = mpsc::channel(QUEUE);
                let id = ConnectionId(NEXT.fetch_add(1, Ordering::Relaxed));
                runtime.spawn(driver::run(self.address.clone(), id, requests));
                queue.insert(sender).clone()
            }
        }
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}
