//! Token bucket: `burst` tokens at most, refilled at `tokens` per `period`.
//!
//! The state is one word, the *theoretical arrival time* (TAT): the instant at which the bucket is
//! full again. This is the generic cell rate algorithm (GCRA, ITU-T I.371, annex A), which stores
//! no count and needs no timer.
//!
//! # Exactness
//! With `T = period / tokens`, rarely a whole number of nanoseconds, the machine **is** the bucket in
//! exact rational arithmetic, seen through a clock less than 2 ns late: every TAT carries its
//! rounding with it (see `lattice`), so errors never add up and a rate never drifts. In any closed
//! span `W` at most `burst + W/T` tokens pass if `T` is whole or below 1 ns, one more otherwise, and
//! that is attained.
//!
//! # Order of a step
//! First ask whether there is room, on the state before the charge; then charge. Testing the state
//! after the charge against a capacity admits too few or too many at some phases for every choice of
//! the rounding.
//!
//! # Nothing is cut
//! A TAT further ahead than this limit reaches comes from another limit, or from a reading of a later clock. Either way it is
//! debt, and honest: the bucket refuses until it is paid. So a refusal never writes, and limits may differ from call to call.

mod change;
mod end;
mod extreme;
mod lattice;
mod refund;
mod step;
mod value;
mod words;

use core::time::Duration;

use self::extreme::Extent;
use self::lattice::Lattice;
use crate::invalid_limit::InvalidLimit;
use crate::rate::Rate;
use crate::time::{duration_ns, saturate};

/// A token bucket: at most `burst` tokens, `tokens` of them coming back per `period`.
///
/// ```
/// use core::time::Duration;
/// use ratekeeper::TokenBucket;
///
/// const API: TokenBucket = TokenBucket::per_second(10).with_burst(20);
/// let parsed: TokenBucket = "10/s burst 20".parse()?;
/// assert_eq!(parsed, API);
/// let read_from_a_file = TokenBucket::new(10, Duration::from_secs(1), 20)?;
/// assert_eq!(read_from_a_file, API);
/// # Ok::<(), ratekeeper::InvalidLimit>(())
/// ```
///
/// # Bounds
/// In any span of `W`, at most `burst + W · tokens / period` tokens, plus one when `period / tokens`
/// is no whole number of nanoseconds. A full bucket admits exactly `burst` at one instant. Above 10⁹
/// tokens a second each request's time is rounded up to a whole nanosecond: never looser than exact.
///
/// For "never more than n in any window", see [`TokenBucket::at_most`].
#[doc(alias("Quota", "GCRA", "leaky bucket"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TokenBucket {
    tokens: u64,
    period_ns: u64,
    /// 0 if and only if `extent` is not finite: then no cost passes the comparison with which every step begins, and what
    /// stands there for the limit is sought on the cold path alone.
    burst: u64,
    /// `S`: how far ahead a request may book.
    max_wait_ns: u64,
    rate: Rate,
    /// `τ = ⌈burst · T⌉`: the time in which an empty bucket fills.
    capacity_ns: u64,
    /// `τ + S`: how far ahead this limit moves a TAT.
    reach_ns: u64,
    lattice: Lattice,
    /// Quotient and remainder of `(burst − 1)·P / n`: the room test of a single token.
    all_but_one: (u64, u64),
    extent: Extent,
    /// 0 for none.
    version: u16,
}

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(86_400);

impl TokenBucket {
    /// `n` tokens per second, and a burst of `n`.
    ///
    /// # Panics
    /// If `n` is 0; in a constant, that is a compile error. Use [`TokenBucket::new`] for numbers that
    /// come from outside.
    pub const fn per_second(n: u64) -> Self {
        Self::per(n, SECOND)
    }

    /// `n` tokens per minute, and a burst of `n`.
    ///
    /// # Panics
    /// If `n` is 0.
    pub const fn per_minute(n: u64) -> Self {
        Self::per(n, MINUTE)
    }

    /// `n` tokens per hour, and a burst of `n`.
    ///
    /// # Panics
    /// If `n` is 0.
    pub const fn per_hour(n: u64) -> Self {
        Self::per(n, HOUR)
    }

    /// `n` tokens per day of 24 hours, and a burst of `n`.
    ///
    /// # Panics
    /// If `n` is 0.
    pub const fn per_day(n: u64) -> Self {
        Self::per(n, DAY)
    }

    /// `n` tokens per `period`, and a burst of `n`.
    ///
    /// # Panics
    /// If `n` or `period` is 0, or `period` is above 584 years.
    pub const fn per(n: u64, period: Duration) -> Self {
        expect(Self::new(n, period, n))
    }

