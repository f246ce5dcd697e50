//! Which part of a text is no limit, and what should stand there.

use core::fmt;
use core::ops::Range;

use super::InvalidLimit;

/// The wrong part of a limit's text, and why it is wrong.
///
/// It is a place and a reason, not the text itself, so that it can be copied and needs no allocator; with the text at
/// hand, an application can underline the part.
///
/// ```
/// use ratekeeper::TokenBucket;
///
/// let text = "10 per minute";
/// let error = text.parse::<TokenBucket>().unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     r#"not a limit: expected "/" after the number, as in "10/min" (bytes 2 to 7)"#
/// );
///
/// let span = error.span().unwrap_or_default();
/// let before = text[..span.start].chars().count();
/// let wrong = text[span].chars().count().max(1);
/// let underline = format!("{}{}", " ".repeat(before), "^".repeat(wrong));
/// assert_eq!(format!("{text}\n{underline}"), "10 per minute\n  ^^^^^");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SyntaxError {
    span: Span,
    reason: Reason,
}

/// Bytes of a text. A `Range` is no `Copy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Span {
    /// The place at which something is missing.
    pub(crate) const fn at(place: usize) -> Self {
        Self {
            start: place,
            end: place,
        }
    }
}

/// What is wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Reason {
    /// The form is right, the number out of range.
    Parameter(&'static InvalidLimit),
    /// Another number of limits than is read here; 255 stands for more.
    Count {
        given: u8,
        expected: u8,
    },
    NoLimit,
    NoRate,
    Slash,
    Spaces,
    NoNumber,
    Number,
    Fraction,
    LeadingZero,
    Underscore,
    NumberTooLarge,
    NoUnit,
    Unit,
    SpaceBeforeUnit,
    DurationTooLong,
    NoBurst,
    NoWait,
    NoOffset,
    OffsetTooLong,
    OffsetAndAnchored,
    Version,
    UnknownWord,
    Twice,
    TwoKinds,
    SecondLimit,
    EmptyPart,
    TooMany,
    BucketHere,
    SlidingHere,
    FixedHere,
    LogHere,
    NotAWindow,
    NothingAfterWord,
    OnlyBuckets,
    OnlyBucketsHaveVersions,
    OnlyFixedWindows,
    NoFixedSize,
}

impl Reason {
    pub(super) const fn message(self) -> &'static str {
        match self {
            Self::Parameter(error) => error.message(),
            Self::Count { .. } => "another number of limits is expected here",
            Self::NoLimit => {
                r#"expected a limit such as "10/s", "100/min burst 20", "sliding 60/min" or "fixed 1000/day""#
            }
            Self::NoRate => r#"expected a rate after the word, as in "sliding 60/min""#,
            Self::Slash => r#"expected "/" after the number, as in "10/min""#,
            Self::Spaces => r#"expected no space around "/", as in "10/min""#,
            Self::NoNumber => r#"expected a number before "/", as in "10/min""#,
            Self::Number => r#"expected a whole number of decimal digits, as in "10/min burst 20""#,
            Self::Fraction => {
                r#"expected a whole number: write a half as in "1/2s", one and a half as in "3/2s" or "90min""#
            }
            Self::LeadingZero => r#"a number does not begin with 0: write "10", not "010""#,
            Self::Underscore => r#""_" stands between two digits, as in "1_000""#,
            Self::NumberTooLarge => "numbers go up to 18446744073709551615",
            Self::NoUnit => {
                r#"expected a unit of time (ns, us, ms, s, min, h, day, week), as in "10/min" or "10/5min""#
            }
            Self::Unit => {
                "this is no unit of time: write ns, us, ms, s, min (or m), h, day or week"
            }
            Self::SpaceBeforeUnit => r#"expected the unit right after the number, as in "2min""#,
            Self::DurationTooLong => "durations go up to u64::MAX nanoseconds (584 years)",
            Self::NoBurst => r#"expected a number of tokens, as in "100/min burst 20""#,
            Self::NoWait => r#"expected a duration, as in "100/min wait 2s""#,
            Self::NoOffset => r#"expected a duration, as in "fixed 1000/day offset 22h""#,
            Self::OffsetTooLong => {
                r#"the offset must be shorter than the window, as in "fixed 1000/day offset 22h""#
            }
            Self::OffsetAndAnchored => {
                r#"a window is either "anchored", so that it begins at a key's first request, or has an "offset""#
            }
            Self::Version => r#"expected a version from 1 to 65535, as in "100/min burst 20 v2""#,
            Self::UnknownWord => {
                r#"after the rate, expected "burst 20", "wait 2s", "offset 22h", "anchored" or a version as in "v2""#
            }
            Self::Twice => "this was said before",
            Self::TwoKinds => {
                r#"expected a rate here: one word stands before it, as in "sliding 60/min""#
            }
            Self::SecondLimit => {
                r#"one limit is expected here; several, as in "10/s; 1000/h", are read as `Limits` or `All`"#
            }
            Self::EmptyPart => {
                r#"expected a limit on either side of ";", as in "10/s burst 20; 1000/h""#
            }
            Self::TooMany => "at most 4 limits are expected here",
            Self::BucketHere => {
                r#"a token bucket is expected here, and nothing before its rate, as in "100/min burst 20""#
            }
            Self::SlidingHere => r#"a sliding window is expected here, as in "sliding 60/min""#,
            Self::FixedHere => r#"a fixed window is expected here, as in "fixed 1000/day""#,
            Self::LogHere => r#"a log is expected here, as in "log 60/min""#,
            Self::NotAWindow => {
                r#""unlimited" and "blocked" are token buckets; a window has a rate, as in "sliding 60/min""#
            }
            Self::NothingAfterWord => {
                r#"after "unlimited" and "blocked", expected nothing but a version, as in "blocked v2""#
            }
            Self::OnlyBuckets => {
                r#"only token buckets have "burst" and "wait", as in "100/min burst 20""#
            }
            Self::OnlyBucketsHaveVersions => {
                r#"only token buckets have versions, as in "100/min burst 20 v2""#
            }
            Self::OnlyFixedWindows => {
                r#"only fixed windows have "offset" and "anchored", as in "fixed 1000/day offset 22h""#
            }
            Self::NoFixedSize => {
                r#"a log's state has no fixed size, so it is read as `SlidingLog` only; expected "sliding" here"#
            }
        }
    }
}

impl SyntaxError {
    pub(crate) const fn new(span: Span, reason: Reason) -> Self {
        Self { span, reason }
    }

    /// The wrong part, in bytes of the text: within it, and at the bounds of characters. Empty where something is
    /// missing.
    pub const fn span(&self) -> Range<usize> {
        self.span.start..self.span.end
    }

    pub(super) const fn reason(self) -> Reason {
        self.reason
    }

    /// The same in a text before which `by` bytes were put.
    pub(super) const fn moved(mut self, by: usize) -> Self {
        self.span.start = self.span.start.saturating_add(by);
        self.span.end = self.span.end.saturating_add(by);
        self
    }
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason {
            Reason::Parameter(error) => f.write_str(error.message())?,
            Reason::Count { given, expected } => {
                let text = if expected == 1 {
                    " limit"
                } else {
                    r#" limits with ";" between them"#
                };
                write!(f, "not a limit: expected {expected}{text}, found {given}")?;
            }
            other => write!(f, "not a limit: {}", other.message())?,
        }
        let Span { start, end } = self.span;
        if end > start + 1 {
            write!(f, " (bytes {start} to {end})")
        } else {
            write!(f, " (at byte {start})")
        }
    }
}
