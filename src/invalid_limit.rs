//! Why a limit's parameters were rejected.

use core::error::Error;
use core::fmt;

/// A limit that makes no sense; each variant names the parameter at fault.
///
/// ```
/// use core::time::Duration;
/// use ratekeeper::{InvalidLimit, TokenBucket};
///
/// let zero = TokenBucket::new(0, Duration::from_secs(1), 5);
/// assert_eq!(zero, Err(InvalidLimit::ZeroTokens));
/// let nonsense = "100 per minute".parse::<TokenBucket>().unwrap_err();
/// assert!(nonsense.to_string().contains("100/min burst 20"));
/// ```
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InvalidLimit {
    /// `tokens` is 0: the bucket would never refill.
    ZeroTokens,
    /// `period` is 0: the rate would be infinite.
    ZeroPeriod,
    /// `burst` is 0: nothing would ever pass.
    ZeroBurst,
    /// `period` is above `u64::MAX` nanoseconds (584 years).
    PeriodTooLong,
    /// The `burst` would take more than `u64::MAX` nanoseconds (584 years) to refill.
    BurstTooLong,
    /// `burst` is above the tokens of the window it must fit in.
    BurstTooLarge,
    /// A window's `limit` is 0: nothing would ever pass.
    ZeroLimit,
    /// A window's `limit` is above `u32::MAX`.
    LimitTooLarge,
    /// `window` is 0.
    ZeroWindow,
    /// `window` is above `u64::MAX` nanoseconds (584 years).
    WindowTooLong,
    /// The buffer is shorter than the exact log's `limit`.
    BufferTooShort,
    /// The store packs its states and has no room for this limit's: see the store for what fits.
    DoesNotFitStore,
    /// The text is not a limit.
    Syntax,
}

impl InvalidLimit {
    pub(crate) const fn message(self) -> &'static str {
        match self {
            Self::ZeroTokens => "tokens must be above 0",
            Self::ZeroPeriod => "period must be above 0",
            Self::ZeroBurst => "burst must be above 0",
            Self::PeriodTooLong => "period must be at most u64::MAX nanoseconds (584 years)",
            Self::BurstTooLong => {
                "burst takes more than u64::MAX nanoseconds (584 years) to refill"
            }
            Self::BurstTooLarge => "burst must be at most the tokens of its window",
            Self::ZeroLimit => "limit must be above 0",
            Self::LimitTooLarge => "a window's limit must be at most 4294967295",
            Self::ZeroWindow => "window must be above 0",
            Self::WindowTooLong => "window must be at most u64::MAX nanoseconds (584 years)",
            Self::BufferTooShort => "buffer must have room for `limit` instants",
            Self::DoesNotFitStore => "the limit's state does not fit this store",
            Self::Syntax => {
                "not a limit: write for example \"10/s\", \"100/min burst 20\", \"sliding 60/min\" or \"fixed 1000/day\""
            }
        }
    }
}

impl fmt::Display for InvalidLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}

impl Error for InvalidLimit {}
