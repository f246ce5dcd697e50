//! Buckets: tokens are kept, at the instant of the change, however late a key comes.

use core::time::Duration;

use ratekeeper::{Limiter, Live, Outcome, Request, Timestamp, TokenBucket};

use crate::Stream;

fn at(ns: u64) -> Timestamp {
    Timestamp::from_nanos(ns)
}

fn bucket(stream: &mut Stream, most_wait_ns: u64) -> TokenBucket {
    let (tokens, period, burst) = (
        1 + stream.below(8),
        1 + stream.below(40),
        1 + stream.below(6),
    );
    let period = Duration::from_nanos(period);
    let limit = TokenBucket::new(tokens, period, burst).unwrap();
    limit.with_max_wait(Duration::from_nanos(stream.below(most_wait_ns + 1)))
}

#[test]
fn a_late_key_sees_what_it_would_have_seen_at_the_change() {
    // The twin is a plain bucket that an application moves with `change` at the instant itself.
    use ratekeeper::{Algorithm, Carry};
    let stream = &mut Stream(1);
    let mut differing = 0;
    for _ in 0..200_000 {
        let mut limit = bucket(stream, 60);
        let live = Limiter::new(Live::new(limit));
        let (mut now, mut twin) = (1_000, 0);
        // Changes since the key was written; a refusal writes nothing.
        let mut behind = 0;
        for _ in 0..6 {
            now += stream.below(30);
            let request = || Request::take(1 + now % 3).or_wait(Duration::from_nanos(now % 50));
            let asked = live.apply_at(request(), at(now));
            let expected = limit.step(at(now), &mut twin, &request());
            assert_eq!(asked.outcome(), expected.decision.outcome());
            assert_eq!(asked.wait(), expected.decision.wait());
            assert_eq!(asked.remaining(), expected.decision.remaining());
            assert_eq!(asked.reset_after(), expected.decision.reset_after());
            if expected.keep.is_some() {
                behind = 0;
            }
            for _ in 0..stream.below(4 - behind) {
                behind += 1;
                now += stream.below(8);
                let new = bucket(stream, 60);
                live.set_at(new, at(now)).unwrap();
                let before = twin;
                assert!(new.change(at(now), &mut twin, &limit, Carry::Tokens));
                differing += u64::from(twin != before);
                limit = new;
            }
        }
    }
    assert!(differing > 100_000, "{differing}");
}

/// Tokens in units of one token over the product of all rates' denominators: exact fractions, without the crate's arithmetic.
#[test]
fn burst_refill_and_raises_are_all_there_is() {
    let stream = &mut Stream(2);
    let (mut closest, mut runs) = (i128::MIN, 0);
    for _ in 0..100_000 {
        let mut limits = [(); 4].map(|()| bucket(stream, 0));
        limits[3] = limits[0]; // to and fro happens
        // One unit of 1/D tokens, D the product of the periods.
        let d: i128 = limits
            .iter()
            .map(|l| l.period().as_nanos() as i128)
            .product();
        let per_ns = |l: &TokenBucket| i128::from(l.tokens()) * d / l.period().as_nanos() as i128;
        let live = Limiter::new(Live::new(limits[0]));
        let mut now = 1_000;
        let mut held = 0;
        let mut due = i128::from(limits[0].burst()) * d;
        let mut taken = 0;
        // Fractional tokens may come one clock tick early: as for the bucket itself.
        due += limits.iter().map(per_ns).max().unwrap() * 2;
        for _ in 0..30 {
            let step = stream.below(12);
            now += step;
            due += per_ns(&limits[held]) * i128::from(step);
            if stream.below(4) == 0 {
                let next = stream.below(4) as usize;
                let (old, new) = (limits[held], limits[next]);
                if old != new {
                    let raise = new.burst().saturating_sub(old.burst());
                    due += i128::from(raise) * d + 3 * per_ns(&old).max(per_ns(&new));
                }
                live.set_at(new, at(now)).unwrap();
                held = next;
            }
            let cost = 1 + stream.below(2);
            let decision = live.apply_at(Request::take(cost), at(now));
            if decision.is_allowed() {
                taken += i128::from(cost) * d;
            }
            assert!(
                taken <= due,
                "{limits:?}: {taken} of {due} in units of 1/{d}"
            );
            closest = closest.max((taken - due) * 1_000 / d);
            if let Outcome::Denied { retry_after } = decision.outcome() {
                // Waits are exact: not a nanosecond before.
                let wait = retry_after.as_nanos() as u64;
                let passes = |ns| live.apply_at(Request::up_to(cost).at_least(cost), at(ns));
                if stream.below(8) == 0 {
                    assert!(!passes(now + wait - 1).is_allowed());
                    now += wait;
                    due += per_ns(&limits[held]) * i128::from(wait);
                    assert!(passes(now).is_allowed());
                    taken += i128::from(cost) * d;
                }
            }
            runs += 1;
        }
    }
    assert!(
        runs > 0 && closest > -1_000,
        "closest {closest} thousandths of a token"
    );
}

