//! A clock made to never run back.

#[cfg(all(test, loom))]
mod model;

use core::time::Duration;

use super::Clock;
use crate::sync::modelled::AtomicU64;
use crate::sync::{Ordering, const_unless_modelled};
use crate::time::{Timestamp, duration_ns};

/// Makes a clock of your own keep the contract of [`Clock`]: its readings never run back in the process,
/// whichever threads take them.
///
/// When the inner clock steps back by up to [`TOLERANCE`](Self::TOLERANCE), as counters of several cores
/// that differ a little seem to, this one stands still until the inner one has caught up. After a larger
/// step it goes on from where it was, at the inner clock's pace, and stays that far ahead of it from then
/// on. Steps forwards are shown at once, whatever their size.
///
/// ```
/// use core::time::Duration;
/// use ratekeeper::{Clock, ManualClock, Monotonic, Timestamp};
///
/// static INNER: ManualClock = ManualClock::new();
/// static CLOCK: Monotonic<&ManualClock> = Monotonic::new(&INNER);
///
/// let at = |seconds| Timestamp::ZERO + Duration::from_secs(seconds);
/// INNER.set(at(100));
/// assert_eq!(CLOCK.now(), at(100));
/// INNER.set(at(40)); // a minute back
/// assert_eq!(CLOCK.now(), at(100));
/// INNER.advance(Duration::from_secs(5));
/// assert_eq!(CLOCK.now(), at(105));
/// ```
///
/// The promise is this value's: share one, in a `static`, by reference or in an `Arc`.
///
/// # Cost
/// A reading of the inner clock and one exchange on a word that all threads share: threads that read at the
/// same time wait for each other. No locks where the target has 64-bit atomics, no `std`, no allocation.
#[derive(Debug, Default)]
pub struct Monotonic<C> {
    inner: C,
    /// The highest instant shown.
    shown_ns: AtomicU64,
    /// How far this clock is ahead of the inner one. Only grows.
    shift_ns: AtomicU64,
}

impl<C> Monotonic<C> {
    /// The largest step back that is waited out, 1 s.
    ///
    /// Were smaller ones made up for, they would add up: two counters 0.5 s apart, read in turn every
    /// millisecond, would make 25,050 s of 100 s. So differences between sources of one clock must stay
    /// below this.
    pub const TOLERANCE: Duration = Duration::from_secs(1);

    const_unless_modelled! {
        /// A clock that follows `inner` and does not run back.
        pub const fn new(inner: C) -> Self {
            Self {
                inner,
                shown_ns: AtomicU64::new(0),
                shift_ns: AtomicU64::new(0),
            }
        }
    }

    /// The inner clock.
    pub const fn get_ref(&self) -> &C {
        &self.inner
    }

    /// The inner clock, which may run back.
    pub fn into_inner(self) -> C {
        self.inner
    }
}

impl<C: Clock> Clock for Monotonic<C> {
    #[inline]
    fn now(&self) -> Timestamp {
        loop {
            // In this order. The highest instant shown is older than the reading: a thread that slept in
            // between finds the reading late, not the clock set back. And a shift made after a step is never
            // added to a reading from before it. Acquire, paired with Release below: whoever sees an instant
            // or a shift reads no older instant of the inner clock than the thread that wrote it.
            let shown_ns = self.shown_ns.load(Ordering::Acquire);
            let shift_ns = self.shift_ns.load(Ordering::Acquire);
            let inner_ns = self.inner.now().as_nanos();

            let now_ns = inner_ns.saturating_add(shift_ns);
            if now_ns >= shown_ns {
                // Another thread's later instant may be there: this reading began before that one ended.
                self.shown_ns.fetch_max(now_ns, Ordering::Release);
                return Timestamp::from_nanos(now_ns);
            }
            if self.holds(shown_ns, shift_ns, inner_ns) {
                return Timestamp::from_nanos(shown_ns);
            }
        }
    }
}

