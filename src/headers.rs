//! HTTP field values from a [`Decision`], as text; no HTTP library needed.

use core::fmt;
use core::time::Duration;

use crate::decision::Decision;

/// The value of `Retry-After` ([RFC 9110, 10.2.3]): whole seconds, rounded up, never 0. `None` when
/// the request passed, or never will.
///
/// ```
/// use core::time::Duration;
/// use ratekeeper::{Decision, Outcome, headers};
///
/// let denied = |ms| Outcome::Denied { retry_after: Duration::from_millis(ms) };
/// let decision = |outcome| Decision::new(outcome, 5, 0, Duration::from_secs(5));
/// assert_eq!(headers::retry_after(&decision(denied(300))), Some(1));
/// assert_eq!(headers::retry_after(&decision(denied(1200))), Some(2));
/// assert_eq!(headers::retry_after(&decision(Outcome::Allowed)), None);
/// ```
///
/// [RFC 9110, 10.2.3]: https://www.rfc-editor.org/rfc/rfc9110#name-retry-after
#[inline]
pub const fn retry_after(decision: &Decision) -> Option<u64> {
    match decision.retry_after() {
        Some(wait) => {
            let seconds = seconds_rounded_up(wait);
            // A denial never states a zero wait; an algorithm of somebody else's might.
            Some(if seconds == 0 { 1 } else { seconds })
        }
        None => None,
    }
}

const fn seconds_rounded_up(duration: Duration) -> u64 {
    duration
        .as_secs()
        .saturating_add((duration.subsec_nanos() > 0) as u64)
}

/// The value of `RateLimit` ([draft-ietf-httpapi-ratelimit-headers]): the policy's name, what
/// remains, and the whole seconds until everything is available again.
///
/// ```
/// use core::time::Duration;
/// use ratekeeper::{Decision, Outcome, headers::RateLimit};
///
/// let decision = Decision::new(Outcome::Allowed, 100, 7, Duration::from_millis(59_100));
/// assert_eq!(RateLimit("default", &decision).to_string(), r#""default";r=7;t=60"#);
/// ```
///
/// [draft-ietf-httpapi-ratelimit-headers]: https://datatracker.ietf.org/doc/draft-ietf-httpapi-ratelimit-headers/
#[derive(Debug)]
pub struct RateLimit<'a>(
    /// The policy's name. Characters that a structured-field string cannot hold are left out.
    pub &'a str,
    /// The answer to report.
    pub &'a Decision,
);

impl fmt::Display for RateLimit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(name, decision) = self;
        f.write_str("\"")?;
        for character in name.chars().filter(|c| matches!(c, ' '..='~')) {
            if matches!(character, '"' | '\\') {
                f.write_str("\\")?;
            }
            write!(f, "{character}")?;
        }
        let seconds = seconds_rounded_up(decision.reset_after());
        write!(f, "\";r={};t={seconds}", decision.remaining())
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString as _;

    use super::*;
    use crate::decision::Outcome;

    #[test]
    fn names_cannot_break_out_of_the_field() {
        let decision = Decision::new(Outcome::Allowed, 1, 1, Duration::ZERO);
        let value = RateLimit("a\"b\\c\r\nX: y", &decision).to_string();
        assert_eq!(value, r#""a\"b\\cX: y";r=1;t=0"#);
    }

    #[test]
    fn the_longest_wait_does_not_wrap() {
        let outcome = Outcome::Denied {
            retry_after: Duration::MAX,
        };
        let decision = Decision::new(outcome, 1, 0, Duration::MAX);
        assert_eq!(retry_after(&decision), Some(u64::MAX / 1_000_000_000 + 1));
    }
}
