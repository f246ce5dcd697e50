//! What the window algorithms share: validated parameters and the packed state.

use core::time::Duration;

use super::{Carry, Misfit, Step};
use crate::invalid_limit::InvalidLimit;
use crate::request::Request;
use crate::time::duration_ns;

/// `limit` requests per `window_ns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Window {
    pub(crate) limit: u32,
    pub(crate) window_ns: u64,
}

impl Window {
    pub(crate) const fn new(limit: u32, window: Duration) -> Result<Self, InvalidLimit> {
        if limit == 0 {
            return Err(InvalidLimit::ZeroLimit);
        }
        if window.is_zero() {
            return Err(InvalidLimit::ZeroWindow);
        }
        if window.as_nanos() > u64::MAX as u128 {
            return Err(InvalidLimit::WindowTooLong);
        }
        Ok(Self {
            limit,
            window_ns: duration_ns(window),
        })
    }

    pub(crate) const fn expect(limit: u32, window: Duration) -> Self {
        match Self::new(limit, window) {
            Ok(window) => window,
            Err(error) => panic!("{}", error.message()),
        }
    }

    /// The same on a clock that counts in steps of `tick_ns`, if it fits.
    #[inline]
    pub(crate) fn in_ticks(self, tick_ns: u64, most: u32) -> Result<Self, Misfit> {
        let Self { limit, window_ns } = self;
        if window_ns % tick_ns != 0 {
            Err(Misfit::Window)
        } else if limit > most {
            Err(Misfit::Limit)
        } else {
            let window_ns = window_ns / tick_ns;
            Ok(Self { limit, window_ns })
        }
    }

    /// Moves a state to this window from one of the same length: counts stay as they are, under the new limit. `empty` is a
    /// state with nothing left.
    pub(crate) fn change(
        &self,
        state: &mut u128,
        old: &Self,
        carry: Carry,
        empty: impl FnOnce() -> WindowState,
    ) -> bool {
        if self.window_ns != old.window_ns {
            return false;
        }
        match carry {
            Carry::Tokens | Carry::Debt => {}
            Carry::Full => *state = 0,
            Carry::Empty => *state = empty().pack(),
        }
        true
    }

    /// `cost` as a count, if the limit can ever hold that many.
    #[inline]
    pub(crate) fn fitting(self, cost: u64) -> Option<u32> {
        u32::try_from(cost).ok().filter(|cost| *cost <= self.limit)
    }
}

/// A window's start and two counts in 128 bits; all zero is a key never seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WindowState {
    /// Bits 64..128.
    pub(crate) start_ns: u64,
    /// Bits 32..64.
    pub(crate) previous: u32,
    /// Bits 0..32.
    pub(crate) current: u32,
}

impl WindowState {
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // takes the word apart
    pub(crate) const fn unpack(word: u128) -> Self {
        Self {
            start_ns: (word >> 64) as u64,
            previous: (word >> 32) as u32,
            current: word as u32,
        }
    }

    /// The state of a window that begins by `now_ns`: moved to `opening_ns` with its counts, if it has any and begins later.
    /// Returns whether it was moved.
    pub(crate) const fn beginning_by(
        mut self,
        now_ns: u64,
        opening_ns: u64,
        counts: bool,
    ) -> (u128, bool) {
        let is_ahead = counts && self.start_ns > now_ns;
        if is_ahead {
            self.start_ns = opening_ns;
        }
        (self.pack(), is_ahead)
    }

    #[inline]
    pub(crate) const fn pack(self) -> u128 {
        (self.start_ns as u128) << 64 | (self.previous as u128) << 32 | self.current as u128
    }
}

/// The step, with what of a charge found no room.
#[inline]
pub(super) fn with_uncharged(step: Step, request: &Request) -> Step {
    if !request.is_charge() {
        return step;
    }
    let uncharged = request.cost().saturating_sub(step.decision.granted());
    Step {
        decision: step.decision.with_uncharged(uncharged),
        keep: step.keep,
    }
}

/// The constructors and accessors of a limit that has a field `window: Window`.
macro_rules! window_constructors {
    ($type:ident, $build:expr) => {
        impl $type {
            /// `n` per second.
            ///
            /// # Panics
            /// If `n` is 0; in a constant, that is a compile error. Use `new` for numbers that come
            /// from outside.
            pub const fn per_second(n: u32) -> Self {
                Self::per(n, Duration::from_secs(1))
            }

            /// `n` per minute.
            ///
            /// # Panics
            /// If `n` is 0.
            pub const fn per_minute(n: u32) -> Self {
                Self::per(n, Duration::from_secs(60))
            }

            /// `n` per hour.
            ///
            /// # Panics
            /// If `n` is 0.
            pub const fn per_hour(n: u32) -> Self {
                Self::per(n, Duration::from_secs(3_600))
            }

            /// `n` per 24 hours.
            ///
            /// # Panics
            /// If `n` is 0.
            pub const fn per_day(n: u32) -> Self {
                Self::per(n, Duration::from_secs(86_400))
            }

            /// `n` per `window`.
            ///
            /// # Panics
            /// If `n` or `window` is 0, or `window` is above 584 years.
            pub const fn per(n: u32, window: Duration) -> Self {
                let window = Window::expect(n, window);
                $build(window)
            }

            /// `limit` per `window`: the constructor for numbers from outside.
            ///
            /// # Errors
            /// [`InvalidLimit`] if a number is 0, or `window` is above `u64::MAX` nanoseconds (584
            /// years).
            pub const fn new(limit: u32, window: Duration) -> Result<Self, InvalidLimit> {
                match Window::new(limit, window) {
                    Ok(window) => Ok($build(window)),
                    Err(error) => Err(error),
                }
            }

            /// Requests per window.
            #[inline]
            pub const fn limit(&self) -> u32 {
                self.window.limit
            }

            /// The window's length.
            #[inline]
            pub const fn window(&self) -> Duration {
                Duration::from_nanos(self.window.window_ns)
            }
        }
    };
}
pub(crate) use window_constructors;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packing_is_lossless_and_zero_is_fresh() {
        let state = WindowState {
            start_ns: u64::MAX - 1,
            previous: 7,
            current: u32::MAX,
        };
        assert_eq!(WindowState::unpack(state.pack()), state);
        let fresh = WindowState {
            start_ns: 0,
            previous: 0,
            current: 0,
        };
        assert_eq!(fresh.pack(), 0);
    }
}
