//! The scale of the monotonic clock.

use core::time::Duration;
use std::sync::OnceLock;
use std::time::Instant;

use crate::time::Timestamp;

/// The instant on [`StdClock`](crate::StdClock)'s scale: for event loops that have read the time already.
///
/// The scale begins one day before its first use in the process, so that instants taken earlier have a
/// place on it.
impl From<Instant> for Timestamp {
    #[inline]
    fn from(instant: Instant) -> Self {
        static EPOCH: OnceLock<Instant> = OnceLock::new();
        let epoch = EPOCH.get_or_init(|| {
            let first = Instant::now();
            first
                .checked_sub(Duration::from_secs(86_400))
                .unwrap_or(first)
        });
        let Some(since) = instant.checked_duration_since(*epoch) else {
            return before_the_scale();
        };
        // As a branch, not as data: nothing then waits for the comparison.
        if since.as_secs() >= u64::MAX / 1_000_000_000 {
            return after_the_scale();
        }
        Self::from_nanos(since.as_secs() * 1_000_000_000 + u64::from(since.subsec_nanos()))
    }
}

#[cold]
#[inline(never)]
fn before_the_scale() -> Timestamp {
    Timestamp::ZERO
}

#[cold]
#[inline(never)]
fn after_the_scale() -> Timestamp {
    Timestamp::from_nanos(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Clock as _, StdClock};

    #[test]
    fn one_scale_for_clocks_and_instants() {
        let before = Instant::now();
        let now = StdClock::new().now();
        assert!(Timestamp::from(before) <= now);
        let later = Timestamp::from(before + Duration::from_secs(5));
        assert_eq!(
            later.saturating_since(before.into()),
            Duration::from_secs(5)
        );
    }
}
