//! Rates that are what they say, whatever their size and however often they are polled.
#![allow(clippy::cast_possible_truncation)] // spans of a few minutes

use std::time::Duration;

use ratekeeper::{InvalidLimit, Limiter, Outcome, Request, Timestamp, TokenBucket};

use super::Row::{self, Check};
use super::{SECOND, assert_allowed, assert_denied, ns, s};

pub(crate) const ROWS: &[Row] = &[
    Check("S07", "6000 of 6001 in one instant", || {
        let limiter = Limiter::new(TokenBucket::per_second(6000));
        let first = limiter.check_at(s(0));
        assert_allowed(&first, 5999);
        assert!(first.reset_after() > Duration::ZERO); // kept, from the first request on
        assert_eq!(
            (0..6000)
                .filter(|_| limiter.check_at(s(0)).is_allowed())
                .count(),
            5999
        );
    }),
    Check(
        "S08",
        "a nanosecond is too long for the second token",
        || {
            let limiter = Limiter::new(TokenBucket::per_second(1_000_000_001).with_burst(1));
            assert_allowed(&limiter.check_at(s(1)), 0);
            assert!(!limiter.check_at(s(1)).is_allowed());
        },
    ),
    Check("S09", "once a minute is once a minute", || {
        let limiter = Limiter::new(TokenBucket::per_minute(1));
        assert_allowed(&limiter.check_at(s(0)), 0);
        assert_denied(
            &limiter.check_at(ns(59_999_999_999)),
            Duration::from_nanos(1),
        );
        assert_allowed(&limiter.check_at(s(60)), 0);
    }),
    Check("S23", "a rate of 0 is an error, not an infinity", || {
        assert_eq!(
            TokenBucket::new(0, SECOND, 1),
            Err(InvalidLimit::ZeroTokens)
        );
        // The slowest rate there is behaves as a rate of 0 would: once, then never.
        let slowest = TokenBucket::new(1, Duration::from_nanos(u64::MAX), 1).unwrap();
        let limiter = Limiter::new(slowest);
        assert_allowed(&limiter.check_at(s(0)), 0);
        assert_eq!(limiter.check_at(s(1)).outcome(), Outcome::TooLarge);
    }),
    Check(
        "S42",
        "a closed span of ten seconds holds burst and refill: 20",
        || {
            let limiter = Limiter::new(TokenBucket::per(10, Duration::from_secs(10)));
            assert_eq!(
                admitted(&limiter, SECOND / 100, Duration::from_secs(10)),
                20
            );
            let strict = Limiter::new(TokenBucket::at_most(10, Duration::from_secs(10), 5));
            assert_eq!(
                admitted(&strict, SECOND / 100, Duration::from_nanos(9_999_999_999)),
                10
            );
        },
    ),
    Check("F01", "600,000,001 a second is not a billion", || {
        let limiter = Limiter::new(TokenBucket::per_second(600_000_001).with_burst(1));
        assert_eq!(
            admitted(&limiter, Duration::from_nanos(1), SECOND / 1_000),
            600_001
        );
    }),
    Check(
        "F02",
        "more than a billion a second is neither free nor capped",
        || {
            let limiter = Limiter::new(TokenBucket::per_second(3_000_000_000).with_burst(9));
            assert_allowed(&limiter.apply_at(Request::take(9), ns(100)), 0);
            assert_denied(
                &limiter.apply_at(Request::take(3), ns(100)),
                Duration::from_nanos(1),
            );
            let admitted =
                (1..=1000).filter(|i| limiter.apply_at(Request::take(3), ns(100 + i)).is_allowed());
            assert_eq!(admitted.count(), 1000); // three per nanosecond
        },
    ),
    Check("F03", "huge bursts and periods do not wrap", || {
        let hourly = TokenBucket::new(1, Duration::from_secs(3600), 6_000_000);
        assert_eq!(hourly, Err(InvalidLimit::BurstTooLong));
        let cut = TokenBucket::per_hour(1).with_burst(6_000_000);
        assert_eq!(cut.burst(), u64::MAX / 3_600_000_000_000);
        let limiter = Limiter::new(cut);
        assert_allowed(&limiter.apply_at(Request::take(cut.burst()), ns(0)), 0);
        assert_eq!(
            TokenBucket::new(1, Duration::MAX, 1),
            Err(InvalidLimit::PeriodTooLong)
        );
    }),
    Check("F07", "polling a slow rate loses no fraction", || {
        let limiter = Limiter::new(TokenBucket::per(1, Duration::from_secs(60)));
        assert_eq!(
            admitted(
                &limiter,
                Duration::from_micros(600),
                Duration::from_secs(540)
            ),
            10
        );
    }),
    Check(
        "F10",
        "polling between two milliseconds loses no fraction",
        || {
            let limiter = Limiter::new(TokenBucket::per(1, Duration::from_millis(1)).with_burst(4));
            let wait = Duration::from_micros(1_900);
            let admitted: u64 = (0..2000)
                .map(|i| {
                    limiter
                        .apply_at(Request::up_to(4), Timestamp::ZERO + wait * i)
                        .granted()
                })
                .sum();
            assert_eq!(admitted, 4 + 3798); // the burst, and 1999 · 1.9 refilled
        },
    ),
    Check("F12", "above 1000 a second counts too", || {
        let limiter = Limiter::new(TokenBucket::per_second(50_000).with_burst(1));
        assert_eq!(admitted(&limiter, Duration::from_micros(1), SECOND), 50_001);
    }),
    Check(
        "F16",
        "a limit that is fractional per window keeps admitting",
        || {
            let limiter = Limiter::new(TokenBucket::per(1, Duration::from_nanos(1_500_000_000)));
            assert_eq!(admitted(&limiter, SECOND / 10, Duration::from_secs(30)), 21);
        },
    ),
    Check("F19", "10,000 a second is 10,000 a second", || {
        let limiter = Limiter::new(TokenBucket::per_second(10_000).with_burst(2));
        assert_eq!(
            admitted(&limiter, Duration::from_micros(7), SECOND),
            2 + 9_999
        );
    }),
];

/// How many pass when one is asked for every `step`, from 0 to `span` inclusive.
fn admitted(limiter: &Limiter, step: Duration, span: Duration) -> u64 {
    let (step, span) = (step.as_nanos() as u64, span.as_nanos() as u64);
    (0..=span / step)
        .filter(|i| limiter.check_at(ns(i * step)).is_allowed())
        .count() as u64
}
