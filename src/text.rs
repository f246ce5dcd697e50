//! Limits as text, both ways.
//!
//! ```text
//! [ "sliding " | "fixed " | "log " ]  N "/" [k] unit
//!     [ " burst " B | ":" B ] [ " wait " duration ]        token buckets
//!     [ " offset " duration | " anchored" ]                fixed windows
//! duration = k unit        unit = ns us ms s min h day (or in words: second, seconds, …)
//! ```

mod parse;
#[cfg(feature = "serde")]
mod serde;

use core::fmt::{self, Display};
use core::str::FromStr;
use core::time::Duration;

use self::parse::{Kind, Parsed, UNITS};
use crate::algorithm::{AnyAlgorithm, FixedWindow, SlidingLog, SlidingWindow, TokenBucket};
use crate::invalid_limit::InvalidLimit;
use crate::time::duration_ns;

/// A duration with its largest exact unit, such as `90s`. As a period, a factor of 1 is left out:
/// `min`.
struct Text {
    duration: Duration,
    is_period: bool,
}

impl Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = duration_ns(self.duration);
        // The last unit is the nanosecond, which divides everything.
        for (names, unit_ns) in UNITS {
            if nanos > 0 && nanos % unit_ns == 0 {
                let factor = nanos / unit_ns;
                if factor > 1 || !self.is_period {
                    write!(f, "{factor}")?;
                }
                return f.write_str(names[0]);
            }
        }
        f.write_str("0s")
    }
}

const fn period(duration: Duration) -> Text {
    Text {
        duration,
        is_period: true,
    }
}

const fn length(duration: Duration) -> Text {
    Text {
        duration,
        is_period: false,
    }
}

/// `"100/min burst 20"`; a burst equal to the tokens is left out, as is a zero wait.
impl Display for TokenBucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.tokens(), period(self.period()))?;
        if self.burst() != self.tokens() {
            write!(f, " burst {}", self.burst())?;
        }
        if !self.max_wait().is_zero() {
            write!(f, " wait {}", length(self.max_wait()))?;
        }
        Ok(())
    }
}

/// `"sliding 60/min"`.
impl Display for SlidingWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sliding {}/{}", self.limit(), period(self.window()))
    }
}

/// `"log 60/min"`.
impl Display for SlidingLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "log {}/{}", self.limit(), period(self.window()))
    }
}

/// `"fixed 1000/day"`, `"fixed 1000/day offset 22h"`, `"fixed 5/min anchored"`.
impl Display for FixedWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "fixed {}/{}", self.limit(), period(self.window()))?;
        if self.is_anchored() {
            f.write_str(" anchored")?;
        } else if !self.offset().is_zero() {
            write!(f, " offset {}", length(self.offset()))?;
        }
        Ok(())
    }
}

impl Display for AnyAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TokenBucket(limit) => limit.fmt(f),
            Self::SlidingWindow(limit) => limit.fmt(f),
            Self::FixedWindow(limit) => limit.fmt(f),
        }
    }
}

/// `"10/s"`, `"100/min burst 20"`, `"100/min:20"`, `"3/90s wait 2min"`.
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
            Some(Kind::Sliding) => parsed.try_into().map(Self::SlidingWindow),
            Some(Kind::Fixed) => parsed.try_into().map(Self::FixedWindow),
            Some(Kind::Log) => Err(InvalidLimit::Syntax),
        }
    }
}

impl TryFrom<Parsed> for TokenBucket {
    type Error = InvalidLimit;

    fn try_from(parsed: Parsed) -> Result<Self, InvalidLimit> {
        let Parsed {
            kind: None,
            count,
            period,
            burst,
            wait,
            offset: None,
            anchored: false,
        } = parsed
        else {
            return Err(InvalidLimit::Syntax);
        };
        let limit = Self::new(count, period, burst.unwrap_or(count))?;
        Ok(limit.with_max_wait(wait.unwrap_or_default()))
    }
}

impl TryFrom<Parsed> for SlidingWindow {
    type Error = InvalidLimit;

    fn try_from(parsed: Parsed) -> Result<Self, InvalidLimit> {
        let (limit, window) = parsed.plain_window(Kind::Sliding)?;
        Self::new(limit, window)
    }
}

impl TryFrom<Parsed> for SlidingLog {
    type Error = InvalidLimit;

    fn try_from(parsed: Parsed) -> Result<Self, InvalidLimit> {
        let (limit, window) = parsed.plain_window(Kind::Log)?;
        Self::new(limit, window)
    }
}

impl TryFrom<Parsed> for FixedWindow {
    type Error = InvalidLimit;

    fn try_from(parsed: Parsed) -> Result<Self, InvalidLimit> {
        let Parsed {
            offset, anchored, ..
        } = parsed;
        let plain = Parsed {
            offset: None,
            anchored: false,
            ..parsed
        };
        let (limit, window) = plain.plain_window(Kind::Fixed)?;
        let limit = Self::new(limit, window)?;
        match (offset, anchored) {
            (None, false) => Ok(limit),
            (Some(offset), false) => Ok(limit.with_offset(offset)),
            (None, true) => Ok(limit.anchored()),
            (Some(_), true) => Err(InvalidLimit::Syntax),
        }
    }
}
