//! What [`UnixClock`](crate::UnixClock) promises, on virtual time.

use alloc::vec::Vec;
use core::cell::Cell;
use core::time::Duration;

use proptest::prelude::*;

use super::line::HOLDS_NS;
use super::slew::Slew;
use crate::algorithm::TokenBucket;
use crate::clock::Clock;
use crate::decision::Outcome;
use crate::limiter::Limiter;
use crate::time::Timestamp;

const SECOND: i64 = 1_000_000_000;

/// Both clocks of the operating system, held by hand, and the clock made of them.
struct Virtual {
    m_ns: Cell<i64>,
    wall_ns: Cell<i64>,
    slew: Slew,
}

impl Virtual {
    fn new(m_ns: i64, wall_ns: i64) -> Self {
        Self {
            m_ns: Cell::new(m_ns),
            wall_ns: Cell::new(wall_ns),
            slew: Slew::new(),
        }
    }

    /// Time passes.
    fn pass(&self, ns: i64) {
        self.m_ns.set(self.m_ns.get() + ns);
        self.step(ns);
    }

    /// The wall clock alone is moved.
    fn step(&self, ns: i64) {
        self.wall_ns.set((self.wall_ns.get() + ns).max(0));
    }

    fn read(&self) -> i64 {
        self.slew.read(|| self.m_ns.get(), || self.wall_ns.get())
    }
}

impl Clock for Virtual {
    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(self.read().try_into().unwrap())
    }
}

/// Scenario S01, second half: drained at 100 s, then the wall clock shows 90 s.
#[test]
fn set_back_by_ten_seconds_a_token_takes_two() {
    let clock = Virtual::new(5 * SECOND, 100 * SECOND);
    let limiter = Limiter::with_clock(TokenBucket::per_second(1).with_burst(5), &clock);
    assert!((0..5).all(|_| limiter.check().is_allowed()));
    clock.step(-10 * SECOND);
    clock.pass(HOLDS_NS); // the line of before is over, the step is seen
    assert_eq!(clock.read(), 100 * SECOND + HOLDS_NS, "never 90");
    let Outcome::Denied { retry_after } = limiter.check().outcome() else {
        panic!("five of five are gone");
    };
    assert_eq!(retry_after, Duration::from_millis(999));
    clock.pass(2 * 999 * HOLDS_NS - 1);
    assert!(!limiter.check().is_allowed());
    clock.pass(1); // 1.999 s after the step
    assert!(limiter.check().is_allowed());
    // Caught up after twice the step, and not before.
    clock.pass(20 * SECOND - 2 * 999 * HOLDS_NS - 2);
    assert_eq!(clock.read(), clock.wall_ns.get() + 1);
    clock.pass(2);
    assert_eq!(clock.read(), clock.wall_ns.get());
    clock.pass(SECOND);
    assert_eq!(clock.read(), clock.wall_ns.get());
}

#[test]
fn a_step_forwards_is_shown_at_once() {
    let clock = Virtual::new(SECOND, 0); // a machine that starts in 1970
    assert_eq!(clock.read(), 0);
    clock.step(1_700_000_000 * SECOND);
    clock.pass(HOLDS_NS);
    assert_eq!(clock.read(), 1_700_000_000 * SECOND + HOLDS_NS);
}

/// A clock that panics leaves the others with a line that still leads somewhere.
#[test]
fn a_panic_between_the_clocks_is_survived() {
    let clock = Virtual::new(0, 50);
    assert_eq!(clock.read(), 50);
    clock.pass(HOLDS_NS);
    let failing = || -> i64 { panic!("no wall clock") };
    let reading = core::panic::AssertUnwindSafe(|| clock.slew.read(|| clock.m_ns.get(), failing));
    assert!(std::panic::catch_unwind(reading).is_err());
    clock.step(-40);
    assert_eq!(clock.read(), 50 + HOLDS_NS);
    clock.pass(20);
    assert_eq!(clock.read(), 50 + HOLDS_NS + 10);
}

/// What happens before a reading: the wall clock is moved, then time passes.
fn moves() -> impl Strategy<Value = Vec<(i64, i64)>> {
    let step = prop_oneof![
        6 => Just(0),
        2 => -20..20_i64, // as clocks of a coarser resolution do
        3 => -3 * HOLDS_NS..3 * HOLDS_NS,
        1 => -20 * SECOND..20 * SECOND,
    ];
    let passed = prop_oneof![
        2 => 0..4_i64,
        4 => 0..HOLDS_NS / 2,
        3 => HOLDS_NS - 2..HOLDS_NS + 3,
        2 => 0..5 * HOLDS_NS,
        1 => 0..30 * SECOND,
    ];
    prop::collection::vec((step, passed), 1..120)
}

/// Everything that was the case, and the promises judged by it, one by one, without any line.
#[derive(Default)]
struct Judge {
    /// Monotonic instants, and the wall clock's lead over them before and after each move.
    leads: Vec<(i64, i64)>,
    /// The last reading.
    last: Option<(i64, i64)>,
}

impl Judge {
    fn saw(&mut self, clock: &Virtual) {
        let m_ns = clock.m_ns.get();
        self.leads.push((m_ns, clock.wall_ns.get() - m_ns));
    }

    /// What the wall clock's lead has been since then: at that instant, and after each later move.
    fn leads_since(&self, from_ns: i64) -> impl Iterator<Item = i64> {
        let later = self.leads.partition_point(|(at, _)| *at <= from_ns);
        let leads = &self.leads[later.saturating_sub(1)..];
        leads.iter().map(|(_, lead)| *lead)
    }

    fn judge(&mut self, m_ns: i64, shown_ns: i64) -> Result<(), TestCaseError> {
        let largest = self.leads_since(i64::MIN).max().unwrap();
        prop_assert!(shown_ns <= m_ns + largest, "above the largest lead seen");
        let least = self.leads_since(m_ns - HOLDS_NS).min().unwrap();
        prop_assert!(
            shown_ns >= m_ns + least,
            "a wall clock ahead is not followed"
        );
        if let Some((before_ns, then_ns)) = self.last {
            let passed = m_ns - before_ns;
            prop_assert!(shown_ns >= then_ns, "back");
            prop_assert!(2 * (shown_ns - then_ns) >= passed - 2, "below half speed");
            let wall_ns = m_ns + self.leads_since(before_ns - HOLDS_NS).max().unwrap();
            prop_assert!(
                shown_ns <= wall_ns.max(then_ns + (passed + 2) / 2),
                "ahead of the wall clock, and faster than half speed"
            );
        }
        self.last = Some((m_ns, shown_ns));
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn promises_hold_whatever_the_wall_clock_does(
        m_ns in prop_oneof![0..10_i64, 0..100_000 * SECOND],
        wall_ns in prop_oneof![0..10_i64, 0..2_000_000_000 * SECOND],
        moves in moves(),
    ) {
        let clock = Virtual::new(m_ns, wall_ns);
        let mut judge = Judge::default();
        judge.saw(&clock);
        for (step, passed) in moves {
            clock.step(step);
            judge.saw(&clock);
            clock.pass(passed);
            judge.saw(&clock);
            judge.judge(clock.m_ns.get(), clock.read())?;
        }
    }
}
