//! The raw numbers behind a decision, so that divisions happen only when an accessor is called.

use core::time::Duration;

use crate::rate::{Rate, divide};
use crate::time::saturate;

/// From what `limit`, `remaining` and `reset_after` are worked out.
#[derive(Clone, Copy)]
pub(crate) enum Numbers {
    Plain {
        limit: u64,
        remaining: u64,
        reset_after: Duration,
    },
    Bucket(BucketNumbers),
    Window(WindowNumbers),
}

/// A token bucket seen at `now_ns`.
#[derive(Clone, Copy)]
pub(crate) struct BucketNumbers {
    pub(crate) rate: Rate,
    pub(crate) burst: u64,
    pub(crate) now_ns: u64,
    /// When the bucket is full again; a time in the past means now.
    pub(crate) tat_ns: u64,
    /// The rounding that `tat_ns` carries.
    pub(crate) fraction: u64,
}

/// A sliding-window counter seen `elapsed_ns` into its current window.
#[derive(Clone, Copy)]
pub(crate) struct WindowNumbers {
    pub(crate) limit: u32,
    pub(crate) previous: u32,
    pub(crate) current: u32,
    pub(crate) elapsed_ns: u64,
    pub(crate) window_ns: u64,
    /// From now to the start of the current window plus one window; differs from
    /// `window_ns − elapsed_ns` only while the clock is behind that start.
    pub(crate) until_next_ns: u128,
}

impl Numbers {
    #[inline]
    pub(crate) const fn limit(&self) -> u64 {
        match self {
            Self::Plain { limit, .. } => *limit,
            Self::Bucket(bucket) => bucket.burst,
            Self::Window(window) => window.limit as u64,
        }
    }

    #[inline]
    pub(crate) const fn remaining(&self) -> u64 {
        match self {
            Self::Plain { remaining, .. } => *remaining,
            Self::Bucket(bucket) => bucket.remaining(),
            Self::Window(window) => window.remaining() as u64,
        }
    }

    #[inline]
    pub(crate) const fn reset_after(&self) -> Duration {
        match self {
            Self::Plain { reset_after, .. } => *reset_after,
            Self::Bucket(bucket) => Duration::from_nanos(bucket.debt_ns()),
            Self::Window(window) => Duration::from_nanos(window.reset_after_ns()),
        }
    }
}

impl BucketNumbers {
    #[inline]
    pub(crate) const fn debt_ns(&self) -> u64 {
        self.tat_ns.saturating_sub(self.now_ns)
    }

    /// The largest cost that would pass at `now_ns`, or at `now_ns + ahead_ns` if the caller is
    /// ready to wait that long.
    #[inline]
    pub(crate) const fn grantable(&self, ahead_ns: u64) -> u64 {
        let debt_ns = self.debt_ns().saturating_sub(ahead_ns);
        let room = if debt_ns == 0 {
            self.burst
        } else {
            self.burst
                .saturating_sub(self.rate.tokens_owed(debt_ns, self.fraction))
        };
        // Near the end of time a charge must not move the TAT past it. The product decides without a
        // division in every other century.
        let headroom_ns = u64::MAX - self.tat_ns;
        let headroom = self.rate.n as u128 * headroom_ns as u128 + self.fraction as u128;
        if headroom >= self.burst as u128 * self.rate.p as u128 {
            return room;
        }
        let fitting = saturate(divide(headroom, self.rate.p));
        if fitting < room { fitting } else { room }
    }

    #[inline]
    const fn remaining(&self) -> u64 {
        self.grantable(0)
    }
}

impl WindowNumbers {
    /// `max(0, L − cur − ⌈prev·(W − e)/W⌉)`.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // at most `previous`
    pub(crate) const fn remaining(&self) -> u32 {
        let left_ns = self.window_ns - self.elapsed_ns;
        let weighted = self.previous as u128 * left_ns as u128;
        let carried = divide(weighted + (self.window_ns - 1) as u128, self.window_ns) as u32;
        self.limit
            .saturating_sub(self.current)
            .saturating_sub(carried)
    }

    /// Until both counts have left the sliding window.
    #[inline]
    pub(crate) const fn reset_after_ns(&self) -> u64 {
        if self.current > 0 {
            saturate(self.until_next_ns + self.window_ns as u128)
        } else if self.previous > 0 {
            saturate(self.until_next_ns)
        } else {
            0
        }
    }
}
