//! Why a limit's parameters were rejected.

mod syntax;

use core::error::Error;
use core::fmt;
use core::ops::Range;

pub use self::syntax::SyntaxError;
pub(crate) use self::syntax::{Reason, Span};

/// A limit that makes no sense; each variant names the parameter at fault.
///
/// ```
/// use core::time::Duration;
/// use ratekeeper::{InvalidLimit, TokenBucket};
///
/// let zero = TokenBucket::new(0, Duration::from_secs(1), 5);
/// assert_eq!(zero, Err(InvalidLimit::ZeroTokens));
///
/// // In a text, the wrong part has a place.
/// let text = "100/min burst 0";
/// let error = text.parse::<TokenBucket>().unwrap_err();
/// assert_eq!(error.to_string(), "burst must be above 0 (at byte 14)");
/// assert_eq!(error.span(), Some(14..15));
/// assert_eq!(error.without_span(), InvalidLimit::ZeroBurst);
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
    /// None, or more than four limits to be kept together.
    NotOneToFour,
    /// The store packs its states and has no room for this limit's.
    DoesNotFitStore {
        /// What the store can hold, as a sentence for the operator.
        bound: &'static str,
    },
    /// A limit in force can be changed, but not to one of another algorithm.
    AlgorithmMustStay,
    /// A limit in force can be changed, but not its window's length: what its keys counted is of no use to another.
    WindowMustStay,
    /// A limit in force can be changed, but not its windows' offset or anchoring.
    EdgesMustStay,
    /// The text is not a limit, or a number in it is out of range: which part, and why.
    Syntax(SyntaxError),
}

/// The errors that a number in a text can cause, to be pointed to by the error that knows the place.
static OF_NUMBERS: [InvalidLimit; 10] = [
    InvalidLimit::ZeroTokens,
    InvalidLimit::ZeroPeriod,
    InvalidLimit::ZeroBurst,
    InvalidLimit::PeriodTooLong,
    InvalidLimit::BurstTooLong,
    InvalidLimit::BurstTooLarge,
    InvalidLimit::ZeroLimit,
    InvalidLimit::LimitTooLarge,
    InvalidLimit::ZeroWindow,
    InvalidLimit::WindowTooLong,
];

impl InvalidLimit {
    /// The wrong part of the text, in bytes; empty where something is missing. `None` if the limit was not read from a
    /// text.
    ///
    /// Of several limits in one text it is a part of the whole text. See [`SyntaxError`] for how to show it.
    pub const fn span(&self) -> Option<Range<usize>> {
        match self {
            Self::Syntax(error) => Some(error.span()),
            _ => None,
        }
    }

    /// What a constructor says of the same numbers: without the place in the text. A text of another form than a limit's
    /// has no such number and stays [`Syntax`](Self::Syntax).
    #[must_use]
    pub const fn without_span(self) -> Self {
        match self {
            Self::Syntax(error) => match error.reason() {
                Reason::Parameter(error) => *error,
                _ => self,
            },
            _ => self,
        }
    }

    /// The same error, of a number that stands at `span` in a text.
    pub(crate) fn in_text(self, span: Span) -> Self {
        match OF_NUMBERS.iter().find(|error| **error == self) {
            Some(error) => Self::Syntax(SyntaxError::new(span, Reason::Parameter(error))),
            None => self,
        }
    }

    /// The same error in a text before which `by` bytes were put.
    pub(crate) const fn moved(self, by: usize) -> Self {
        match self {
            Self::Syntax(error) => Self::Syntax(error.moved(by)),
            _ => self,
        }
    }

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
            Self::NotOneToFour => "1 to 4 limits can be kept together",
            Self::DoesNotFitStore { bound } => bound,
            Self::AlgorithmMustStay => "the algorithm of a limit in force cannot be changed",
            Self::WindowMustStay => {
                "the window of a limit in force cannot be changed, only its count"
            }
            Self::EdgesMustStay => {
                "the offset and the anchoring of a limit in force cannot be changed, only its count"
            }
            Self::Syntax(error) => error.reason().message(),
        }
    }
}

impl fmt::Display for InvalidLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax(error) => error.fmt(f),
            Self::DoesNotFitStore { bound } => {
                write!(f, "the limit does not fit the store: {bound}")
            }
            other => f.write_str(other.message()),
        }
    }
}

impl Error for InvalidLimit {}

impl From<SyntaxError> for InvalidLimit {
    fn from(error: SyntaxError) -> Self {
        Self::Syntax(error)
    }
}
