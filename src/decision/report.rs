//! A decision's numbers without its receipt.

use core::fmt;
use core::time::Duration;

use super::{Answer, Decision, Denied, Outcome};

/// What a limit answered, without the receipt: a plain value for logs, headers and extensions of requests.
///
/// The accessors are those of [`Decision`]. It may be ignored, and copied.
///
/// ```
/// use ratekeeper::{Limiter, Report, Timestamp, TokenBucket};
///
/// let limiter = Limiter::new(TokenBucket::per_second(3));
/// let decision = limiter.check_at(Timestamp::ZERO);
/// let report: Report = decision.report();
/// let copy = report;
/// assert_eq!((copy.remaining(), report.granted()), (2, 1));
/// ```
#[derive(Clone, Copy, PartialEq)]
pub struct Report {
    answer: Answer,
    granted: u64,
}

impl Report {
    #[inline]
    pub(super) const fn new(answer: Answer, granted: u64) -> Self {
        Self { answer, granted }
    }

    /// See [`Decision::is_allowed`].
    #[inline]
    pub const fn is_allowed(&self) -> bool {
        matches!(self.answer.kind, super::Kind::Allowed)
    }

    /// See [`Decision::outcome`].
    #[inline]
    pub const fn outcome(&self) -> Outcome {
        self.answer.outcome()
    }

    /// See [`Decision::limit`].
    #[inline]
    pub const fn limit(&self) -> u64 {
        self.answer.numbers.limit()
    }

    /// See [`Decision::remaining`].
    #[inline]
    pub const fn remaining(&self) -> u64 {
        self.answer.numbers.remaining()
    }

    /// See [`Decision::reset_after`].
    #[inline]
    pub const fn reset_after(&self) -> Duration {
        self.answer.numbers.reset_after()
    }

    /// See [`Decision::retry_after`].
    #[inline]
    pub const fn retry_after(&self) -> Option<Duration> {
        self.answer.retry_after()
    }

    /// See [`Decision::wait`].
    #[inline]
    pub const fn wait(&self) -> Duration {
        self.answer.wait()
    }

    /// See [`Decision::granted`].
    #[inline]
    pub const fn granted(&self) -> u64 {
        self.granted
    }

    /// See [`Decision::uncharged`].
    #[inline]
    pub const fn uncharged(&self) -> u64 {
        self.answer.uncharged
    }

    /// See [`Decision::index`].
    #[inline]
    pub const fn index(&self) -> usize {
        self.answer.index as usize
    }

    /// See [`Decision::is_degraded`].
    #[inline]
    pub const fn is_degraded(&self) -> bool {
        self.answer.degraded
    }
}

impl From<&Decision> for Report {
    fn from(decision: &Decision) -> Self {
        decision.report()
    }
}

impl From<&Denied> for Report {
    fn from(denied: &Denied) -> Self {
        Self::new(denied.0, 0)
    }
}

impl fmt::Debug for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Report")
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
