//! The operating system's monotonic clock, the default.

#[cfg(feature = "std")]
use alloc::sync::Arc;
#[cfg(feature = "std")]
use std::time::Instant;

#[cfg(feature = "std")]
use super::{Clock, ManualClock};
#[cfg(feature = "std")]
use crate::time::Timestamp;

/// `std::time::Instant`, on one scale for the whole process.
///
/// The type always exists, so that limiters can be named and `check_at` works everywhere; it tells time
/// only with the feature `std`.
///
/// In tests the same type can be driven by hand, so that no clock parameter has to run through an
/// application's types:
///
#[cfg_attr(feature = "std", doc = "```")]
#[cfg_attr(not(feature = "std"), doc = "```ignore")]
/// use std::sync::Arc;
/// use std::time::Duration;
/// use ratekeeper::{Limiter, ManualClock, StdClock, TokenBucket};
///
/// struct App {
///     limiter: Limiter,
/// }
///
/// impl App {
///     fn new(clock: StdClock) -> Self {
///         Self { limiter: Limiter::with_clock(TokenBucket::per_minute(1), clock) }
///     }
/// }
///
/// let time = Arc::new(ManualClock::new());
/// let app = App::new(time.clone().into()); // `StdClock::new()` in production
/// assert!(app.limiter.check().is_allowed());
/// time.advance(Duration::from_secs(60));
/// assert!(app.limiter.check().is_allowed());
/// ```
#[derive(Clone, Debug, Default)]
pub struct StdClock {
    #[cfg(feature = "std")]
    manual: Option<Arc<ManualClock>>,
}

impl StdClock {
    /// The operating system's monotonic clock.
    pub const fn new() -> Self {
        Self {
            #[cfg(feature = "std")]
            manual: None,
        }
    }
}

/// Makes the clock show what `manual` shows.
#[cfg(feature = "std")]
impl From<Arc<ManualClock>> for StdClock {
    fn from(manual: Arc<ManualClock>) -> Self {
        Self {
            manual: Some(manual),
        }
    }
}

#[cfg(feature = "std")]
impl Clock for StdClock {
    #[inline]
    fn now(&self) -> Timestamp {
        match &self.manual {
            None => Timestamp::from(Instant::now()),
            Some(manual) => manual.now(),
        }
    }
}
