//! What of a limit belongs to a stored key.

use core::fmt::{self, Write};
use core::time::Duration;

use crate::algorithm::Algorithm;

/// The part of a stored key that says which limits share its state: the algorithm, and for windows their length, offset and
/// anchoring. A state means nothing to a limit of another kind, so keys of different kinds are different keys. Counts, bursts and
/// rates are no part of it: they may change in place.
///
/// Empty for a token bucket, so that its keys are the plain ones.
///
/// ```
/// use ratekeeper::store::KeyKind;
/// use ratekeeper::{FixedWindow, SlidingWindow, TokenBucket};
///
/// assert_eq!(KeyKind::of(&TokenBucket::per_second(5)).as_str(), "");
/// assert_eq!(KeyKind::of(&SlidingWindow::per_minute(5)).as_str(), "sliding-60s");
/// assert_eq!(KeyKind::of(&FixedWindow::per_hour(9).anchored()).as_str(), "fixed-3600s-anchored");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyKind {
    len: u8,
    text: [u8; Self::MAX_BYTES],
}

/// What a token bucket writes.
pub(crate) const BUCKET: &str = "bucket";

impl KeyKind {
    /// The longest, in bytes. Its characters are `a–z 0–9 - +`.
    pub const MAX_BYTES: usize = 64;

    /// The kind of keys that `algorithm` has states for.
    pub fn of<A: Algorithm>(algorithm: &A) -> Self {
        let mut kind = Self {
            len: 0,
            text: [0; Self::MAX_BYTES],
        };
        if algorithm.write_kind(&mut kind).is_err() {
            // Too long: several windows of odd lengths.
            kind.len = 0;
            let number = algorithm.state_kind().number();
            let _ = write!(kind, "kind-{number:016x}"); // fits
        }
        if kind.as_str() == BUCKET {
            kind.len = 0;
        }
        kind
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        let written = self.text.get(..usize::from(self.len)).unwrap_or_default();
        core::str::from_utf8(written).unwrap_or_default()
    }

    /// Whether it is that of a token bucket.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl Write for KeyKind {
    #[allow(clippy::cast_possible_truncation)] // at most MAX_BYTES
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let start = usize::from(self.len);
        let end = start.saturating_add(text.len());
        let room = self.text.get_mut(start..end).ok_or(fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.len = end as u8;
        Ok(())
    }
}

impl fmt::Debug for KeyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KeyKind").field(&self.as_str()).finish()
    }
}

impl fmt::Display for KeyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A span of time in the largest of these units that it is a whole number of. Not the form of limits as text: this one must never
/// change.
pub(crate) struct Span(pub(crate) Duration);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.as_nanos();
        for (unit_ns, unit) in [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")] {
            if nanos % unit_ns == 0 {
                return write!(f, "{}{unit}", nanos / unit_ns);
            }
        }
        write!(f, "{nanos}ns")
    }
}

#[cfg(all(test, feature = "alloc"))]
mod tests {
    use super::*;
    use crate::algorithm::{
        All, AnyAlgorithm, FixedWindow, SlidingLog, SlidingWindow, TokenBucket,
    };

    #[test]
    fn limits_that_share_states_share_a_kind_and_others_do_not() {
        let bucket = TokenBucket::per_second(5);
        let window = SlidingWindow::per_minute(5);
        assert_eq!(
            KeyKind::of(&AnyAlgorithm::from(bucket)),
            KeyKind::of(&bucket)
        );
        assert_eq!(
            KeyKind::of(&SlidingWindow::per_minute(9)),
            KeyKind::of(&window)
        );
        let odd = Duration::from_nanos(1_234_567_890_123_456_789);
        let offset = FixedWindow::new(1, odd)
            .unwrap()
            .with_offset(Duration::from_nanos(7));
        let kinds = [
            KeyKind::of(&bucket),
            KeyKind::of(&All([bucket])),
            KeyKind::of(&All([bucket; 2])),
            KeyKind::of(&window),
            KeyKind::of(&SlidingWindow::per_hour(5)),
            KeyKind::of(&FixedWindow::per_minute(5)),
            KeyKind::of(&FixedWindow::per_minute(5).anchored()),
            KeyKind::of(&FixedWindow::per_minute(5).with_offset(Duration::from_secs(1))),
            KeyKind::of(&SlidingLog::per_minute(5)),
            KeyKind::of(&All((bucket, window))),
            KeyKind::of(&All((window, bucket))),
            KeyKind::of(&offset),
            KeyKind::of(&All((offset, offset, window))),
            KeyKind::of(&All((offset, window, offset))),
        ];
        for (i, kind) in kinds.iter().enumerate() {
            assert_eq!(
                kinds.iter().position(|other| other == kind),
                Some(i),
                "{kind}"
            );
        }
        assert_eq!(
            KeyKind::of(&All((bucket, window))).as_str(),
            "all-bucket+sliding-60s"
        );
    }
}
