//! The task behind a connection: writes requests, reads answers, and ends when the connection does.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, Sleep, sleep_until, timeout};

use super::reply::Replies;
use super::{Answer, ConnectionId, Failure, Request};

/// How long making a connection may take. Callers wait no longer than their deadlines.
const CONNECT: Duration = Duration::from_secs(1);

/// A connection whose oldest request was given up so long ago is given up too: the peer is gone, or hangs.
const SILENCE: Duration = Duration::from_secs(1);

/// Requests under way at most.
const MOST_UNDER_WAY: usize = 1024;

/// Runs a connection to its end.
pub(super) async fn run(address: String, id: ConnectionId, mut requests: mpsc::Receiver<Request>) {
    let why_unsent = match timeout(CONNECT, connect(&address)).await {
        Ok(Ok(stream)) => {
            let mut driver = Driver::new(stream, id);
            let ended = poll_fn(|context| driver.poll(context, &mut requests)).await;
            let Err(error) = ended else { return };
            driver.fail(error);
            Failure::NotSent
        }
        Ok(Err(error)) => Failure::Unreachable(Arc::new(error)),
        Err(_) => Failure::Unreachable(Arc::new(io::ErrorKind::TimedOut.into())),
    };
    // Also those that have a place in the queue, but are not there yet.
    requests.close();
    while let Some(request) = requests.recv().await {
        give(request.answer_to, Err(why_unsent.clone()));
    }
}

async fn connect(address: &str) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Gives a caller its answer; it may have stopped waiting.
fn give(answer_to: oneshot::Sender<Result<Answer, Failure>>, answer: Result<Answer, Failure>) {
    let _ = answer_to.send(answer);
}

/// A request whose answer has not come.
struct UnderWay {
    deadline: Instant,
    answer_to: oneshot::Sender<Result<Answer, Failure>>,
}

struct Driver {
    stream: TcpStream,
    id: ConnectionId,
    under_way: VecDeque<UnderWay>,
    replies: Replies,
    out: Vec<u8>,
    /// How much of `out` is written.
    written: usize,
    silence: Pin<Box<Sleep>>,
}

impl Driver {
    fn new(stream: TcpStream, id: ConnectionId) -> Self {
        Self {
            stream,
            id,
            under_way: VecDeque::new(),
            replies: Replies::new(),
            out: Vec::new(),
            written: 0,
            silence: Box::pin(sleep_until(Instant::now() + SILENCE)),
        }
    }

    /// `Ok` when nobody has requests any more, an error when the connection is no longer of use.
    fn poll(
        &mut self,
        context: &mut Context<'_>,
        requests: &mut mpsc::Receiver<Request>,
    ) -> Poll<io::Result<()>> {
        loop {
            // First, so that nothing is written to a connection that is known to be closed.
            let read = self.read(context)?;
            let Some(taken) = self.take(context, requests) else {
                return Poll::Ready(Ok(()));
            };
            let () = self.write(context)?;
            // Whatever was not ready will wake the task; what was ready may be ready again.
            if taken + read == 0 {
                break;
            }
        }
        self.listen_for_silence(context).map(Err)
    }

    /// Takes requests from the queue and says how many; `None` if there will be no more.
    fn take(
        &mut self,
        context: &mut Context<'_>,
        requests: &mut mpsc::Receiver<Request>,
    ) -> Option<usize> {
        let before = self.under_way.len();
        while self.under_way.len() < MOST_UNDER_WAY {
            let Poll::Ready(request) = requests.poll_recv(context) else {
                break;
            };
            let request = request?;
            if request.only_on.is_some_and(|id| id != self.id) {
                give(request.answer_to, Err(Failure::OtherConnection));
            } else if !request.answer_to.is_closed() {
                self.out.extend_from_slice(&request.bytes);
                self.under_way.push_back(UnderWay {
                    deadline: request.deadline,
                    answer_to: request.answer_to,
                });
            }
        }
        Some(self.under_way.len() - before)
    }

    /// Writes what the socket takes.
    fn write(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        while self.written < self.out.len() {
            let rest = &self.out[self.written..];
            match Pin::new(&mut self.stream).poll_write(context, rest) {
                Poll::Ready(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(Ok(len)) => self.written += len,
                Poll::Ready(Err(error)) => return Err(error),
                Poll::Pending => return Ok(()),
            }
        }
        self.out.clear();
        self.written = 0;
        Ok(())
    }

    /// Reads what there is, hands out the answers, and says how many bytes there were.
    fn read(&mut self, context: &mut Context<'_>) -> io::Result<usize> {
        let mut buffer = ReadBuf::new(self.replies.space());
        let len = match Pin::new(&mut self.stream).poll_read(context, &mut buffer) {
            Poll::Ready(result) => result.map(|()| buffer.filled().len())?,
            Poll::Pending => return Ok(0),
        };
        if len == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.replies.filled(len);
        while let Some(reply) = self.replies.next().map_err(io::Error::other)? {
            let out_of_step = reply.is_misunderstanding();
            let message = out_of_step.then(|| format!("memcached said {reply:?}"));
            let Some(first) = self.under_way.pop_front() else {
                let message = message.unwrap_or_else(|| format!("unasked for: {reply:?}"));
                return Err(io::Error::other(message));
            };
            let answer = Answer {
                reply,
                connection: self.id,
            };
            give(first.answer_to, Ok(answer));
            if let Some(message) = message {
                return Err(io::Error::other(message));
            }
        }
        Ok(len)
    }

    /// Ready when the oldest request has been without an answer for too long.
    fn listen_for_silence(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        while let Some(oldest) = self.under_way.front() {
            if self.silence.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            // Set for a request that is answered by now, most of the time.
            let too_long = oldest.deadline + SILENCE;
            if too_long <= Instant::now() {
                return Poll::Ready(io::ErrorKind::TimedOut.into());
            }
            self.silence.as_mut().reset(too_long);
        }
        Poll::Pending
    }

    /// Tells all whose requests were sent.
    fn fail(self, error: io::Error) {
        let failure = Failure::Broken(Arc::new(error));
        for request in self.under_way {
            give(request.answer_to, Err(failure.clone()));
        }
    }
}
