//! Limits as they are written.

use core::fmt::{self, Display};
use core::time::Duration;

use super::words::UNITS;
use crate::algorithm::{AnyAlgorithm, FixedWindow, SlidingLog, SlidingWindow, TokenBucket};
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

/// `"100/min burst 20 wait 2s v2"`, `"unlimited"`, `"blocked"`. A burst equal to the tokens is left out, as are a zero wait
/// and version 0.
impl Display for TokenBucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_unlimited() {
            f.write_str("unlimited")?;
        } else if self.is_blocked() {
            f.write_str("blocked")?;
        } else {
            write!(f, "{}/{}", self.tokens(), period(self.period()))?;
            if self.burst() != self.tokens() {
                write!(f, " burst {}", self.burst())?;
            }
            if !self.max_wait().is_zero() {
                write!(f, " wait {}", length(self.max_wait()))?;
            }
        }
        match self.version() {
            0 => Ok(()),
            version => write!(f, " v{version}"),
        }
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
