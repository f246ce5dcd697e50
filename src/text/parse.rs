//! The parser of one limit: its parts, not yet checked against one another.

use core::time::Duration;

use super::words::{Word, Words, gap, unit_ns};
use crate::invalid_limit::{InvalidLimit, Reason, Span, SyntaxError};

/// The algorithm that a leading word names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Sliding,
    Fixed,
    Log,
}

impl Kind {
    fn named(word: &str) -> Option<Self> {
        match word {
            "sliding" => Some(Self::Sliding),
            "fixed" => Some(Self::Fixed),
            "log" => Some(Self::Log),
            _ => None,
        }
    }

    const fn is_expected(self) -> Reason {
        match self {
            Self::Sliding => Reason::SlidingHere,
            Self::Fixed => Reason::FixedHere,
            Self::Log => Reason::LogHere,
        }
    }
}

/// A bucket that a single word stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extreme {
    Unlimited,
    Blocked,
}

impl Extreme {
    fn named(word: &str) -> Option<Self> {
        match word {
            "unlimited" => Some(Self::Unlimited),
            "blocked" => Some(Self::Blocked),
            _ => None,
        }
    }
}

/// Something that was read, and where.
#[derive(Clone, Copy, Debug)]
pub(super) struct Located<T> {
    pub(super) value: T,
    pub(super) span: Span,
}

/// A word with its number, such as `burst 20`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clause<T> {
    pub(super) value: T,
    /// The number alone.
    pub(super) number: Span,
    /// Word and number.
    pub(super) span: Span,
}

/// How much a limit lets pass.
#[derive(Clone, Copy, Debug)]
pub(super) enum Amount {
    Rate {
        count: Located<u64>,
        period: Located<Duration>,
    },
    Extreme(Located<Extreme>),
}

/// The parts of a limit's text, not yet checked against one another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parsed {
    pub(super) kind: Option<Located<Kind>>,
    pub(super) amount: Amount,
    pub(super) burst: Option<Clause<u64>>,
    pub(super) wait: Option<Clause<Duration>>,
    pub(super) offset: Option<Clause<Duration>>,
    pub(super) anchored: Option<Span>,
    pub(super) version: Option<Located<u16>>,
}

impl Parsed {
    pub(super) fn from_text(text: &str) -> Result<Self, SyntaxError> {
        let mut words = Words::new(text);
        if let Some(start) = text.find(';') {
            let span = Span {
                start,
                end: words.end(),
            };
            return Err(SyntaxError::new(span, Reason::SecondLimit));
        }
        let Some(first) = words.next() else {
            let span = Span {
                start: 0,
                end: text.len(),
            };
            return Err(SyntaxError::new(span, Reason::NoLimit));
        };
        let kind = Kind::named(first.text).map(|kind| Located {
            value: kind,
            span: first.span(),
        });
        let second = match kind {
            Some(_) => words.next().ok_or_else(|| first.lacks(Reason::NoRate))?,
            None => first,
        };
        if kind.is_some() && Kind::named(second.text).is_some() {
            return Err(second.wrong(Reason::TwoKinds));
        }
        let (amount, burst) = match Extreme::named(second.text) {
            Some(value) => {
                let span = second.span();
                (Amount::Extreme(Located { value, span }), None)
            }
            None => rate(second, &mut words)?,
        };
        let mut parsed = Self {
            kind,
            amount,
            burst,
            wait: None,
            offset: None,
            anchored: None,
            version: None,
        };
        while let Some(word) = words.next() {
            parsed.option(word, &mut words)?;
        }
        Ok(parsed)
    }

