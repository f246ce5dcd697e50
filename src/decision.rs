//! The complete answer to a request, from one snapshot of one state.

mod numbers;
mod report;

use core::error::Error;
use core::fmt;
use core::time::Duration;

pub(crate) use self::numbers::{BucketNumbers, Numbers, WindowNumbers};
pub use self::report::Report;
use crate::request::Receipt;
use crate::time::duration_ns;

/// What a limit said.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The request passes (perhaps after [`Decision::wait`]).
    Allowed,
    /// Not now. Nothing was charged.
    Denied {
        /// A promise: after exactly this long the same request passes if nobody else takes tokens
        /// in between, and one nanosecond earlier it does not. Never zero.
        retry_after: Duration,
    },
    /// The request can never pass, however long the caller waits: it costs more than the limit
    /// holds. Nothing was charged.
    TooLarge,
    /// This algorithm has no answer to that kind of request. Nothing was charged.
    Unsupported,
}

/// A limit's answer: the outcome, and the numbers a client is owed on refusals too.
///
/// The numbers describe the state *after* the decision. They are worked out only when asked for;
/// [`is_allowed`](Self::is_allowed) costs nothing.
///
/// ```
/// use core::time::Duration;
/// use ratekeeper::{Limiter, Timestamp, TokenBucket};
///
/// let limiter = Limiter::new(TokenBucket::per_second(1).with_burst(2));
/// let now = Timestamp::ZERO;
/// let first = limiter.check_at(now);
/// assert!(first.is_allowed());
/// assert_eq!((first.limit(), first.remaining()), (2, 1));
///
/// assert!(limiter.check_at(now).is_allowed());
/// let third = limiter.check_at(now);
/// assert_eq!(third.retry_after(), Some(Duration::from_secs(1)));
/// assert_eq!(third.reset_after(), Duration::from_secs(2));
/// ```
#[must_use = "a decision says whether the request may go ahead"]
pub struct Decision {
    answer: Answer,
    receipt: Receipt,
}

/// All of a decision but the receipt.
#[derive(Clone, Copy)]
struct Answer {
    kind: Kind,
    /// Until the request may act (allowed) or be asked again (denied).
    span_ns: u64,
    /// Of a charge, what found no room.
    uncharged: u64,
    index: u8,
    degraded: bool,
    numbers: Numbers,
}

/// An outcome without its number: with the number inside, the tag would live in the unused values of a `Duration`, and
/// everybody who asks `is_allowed` would pay for the division that makes one (35 against 32 ns for a refusal).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Allowed,
    Denied,
    TooLarge,
    Unsupported,
}

impl Decision {
    /// A refusal for `retry_ns`.
    #[inline]
    pub(crate) const fn denied(retry_ns: u64, numbers: Numbers) -> Self {
        let mut decision = Self::from_numbers(Outcome::Allowed, numbers);
        decision.answer.kind = Kind::Denied;
        decision.answer.span_ns = retry_ns;
        decision
    }

    /// The answer to what a limit, or a store, cannot do.
    #[inline]
    pub(crate) const fn unsupported() -> Self {
        Self::new(Outcome::Unsupported, 0, 0, Duration::ZERO)
    }

    /// [`with_wait`](Self::with_wait), in nanoseconds.
    #[inline]
    pub(crate) const fn with_wait_ns(mut self, wait_ns: u64) -> Self {
        self.answer.span_ns = wait_ns;
        self
    }

    /// For authors of algorithms: an answer whose numbers are known already. `limit` and `remaining`
    /// count tokens; `reset_after` is the time until the state equals a fresh one, so it must be
    /// zero if and only if forgetting the state would change nothing. A wait above `u64::MAX` nanoseconds (584 years)
    /// counts as that.
    #[inline]
    pub const fn new(outcome: Outcome, limit: u64, remaining: u64, reset_after: Duration) -> Self {
        Self::from_numbers(
            outcome,
            Numbers::Plain {
                limit,
                remaining,
                reset_after,
            },
        )
    }

    #[inline]
    pub(crate) const fn from_numbers(outcome: Outcome, numbers: Numbers) -> Self {
        let (kind, span_ns) = match outcome {
            Outcome::Allowed => (Kind::Allowed, 0),
            Outcome::Denied { retry_after } => (Kind::Denied, duration_ns(retry_after)),
            Outcome::TooLarge => (Kind::TooLarge, 0),
            Outcome::Unsupported => (Kind::Unsupported, 0),
        };
        Self {
            answer: Answer {
                kind,
                span_ns,
                uncharged: 0,
                index: 0,
                degraded: false,
                numbers,
            },
            receipt: Receipt::NOTHING,
        }
    }