    /// `tokens` per `period` with room for `burst`: the constructor for numbers from outside.
    ///
    /// # Errors
    /// [`InvalidLimit`] if a number is 0, or if the period or the refill of the whole burst is above
    /// `u64::MAX` nanoseconds (584 years).
    pub const fn new(tokens: u64, period: Duration, burst: u64) -> Result<Self, InvalidLimit> {
        if tokens == 0 {
            return Err(InvalidLimit::ZeroTokens);
        }
        if period.is_zero() {
            return Err(InvalidLimit::ZeroPeriod);
        }
        if burst == 0 {
            return Err(InvalidLimit::ZeroBurst);
        }
        if period.as_nanos() > u64::MAX as u128 {
            return Err(InvalidLimit::PeriodTooLong);
        }
        let period_ns = duration_ns(period);
        let rate = Rate::new(tokens, period_ns);
        if burst > most_tokens(rate) {
            return Err(InvalidLimit::BurstTooLong);
        }
        Ok(Self::build(tokens, period_ns, rate, burst, 0))
    }

    /// A bucket that never admits more than `n` tokens in any half-open window of length `window`.
    ///
    /// `burst`, from 1 to `n`, is how many of them may come at once; the rest of the window's tokens
    /// then refill at `n + 1 − burst` per window. With `burst` 1 the full `n` fit into each window,
    /// evenly paced; with `burst` `n`, one burst and then a single token per window. `n / 2`, rounded
    /// up, is a good default. The time per token is rounded up to whole nanoseconds.
    ///
    /// [`with_burst`](Self::with_burst) afterwards would break the promise; give the burst here.
    ///
    /// ```
    /// use core::time::Duration;
    /// use ratekeeper::TokenBucket;
    ///
    /// let limit = TokenBucket::at_most(10, Duration::from_secs(1), 5);
    /// assert_eq!(limit.period(), Duration::from_nanos(166_666_667)); // a sixth of a second
    /// ```
    ///
    /// # Panics
    /// If `n`, `window` or `burst` is 0, `burst` is above `n`, or the burst would take longer than
    /// 584 years to refill. See [`new_at_most`](Self::new_at_most) for numbers from outside.
    pub const fn at_most(n: u64, window: Duration, burst: u64) -> Self {
        expect(Self::new_at_most(n, window, burst))
    }

    /// [`at_most`](Self::at_most) for numbers from outside.
    ///
    /// # Errors
    /// [`InvalidLimit`] where `at_most` panics.
    pub const fn new_at_most(n: u64, window: Duration, burst: u64) -> Result<Self, InvalidLimit> {
        if n == 0 {
            return Err(InvalidLimit::ZeroTokens);
        }
        if window.is_zero() {
            return Err(InvalidLimit::ZeroWindow);
        }
        if burst == 0 {
            return Err(InvalidLimit::ZeroBurst);
        }
        if burst > n {
            return Err(InvalidLimit::BurstTooLarge);
        }
        if window.as_nanos() > u64::MAX as u128 {
            return Err(InvalidLimit::WindowTooLong);
        }
        let refills = n - burst + 1;
        let token_ns = duration_ns(window).div_ceil(refills);
        Self::new(1, Duration::from_nanos(token_ns), burst)
    }

    /// Changes how many tokens the full bucket holds.
    ///
    /// A burst that would take more than `u64::MAX` nanoseconds (584 years) to refill is cut to the
    /// largest that does not; [`burst`](Self::burst) tells.
    ///
    /// [`UNLIMITED`](Self::UNLIMITED) and [`BLOCKED`](Self::BLOCKED) stay what they are: a burst would be another limit.
    ///
    /// # Panics
    /// If `n` is 0; in a constant, that is a compile error. For a limit that lets nothing pass there is
    /// [`BLOCKED`](Self::BLOCKED).
    #[must_use]
    pub const fn with_burst(self, n: u64) -> Self {
        if n == 0 {
            panic!("{}", InvalidLimit::ZeroBurst.message());
        }
        if !self.is_finite() {
            return self;
        }
        let most = most_tokens(self.rate);
        let burst = if n < most { n } else { most };
        Self::build(
            self.tokens,
            self.period_ns,
            self.rate,
            burst,
            self.max_wait_ns,
        )
        .with_version(self.version)
    }

