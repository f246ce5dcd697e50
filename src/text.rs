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

#[cfg(test)]
mod tests {
    use alloc::string::ToString as _;

    use super::*;

    #[test]
    fn token_buckets_both_ways() {
        let minute = TokenBucket::per_minute(100);
        for (text, limit, canonical) in [
            ("10/s", TokenBucket::per_second(10), "10/s"),
            (
                "100/min burst 20",
                minute.with_burst(20),
                "100/min burst 20",
            ),
            ("100/min:20", minute.with_burst(20), "100/min burst 20"),
            (" 100/minute   burst 100 ", minute, "100/min"),
            ("60/60s", TokenBucket::per_minute(60), "60/min"),
            (
                "3/90s wait 2min",
                TokenBucket::per(3, Duration::from_secs(90))
                    .with_max_wait(Duration::from_secs(120)),
                "3/90s wait 2min",
            ),
            (
                "1/250ms burst 4",
                TokenBucket::per(1, Duration::from_millis(250)).with_burst(4),
                "1/250ms burst 4",
            ),
            (
                "1/166666667ns burst 5",
                TokenBucket::at_most(10, Duration::from_secs(1), 5),
                "1/166666667ns burst 5",
            ),
            (
                "5/7days",
                TokenBucket::per(5, Duration::from_secs(7 * 86_400)),
                "5/7day",
            ),
        ] {
            assert_eq!(text.parse(), Ok(limit), "{text}");
            assert_eq!(limit.to_string(), canonical);
            assert_eq!(canonical.parse(), Ok(limit));
        }
    }

    #[test]
    fn windows_both_ways() {
        assert_eq!("sliding 60/min".parse(), Ok(SlidingWindow::per_minute(60)));
        assert_eq!("60/min".parse(), Ok(SlidingWindow::per_minute(60)));
        assert_eq!(SlidingWindow::per_minute(60).to_string(), "sliding 60/min");
        assert_eq!("log 60/min".parse(), Ok(SlidingLog::per_minute(60)));
        assert_eq!(SlidingLog::per_minute(60).to_string(), "log 60/min");
        let day = FixedWindow::per_day(9);
        let from_ten_pm = day.with_offset(Duration::from_secs(22 * 3_600));
        for (text, limit) in [
            ("fixed 9/day", day),
            ("fixed 9/day anchored", day.anchored()),
            ("fixed 9/day offset 22h", from_ten_pm),
        ] {
            assert_eq!(text.parse(), Ok(limit));
            assert_eq!(limit.to_string(), text);
            assert_eq!(text.parse(), Ok(AnyAlgorithm::from(limit)));
            assert_eq!(AnyAlgorithm::from(limit).to_string(), text);
        }
        assert_eq!(
            "10/s".parse(),
            Ok(AnyAlgorithm::from(TokenBucket::per_second(10)))
        );
    }

    #[test]
    fn nonsense_is_an_error() {
        for text in [
            "",
            "abc",
            "100",
            "/s",
            "100/",
            "100/parsec",
            "100/s burst",
            "100/s burst x",
            "100/s:",
            "100/s burst 1 burst 2",
            "100/s:5 burst 5",
            "-1/s",
            "+1/s",
            "1.5/s",
            "100/s wait 5",
            "100/s wait",
            "sliding",
            "sliding 5/s burst 2",
            "fixed 5/s offset 1s anchored",
            "log 5/s wait 1s",
            "100/s anchored",
            "100 /s",
            "fixed log 5/s",
            "99999999999999999999/s",
            "slow 5/s",
            "5/s 5/s",
        ] {
            assert_eq!(
                text.parse::<TokenBucket>(),
                Err(InvalidLimit::Syntax),
                "{text}"
            );
            assert_eq!(
                text.parse::<AnyAlgorithm>(),
                Err(InvalidLimit::Syntax),
                "{text}"
            );
        }
        assert_eq!("log 5/s".parse::<AnyAlgorithm>(), Err(InvalidLimit::Syntax));
        assert_eq!(
            "sliding 5/s".parse::<SlidingLog>(),
            Err(InvalidLimit::Syntax)
        );
    }

    #[test]
    fn numbers_out_of_range_are_named() {
        assert_eq!("0/s".parse::<TokenBucket>(), Err(InvalidLimit::ZeroTokens));
        assert_eq!("5/0s".parse::<TokenBucket>(), Err(InvalidLimit::ZeroPeriod));
        assert_eq!(
            "5/s burst 0".parse::<TokenBucket>(),
            Err(InvalidLimit::ZeroBurst)
        );
        assert_eq!(
            "5/999999day".parse::<TokenBucket>(),
            Err(InvalidLimit::PeriodTooLong)
        );
        assert_eq!(
            "1/day burst 999999".parse::<TokenBucket>(),
            Err(InvalidLimit::BurstTooLong)
        );
        assert_eq!(
            "sliding 0/s".parse::<AnyAlgorithm>(),
            Err(InvalidLimit::ZeroLimit)
        );
        assert_eq!(
            "fixed 5/0s".parse::<AnyAlgorithm>(),
            Err(InvalidLimit::ZeroWindow)
        );
        assert_eq!(
            "log 4294967296/s".parse::<SlidingLog>(),
            Err(InvalidLimit::LimitTooLarge)
        );
    }
}