#[test]
fn the_same_limit_again_changes_nothing() {
    let limit = TokenBucket::per_hour(10);
    let live = Limiter::new(Live::new(limit));
    assert!(live.apply_at(Request::take(7), at(1_000)).is_allowed());
    for _ in 0..100 {
        live.set_at(limit, at(2_000)).unwrap();
    }
    let peek = live.apply_at(Request::PEEK, at(1_000));
    assert_eq!(peek.remaining(), 3);
    assert_eq!(peek.reset_after(), Duration::from_secs(7 * 360));
}

#[test]
fn after_four_changes_a_debt_is_one_in_time() {
    let (slow, fast) = (TokenBucket::per_hour(10), TokenBucket::per_second(10));
    let live = Limiter::new(Live::new(slow));
    assert!(live.apply_at(Request::take(10), at(0)).is_allowed());
    for (changes, limit) in [fast, slow, fast].into_iter().enumerate() {
        live.set_at(limit, at(0)).unwrap();
        let reset = live.apply_at(Request::PEEK, at(0)).reset_after().as_secs();
        assert_eq!(reset, if changes == 1 { 3_600 } else { 1 });
    }
    live.set_at(slow.with_burst(9), at(0)).unwrap();
    // The word says generation 0, and so it reads: an hour, not nine tokens of ten.
    let peek = live.apply_at(Request::PEEK, at(0));
    assert_eq!((peek.remaining(), peek.reset_after().as_secs()), (0, 3_600));
}

#[test]
fn unlimited_and_blocked_leave_the_debt_alone() {
    let limit = TokenBucket::per_hour(10);
    for extreme in [TokenBucket::UNLIMITED, TokenBucket::BLOCKED] {
        let live = Limiter::new(Live::new(limit));
        assert!(live.apply_at(Request::take(8), at(0)).is_allowed());
        live.set_at(extreme, at(10)).unwrap();
        assert_eq!(live.get(), extreme);
        assert_eq!(live.check_at(at(10)).is_allowed(), extreme.is_unlimited());
        live.set_at(limit, at(20)).unwrap();
        assert_eq!(live.apply_at(Request::PEEK, at(0)).remaining(), 2);
    }
}

#[test]
fn receipts_outlive_changes() {
    let (old, new) = (TokenBucket::per_hour(10), TokenBucket::per_minute(20));
    let wait = Duration::from_secs(7_200);
    let live = Limiter::new(Live::new(old.with_max_wait(wait)));
    let first = live.apply_at(Request::take(6), at(0)).into_receipt();
    live.set_at(new.with_max_wait(wait), at(0)).unwrap();
    live.set_at(new.with_burst(10).with_max_wait(wait), at(0))
        .unwrap();
    assert_eq!(live.apply_at(Request::PEEK, at(0)).remaining(), 4);
    assert_eq!(
        live.apply_at(Request::refund(2, first), at(0)).remaining(),
        6
    );
    let second = live.apply_at(Request::take(3), at(0)).into_receipt();
    assert_eq!(
        live.apply_at(Request::refund(3, second), at(0)).remaining(),
        6
    );
    // A reservation, cancelled under the next limit.
    let booked = live.apply_at(Request::take(8).or_wait(wait), at(0));
    assert!(booked.wait() > Duration::ZERO);
    live.set_at(new.with_max_wait(wait), at(0)).unwrap();
    let after = live.apply_at(Request::refund(8, booked.into_receipt()), at(0));
    assert_eq!(after.remaining(), 6); // as before it, since the raise came in empty
}

#[test]
fn time_ends_earlier() {
    const LATEST: u64 = (1 << 62) - 1;
    let limit = TokenBucket::per_second(1).with_burst(5);
    let second = 1_000_000_000;
    let live = Limiter::new(Live::new(limit));
    // Generation 3 has both bits set: a TAT of 63 bits would be seen.
    for burst in [6, 7, 5] {
        live.set_at(limit.with_burst(burst), at(0)).unwrap();
    }
    let now = LATEST - 2 * second;
    assert_eq!(
        live.apply_at(Request::take(3), at(now)).outcome(),
        Outcome::TooLarge
    );
    assert!(live.apply_at(Request::take(2), at(now)).is_allowed());
    assert_eq!(live.check_at(at(now)).outcome(), Outcome::TooLarge);
    assert_eq!(live.apply_at(Request::charge(3), at(now)).uncharged(), 3);
    assert_eq!(live.check_at(at(u64::MAX)).outcome(), Outcome::TooLarge);
    assert_eq!(live.apply_at(Request::PEEK, at(now)).remaining(), 3);
}
