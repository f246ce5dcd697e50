//! One [`Line`] for all threads, replaced about every millisecond by whoever reads it then.

use std::sync::PoisonError;

use super::line::Line;
use crate::sync::modelled::{AtomicI64, AtomicU64, Mutex, fence};
use crate::sync::{Ordering, const_unless_modelled};

/// A line under a sequence lock: readings write nothing and wait for nobody, unless the line is over.
///
/// A line is taken only at instants before its `next_ns`, and replaced only at later ones. So nobody prolongs
/// an old line beyond the instant at which the new one leaves it, in whatever order a CPU reads its counter
/// and its memory.
#[derive(Debug)]
pub(super) struct Slew {
    /// Odd while the line is being replaced.
    seq: AtomicU64,
    off_ns: AtomicI64,
    half_ns: AtomicI64,
    next_ns: AtomicI64,
    /// Held by the one thread that replaces the line.
    replacing: Mutex<()>,
}

impl Slew {
    const_unless_modelled! {
        pub(super) const fn new() -> Self {
            Self {
                seq: AtomicU64::new(0),
                off_ns: AtomicI64::new(Line::NONE.off_ns),
                half_ns: AtomicI64::new(Line::NONE.half_ns),
                next_ns: AtomicI64::new(Line::NONE.next_ns),
                replacing: Mutex::new(()),
            }
        }
    }

    /// The time of `wall`, in nanoseconds, never less than a reading that ended before this one began.
    ///
    /// `monotonic` and `wall` read the two clocks, in nanoseconds, not negative. `monotonic` must not run
    /// back.
    #[inline]
    pub(super) fn read(&self, monotonic: impl Fn() -> i64, wall: impl Fn() -> i64) -> i64 {
        let m_ns = monotonic();
        match self.line_at(m_ns) {
            Some(line) => line.shown(m_ns),
            None => self.replace(m_ns, monotonic, wall),
        }
    }

    /// The line, if it still held at `m_ns`, which was read before.
    #[inline]
    fn line_at(&self, m_ns: i64) -> Option<Line> {
        let seq = self.seq.load(Ordering::Acquire);
        let line = self.line();
        // The words are read before `seq` is read again; see the stores in `replace`.
        fence(Ordering::Acquire);
        let whole = seq & 1 == 0 && self.seq.load(Ordering::Relaxed) == seq;
        (whole && m_ns < line.next_ns).then_some(line)
    }

    #[inline]
    fn line(&self) -> Line {
        Line {
            off_ns: self.off_ns.load(Ordering::Relaxed),
            half_ns: self.half_ns.load(Ordering::Relaxed),
            next_ns: self.next_ns.load(Ordering::Relaxed),
        }
    }

    /// Looks at the wall clock, and makes a line of what it shows.
    #[cold]
    fn replace(&self, m_ns: i64, monotonic: impl Fn() -> i64, wall: impl Fn() -> i64) -> i64 {
        // A thread that panicked here, in one of the clocks, has left `seq` odd and the line as it was.
        let alone = self
            .replacing
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(line) = self.line_at(m_ns) {
            return line.shown(m_ns); // another thread was faster
        }
        let odd = self.seq.load(Ordering::Relaxed) | 1;
        self.seq.store(odd, Ordering::Relaxed);
        // Whoever sees one of the new words sees that `seq` is odd when it reads it again.
        fence(Ordering::Release);
        // Both clocks anew, since this thread may have waited long. The wall clock first: a pause in between
        // makes the new line late, never early.
        let wall_ns = wall();
        let m_ns = monotonic();
        let line = self.line().follow(m_ns, wall_ns);
        self.off_ns.store(line.off_ns, Ordering::Relaxed);
        self.half_ns.store(line.half_ns, Ordering::Relaxed);
        self.next_ns.store(line.next_ns, Ordering::Relaxed);
        self.seq.store(odd.wrapping_add(1), Ordering::Release);
        drop(alone);
        line.shown(m_ns)
    }
}
