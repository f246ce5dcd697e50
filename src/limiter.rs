//! One limit for one subject.

mod live;

use core::fmt;

use crate::algorithm::{Algorithm, TokenBucket};
use crate::clock::{Clock, StdClock};
use crate::decision::Decision;
use crate::request::Request;
use crate::state::State;
use crate::store::cell::Cell;
use crate::time::Timestamp;

/// One limit, shared by everybody who holds a reference: lock-free for states up to 128 bits.
///
/// ```
/// use ratekeeper::{Limiter, TokenBucket};
///
/// static GLOBAL: Limiter = Limiter::new(TokenBucket::per_second(10).with_burst(20));
///
/// # #[cfg(feature = "std")]
/// if GLOBAL.check().is_allowed() {
///     // serve
/// }
/// ```
///
/// For one limit *per key*, see [`KeyedLimiter`](crate::KeyedLimiter).
///
/// # Concurrency
/// Each decision is one atomic step; concurrent requests are admitted exactly as if they had come one
/// after the other. A thread that loses a race decides again on the newer state, with the clock reading
/// it has.
pub struct Limiter<A: Algorithm = TokenBucket, C = StdClock> {
    algorithm: A,
    cell: <A::State as State>::Cell,
    clock: C,
}

impl<A: Algorithm> Limiter<A> {
    /// A limiter on [`StdClock`] for which nothing has been counted yet.
    pub const fn new(algorithm: A) -> Self {
        Self::with_clock(algorithm, StdClock::new())
    }
}

impl<A: Algorithm, C> Limiter<A, C> {
    /// A limiter that tells time by `clock`.
    pub const fn with_clock(algorithm: A, clock: C) -> Self {
        Self {
            algorithm,
            cell: <A::State as State>::Cell::FRESH,
            clock,
        }
    }

    /// The limit.
    pub const fn algorithm(&self) -> &A {
        &self.algorithm
    }

    /// Asks for one token at `now`; needs no clock.
    ///
    /// The instants given should not run backwards, as those of a [`Clock`]. Where they differ by up to `d`, a bucket lets pass
    /// `burst + (W + d) / T` in a span of `W`: the lag counts once, not for each call.
    #[inline]
    pub fn check_at(&self, now: Timestamp) -> Decision {
        self.apply_at(Request::ONE, now)
    }

    /// Answers `request` at `now`; needs no clock. See [`check_at`](Self::check_at).
    ///
    /// # Panics
    /// In builds with debug assertions, if the request gives back a receipt of another limit.
    #[inline]
    #[allow(clippy::needless_pass_by_value)] // a request's receipt is spent once
    pub fn apply_at(&self, request: Request, now: Timestamp) -> Decision {
        let origin = || (0, self.algorithm.fingerprint());
        request.assert_origin(origin);
        let step = self.cell.apply(&self.algorithm, &request, now);
        step.decision.with_origin(origin)
    }

    /// Forgets everything: the next request finds a limiter never used.
    pub fn reset(&self) {
        self.cell.reset();
    }
}

impl<A: Algorithm, C> Limiter<A, C> {
    /// Asks for one token.
    #[inline]
    pub fn check(&self) -> Decision
    where
        C: Clock,
    {
        self.apply(Request::ONE)
    }

    /// Asks for `n` tokens, all or nothing; 0 is a peek.
    ///
    /// ```
    /// use ratekeeper::{Limiter, ManualClock, Outcome, TokenBucket};
    ///
    /// let limiter = Limiter::with_clock(TokenBucket::per_second(5), ManualClock::new());
    /// assert!(limiter.check_n(4).is_allowed());
    /// assert!(matches!(limiter.check_n(4).outcome(), Outcome::Denied { .. }));
    /// assert_eq!(limiter.check_n(6).outcome(), Outcome::TooLarge); // never possible
    /// assert_eq!(limiter.peek().remaining(), 1); // the refusals took nothing
    /// ```
    #[inline]
    pub fn check_n(&self, n: u64) -> Decision
    where
        C: Clock,
    {
        self.apply(Request::take(n))
    }

    /// Looks without taking.
    #[inline]
    pub fn peek(&self) -> Decision
    where
        C: Clock,
    {
        self.apply(Request::PEEK)
    }

    /// Answers `request`.
    ///
    /// # Panics
    /// As [`apply_at`](Self::apply_at).
    #[inline]
    #[allow(clippy::needless_pass_by_value)] // a request's receipt is spent once
    pub fn apply(&self, request: Request) -> Decision
    where
        C: Clock,
    {
        self.apply_at(request, self.clock.now())
    }
}

impl<A: Algorithm, C> fmt::Debug for Limiter<A, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limiter")
            .field("algorithm", &self.algorithm)
            .field("cell", &self.cell)
            .finish_non_exhaustive()
    }
}