    /// What may follow a rate, in any order.
    fn option(&mut self, word: Word<'_>, words: &mut Words<'_>) -> Result<(), SyntaxError> {
        match word.text {
            "anchored" => set(&mut self.anchored, word.span(), word.span()),
            "burst" => {
                let number = words.next().ok_or_else(|| word.lacks(Reason::NoBurst))?;
                let burst = clause(word, number, number.number()?);
                set(&mut self.burst, burst, burst.span)
            }
            "wait" => {
                let number = words.next().ok_or_else(|| word.lacks(Reason::NoWait))?;
                let wait = clause(word, number, length(number, words)?);
                set(&mut self.wait, wait, wait.span)
            }
            "offset" => {
                let number = words.next().ok_or_else(|| word.lacks(Reason::NoOffset))?;
                let offset = clause(word, number, length(number, words)?);
                set(&mut self.offset, offset, offset.span)
            }
            text => {
                let begins_with_digit =
                    |text: &&str| !text.starts_with(|c: char| !c.is_ascii_digit());
                if let Some(digits) = text.strip_prefix('v').filter(begins_with_digit) {
                    let version = version(word, digits)?;
                    return set(&mut self.version, version, version.span);
                }
                let begins_a_limit = text.contains('/')
                    || Kind::named(text).is_some()
                    || Extreme::named(text).is_some();
                if begins_a_limit {
                    let span = Span {
                        start: word.start,
                        end: words.end(),
                    };
                    return Err(SyntaxError::new(span, Reason::SecondLimit));
                }
                Err(word.wrong(Reason::UnknownWord))
            }
        }
    }

    /// Limit and window of an algorithm that has these two, if nothing else was said and no other algorithm named.
    pub(super) fn plain_window(&self, wanted: Kind) -> Result<PlainWindow, InvalidLimit> {
        if let Some(kind) = self.kind.filter(|kind| kind.value != wanted) {
            return Err(SyntaxError::new(kind.span, wanted.is_expected()).into());
        }
        let (count, period) = match self.amount {
            Amount::Rate { count, period } => (count, period),
            Amount::Extreme(word) => {
                let start = self.kind.map_or(word.span.start, |kind| kind.span.start);
                let span = Span { start, ..word.span };
                return Err(SyntaxError::new(span, Reason::NotAWindow).into());
            }
        };
        let of_buckets = self.burst.map(|burst| burst.span);
        if let Some(span) = of_buckets.or(self.wait.map(|wait| wait.span)) {
            return Err(SyntaxError::new(span, Reason::OnlyBuckets).into());
        }
        if let Some(version) = self.version {
            return Err(SyntaxError::new(version.span, Reason::OnlyBucketsHaveVersions).into());
        }
        if wanted != Kind::Fixed {
            self.no_edges()?;
        }
        let limit = u32::try_from(count.value)
            .map_err(|_| InvalidLimit::LimitTooLarge.in_text(count.span))?;
        Ok(PlainWindow {
            limit,
            window: period.value,
            limit_span: count.span,
            window_span: period.span,
        })
    }

    /// Only fixed windows have an offset or an anchor.
    pub(super) fn no_edges(&self) -> Result<(), SyntaxError> {
        let offset = self.offset.map(|offset| offset.span);
        match offset.or(self.anchored) {
            Some(span) => Err(SyntaxError::new(span, Reason::OnlyFixedWindows)),
            None => Ok(()),
        }
    }
}

/// The two numbers of a window.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlainWindow {
    pub(super) limit: u32,
    pub(super) window: Duration,
    limit_span: Span,
    window_span: Span,
}

impl PlainWindow {
    /// Runs a constructor and says which of the two numbers it refused.
    pub(super) fn build<L>(
        self,
        new: impl FnOnce(u32, Duration) -> Result<L, InvalidLimit>,
    ) -> Result<L, InvalidLimit> {
        new(self.limit, self.window).map_err(|error| match error {
            InvalidLimit::ZeroLimit => error.in_text(self.limit_span),
            _ => error.in_text(self.window_span),
        })
    }
}

