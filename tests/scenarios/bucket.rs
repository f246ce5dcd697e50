//! Costs, bursts and changing limits of a token bucket.

use std::time::Duration;

use ratekeeper::{Algorithm, All, Carry, Limiter, Outcome, Request, TokenBucket, headers};

use super::Row::{self, Check};
use super::{SECOND, assert_allowed, assert_denied, ms, s};

pub(crate) const ROWS: &[Row] = &[
    Check("S02", "a tenfold rate helps a waiting key at once", || {
        let old = TokenBucket::new(10, Duration::from_secs(20), 16).unwrap();
        let new = TokenBucket::new(1000, Duration::from_secs(20), 16).unwrap();
        let mut tat = s(4).as_nanos(); // 2 of 16 taken
        assert!(new.change(s(0), &mut tat, &old, Carry::Tokens));
        assert_eq!(tat, ms(40).as_nanos());
        assert_allowed(&new.step(s(0), &mut tat, &Request::ONE).decision, 13);
        // Without a change it is a second limit on the key: the debt of 4 s is paid in time, since to cut it would forgive it
        // under the old limit, too, which other callers may still be using. The refusal writes nothing.
        let mut tat = s(4).as_nanos();
        let blind = new.step(s(0), &mut tat, &Request::ONE).decision;
        assert_denied(&blind, Duration::from_millis(3_700));
        assert_eq!((blind.remaining(), tat), (0, s(4).as_nanos()));
        assert_allowed(&old.step(s(0), &mut tat, &Request::PEEK).decision, 14);
    }),
    Check("S03", "Retry-After is rounded up, never 0", || {
        for (wait_ms, seconds) in [(1_200, 2), (300, 1), (1_000, 1)] {
            let limiter = Limiter::new(TokenBucket::per(1, Duration::from_millis(wait_ms)));
            assert_allowed(&limiter.check_at(s(0)), 0);
            let denied = limiter.check_at(s(0));
            assert_denied(&denied, Duration::from_millis(wait_ms));
            assert_eq!(headers::retry_after(&denied), Some(seconds));
        }
    }),
    Check("S04", "the wait counts from the charge", || {
        let limiter = Limiter::new(TokenBucket::per_second(1));
        assert_allowed(&limiter.check_at(s(0)), 0);
        assert_denied(&limiter.check_at(ms(200)), Duration::from_millis(800));
    }),
    Check(
        "S10",
        "a cost above what is left is `TooLarge` only if it is above the burst",
        || {
            let limiter = Limiter::new(TokenBucket::per_second(10));
            assert_allowed(&limiter.apply_at(Request::take(9), s(0)), 1);
            let eleven = limiter.apply_at(Request::take(11), s(0));
            assert_eq!(eleven.outcome(), Outcome::TooLarge);
            assert_eq!(
                (eleven.remaining(), eleven.reset_after()),
                (1, Duration::from_millis(900))
            );
            assert_allowed(&limiter.check_at(s(0)), 0);
        },
    ),
    Check(
        "S11",
        "a cost above the burst never passes, idle or not",
        || {
            let limiter = Limiter::new(TokenBucket::per_second(1).with_burst(5));
            let ten = limiter.apply_at(Request::take(10), s(1_000_000));
            assert_eq!(
                (ten.outcome(), ten.retry_after()),
                (Outcome::TooLarge, None)
            );
        },
    ),
    Check(
        "S12",
        "a cost of 0 looks, on an empty bucket and on a full one",
        || {
            let limit = TokenBucket::per_second(5);
            for (mut tat, remaining) in [(s(1).as_nanos(), 0), (0, 5)] {
                let before = tat;
                let step = limit.step(s(0), &mut tat, &Request::PEEK);
                assert_eq!((tat, step.keep), (before, None));
                assert_allowed(&step.decision, remaining);
            }
        },
    ),
    Check("S13", "a refused cost takes nothing", || {
        let limiter = Limiter::new(TokenBucket::per_second(1).with_burst(5));
        assert_allowed(&limiter.apply_at(Request::take(4), s(0)), 1);
        assert_denied(
            &limiter.apply_at(Request::take(5), s(0)),
            Duration::from_secs(4),
        );
        assert_allowed(&limiter.check_at(s(0)), 0);
    }),
    Check(
        "S24",
        "one empty limit of two refuses, is named, and costs the other nothing",
        || {
            let (a, b) = (TokenBucket::per_hour(2), TokenBucket::per_minute(1));
            for (pair, refusing) in [([a, b], 1), ([b, a], 0)] {
                let limiter = Limiter::new(All(pair));
                assert_allowed(&limiter.check_at(s(0)), 0);
                let denied = limiter.check_at(s(1));
                assert_denied(&denied, Duration::from_secs(59));
                assert_eq!((denied.index(), denied.limit()), (refusing, 1));
                assert_allowed(&limiter.check_at(s(60)), 0); // the other limit's second token is there
            }
        },
    ),
    Check(
        "S29",
        "a lowered limit cuts what is left, and refills",
        || {
            let (ten, three) = (TokenBucket::per_second(10), TokenBucket::per_second(3));
            let mut tat = ms(200).as_nanos(); // 8 of 10 left
            assert!(three.change(s(0), &mut tat, &ten, Carry::Tokens));
            assert_allowed(&three.step(s(0), &mut tat, &Request::take(3)).decision, 0);
            assert_denied(
                &three.step(s(0), &mut tat, &Request::ONE).decision,
                Duration::from_nanos(333_333_334),
            );
            assert_allowed(&three.step(s(1), &mut tat, &Request::PEEK).decision, 3);
        },
    ),
    Check("S30", "a raised burst comes in empty", || {
        let (ten, twenty) = (
            TokenBucket::per_second(1).with_burst(10),
            TokenBucket::per_second(1).with_burst(20),
        );
        let mut tat = s(10).as_nanos(); // 0 left
        assert!(twenty.change(s(0), &mut tat, &ten, Carry::Tokens));
        assert_allowed(&twenty.step(s(0), &mut tat, &Request::PEEK).decision, 0);
        let mut full = 0;
        assert!(twenty.change(s(0), &mut full, &ten, Carry::Tokens));
        assert_allowed(&twenty.step(s(0), &mut full, &Request::PEEK).decision, 20);
        // Whoever wants something else says so: additive (the debt in time stays, so the raise is there), or a reset.
        for (carry, left) in [(Carry::Debt, 10), (Carry::Full, 20), (Carry::Empty, 0)] {
            let mut tat = s(10).as_nanos();
            assert!(twenty.change(s(0), &mut tat, &ten, carry));
            assert_allowed(&twenty.step(s(0), &mut tat, &Request::PEEK).decision, left);
        }
    }),
    Check(
        "S40",
        "taking up to 100 from a bucket in debt grants 0 and changes nothing",
        || {
            let limit = TokenBucket::per_second(1)
                .with_burst(10)
                .with_max_wait(Duration::from_secs(60));
            let mut tat = s(15).as_nanos(); // 5 below 0
            let step = limit.step(s(0), &mut tat, &Request::up_to(100).at_least(0));
            assert_allowed(&step.decision, 0);
            assert_eq!(
                (step.decision.granted(), step.keep, tat),
                (0, None, s(15).as_nanos())
            );
        },
    ),
    Check(
        "S45",
        "settling: more than estimated overdraws, less comes back",
        || {
            let limit = TokenBucket::per_second(1)
                .with_burst(1200)
                .with_max_wait(Duration::from_secs(600));
            let limiter = Limiter::new(limit);
            assert_allowed(&limiter.apply_at(Request::take(1000), s(0)), 200);
            let more = limiter.apply_at(Request::charge(300), s(0));
            assert_allowed(&more, 0);
            assert_eq!(
                (more.granted(), more.reset_after()),
                (300, Duration::from_secs(1300))
            );
            assert_eq!((more.uncharged(), more.wait()), (0, 100 * SECOND)); // the balance is -100
            assert_denied(&limiter.check_at(s(0)), 101 * SECOND);

            let limiter = Limiter::new(limit);
            let receipt = limiter.apply_at(Request::take(1000), s(0)).into_receipt();
            assert_allowed(&limiter.apply_at(Request::refund(600, receipt), s(0)), 800);
            let limiter = Limiter::new(limit);
            let receipt = limiter.apply_at(Request::take(100), s(0)).into_receipt();
            let back = limiter.apply_at(Request::refund(600, receipt), s(0));
            assert_allowed(&back, 1200); // never above the burst
        },
    ),
    Check(
        "F04",
        "a denial reports what remains, not the full burst",
        || {
            let limiter = Limiter::new(TokenBucket::per_second(1).with_burst(5));
            assert_allowed(&limiter.apply_at(Request::take(4), s(0)), 1);
            let denied = limiter.apply_at(Request::take(3), s(0));
            assert_eq!((denied.limit(), denied.remaining()), (5, 1));
        },
    ),
    Check("F11", "`remaining` counts down", || {
        let limiter = Limiter::new(TokenBucket::per_second(5));
        for left in (0..5).rev() {
            assert_allowed(&limiter.check_at(s(0)), left);
        }
    }),
    Check("F15", "a million under a limit of five", || {
        let limiter = Limiter::new(TokenBucket::per_second(5));
        assert_eq!(
            limiter.apply_at(Request::take(1_000_000), s(0)).outcome(),
            Outcome::TooLarge
        );
        assert_allowed(&limiter.apply_at(Request::PEEK, s(0)), 5);
    }),
    Check(
        "F25",
        "raising the rate by a change never makes a key wait longer",
        || {
            let (slow, fast) = (TokenBucket::per_hour(1), TokenBucket::per_second(1));
            let mut tat = s(3600).as_nanos();
            assert!(fast.change(s(0), &mut tat, &slow, Carry::Tokens));
            assert_denied(&fast.step(s(0), &mut tat, &Request::ONE).decision, SECOND);
            // Two limits on one key are no change: the slow one's debt is paid in time, as it would be under the slow one.
            let mut tat = s(3600).as_nanos();
            assert_denied(
                &fast.step(s(0), &mut tat, &Request::ONE).decision,
                3600 * SECOND,
            );
            assert_denied(
                &slow.step(s(0), &mut tat, &Request::ONE).decision,
                3600 * SECOND,
            );
        },
    ),
];
