//! Clocks that are set back and forth: a backward step creates nothing, each forward step gains at most
//! what it covers, and nobody waits for the old time to come round again.

use proptest::prelude::*;
use ratekeeper::{Outcome, Request, TokenBucket};

use crate::exact::{full_ns, is_dense, is_whole, on_time, period, tokens};
use crate::support::{
    Amount, Scale, What, amount, any_bucket, config, edge, ns, peek, realistic_bucket,
    small_bucket, step, what,
};

/// Readings in both directions.
fn readings() -> impl Strategy<Value = Vec<(Amount, bool, What)>> {
    prop::collection::vec((amount(), any::<bool>(), what()), 1..60)
}

fn travel(limit: &TokenBucket, begin: u64, readings: &[(Amount, bool, What)]) {
    let scale = Scale::of_bucket(limit);
    let (mut state, mut now) = (0, begin);
    let (mut admitted, mut forward_ns, mut reversals) = (0, 0, 0);
    let mut was_back = false;
    for (time, back, what) in readings {
        let by = time.short_time(scale);
        let next = if *back {
            now.saturating_sub(by)
        } else {
            now + by
        };
        forward_ns += next.saturating_sub(now);
        reversals += i128::from(*back && !was_back && next < now);
        (now, was_back) = (next, *back);
        let ask = what.plain(limit.burst());
        admitted += i128::from(
            step(limit, now, &mut state, &ask.request())
                .decision
                .granted(),
        );
        let slack = if is_whole(limit) || is_dense(limit) {
            0
        } else {
            2 * tokens(limit) * (reversals + 1)
        };
        let flowed = i128::from(limit.burst()) * period(limit) + on_time(limit, forward_ns);
        assert!(
            admitted * period(limit) <= flowed + slack,
            "{admitted} after {forward_ns} forwards"
        );
        waits_are_short(limit, now, state);
    }
}

/// From any state, a cost waits until it would have refilled from nothing, and the longest queue.
fn waits_are_short(limit: &TokenBucket, now: u64, state: u64) {
    for cost in 1..=limit.burst().min(8) {
        let mut copy = state;
        let decision = step(limit, now, &mut copy, &Request::take(cost)).decision;
        let wait_ns = decision.retry_after().map_or(0, ns);
        let longest = i128::from(cost) * period(limit) + on_time(limit, ns(limit.max_wait()) + 2);
        assert!(
            on_time(limit, wait_ns) <= longest,
            "{cost} waits for {wait_ns} at {now} from {state}"
        );
    }
}

proptest! {
    #![proptest_config(config(3_000))]

    #[test]
    fn small(limit in small_bucket(), begin in 0_u64..500, readings in readings()) {
        travel(&limit, begin, &readings);
    }

    #[test]
    fn realistic(limit in realistic_bucket(), begin in 0_u64..1 << 60, readings in readings()) {
        travel(&limit, begin, &readings);
    }

    /// Whatever is asked first after the clock was set back, the whole burst is there one refill (and the
    /// longest queue) later.
    #[test]
    fn one_refill_heals(limit in any_bucket(), state in edge(), now in edge(), what in what()) {
        let max_wait_ns = ns(limit.max_wait());
        let ask = what.ask(limit.burst(), max_wait_ns);
        let healed = now
            .checked_add(full_ns(&limit))
            .and_then(|t| t.checked_add(max_wait_ns))
            .filter(|healed| *healed <= u64::MAX - full_ns(&limit));
        prop_assume!(ask.cost > 0 && healed.is_some());
        let mut state = state;
        let answer = step(&limit, now, &mut state, &ask.request());
        if answer.decision.granted() == 0 {
            let healed = healed.unwrap();
            let all = step(&limit, healed, &mut state, &Request::take(limit.burst()));
            assert_eq!(all.decision.outcome(), Outcome::Allowed);
        }
    }
}

/// The step itself: five taken at 100 s, then the clock says 90 s.
#[test]
fn a_backward_step_is_repaired_and_written_though_refused() {
    let limit = TokenBucket::per_second(1).with_burst(5);
    let second = 1_000_000_000;
    let mut state = 0;
    assert!(
        step(&limit, 100 * second, &mut state, &Request::take(5))
            .decision
            .is_allowed()
    );
    let refused = step(&limit, 90 * second, &mut state, &Request::ONE);
    assert_eq!(refused.decision.retry_after().map(ns), Some(second));
    assert!(refused.repaired);
    assert_eq!(state, 95 * second);
    assert_eq!(peek(&limit, 91 * second, &state).remaining(), 1);
    assert!(
        step(&limit, 91 * second, &mut state, &Request::ONE)
            .decision
            .is_allowed()
    );
}
