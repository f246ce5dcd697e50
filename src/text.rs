//! Limits as text, both ways.
//!
//! ```text
//! limits   = limit *( ";" limit )                             Limits, All<[_; N]>
//! limit    = bucket | window
//! bucket   = rate [ "burst" number | ":" number ] [ "wait" duration ] [ version ]
//!          | ( "unlimited" | "blocked" ) [ version ]
//! window   = "sliding" rate
//!          | "log" rate                                       SlidingLog only
//!          | "fixed" rate [ "offset" duration | "anchored" ]
//! rate     = number "/" [ number ] unit                       10/s, 20/5m, 3/90s
//! duration = number unit                                      90s, 1_500ms
//! version  = "v" number                                       v2; from 1 to 65535
//! number   = digits, with "_" between two of them if wanted   1000, 1_000
//! unit     = ns | us | ms | s | min | h | day | week
//! ```
//!
//! Spaces stand between words and around `;`, and nowhere else; `:20` follows the rate without one. The parts after the rate
//! may come in any order, each at most once. A window's word may be left out where only one kind of window can be meant.
//! Without a word, a limit is a token bucket.
//!
//! Units have other spellings, too: `m`, `minute`, `minutes`; `w`, `wk`, `weeks`; `d`, `hr`, `sec` and so on. `m` is the
//! minute and `ms` the millisecond; a day has 24 hours and a week seven days.
//!
//! What could be taken for something else is refused rather than read: a number with a sign, a point or a leading zero, an
//! offset that is no shorter than its window, a part that the named algorithm does not have. The error says which
//! part of the text it is, as a range of bytes, and shows the nearest right form; see [`InvalidLimit::span`].

mod parse;
#[cfg(feature = "serde")]
mod serde;
mod several;
#[cfg(test)]
mod tests;
mod words;
mod write;

use core::str::FromStr;
use core::time::Duration;

use self::parse::{Amount, Extreme, Kind, Parsed};
use crate::algorithm::{AnyAlgorithm, FixedWindow, SlidingLog, SlidingWindow, TokenBucket};
use crate::invalid_limit::{InvalidLimit, Reason, SyntaxError};

/// `"10/s"`, `"100/min burst 20"`, `"100/min:20"`, `"20/5m"`, `"3/90s wait 2min"`, `"100/min burst 20 v2"`, `"unlimited"`,
/// `"blocked"`.
///
/// Units are `ns`, `us`, `ms` (the millisecond), `s`, `min` (or `m`), `h`, `day` (24 hours) and `week`; digits may be grouped
/// as in `1_000/s`. [`InvalidLimit::span`] tells which part of a text is wrong.
impl FromStr for TokenBucket {
    type Err = InvalidLimit;

    fn from_str(text: &str) -> Result<Self, InvalidLimit> {
        Self::try_from(Parsed::from_text(text)?)
    }
}

/// `"sliding 60/min"`, or `"60/min"` where only a sliding window can be meant.
impl FromStr for SlidingWindow {
    type Err = InvalidLimit;

    fn from_str(text: &str) -> Result<Self, InvalidLimit> {
        Self::try_from(Parsed::from_text(text)?)
    }
}

/// `"log 60/min"`, or `"60/min"` where only a log can be meant.
impl FromStr for SlidingLog {
    type Err = InvalidLimit;

    fn from_str(text: &str) -> Result<Self, InvalidLimit> {
        Self::try_from(Parsed::from_text(text)?)
    }
}

/// `"fixed 1000/day"`, `"fixed 1000/day offset 22h"`, `"fixed 5/min anchored"`; the word `fixed` may be
/// left out where only a fixed window can be meant.
impl FromStr for FixedWindow {
    type Err = InvalidLimit;

    fn from_str(text: &str) -> Result<Self, InvalidLimit> {
        Self::try_from(Parsed::from_text(text)?)
    }
}

/// Each algorithm's own form; without a leading word, a token bucket.
impl FromStr for AnyAlgorithm {
    type Err = InvalidLimit;

    fn from_str(text: &str) -> Result<Self, InvalidLimit> {
        let parsed = Parsed::from_text(text)?;
        match parsed.kind {
            None => parsed.try_into().map(Self::TokenBucket),
            Some(kind) => match kind.value {
                Kind::Sliding => parsed.try_into().map(Self::SlidingWindow),
                Kind::Fixed => parsed.try_into().map(Self::FixedWindow),
                Kind::Log => Err(SyntaxError::new(kind.span, Reason::NoFixedSize).into()),
            },
        }
    }
}

impl TryFrom<Parsed> for TokenBucket {
    type Error = InvalidLimit;

    fn try_from(parsed: Parsed) -> Result<Self, InvalidLimit> {
        let Parsed { burst, wait, .. } = parsed;
        if let Some(kind) = parsed.kind {
            return Err(SyntaxError::new(kind.span, Reason::BucketHere).into());
        }
        parsed.no_edges()?;
        let limit = match parsed.amount {
            Amount::Rate { count, period } => {
                let (tokens, burst_span) = match burst {
                    Some(burst) => (burst.value, burst.number),
                    None => (count.value, count.span),
                };
                let at_fault = |error| match error {
                    InvalidLimit::ZeroTokens => count.span,
                    InvalidLimit::ZeroPeriod | InvalidLimit::PeriodTooLong => period.span,
                    _ => burst_span,
                };
                Self::new(count.value, period.value, tokens)
                    .map_err(|error| error.in_text(at_fault(error)))?
                    .with_max_wait(wait.map_or(Duration::ZERO, |wait| wait.value))
            }
            Amount::Extreme(extreme) => {
                let superfluous = burst.map(|burst| burst.span);
                if let Some(span) = superfluous.or(wait.map(|wait| wait.span)) {
                    return Err(SyntaxError::new(span, Reason::NothingAfterWord).into());
                }
                match extreme.value {
                    Extreme::Unlimited => Self::UNLIMITED,
                    Extreme::Blocked => Self::BLOCKED,
                }
            }
        };
        Ok(limit.with_version(parsed.version.map_or(0, |version| version.value)))
    }
}

impl TryFrom<Parsed> for SlidingWindow {
    type Error = InvalidLimit;

    fn try_from(parsed: Parsed) -> Result<Self, InvalidLimit> {
        parsed.plain_window(Kind::Sliding)?.build(Self::new)
    }
}

impl TryFrom<Parsed> for SlidingLog {
    type Error = InvalidLimit;

    fn try_from(parsed: Parsed) -> Result<Self, InvalidLimit> {
        parsed.plain_window(Kind::Log)?.build(Self::new)
    }
}

impl TryFrom<Parsed> for FixedWindow {
    type Error = InvalidLimit;

    fn try_from(parsed: Parsed) -> Result<Self, InvalidLimit> {
        let limit = parsed.plain_window(Kind::Fixed)?.build(Self::new)?;
        match (parsed.offset, parsed.anchored) {
            (None, None) => Ok(limit),
            (None, Some(_)) => Ok(limit.anchored()),
            // `with_offset` would take it modulo the window.
            (Some(offset), None) if offset.value >= limit.window() => {
                Err(SyntaxError::new(offset.number, Reason::OffsetTooLong).into())
            }
            (Some(offset), None) => Ok(limit.with_offset(offset.value)),
            (Some(offset), Some(anchored)) => {
                let later = if offset.span.start > anchored.start {
                    offset.span
                } else {
                    anchored
                };
                Err(SyntaxError::new(later, Reason::OffsetAndAnchored).into())
            }
        }
    }
}
