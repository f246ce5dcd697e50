//! The wall clock as a function of monotonic time that never falls.

/// How long a line holds; so late, at most, is a step of the wall clock seen.
pub(super) const HOLDS_NS: i64 = 1_000_000;

/// What is shown from one look at the wall clock to the next: the higher of two lines over monotonic time
/// `m`, both in nanoseconds.
///
/// The wall clock itself is `m + off`. `m / 2 + half` goes on at half speed from the highest instant shown,
/// and is the higher one until the wall clock has caught up after a step back.
///
/// Up to the instant at which it begins, a newer line is nowhere below an older one: it begins there or
/// higher, at half speed or with a larger `off`, and no line is slower than half speed. So a reading that
/// was under way meanwhile may take the newer line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) off_ns: i64,
    pub(super) half_ns: i64,
    /// The first monotonic instant at which the wall clock is looked at again.
    pub(super) next_ns: i64,
}

impl Line {
    /// Nothing was shown yet: far below every wall clock, and over before it begins.
    pub(super) const NONE: Self = Self {
        off_ns: i64::MIN,
        half_ns: i64::MIN,
        next_ns: i64::MIN,
    };

    /// What is shown at `m_ns`, which is not negative.
    #[inline]
    pub(super) fn shown(self, m_ns: i64) -> i64 {
        let wall_ns = m_ns.saturating_add(self.off_ns);
        let slow_ns = (m_ns / 2).saturating_add(self.half_ns);
        wall_ns.max(slow_ns)
    }

    /// The line from `m_ns` on, where the wall clock shows `wall_ns`; neither is negative.
    pub(super) fn follow(self, m_ns: i64, wall_ns: i64) -> Self {
        let shown_ns = self.shown(m_ns);
        Self {
            off_ns: wall_ns - m_ns,
            half_ns: if wall_ns < shown_ns {
                shown_ns - m_ns / 2
            } else {
                self.half_ns
            },
            next_ns: m_ns.saturating_add(HOLDS_NS),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Vector 22 of the specification.
    #[test]
    fn half_speed_from_the_step_until_the_wall_has_caught_up() {
        let before = Line::NONE.follow(0, 1_000);
        assert_eq!(before.shown(100), 1_100);
        let line = before.follow(100, 1_040);
        let shown = [99, 100, 120, 219, 220, 221, 300].map(|m| line.shown(m));
        assert_eq!(shown, [1_099, 1_100, 1_110, 1_159, 1_160, 1_161, 1_240]);
    }

    #[test]
    fn the_ends_of_time_stop_the_clock() {
        let line = Line::NONE.follow(0, i64::MAX);
        assert_eq!(line.shown(5), i64::MAX);
        let line = line.follow(5, 0);
        assert_eq!(line.shown(6), i64::MAX, "half speed ends there, too");
        let line = Line::NONE.follow(i64::MAX, 0);
        assert_eq!(line.shown(i64::MAX), 0);
        assert_eq!(line.follow(i64::MAX, 7).shown(i64::MAX), 7);
    }
}
