//! Standing in line: reservations, cancelling, giving back.

use std::time::Duration;

use ratekeeper::{Limiter, Request, TokenBucket};

use super::Row::{self, Check};
use super::{SECOND, assert_allowed, assert_denied, ms, s};

const WAIT: Duration = Duration::from_millis(3_500);

pub(crate) const ROWS: &[Row] = &[
    Check(
        "S21",
        "cancelling newest to oldest gives everything back",
        || {
            let limit = TokenBucket::per_second(60)
                .with_burst(1)
                .with_max_wait(SECOND);
            let limiter = Limiter::new(limit);
            let mut receipts = Vec::new();
            for wait in [0, 16_666_667, 33_333_334] {
                let decision = limiter.apply_at(Request::take(1).or_wait(SECOND), s(0));
                assert_eq!(decision.wait(), Duration::from_nanos(wait));
                receipts.push(decision.into_receipt());
            }
            for receipt in receipts.into_iter().rev() {
                limiter
                    .apply_at(Request::refund(1, receipt), s(0))
                    .into_result()
                    .unwrap();
            }
            assert_allowed(&limiter.apply_at(Request::PEEK, s(0)), 1);
            assert_allowed(&limiter.check_at(s(0)), 0);
        },
    ),
    Check("S22", "a refused reservation never happened", || {
        let limiter = Limiter::new(TokenBucket::per_second(1).with_max_wait(SECOND));
        assert_allowed(&limiter.check_at(s(0)), 0);
        assert!(
            limiter
                .apply_at(Request::take(1).or_wait(SECOND), s(0))
                .is_allowed()
        );
        let before = limiter.apply_at(Request::PEEK, s(0));
        assert_denied(
            &limiter.apply_at(Request::take(1).or_wait(SECOND), s(0)),
            SECOND,
        );
        assert_eq!(limiter.apply_at(Request::PEEK, s(0)), before);
    }),
    Check(
        "S25",
        "ten that would wait 3.5 s for one a second: four get a turn",
        || {
            let limiter = Limiter::new(TokenBucket::per_second(1).with_max_wait(WAIT));
            let waits: Vec<_> = (0..10)
                .map(|_| limiter.apply_at(Request::take(1).or_wait(WAIT), s(0)))
                .filter(|decision| decision.is_allowed())
                .map(|decision| decision.wait())
                .collect();
            assert_eq!(waits, [0, 1, 2, 3].map(Duration::from_secs)); // in order, one each
        },
    ),
    Check("S26", "a cancelled place in line is free at once", || {
        let limiter = Limiter::new(TokenBucket::per_second(1).with_max_wait(SECOND));
        let join = || limiter.apply_at(Request::take(1).or_wait(SECOND), ms(1));
        assert_allowed(&limiter.check_at(ms(1)), 0);
        let waiter = join().into_result().unwrap();
        assert!(!join().is_allowed()); // the line is one long
        limiter
            .apply_at(Request::refund(1, waiter), ms(1))
            .into_result()
            .unwrap();
        assert_eq!(join().wait(), SECOND);
    }),
    Check(
        "F06",
        "a wait for ten is served in turn beside waits for one",
        || {
            let minute = Duration::from_secs(60);
            let limit = TokenBucket::per_second(10).with_max_wait(minute);
            let limiter = Limiter::new(limit);
            assert_allowed(&limiter.apply_at(Request::take(10), s(0)), 0);
            for _ in 0..4 {
                limiter
                    .apply_at(Request::take(1).or_wait(minute), s(0))
                    .into_result()
                    .unwrap();
            }
            let ten = limiter.apply_at(Request::take(10).or_wait(minute), s(0));
            assert_eq!(ten.wait(), Duration::from_millis(1_400)); // 4 before it, then its own 10
            let later = limiter.apply_at(Request::take(1).or_wait(minute), s(0));
            assert_eq!(later.wait(), Duration::from_millis(1_500)); // behind it
        },
    ),
    Check("F18", "waits that time out leave no debt", || {
        let short = Duration::from_millis(50);
        let limiter = Limiter::new(TokenBucket::per_second(10).with_max_wait(SECOND));
        assert_allowed(&limiter.apply_at(Request::take(10), s(0)), 0);
        for _ in 0..50 {
            assert!(
                !limiter
                    .apply_at(Request::take(1).or_wait(short), s(0))
                    .is_allowed()
            );
        }
        assert_denied(&limiter.check_at(s(0)), Duration::from_millis(100));
    }),
    Check(
        "F21",
        "whoever waited holds a token: nobody else gets it",
        || {
            let limiter = Limiter::new(TokenBucket::per_second(1).with_max_wait(SECOND));
            assert_allowed(&limiter.check_at(s(0)), 0);
            let waiting = limiter.apply_at(Request::take(1).or_wait(SECOND), s(0));
            assert_eq!((waiting.granted(), waiting.wait()), (1, SECOND));
            assert_denied(&limiter.check_at(s(1)), SECOND); // that token is the waiter's
        },
    ),
];
