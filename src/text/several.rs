//! Several limits in one text, with `;` between them.

use core::fmt::{self, Display};
use core::str::FromStr;

use crate::algorithm::{All, AnyAlgorithm, Limits};
use crate::invalid_limit::{InvalidLimit, Reason, Span, SyntaxError};

/// The limits of a text, as they are read.
struct Parts<'a> {
    text: &'a str,
    /// Where the next limit's text begins; `None` after the last one.
    at: Option<usize>,
}

impl<'a> Parts<'a> {
    const fn new(text: &'a str) -> Self {
        Self { text, at: Some(0) }
    }

    fn next<L: FromStr<Err = InvalidLimit>>(&mut self) -> Option<Result<L, InvalidLimit>> {
        let start = self.at?;
        let rest = self.text.get(start..)?;
        let part = rest.split(';').next()?;
        let end = start + part.len();
        let is_last = end == self.text.len();
        self.at = (!is_last).then_some(end + 1);
        if part.trim_ascii().is_empty() && !(start == 0 && is_last) {
            let separator = if is_last { start - 1 } else { end };
            let span = Span {
                start: separator,
                end: separator + 1,
            };
            return Some(Err(SyntaxError::new(span, Reason::EmptyPart).into()));
        }
        Some(
            part.parse()
                .map_err(|error: InvalidLimit| error.moved(start)),
        )
    }

    /// Everything that is left, from the semicolon on, is too much.
    fn surplus(&self, reason: Reason) -> Result<(), InvalidLimit> {
        match self.at {
            Some(start) => {
                let span = Span {
                    start: start - 1,
                    end: self.text.trim_ascii_end().len(),
                };
                Err(SyntaxError::new(span, reason).into())
            }
            None => Ok(()),
        }
    }
}

/// `"10/s burst 20; 1000/h"`: exactly as many limits as the array has.
impl<A, const N: usize> FromStr for All<[A; N]>
where
    A: FromStr<Err = InvalidLimit> + Copy,
{
    type Err = InvalidLimit;

    fn from_str(text: &str) -> Result<Self, InvalidLimit> {
        const { assert!(0 < N, "All takes one to four limits") };
        let count = |number: usize| u8::try_from(number).unwrap_or(u8::MAX);
        let wrong_count = |given| Reason::Count {
            given: count(given),
            expected: count(N),
        };
        let given = text.split(';').count();
        let mut parts = Parts::new(text);
        let too_few =
            || SyntaxError::new(Span::at(text.trim_ascii_end().len()), wrong_count(given));
        let first = parts.next().ok_or_else(too_few)??;
        let mut members = [first; N];
        for member in members.iter_mut().skip(1) {
            *member = parts.next().ok_or_else(too_few)??;
        }
        parts.surplus(wrong_count(given))?;
        Ok(Self(members))
    }
}

/// `"10/s burst 20; sliding 1000/h"`: one to four limits, each in [`AnyAlgorithm`]'s form.
impl FromStr for Limits {
    type Err = InvalidLimit;

    fn from_str(text: &str) -> Result<Self, InvalidLimit> {
        let mut parts = Parts::new(text);
        let mut left = Self::MOST;
        let mut error = None;
        let limits = Self::new(core::iter::from_fn(|| {
            left = left.checked_sub(1)?;
            parts
                .next::<AnyAlgorithm>()?
                .map_err(|wrong| error = Some(wrong))
                .ok()
        }));
        match error {
            Some(error) => Err(error),
            None => {
                parts.surplus(Reason::TooMany)?;
                limits
            }
        }
    }
}

/// `"10/s burst 20; 1000/h"`.
impl<A: Display, const N: usize> Display for All<[A; N]> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        joined(&self.0, f)
    }
}

/// `"10/s burst 20; sliding 1000/h"`.
impl Display for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        joined(self, f)
    }
}

fn joined<'a, A: Display + 'a>(
    limits: impl IntoIterator<Item = &'a A>,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    for (index, limit) in limits.into_iter().enumerate() {
        if index > 0 {
            f.write_str("; ")?;
        }
        limit.fmt(f)?;
    }
    Ok(())
}
