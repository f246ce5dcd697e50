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

/// A source of time that does not run back.
///
/// # Contract
/// No reading is less than one that ended before it began, whichever threads of the process took them. A
/// clock may stand still, and it may jump forwards: what it jumps is refilled.
///
/// | clock | keeps the contract |
/// |---|---|
/// | [`StdClock`], `TokioClock` | as [`Instant`](https://doc.rust-lang.org/std/time/struct.Instant.html) does, which they show |
/// | `UnixClock` | by running at half speed after the wall clock was set back |
/// | [`Monotonic`] around a clock of your own | by standing still for small steps back, and going on from where it was after larger ones |
/// | `QuantaClock` | if the CPU's counters agree; `Monotonic<QuantaClock>` in any case |
/// | [`ManualClock`] | unless it is [`set`](ManualClock::set) back |
///
/// # When time runs back nevertheless
/// Instants given to [`check_at`](crate::Limiter::check_at) may be older than those before, a test may set
/// its clock back, and the clocks of several machines differ. A state ahead of the caller is then a debt
/// like any other: waits are longer by up to the difference. And if no instant is further than `Δ` from
/// another one given at the same time, then of a bucket of `B` tokens, one of which takes `T` to come, at
/// most
///
/// ```text
/// B + (W + Δ)/T
/// ```
///
/// tokens are taken in any time `W`, one more if `T` is not a whole number of nanoseconds. `Δ` counts once,
/// not with every reading. If clocks drift apart, the time from the first reading to the largest one stands
/// for `W + Δ`. Windows and logs keep the bound of their window `W` in every real `W − Δ`.
///
/// # Example
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