/// `10/s`, `3/90s`, `100/min:20`.
fn rate(
    word: Word<'_>,
    words: &mut Words<'_>,
) -> Result<(Amount, Option<Clause<u64>>), SyntaxError> {
    let Some((count, rest)) = word.split_once('/') else {
        return Err(no_slash(word, words));
    };
    if count.text.is_empty() {
        return Err(SyntaxError::new(Span::at(count.start), Reason::NoNumber));
    }
    let (period, short_burst) = match rest.split_once(':') {
        Some((period, burst)) => (period, Some(burst)),
        None => (rest, None),
    };
    let tokens = count.number()?;
    if rest.text.is_empty() {
        return Err(match words.next() {
            Some(next) if next.duration(Some(1), None).is_ok() => gap(count, next, Reason::Spaces),
            _ => rest.wrong(Reason::NoUnit),
        });
    }
    let length = period.duration(Some(1), words.peek())?;
    let burst = match short_burst {
        Some(number) if number.text.is_empty() => return Err(number.wrong(Reason::NoBurst)),
        Some(number) => {
            let colon = Word {
                text: "",
                start: period.end(),
            };
            Some(clause(colon, number, number.number()?))
        }
        None => None,
    };
    let amount = Amount::Rate {
        count: Located {
            value: tokens,
            span: count.span(),
        },
        period: Located {
            value: length,
            span: period.span(),
        },
    };
    Ok((amount, burst))
}

/// What a first word without a slash was meant to be: `10 per minute`, `10 /min`, `10 min`, `10min`.
fn no_slash(word: Word<'_>, words: &mut Words<'_>) -> SyntaxError {
    let (digits, rest) = word.split_digits();
    if digits.text.is_empty() {
        return word.wrong(Reason::NoLimit);
    }
    if let Err(error) = digits.number() {
        return error;
    }
    if rest.text.starts_with('.') {
        return word.wrong(Reason::Fraction);
    }
    if !rest.text.is_empty() {
        return if rest.duration(Some(1), None).is_ok() {
            digits.lacks(Reason::Slash)
        } else {
            rest.wrong(Reason::Slash)
        };
    }
    let Some(next) = words.next() else {
        return word.lacks(Reason::Slash);
    };
    let is_unit = |word: &Word<'_>| unit_ns(word.split_digits().1.text).is_some();
    let before_unit = |words: &mut Words<'_>| words.next().map_or(next.end(), |unit| unit.start);
    let (end, reason) = match next.text {
        "/" => (before_unit(words), Reason::Spaces),
        "per" | "a" | "an" | "every" => (before_unit(words), Reason::Slash),
        text if text.starts_with('/') => (next.start + 1, Reason::Spaces),
        _ if is_unit(&next) => (next.start, Reason::Slash),
        _ => (next.end(), Reason::Slash),
    };
    let start = word.end();
    SyntaxError::new(Span { start, end }, reason)
}

const fn clause<T: Copy>(word: Word<'_>, number: Word<'_>, value: T) -> Clause<T> {
    Clause {
        value,
        number: number.span(),
        span: Span {
            start: word.start,
            end: number.end(),
        },
    }
}

/// A duration after `wait` or `offset`.
fn length(word: Word<'_>, words: &Words<'_>) -> Result<Duration, SyntaxError> {
    let length = word.duration(None, words.peek())?;
    if length > Duration::from_nanos(u64::MAX) {
        return Err(word.wrong(Reason::DurationTooLong));
    }
    Ok(length)
}

/// `v2`. Version 0 is that of limits without one, and not written.
fn version(word: Word<'_>, digits: &str) -> Result<Located<u16>, SyntaxError> {
    let number = Word {
        text: digits,
        start: word.end() - digits.len(),
    };
    let value = number
        .number()
        .ok()
        .and_then(|number| u16::try_from(number).ok())
        .filter(|version| *version > 0)
        .ok_or_else(|| word.wrong(Reason::Version))?;
    Ok(Located {
        value,
        span: word.span(),
    })
}

/// Fills an option once.
fn set<T>(option: &mut Option<T>, value: T, span: Span) -> Result<(), SyntaxError> {
    if option.is_some() {
        return Err(SyntaxError::new(span, Reason::Twice));
    }
    *option = Some(value);
    Ok(())
}
