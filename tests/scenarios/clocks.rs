//! Clocks that start at 0, end, or are stepped.

use std::time::Duration;

use ratekeeper::{
    Algorithm, FixedWindow, Limiter, Outcome, Request, SlidingLog, SlidingWindow, TokenBucket,
};

use super::Row::{self, Check};
use super::{SECOND, assert_allowed, assert_denied, ms, ns, s};

pub(crate) const ROWS: &[Row] = &[
    Check(
        "S01",
        "ten seconds back: the debt is honest, the wait is true, and nothing is written",
        || {
            // The machine cannot tell a clock that was set back from another clock, or another limit: to cut the debt would
            // forgive it. Clocks that do not run back are the clock's business.
            let limit = TokenBucket::per_second(1).with_burst(5);
            let mut tat = 0;
            let mut ask = |now, cost| {
                let step = limit.step(now, &mut tat, &Request::take(cost));
                (step.decision, step.keep.is_some(), tat)
            };
            assert_allowed(&ask(s(100), 5).0, 0);
            let left = s(105).as_nanos();
            for (now, wait) in [(90, 11), (91, 10)] {
                let (denied, writes, tat) = ask(s(now), 1);
                assert_denied(&denied, Duration::from_secs(wait));
                assert_eq!((writes, tat), (false, left));
            }
            // And a clock that is right again finds what it left: one token, not a second burst.
            assert_allowed(&ask(s(101), 1).0, 0);
            assert_denied(&ask(s(101), 1).0, SECOND);
        },
    ),
    Check("S06", "a century idle, and the largest limits", || {
        let century = s(3_155_760_000);
        let limiter = Limiter::new(TokenBucket::per_day(1_000_000));
        assert_allowed(&limiter.check_at(century), 999_999);
        let limiter = Limiter::new(TokenBucket::per_second(u64::MAX));
        let first = limiter.check_at(century);
        assert!(first.is_allowed());
        assert!(first.remaining() < u64::MAX && first.remaining() > u64::MAX / 2);
    }),
    Check("S41", "instant 0 is an instant like any other", || {
        let limiter = Limiter::new(TokenBucket::per_second(2));
        assert_allowed(&limiter.check_at(s(0)), 1);
        assert_allowed(&limiter.check_at(s(0)), 0);
        assert!(!limiter.check_at(s(0)).is_allowed());
        let fixed = Limiter::new(FixedWindow::per_second(1).anchored());
        assert_allowed(&fixed.check_at(s(0)), 0);
        assert_denied(&fixed.check_at(s(0)), SECOND);
        let sliding = Limiter::new(SlidingWindow::per_second(1));
        assert_allowed(&sliding.check_at(s(0)), 0);
        assert!(!sliding.check_at(s(0)).is_allowed());
        let log = Limiter::new(SlidingLog::per_second(1));
        assert_allowed(&log.check_at(s(0)), 0);
        assert_denied(&log.check_at(s(0)), SECOND);
    }),
    Check(
        "S48",
        "a node that lags counts in the window that is open",
        || {
            let limiter = Limiter::new(FixedWindow::per_second(2));
            assert_allowed(&limiter.check_at(ms(100_000)), 1); // opens window 100
            assert_allowed(&limiter.check_at(ms(99_900)), 0); // late, counted in it
            assert_denied(&limiter.check_at(ms(99_950)), Duration::from_millis(1_050));
            assert!(!limiter.check_at(ms(100_999)).is_allowed());
            assert_allowed(&limiter.check_at(ms(101_000)), 1);
        },
    ),
    Check(
        "F05",
        "five seconds back with tokens left: the tokens are still there",
        || {
            // The fault was a wait although 8 of 10 were left. They would have been there at 100 s, so they are 4.2 s before: a
            // state ahead of the reading is the debt of its own instant, and the reading is what is late.
            let limiter = Limiter::new(TokenBucket::per_second(10));
            assert_allowed(&limiter.apply_at(Request::take(2), s(100)), 8);
            let denied = limiter.check_at(s(95));
            assert_denied(&denied, Duration::from_millis(4_300)); // until 99.3 s
            assert_eq!(denied.remaining(), 0);
            assert!(!limiter.check_at(ns(99_299_999_999)).is_allowed());
            assert_allowed(&limiter.check_at(ms(99_300)), 0);
            assert_allowed(&limiter.apply_at(Request::PEEK, s(100)), 7);
        },
    ),
    Check(
        "F14",
        "a state ahead of the period does not wrap `remaining`",
        || {
            let limiter = Limiter::new(TokenBucket::per_second(5));
            assert_allowed(&limiter.apply_at(Request::take(5), s(1_000_000)), 0);
            let peek = limiter.apply_at(Request::PEEK, s(0));
            assert_eq!(peek.remaining(), 0);
            assert_eq!(peek.reset_after(), Duration::from_secs(1_000_001));
            let denied = limiter.check_at(s(0));
            assert_denied(&denied, Duration::from_millis(1_000_000_200));
        },
    ),
    Check("F17", "the first second of life, and the last", || {
        let limiter = Limiter::new(TokenBucket::per_hour(2));
        assert_allowed(&limiter.check_at(ns(0)), 1);
        assert_allowed(&limiter.check_at(ns(1)), 0);
        assert!(!limiter.check_at(ns(0)).is_allowed());
        // The next token's time would lie past the last instant.
        let last = limiter.check_at(ns(u64::MAX));
        assert_eq!(last.outcome(), Outcome::TooLarge);
        let window = Limiter::new(SlidingWindow::per_hour(1));
        assert_allowed(&window.check_at(ns(u64::MAX)), 0);
        assert!(!window.check_at(ns(u64::MAX)).is_allowed());
        let log = Limiter::new(SlidingLog::per_hour(1));
        assert_allowed(&log.check_at(ns(u64::MAX)), 0);
        assert_denied(&log.check_at(ns(u64::MAX)), Duration::from_secs(3600));
    }),
];
