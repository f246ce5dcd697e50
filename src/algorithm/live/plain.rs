//! Limits as words.

use crate::algorithm::fixed_window::Edges;
use crate::algorithm::window::Window;
use crate::algorithm::{FixedWindow, SlidingLog, SlidingWindow};

/// A limit that can be taken apart into words and put together again, so that it can lie in atomics.
///
/// Words that were read while they were being written make a limit that means nothing. Putting it together must not
/// panic; nobody uses it.
pub(crate) trait Plain: Copy + PartialEq {
    /// Puts the limit's words, at most 16 of them, always the same number.
    fn put(&self, put: &mut impl FnMut(u64));

    /// The limit that [`put`](Self::put) these words.
    fn take(next: &mut impl FnMut() -> u64) -> Self;
}

impl Plain for SlidingWindow {
    fn put(&self, put: &mut impl FnMut(u64)) {
        let Self { window } = *self;
        window.put(put);
    }

    #[inline]
    fn take(next: &mut impl FnMut() -> u64) -> Self {
        Self {
            window: Plain::take(next),
        }
    }
}

impl Plain for SlidingLog {
    fn put(&self, put: &mut impl FnMut(u64)) {
        let Self { window } = *self;
        window.put(put);
    }

    #[inline]
    fn take(next: &mut impl FnMut() -> u64) -> Self {
        Self {
            window: Plain::take(next),
        }
    }
}

impl Plain for FixedWindow {
    fn put(&self, put: &mut impl FnMut(u64)) {
        let Self { window, edges } = *self;
        window.put(put);
        edges.put(put);
    }

    #[inline]
    fn take(next: &mut impl FnMut() -> u64) -> Self {
        Self {
            window: Plain::take(next),
            edges: Plain::take(next),
        }
    }
}

impl Plain for Window {
    fn put(&self, put: &mut impl FnMut(u64)) {
        let Self { limit, window_ns } = *self;
        put(u64::from(limit));
        put(window_ns);
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation)] // put as a u32
    fn take(next: &mut impl FnMut() -> u64) -> Self {
        Self {
            limit: next() as u32,
            window_ns: next(),
        }
    }
}

impl Plain for Edges {
    fn put(&self, put: &mut impl FnMut(u64)) {
        // An offset is below the window's length, and so below this.
        put(match *self {
            Self::Aligned { offset_ns } => offset_ns,
            Self::Anchored => u64::MAX,
        });
    }

    #[inline]
    fn take(next: &mut impl FnMut() -> u64) -> Self {
        match next() {
            u64::MAX => Self::Anchored,
            offset_ns => Self::Aligned { offset_ns },
        }
    }
}
