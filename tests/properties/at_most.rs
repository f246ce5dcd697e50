//! `at_most`: never more than `n` in any half-open window, which is attained.

use std::time::Duration;

use proptest::prelude::*;
use ratekeeper::{Request, TokenBucket};

use crate::support::{Amount, Scale, amount, config, ns, peek, step};

/// The most tokens in any half-open window `(t − window, t]`.
fn fullest(admitted: &[(u64, u64)], window: u64) -> u64 {
    let mut fullest = 0;
    for &(end, _) in admitted {
        let inside = admitted
            .iter()
            .filter(|(at, _)| *at <= end && end - at < window);
        fullest = fullest.max(inside.map(|(_, tokens)| tokens).sum());
    }
    fullest
}

/// Takes all there is whenever there is anything.
fn greedy(limit: &TokenBucket, begin: u64, until: u64) -> Vec<(u64, u64)> {
    let (mut state, mut now) = (0, begin);
    let mut admitted = Vec::new();
    while now < until {
        let left = peek(limit, now, &state).remaining();
        let granted = step(limit, now, &mut state, &Request::take(left))
            .decision
            .granted();
        admitted.push((now, granted));
        let next = step(limit, now, &mut state, &Request::ONE).decision;
        let wait_ns = next.retry_after().map_or(0, ns);
        assert!(wait_ns > 0, "all was taken");
        now += wait_ns;
    }
    admitted
}

#[test]
fn every_small_window_is_kept_and_most_are_filled() {
    let (mut filled, mut all) = (0, 0);
    for window in 1..=32 {
        for n in 1..=9 {
            for burst in 1..=n {
                let limit = TokenBucket::at_most(n, Duration::from_nanos(window), burst);
                assert_eq!(limit.burst(), burst);
                let admitted = greedy(&limit, 1_000, 1_000 + 4 * window);
                let most = fullest(&admitted, window);
                assert!(
                    most <= n,
                    "{most} in a window of {window}, {n} with {burst} at once"
                );
                filled += u32::from(most == n);
                all += 1;
            }
        }
    }
    assert!(filled * 4 > all * 3, "{filled} of {all}");
}

proptest! {
    #![proptest_config(config(800))]

    #[test]
    fn no_history_overfills_a_window(
        window in prop_oneof![1_u64..200, prop::sample::select(&[1_000_000_007, 60_000_000_000][..])],
        n in 1_u64..=40,
        burst in amount(),
        begin in 0_u64..1 << 40,
        history in prop::collection::vec((amount(), amount()), 1..80),
    ) {
        let burst = 1 + burst.cost(n) % n;
        let limit = TokenBucket::at_most(n, Duration::from_nanos(window), burst);
        let (mut state, mut now) = (0, begin);
        let mut admitted = Vec::new();
        for (time, cost) in history {
            now += Amount::short_time(time, Scale::of_bucket(&limit));
            let request = Request::up_to(cost.cost(burst));
            admitted.push((now, step(&limit, now, &mut state, &request).decision.granted()));
        }
        assert!(fullest(&admitted, window) <= n);
    }

    #[test]
    fn a_greedy_consumer_fills_the_window(n in 2_u64..=60, burst in amount()) {
        let burst = 1 + burst.cost(n) % n;
        let second = 1_000_000_000;
        let limit = TokenBucket::at_most(n, Duration::from_secs(1), burst);
        let most = fullest(&greedy(&limit, 7, 3 * second), second);
        assert_eq!(most, n);
    }
}
