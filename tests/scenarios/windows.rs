//! Fixed windows, sliding windows and the log.

use std::time::Duration;

use ratekeeper::{FixedWindow, Limiter, Request, SlidingLog, SlidingWindow, headers};

use super::Row::{self, Check};
use super::{SECOND, assert_allowed, assert_denied, ms, s};

pub(crate) const ROWS: &[Row] = &[
    Check("S05", "a fixed window's wait ends with the window", || {
        let limiter = Limiter::new(FixedWindow::per(1, Duration::from_secs(20)));
        assert_allowed(&limiter.check_at(s(0)), 0);
        assert_denied(&limiter.check_at(s(19)), SECOND);
    }),
    Check("S14", "a refused cost leaves a sliding count alone", || {
        let limiter = Limiter::new(SlidingWindow::per_minute(10));
        assert_allowed(&limiter.apply_at(Request::take(9), s(0)), 1);
        assert!(!limiter.apply_at(Request::take(5), s(0)).is_allowed());
        assert_allowed(&limiter.check_at(s(0)), 0);
    }),
    Check("S17", "a log of six holds six", || {
        let limiter = Limiter::new(SlidingLog::per_second(6));
        assert_allowed(&limiter.apply_at(Request::take(5), s(0)), 1);
        assert_allowed(&limiter.check_at(s(0)), 0);
        assert_denied(&limiter.check_at(s(0)), SECOND);
    }),
    Check(
        "S19",
        "giving back does not move an anchored window",
        || {
            let limiter = Limiter::new(FixedWindow::per_minute(5).anchored());
            let receipt = limiter.check_at(s(0)).into_receipt();
            assert_allowed(&limiter.apply_at(Request::refund(1, receipt), s(30)), 5);
            let hit = limiter.check_at(s(31));
            assert_allowed(&hit, 4);
            assert_eq!(hit.reset_after(), Duration::from_secs(29)); // the window still ends at 60
            assert_allowed(&limiter.check_at(s(60)), 4);
        },
    ),
    Check(
        "S20",
        "giving back after the window leaves the next one alone",
        || {
            let limiter = Limiter::new(FixedWindow::per_minute(5));
            let receipt = limiter.check_at(s(59)).into_receipt();
            assert_allowed(&limiter.check_at(s(61)), 4);
            assert_allowed(&limiter.apply_at(Request::refund(1, receipt), s(61)), 4);
        },
    ),
    Check("S39", "the minute turns on the minute", || {
        let limiter = Limiter::new(FixedWindow::per_minute(1));
        assert_allowed(&limiter.check_at(ms(58_700)), 0);
        assert_denied(&limiter.check_at(ms(58_700)), Duration::from_millis(1_300));
        assert_allowed(&limiter.check_at(ms(60_100)), 0);
    }),
    Check("F23", "a wait under a second is a Retry-After of 1", || {
        let limiter = Limiter::new(SlidingLog::per_second(1));
        assert_allowed(&limiter.check_at(s(0)), 0);
        assert_eq!(headers::retry_after(&limiter.check_at(ms(999))), Some(1));
    }),
];