impl<C> Monotonic<C> {
    /// After a step back: whether `shown_ns` is shown again. No, and all is to be read anew, if another
    /// thread has made up for the step.
    #[cold]
    fn holds(&self, shown_ns: u64, shift_ns: u64, inner_ns: u64) -> bool {
        let behind_ns = shown_ns.saturating_sub(inner_ns.saturating_add(shift_ns));
        if behind_ns <= const { duration_ns(Self::TOLERANCE) } {
            return true;
        }
        // From here on the inner clock's `inner_ns` is shown as `shown_ns`.
        self.shift_ns
            .compare_exchange(
                shift_ns,
                shown_ns.saturating_sub(inner_ns),
                Ordering::Release,
                Ordering::Relaxed,
            )
            .is_ok()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use alloc::vec::Vec;
    use std::thread;

    use proptest::prelude::*;

    use super::*;
    use crate::clock::ManualClock;

    const SECOND: u64 = 1_000_000_000;

    /// What a clock shows whose inner clock shows these instants in turn.
    fn shown(inner: &[u64]) -> Vec<u64> {
        let clock = Monotonic::new(ManualClock::new());
        let show = |ns: &u64| {
            clock.get_ref().set(Timestamp::from_nanos(*ns));
            clock.now().as_nanos()
        };
        inner.iter().map(show).collect()
    }

    #[test]
    fn stands_still_for_small_steps_and_goes_on_after_large_ones() {
        let (s, ms) = (SECOND, SECOND / 1_000);
        // Back by 1 s, the last nanosecond that is waited out, and caught up again.
        assert_eq!(
            shown(&[5 * s, 4 * s, 4 * s + 999 * ms, 5 * s, 5 * s + 1]),
            [5 * s, 5 * s, 5 * s, 5 * s, 5 * s + 1]
        );
        // A nanosecond more: on from there.
        assert_eq!(
            shown(&[5 * s, 4 * s - 1, 4 * s, 4 * s + 1]),
            [5 * s, 5 * s, 5 * s + 1, 5 * s + 2]
        );
        // Twice; and small steps that add up.
        assert_eq!(
            shown(&[9 * s, 3 * s, 4 * s, 0, ms]),
            [9 * s, 9 * s, 10 * s, 10 * s, 10 * s + ms]
        );
        assert_eq!(
            shown(&[9 * s, 8 * s + ms, 7 * s, 7 * s + 5]),
            [9 * s, 9 * s, 9 * s, 9 * s + 5]
        );
        // Forwards at once.
        assert_eq!(shown(&[0, 400 * s]), [0, 400 * s]);
        assert_eq!(
            shown(&[u64::MAX, 0, 7, u64::MAX]),
            [u64::MAX, u64::MAX, u64::MAX, u64::MAX]
        );
    }

    #[test]
    fn gives_the_inner_clock_back() {
        let clock = Monotonic::new(ManualClock::new());
        clock.get_ref().set(Timestamp::from_nanos(3));
        assert_eq!(clock.into_inner().now(), Timestamp::from_nanos(3));
    }

    proptest! {
        /// Against the promise in words: the inner clock's movements count, except that up to a second of
        /// moving back is made up for by standing still.
        #[test]
        fn every_movement_of_the_inner_clock_is_accounted_for(
            start in 0..100 * SECOND as i64,
            moves in prop::collection::vec(
                prop_oneof![
                    4 => 0..SECOND as i64 / 4,
                    4 => -(SECOND as i64) / 2..0,
                    1 => -(SECOND as i64) - 2..=-(SECOND as i64) + 2,
                    1 => -100 * SECOND as i64..100 * SECOND as i64,
                ],
                1..80,
            ),
        ) {
            let clock = Monotonic::new(ManualClock::new());
            let mut inner = start;
            let (mut before, mut owed) = (0, 0); // what was shown, and what is still to be waited out
            let mut first = true;
            for by in core::iter::once(0).chain(moves) {
                let moved = (inner + by).max(0) - inner;
                inner += moved;
                clock.get_ref().set(Timestamp::from_nanos(inner.try_into().unwrap()));
                let now = i64::try_from(clock.now().as_nanos()).unwrap();
                if first {
                    prop_assert_eq!(now, start);
                    first = false;
                } else {
                    // Debt of standing still, paid by moving on, forgiven when it is too much.
                    owed -= moved;
                    let gained = (-owed).max(0);
                    owed = if owed > SECOND as i64 { 0 } else { owed.max(0) };
                    prop_assert_eq!(now - before, gained);
                }
                before = now;
            }
        }
    }

    /// Small steps and large ones, while three threads read.
    #[test]
    fn no_thread_sees_time_run_back() {
        let clock = Monotonic::new(ManualClock::new());
        clock.get_ref().set(Timestamp::from_nanos(100 * SECOND));
        let latest = core::sync::atomic::AtomicU64::new(0);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..300_000 {
                        let earlier = latest.load(Ordering::Acquire);
                        let now = clock.now().as_nanos();
                        assert!(now >= earlier, "{now} after {earlier}");
                        latest.fetch_max(now, Ordering::AcqRel);
                    }
                });
            }
            scope.spawn(|| {
                for n in 0..1_000_000 {
                    // Between 96 s and 102 s in steps of 0.2 s, in mixed order.
                    let at = 96 * SECOND + n * 7 % 31 * (SECOND / 5);
                    clock.get_ref().set(Timestamp::from_nanos(at));
                }
            });
        });
    }
}