    /// Attaches the proof of what was charged.
    #[inline]
    pub const fn with_receipt(mut self, receipt: Receipt) -> Self {
        self.receipt = receipt;
        self
    }

    /// Says where the receipt was handed out.
    #[inline(always)]
    pub(crate) fn with_origin(mut self, origin: impl FnOnce() -> (u64, u64)) -> Self {
        self.receipt = self.receipt.with_origin(origin);
        self
    }

    /// Replaces the mark by which a refund will find the charge.
    #[inline(always)]
    pub(crate) const fn with_mark(mut self, mark: u64) -> Self {
        self.receipt = self.receipt.with_mark(mark);
        self
    }

    /// Says that the request passes only after `wait`.
    #[inline]
    pub const fn with_wait(mut self, wait: Duration) -> Self {
        if let Kind::Allowed = self.answer.kind {
            self.answer.span_ns = duration_ns(wait);
        }
        self
    }

    /// Says how much of a [charge](crate::Request::charge) found no room.
    #[inline]
    pub const fn with_uncharged(mut self, tokens: u64) -> Self {
        self.answer.uncharged = tokens;
        self
    }

    /// Says which of several limits this answer comes from.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // saturated first
    pub const fn with_index(mut self, index: usize) -> Self {
        self.answer.index = if index > u8::MAX as usize {
            u8::MAX
        } else {
            index as u8
        };
        self
    }

    /// Says that a wrapper answered in place of an unreachable store.
    #[inline]
    pub const fn with_degraded(mut self, degraded: bool) -> Self {
        self.answer.degraded = degraded;
        self
    }

    /// Whether the request may go ahead, after [`wait`](Self::wait) if that is not zero.
    #[inline]
    pub const fn is_allowed(&self) -> bool {
        matches!(self.answer.kind, Kind::Allowed)
    }

    /// What the limit said.
    #[inline]
    pub const fn outcome(&self) -> Outcome {
        self.answer.outcome()
    }

    /// The most tokens the limit ever has to give at once: a bucket's burst, a window's count.
    #[inline]
    pub const fn limit(&self) -> u64 {
        self.answer.numbers.limit()
    }

    /// The largest cost that would pass right now.
    #[inline]
    pub const fn remaining(&self) -> u64 {
        self.answer.numbers.remaining()
    }

    /// How long until the limit has forgotten everything: a bucket is full again, a window empty.
    #[inline]
    pub const fn reset_after(&self) -> Duration {
        self.answer.numbers.reset_after()
    }

    /// When denied: how long until the same request passes. `None` when it passed already, or never
    /// will.
    #[inline]
    pub const fn retry_after(&self) -> Option<Duration> {
        self.answer.retry_after()
    }

    /// When allowed by [`Request::or_wait`](crate::Request::or_wait): how long to wait before acting. After a
    /// [charge](crate::Request::charge): how long until what is owed beyond the burst is paid.
    #[inline]
    pub const fn wait(&self) -> Duration {
        self.answer.wait()
    }

    /// How many tokens were charged: what [`Request::up_to`](crate::Request::up_to) got.
    #[inline]
    pub const fn granted(&self) -> u64 {
        self.receipt.charged()
    }

    /// How many tokens of a [charge](crate::Request::charge) found no room, and so were not charged; of several limits, in the
    /// one with the least. 0 for every other request.
    #[inline]
    pub const fn uncharged(&self) -> u64 {
        self.answer.uncharged
    }

    /// How many tokens the limit at `index` of several was charged; see [`Receipt::charged_to`].
    #[inline]
    pub const fn charged_to(&self, index: usize) -> u64 {
        self.receipt.charged_to(index)
    }

    /// Which of several limits spoke: the one that refused, or the one with the least left. 0 for a
    /// single limit.
    #[inline]
    pub const fn index(&self) -> usize {
        self.answer.index as usize
    }

    /// Whether a wrapper answered because the store could not.
    #[inline]
    pub const fn is_degraded(&self) -> bool {
        self.answer.degraded
    }

    /// The numbers alone, without the receipt: they can be copied and kept.
    #[inline]
    pub const fn report(&self) -> Report {
        Report::new(self.answer, self.granted())
    }

    /// The numbers, and the receipt.
    #[inline]
    pub fn split(self) -> (Report, Receipt) {
        (self.report(), self.receipt)
    }

    /// The proof of what was charged, to give tokens back later. After a refusal it stands for
    /// nothing.
    #[inline]
    pub fn into_receipt(self) -> Receipt {
        self.receipt
    }