    /// How far ahead a request may book its tokens ([`Request::or_wait`]), and how far a charge for
    /// work already done may overdraw the bucket. Zero by default: refuse at once. At most
    /// `u64::MAX` nanoseconds.
    ///
    /// The price: while somebody stands in line, refunds give nothing back (see [`Receipt`](crate::Receipt)); and where the clock
    /// of a shared store is set back, a key may wait this much longer.
    ///
    /// [`UNLIMITED`](Self::UNLIMITED) never lets anybody wait and [`BLOCKED`](Self::BLOCKED) never has tokens to wait
    /// for, so both stay as they are.
    ///
    /// [`Request::or_wait`]: crate::Request::or_wait
    #[must_use]
    pub const fn with_max_wait(mut self, max_wait: Duration) -> Self {
        if !self.is_finite() {
            return self;
        }
        self.max_wait_ns = duration_ns(max_wait);
        self.reach_ns = self.capacity_ns.saturating_add(self.max_wait_ns);
        self
    }

    const fn build(tokens: u64, period_ns: u64, rate: Rate, burst: u64, max_wait_ns: u64) -> Self {
        let capacity_ns = saturate(rate.charge_ns(burst, 0));
        let product = (burst - 1) as u128 * rate.p as u128;
        let (n, quotient) = (rate.n as u128, product / rate.n as u128);
        let all_but_one = (saturate(quotient), saturate(product - quotient * n));
        let lattice = Lattice::new(rate);
        Self {
            tokens,
            period_ns,
            burst,
            max_wait_ns,
            rate,
            capacity_ns,
            reach_ns: capacity_ns.saturating_add(max_wait_ns),
            lattice,
            all_but_one,
            extent: Extent::Finite,
            version: 0,
        }
    }

    /// Gives the limit the number `version`: that of an ordered change on a shared store. 0, the default, is no
    /// version. In text, `100/min burst 20 v2`.
    ///
    /// The highest version that a key has met decides for that key, in every process: while a new configuration is rolled out,
    /// processes with the old one follow it, and nothing goes back. A key keeps its tokens. Raise the number with every change of
    /// the limit; two limits of one version on one key are an error of kind [`Config`](crate::store::ErrorKind::Config). The number
    /// changes no decision of a store in this process. [`UNLIMITED`](Self::UNLIMITED) and [`BLOCKED`](Self::BLOCKED) ask no
    /// store, and so neither follow a version nor set one.
    ///
    /// ```
    /// use ratekeeper::TokenBucket;
    ///
    /// const RAISED: TokenBucket = TokenBucket::per_minute(100).with_burst(20).with_version(2);
    /// assert_eq!(RAISED.version(), 2);
    /// assert_eq!("100/min burst 20 v2".parse(), Ok(RAISED));
    /// ```
    #[must_use]
    pub const fn with_version(mut self, version: u16) -> Self {
        self.version = version;
        self
    }

    /// The number given by [`with_version`](Self::with_version); 0 if none was.
    #[inline]
    pub const fn version(&self) -> u16 {
        self.version
    }

    /// Tokens that come back per [`period`](Self::period). Never 0: 1 for [`BLOCKED`](Self::BLOCKED), which cannot hold
    /// it, and 999,999,999,999,999 per nanosecond for [`UNLIMITED`](Self::UNLIMITED).
    #[inline]
    pub const fn tokens(&self) -> u64 {
        self.tokens
    }

    /// The time in which [`tokens`](Self::tokens) come back. Never 0; see there.
    #[inline]
    pub const fn period(&self) -> Duration {
        Duration::from_nanos(self.period_ns)
    }

    /// Tokens in a full bucket: the largest cost that ever passes. 0 for [`BLOCKED`](Self::BLOCKED) alone,
    /// 999,999,999,999,999 for [`UNLIMITED`](Self::UNLIMITED).
    #[inline]
    pub const fn burst(&self) -> u64 {
        match self.extent {
            Extent::Finite | Extent::Blocked => self.burst,
            Extent::Unlimited => self.tokens,
        }
    }

    /// How far ahead a request may book. Zero for [`UNLIMITED`](Self::UNLIMITED) and [`BLOCKED`](Self::BLOCKED).
    #[inline]
    pub const fn max_wait(&self) -> Duration {
        Duration::from_nanos(self.max_wait_ns)
    }

    /// The latest TAT to which a charge, or a change of limits, moves a bucket.
    #[inline]
    const fn latest_tat(&self, now_ns: u64) -> u64 {
        now_ns.saturating_add(self.reach_ns)
    }
}

/// The largest burst whose refill fits `u64` nanoseconds: `⌊MAX · n / P⌋`.
const fn most_tokens(rate: Rate) -> u64 {
    saturate(u64::MAX as u128 * rate.n as u128 / rate.p as u128)
}

const fn expect(limit: Result<TokenBucket, InvalidLimit>) -> TokenBucket {
    match limit {
        Ok(limit) => limit,
        Err(error) => panic!("{}", error.message()),
    }
}
