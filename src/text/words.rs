//! Words of a text that know their place in it, and the numbers and durations they stand for.

use core::time::Duration;

use crate::invalid_limit::{Reason, Span, SyntaxError};

/// Spellings of each unit, the one that is written first, and its nanoseconds; the longest unit first.
pub(super) const UNITS: [(&[&str], u64); 8] = [
    (&["week", "w", "wk", "weeks"], 604_800_000_000_000),
    (&["day", "d", "days"], 86_400_000_000_000),
    (&["h", "hr", "hour", "hours"], 3_600_000_000_000),
    (&["min", "m", "minute", "minutes"], 60_000_000_000),
    (&["s", "sec", "second", "seconds"], 1_000_000_000),
    (&["ms", "millisecond", "milliseconds"], 1_000_000),
    (&["us", "µs", "microsecond", "microseconds"], 1_000),
    (&["ns", "nanosecond", "nanoseconds"], 1),
];

/// A piece of a text without spaces, and where it stands.
#[derive(Clone, Copy)]
pub(super) struct Word<'a> {
    pub(super) text: &'a str,
    pub(super) start: usize,
}

impl<'a> Word<'a> {
    pub(super) const fn end(self) -> usize {
        self.start + self.text.len()
    }

    pub(super) const fn span(self) -> Span {
        Span {
            start: self.start,
            end: self.end(),
        }
    }

    pub(super) const fn wrong(self, reason: Reason) -> SyntaxError {
        SyntaxError::new(self.span(), reason)
    }

    /// Something is missing right after this word.
    pub(super) const fn lacks(self, reason: Reason) -> SyntaxError {
        SyntaxError::new(Span::at(self.end()), reason)
    }

    pub(super) fn split_once(self, separator: char) -> Option<(Self, Self)> {
        let (before, after) = self.text.split_once(separator)?;
        let start = self.end() - after.len();
        let after = Self { text: after, start };
        let before = Self {
            text: before,
            start: self.start,
        };
        Some((before, after))
    }

    /// The leading digits, and the rest.
    pub(super) fn split_digits(self) -> (Self, Self) {
        let rest = self
            .text
            .trim_start_matches(|c: char| c.is_ascii_digit() || c == '_');
        let (digits, rest) = self.text.split_at(self.text.len() - rest.len());
        let digits = Self {
            text: digits,
            start: self.start,
        };
        let rest = Self {
            text: rest,
            start: digits.end(),
        };
        (digits, rest)
    }

    /// `1_000`. Nothing that a reader might take for another number: no sign, no leading zero.
    pub(super) fn number(self) -> Result<u64, SyntaxError> {
        let (digits, rest) = self.split_digits();
        if digits.text.is_empty() || !rest.text.is_empty() {
            return Err(self.wrong(match rest.text.strip_prefix('.') {
                Some(_) if !digits.text.is_empty() => Reason::Fraction,
                _ => Reason::Number,
            }));
        }
        if self.text.split('_').any(str::is_empty) {
            return Err(self.wrong(Reason::Underscore));
        }
        if self.text.len() > 1 && self.text.starts_with('0') {
            return Err(self.wrong(Reason::LeadingZero));
        }
        self.text
            .bytes()
            .filter(u8::is_ascii_digit)
            .try_fold(0_u64, |number, digit| {
                number.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
            })
            .ok_or_else(|| self.wrong(Reason::NumberTooLarge))
    }

    /// `[k] unit`, with `default` for a missing factor. What is longer than `u64::MAX` nanoseconds is cut to one more, which
    /// every limit refuses. `next` is the word after this one.
    pub(super) fn duration(
        self,
        default: Option<u64>,
        next: Option<Word<'a>>,
    ) -> Result<Duration, SyntaxError> {
        let (digits, unit) = self.split_digits();
        let factor = match default {
            Some(factor) if digits.text.is_empty() => factor,
            _ if digits.text.is_empty() && !unit.text.is_empty() => {
                return Err(self.wrong(Reason::Number));
            }
            _ if digits.text.is_empty() => return Err(self.lacks(Reason::NoUnit)),
            _ => digits.number()?,
        };
        let Some(unit_ns) = unit_ns(unit.text) else {
            return Err(match (unit.text.chars().next(), next) {
                (Some('.'), _) if !digits.text.is_empty() => self.wrong(Reason::Fraction),
                (Some('-' | '+'), _) if digits.text.is_empty() => self.wrong(Reason::Number),
                (Some(_), _) => unit.wrong(Reason::Unit),
                (None, Some(next)) if unit_ns(next.text).is_some() => {
                    gap(self, next, Reason::SpaceBeforeUnit)
                }
                (None, _) => unit.wrong(Reason::NoUnit),
            });
        };
        let nanos = u128::from(factor) * u128::from(unit_ns);
        let Ok(nanos) = u64::try_from(nanos) else {
            return Ok(Duration::from_nanos(u64::MAX) + Duration::from_nanos(1));
        };
        Ok(Duration::from_nanos(nanos))
    }
}

/// What stands between two words is wrong.
pub(super) const fn gap(before: Word<'_>, after: Word<'_>, reason: Reason) -> SyntaxError {
    let span = Span {
        start: before.end(),
        end: after.start,
    };
    SyntaxError::new(span, reason)
}

pub(super) fn unit_ns(text: &str) -> Option<u64> {
    UNITS
        .iter()
        .find(|(names, _)| names.contains(&text))
        .map(|(_, ns)| *ns)
}

/// The words of a text, one after the other.
#[derive(Clone)]
pub(super) struct Words<'a> {
    text: &'a str,
    /// Where the next word is sought.
    at: usize,
}

impl<'a> Words<'a> {
    pub(super) const fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    pub(super) fn peek(&self) -> Option<Word<'a>> {
        self.clone().next()
    }

    /// Where the last word of the text ends.
    pub(super) const fn end(&self) -> usize {
        self.text.trim_ascii_end().len()
    }
}

impl<'a> Iterator for Words<'a> {
    type Item = Word<'a>;

    fn next(&mut self) -> Option<Word<'a>> {
        let rest = self.text.get(self.at..)?;
        let word = rest.split_ascii_whitespace().next()?;
        let start = self.at + rest.len() - rest.trim_ascii_start().len();
        self.at = start + word.len();
        Some(Word { text: word, start })
    }
}