    /// The receipt if the request may go ahead, an error that states the wait if not.
    ///
    /// # Errors
    /// [`Denied`] for every outcome but [`Outcome::Allowed`].
    ///
    /// ```
    /// # use ratekeeper::{Denied, Limiter, Timestamp, TokenBucket};
    /// # let limiter = Limiter::new(TokenBucket::per_second(1));
    /// # let now = Timestamp::ZERO;
    /// limiter.check_at(now).into_result()?;
    /// let denied = limiter.check_at(now).into_result().unwrap_err();
    /// assert_eq!(denied.to_string(), "rate limited: retry after 1s");
    /// # Ok::<(), Denied>(())
    /// ```
    #[inline]
    pub fn into_result(self) -> Result<Receipt, Denied> {
        if self.is_allowed() {
            Ok(self.receipt)
        } else {
            Err(Denied(self.answer))
        }
    }

    /// The mark left by a single limit, for combining several.
    #[inline]
    pub(crate) const fn mark(&self) -> u64 {
        self.receipt.mark()
    }

    /// When a reservation's turn comes, 0 if it did not have to wait.
    #[inline]
    pub(crate) const fn run_at_ns(&self) -> u64 {
        self.receipt.run_at_ns()
    }
}

impl Answer {
    #[inline]
    const fn wait(&self) -> Duration {
        match self.kind {
            Kind::Allowed => Duration::from_nanos(self.span_ns),
            _ => Duration::ZERO,
        }
    }

    #[inline]
    const fn retry_after(&self) -> Option<Duration> {
        match self.kind {
            Kind::Denied => Some(Duration::from_nanos(self.span_ns)),
            _ => None,
        }
    }

    #[inline]
    const fn outcome(&self) -> Outcome {
        match self.kind {
            Kind::Allowed => Outcome::Allowed,
            Kind::Denied => Outcome::Denied {
                retry_after: Duration::from_nanos(self.span_ns),
            },
            Kind::TooLarge => Outcome::TooLarge,
            Kind::Unsupported => Outcome::Unsupported,
        }
    }
}

impl From<Answer> for Decision {
    fn from(answer: Answer) -> Self {
        Self {
            answer,
            receipt: Receipt::NOTHING,
        }
    }
}

/// Two decisions are equal when every accessor answers the same.
impl PartialEq for Decision {
    fn eq(&self, other: &Self) -> bool {
        self.receipt == other.receipt && self.answer == other.answer
    }
}

impl PartialEq for Answer {
    fn eq(&self, other: &Self) -> bool {
        let key = |a: &Self| {
            let numbers = (
                a.numbers.limit(),
                a.numbers.remaining(),
                a.numbers.reset_after(),
            );
            (a.kind, a.span_ns, a.uncharged, a.index, a.degraded, numbers)
        };
        key(self) == key(other)
    }
}

impl fmt::Debug for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decision")
            .field("outcome", &self.outcome())
            .field("limit", &self.limit())
            .field("remaining", &self.remaining())
            .field("reset_after", &self.reset_after())
            .field("wait", &self.wait())
            .field("granted", &self.granted())
            .field("uncharged", &self.uncharged())
            .field("index", &self.index())
            .field("degraded", &self.is_degraded())
            .finish()
    }
}

/// The error form of a refusal: what [`Decision::into_result`] returns.
#[derive(Clone, Copy, PartialEq)]
pub struct Denied(Answer);

impl Denied {
    /// The refusal with all its numbers.
    #[inline]
    pub fn decision(&self) -> Decision {
        Decision::from(self.0)
    }

    /// How long until the same request passes; `None` if it never will.
    #[inline]
    pub const fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after()
    }
}

impl fmt::Debug for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Denied").field(&self.decision()).finish()
    }
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.outcome() {
            Outcome::Denied { retry_after } => {
                write!(f, "rate limited: retry after {retry_after:?}")
            }
            Outcome::TooLarge => write!(
                f,
                "rate limited: the request costs more than the limit of {} can ever give",
                self.0.numbers.limit()
            ),
            _ => f.write_str("rate limited: this limit does not support the request"),
        }
    }
}

impl Error for Denied {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equality_looks_through_the_representation() {
        let plain = Decision::new(Outcome::Allowed, 5, 5, Duration::ZERO);
        let rate = crate::rate::Rate { n: 1, p: 10 };
        let bucket = BucketNumbers {
            rate,
            burst: 5,
            now_ns: 70,
            tat_ns: 70,
            fraction: 0,
        };
        assert_eq!(
            plain,
            Decision::from_numbers(Outcome::Allowed, Numbers::Bucket(bucket))
        );
        assert_ne!(
            plain,
            Decision::new(Outcome::TooLarge, 5, 5, Duration::ZERO)
        );
    }
}
