//! Charges for work already done: whole tokens or nothing, so that a charge which comes often takes its share and not
//! everybody's; and `wait` is what makes a bucket that is charged keep to its rate.

use proptest::prelude::*;
use ratekeeper::{Request, TokenBucket};

use crate::exact::{Meter, burst, is_dense, on_time, period, slack};
use crate::support::{Scale, amount, bucket, config, ns, step};

/// A charge of one every half second at one a second, burst 5: it is charged twice as much as there is, so the bucket counts the
/// whole rate and not just the burst. When each charge pushed the debt to its deepest, it counted 5.
#[test]
fn a_charge_every_half_token_counts_at_the_full_rate() {
    let limit = TokenBucket::per_second(1).with_burst(5);
    let (mut state, mut charged, mut lost) = (0, 0, 0);
    for half_seconds in 0..200_u64 {
        let now = 1_000_000_000_000 + half_seconds * 500_000_000;
        let decision = step(&limit, now, &mut state, &Request::charge(1)).decision;
        charged += decision.granted();
        lost += decision.uncharged();
    }
    // Half of the first ten are refilled meanwhile; from then on every other one: what an exact bucket holds.
    let exact = 5 + 99; // until 99.5 s
    assert_eq!((charged, lost), (exact, 200 - exact));
}

/// A taker beside such a charge gets its share, and both together what an exact level, kept by hand, holds.
#[test]
fn a_taker_beside_a_charge_gets_its_share() {
    const SECOND: u64 = 1_000_000_000;
    let limit = TokenBucket::per_second(1).with_burst(5);
    let (mut state, mut now, mut random) = (0, 1_000 * SECOND, 7_u64);
    let (mut level_ns, mut got) = (5 * SECOND, [0, 0]);
    for turn in 0..400 {
        // Each asks twice a second on average, at no fixed instant.
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let pause = (random >> 33) % (SECOND / 2);
        now += pause;
        level_ns = (level_ns + pause).min(5 * SECOND);
        let request = [Request::charge(1), Request::ONE];
        let granted = step(&limit, now, &mut state, &request[turn % 2])
            .decision
            .granted();
        assert_eq!(granted == 1, level_ns >= SECOND);
        level_ns -= granted * SECOND;
        got[turn % 2] += granted;
    }
    assert!(
        got.iter().all(|share| *share >= 35),
        "{got:?} of a charge and a taker"
    );
}

proptest! {
    #![proptest_config(config(3_000))]

    /// Whoever waits as long as each charge says, and takes no more than a burst at a time, keeps to the rate beside whoever takes
    /// in between: counted when the debt is paid.
    #[test]
    fn waiting_out_each_charge_keeps_the_rate(
        (n, p, b, s) in (1_u64..=16, 1_u64..=30, 1_u64..=6, 0_u64..=120),
        begin in 0_u64..60,
        events in prop::collection::vec((amount(), any::<bool>(), amount()), 1..60),
    ) {
        let limit = bucket(n, p, b, s);
        prop_assume!(!is_dense(&limit)); // rounded up to a nanosecond, a charge seems to owe that
        let scale = Scale::of_bucket(&limit);
        let (mut state, mut now) = (0, begin);
        let mut paid: Vec<(u64, u64)> = Vec::new();
        for (time, charges, cost) in events {
            now += time.short_time(scale) / 4;
            let cost = cost.cost(limit.burst()).min(limit.burst());
            let request = if charges { Request::charge(cost) } else { Request::take(cost) };
            let answer = step(&limit, now, &mut state, &request);
            let decision = answer.decision;
            assert_eq!(answer.keep.is_some(), decision.granted() > 0);
            paid.push((now + ns(decision.wait()), decision.granted()));
        }
        paid.sort_unstable();
        let mut meter = Meter::new();
        for (at, tokens) in paid {
            let level = meter.count(on_time(&limit, at), i128::from(tokens) * period(&limit));
            assert!(level <= burst(&limit) * period(&limit) + slack(&limit));
        }
    }

    /// Charged without end, a bucket counts what an exact one holds, to a token: nothing is lost to the rounding of each charge.
    #[test]
    fn charged_without_end_it_counts_the_rate(
        (n, p, b, s) in (1_u64..=16, 1_u64..=30, 2_u64..=6, 0_u64..=120),
        begin in 0_u64..60,
        each_ns in 1_u64..5,
        cost in 1_u64..4,
    ) {
        let limit = bucket(n, p, b, s);
        // More than the rate, by enough that the debt reaches its deepest.
        let surplus = (cost * p).saturating_sub(each_ns * n);
        prop_assume!(!is_dense(&limit) && surplus * 1_000 > b * p + s * n);
        prop_assume!(each_ns * n <= p); // or the bucket fills up in between
        let (mut state, mut charged, mut now) = (0, 0_i128, begin);
        for _ in 0..2_000 {
            let decision = step(&limit, now, &mut state, &Request::charge(cost)).decision;
            charged += i128::from(decision.granted());
            now += each_ns;
        }
        // The burst, the debt allowed, and the refill, each up to the last charge.
        let elapsed = now - each_ns - begin;
        let held = burst(&limit) * period(&limit) + on_time(&limit, elapsed + s);
        assert!(charged * period(&limit) <= held + slack(&limit) + on_time(&limit, 1));
        assert!((charged + 1) * period(&limit) > held - 2 * slack(&limit) - on_time(&limit, each_ns));
    }
}
