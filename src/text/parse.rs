//! The parser of limits.

use core::time::Duration;

use crate::invalid_limit::InvalidLimit;

/// Spellings of each unit, the one that is written first, and its nanoseconds; the longest unit first.
pub(super) const UNITS: [(&[&str], u64); 7] = [
    (&["day", "d", "days"], 86_400_000_000_000),
    (&["h", "hr", "hour", "hours"], 3_600_000_000_000),
    (&["min", "minute", "minutes"], 60_000_000_000),
    (&["s", "sec", "second", "seconds"], 1_000_000_000),
    (&["ms", "millisecond", "milliseconds"], 1_000_000),
    (&["us", "µs", "microsecond", "microseconds"], 1_000),
    (&["ns", "nanosecond", "nanoseconds"], 1),
];

/// The algorithm that a leading word names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Sliding,
    Fixed,
    Log,
}

/// The parts of a limit's text, not yet checked against one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parsed {
    pub(super) kind: Option<Kind>,
    pub(super) count: u64,
    pub(super) period: Duration,
    pub(super) burst: Option<u64>,
    pub(super) wait: Option<Duration>,
    pub(super) offset: Option<Duration>,
    pub(super) anchored: bool,
}

impl Parsed {
    pub(super) fn from_text(text: &str) -> Result<Self, InvalidLimit> {
        Self::scan(text)?.ok_or(InvalidLimit::Syntax)
    }

    /// `Ok(None)`: the text is no limit.
    fn scan(text: &str) -> Result<Option<Self>, InvalidLimit> {
        let mut words = text.split_ascii_whitespace();
        let Some(first) = words.next() else {
            return Ok(None);
        };
        let kind = match first {
            "sliding" => Some(Kind::Sliding),
            "fixed" => Some(Kind::Fixed),
            "log" => Some(Kind::Log),
            _ => None,
        };
        let rate = if kind.is_some() {
            words.next()
        } else {
            Some(first)
        };
        let Some((count, period)) = rate.and_then(|rate| rate.split_once('/')) else {
            return Ok(None);
        };
        let (period, short_burst) = match period.split_once(':') {
            Some((period, burst)) => (period, Some(burst)),
            None => (period, None),
        };
        let Some(count) = number(count) else {
            return Ok(None);
        };
        let Some(period) = duration(period, Some(1))? else {
            return Ok(None);
        };
        let mut parsed = Self {
            kind,
            count,
            period,
            burst: None,
            wait: None,
            offset: None,
            anchored: false,
        };
        if let Some(burst) = short_burst {
            parsed.burst = number(burst);
            if parsed.burst.is_none() {
                return Ok(None);
            }
        }
        while let Some(word) = words.next() {
            let understood = match word {
                "anchored" => !core::mem::replace(&mut parsed.anchored, true),
                "burst" => set(&mut parsed.burst, words.next().and_then(number)),
                "wait" => set(
                    &mut parsed.wait,
                    words.next().map_or(Ok(None), |w| duration(w, None))?,
                ),
                "offset" => set(
                    &mut parsed.offset,
                    words.next().map_or(Ok(None), |w| duration(w, None))?,
                ),
                _ => false,
            };
            if !understood {
                return Ok(None);
            }
        }
        Ok(Some(parsed))
    }

    /// Limit and window, if nothing else was said and no other algorithm was named.
    pub(super) fn plain_window(self, wanted: Kind) -> Result<(u32, Duration), InvalidLimit> {
        let Self {
            kind,
            count,
            period,
            burst: None,
            wait: None,
            offset: None,
            anchored: false,
        } = self
        else {
            return Err(InvalidLimit::Syntax);
        };
        if kind.is_some_and(|kind| kind != wanted) {
            return Err(InvalidLimit::Syntax);
        }
        let limit = u32::try_from(count).map_err(|_| InvalidLimit::LimitTooLarge)?;
        Ok((limit, period))
    }
}

/// Fills an option once, with something.
fn set<T>(option: &mut Option<T>, value: Option<T>) -> bool {
    let first = option.is_none();
    *option = value;
    first && option.is_some()
}

/// Decimal digits only: `u64::from_str` would also take a sign.
fn number(text: &str) -> Option<u64> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        text.parse().ok()
    } else {
        None
    }
}

/// `[k] unit`, with `default` for a missing factor; `Ok(None)` if it is no such thing.
fn duration(text: &str, default: Option<u64>) -> Result<Option<Duration>, InvalidLimit> {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = &text[..text.len() - unit.len()];
    let factor = if digits.is_empty() {
        default
    } else {
        number(digits)
    };
    let unit_ns = UNITS
        .iter()
        .find(|(names, _)| names.contains(&unit))
        .map(|(_, ns)| *ns);
    let (Some(factor), Some(unit_ns)) = (factor, unit_ns) else {
        return Ok(None);
    };
    let nanos = factor
        .checked_mul(unit_ns)
        .ok_or(InvalidLimit::PeriodTooLong)?;
    Ok(Some(Duration::from_nanos(nanos)))
}
