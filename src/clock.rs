//! Sources of time. The files below are the only ones that read a clock.
#![allow(clippy::disallowed_methods)] // this is where clocks are read

#[cfg(feature = "std")]
mod instant;
mod manual;
mod monotonic;
#[cfg(feature = "quanta")]
mod quanta;
mod std_clock;
#[cfg(feature = "tokio")]
mod tokio;
#[cfg(feature = "std")]
mod unix;

pub use self::manual::ManualClock;
pub use self::monotonic::Monotonic;
#[cfg(feature = "quanta")]
pub use self::quanta::QuantaClock;
pub use self::std_clock::StdClock;
#[cfg(feature = "tokio")]
pub use self::tokio::TokioClock;
#[cfg(feature = "std")]
pub use self::unix::UnixClock;

use crate::time::Timestamp;

/// A source of time.
///
/// It should not run backwards. If it does, no limit locks a client out: a key then waits at most one
/// refill (see each algorithm's bounds).
///
/// ```
/// use ratekeeper::{Clock, Limiter, Timestamp, TokenBucket};
///
/// /// Milliseconds since boot, as a hardware timer counts them.
/// struct SysTick;
///
/// impl Clock for SysTick {
///     fn now(&self) -> Timestamp {
///         let ticks = 1_500; // read the timer here
///         Timestamp::from_ticks(ticks, 1_000)
///     }
/// }
///
/// static LIMITER: Limiter<TokenBucket, SysTick> =
///     Limiter::with_clock(TokenBucket::per_second(10), SysTick);
/// assert!(LIMITER.check().is_allowed());
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not tell the time here",
    note = "without the feature `std`, pass your own clock (`Limiter::with_clock`) or give the instant yourself (`check_at`)"
)]
pub trait Clock {
    /// The current instant.
    fn now(&self) -> Timestamp;
}

impl<C: Clock + ?Sized> Clock for &C {
    #[inline]
    fn now(&self) -> Timestamp {
        (**self).now()
    }
}

#[cfg(all(feature = "alloc", target_has_atomic = "ptr"))]
impl<C: Clock + ?Sized> Clock for alloc::sync::Arc<C> {
    #[inline]
    fn now(&self) -> Timestamp {
        (**self).now()
    }
}
