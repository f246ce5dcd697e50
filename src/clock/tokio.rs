//! Tokio's clock, which tests can pause.

use super::Clock;
use crate::time::Timestamp;

/// Tokio's clock: the monotonic clock, unless the runtime's time is paused; then it stands still and
/// moves by `tokio::time::advance` or when every task sleeps.
///
/// On the scale of [`StdClock`](crate::StdClock).
///
/// ```
/// use ratekeeper::{Limiter, TokenBucket, TokioClock};
/// use std::time::Duration;
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// let limiter = Limiter::with_clock(TokenBucket::per_minute(1), TokioClock);
/// assert!(limiter.check().is_allowed());
/// assert!(!limiter.check().is_allowed());
/// tokio::time::sleep(Duration::from_secs(60)).await; // returns at once: time is paused
/// assert!(limiter.check().is_allowed());
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct TokioClock;

impl Clock for TokioClock {
    #[inline]
    fn now(&self) -> Timestamp {
        Timestamp::from(tokio::time::Instant::now().into_std())
    }
}
