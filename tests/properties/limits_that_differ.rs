//! Several limits taking turns on one state, as tiers, routes and rolling deploys do. A bucket's state is a debt in time, and
//! none of them forgives it: each keeps its own bound whatever the others take, and together they take no more time than there
//! is. Windows of one length do the same with their counts.

use std::time::Duration;

use proptest::prelude::*;
use ratekeeper::{Algorithm, FixedWindow, Request, SlidingLog, SlidingWindow, TokenBucket};

use crate::exact::{Meter, burst, full_ns, on_time, period, slack, tokens};
use crate::support::{
    Amount, Scale, What, amount, config, ns, realistic_bucket, small_bucket, step, what,
};

/// Some time passes, then one of the limits is asked.
type Turn = (Amount, usize, What);

fn turns() -> impl Strategy<Value = Vec<Turn>> {
    prop::collection::vec((amount(), any::<usize>(), what()), 1..70)
}

/// What a limit let pass, and when it runs.
#[derive(Debug)]
struct Run {
    at: u64,
    limit: usize,
    tokens: u64,
}

fn take_turns(limits: &[TokenBucket], begin: u64, turns: &[Turn]) {
    let (mut state, mut now, mut changes, mut last) = (0, begin, 0, usize::MAX);
    let mut runs: Vec<Run> = Vec::new();
    let mut charged = false;
    for (time, which, what) in turns {
        let index = which % limits.len();
        let limit = &limits[index];
        now += time.short_time(Scale::of_bucket(limit)) / 6;
        let ask = what.ask(limit.burst(), ns(limit.max_wait()));
        let before = state;
        let answer = step(limit, now, &mut state, &ask.request());
        assert!(state >= before, "an allow lowered the debt");
        assert_eq!(answer.keep.is_some(), state != before);
        let tokens = answer.decision.granted();
        if tokens == 0 {
            continue;
        }
        changes += u64::from(index != last && last != usize::MAX);
        last = index;
        if ask.charge {
            charged = true; // work already done keeps no bound of its own, but disturbs nobody else's
            continue;
        }
        runs.push(Run {
            at: now + ns(answer.decision.wait()),
            limit: index,
            tokens,
        });
    }
    runs.sort_by_key(|run| run.at);
    for (index, limit) in limits.iter().enumerate() {
        let mut meter = Meter::new();
        for run in runs.iter().filter(|run| run.limit == index) {
            let units = i128::from(run.tokens) * period(limit);
            let level = meter.count(on_time(limit, run.at), units);
            let bound = burst(limit) * period(limit) + slack(limit);
            assert!(level <= bound, "{limit}: {level} above {bound} in {runs:?}");
        }
    }
    if !charged {
        in_total(limits, &runs, changes);
    }
}

/// In every closed span, what the tokens cost in time fits the span and the longest burst; 2 ns for each change of limit, and
/// once.
fn in_total(limits: &[TokenBucket], runs: &[Run], changes: u64) {
    let common: i128 = limits.iter().map(tokens).product();
    let longest = limits.iter().map(full_ns).max().unwrap();
    for first in 0..runs.len() {
        let mut cost = 0;
        for last in first..runs.len() {
            let limit = &limits[runs[last].limit];
            cost += i128::from(runs[last].tokens) * period(limit) * (common / tokens(limit));
            let span_ns = runs[last].at - runs[first].at;
            let there_is = i128::from(span_ns + longest + 2 * (changes + 1)) * common;
            assert!(
                cost <= there_is,
                "{limits:?} from {first} to {last} of {runs:?}"
            );
        }
    }
}

/// Windows of one kind and length that differ in their limit: the most each let pass in its own window.
fn windows<A: Algorithm>(
    limits: &[A],
    (scale, most): (Scale, impl Fn(usize) -> u64),
    begin: u64,
    turns: &[Turn],
) {
    let (mut state, mut now) = (A::State::default(), begin);
    let mut logs = vec![Vec::<(u64, u64)>::new(); limits.len()];
    for (time, which, what) in turns {
        let index = which % limits.len();
        now += time.short_time(scale) / 6;
        let request = what.ask(scale.limit, 0).request();
        let decision = step(&limits[index], now, &mut state, &request).decision;
        logs[index].push((now, decision.granted()));
        for (index, log) in logs.iter().enumerate() {
            let inside = log.iter().filter(|(at, _)| now - at < scale.full_ns);
            let count: u64 = inside.map(|(_, tokens)| tokens).sum();
            assert!(count <= most(index), "limit {index} let {count} pass");
        }
    }
}

proptest! {
    #![proptest_config(config(4_000))]

    #[test]
    fn small(
        limits in prop::collection::vec(small_bucket(), 2..5),
        begin in 0_u64..60,
        turns in turns(),
    ) {
        take_turns(&limits, begin, &turns);
    }

    #[test]
    fn realistic(
        limits in prop::collection::vec(realistic_bucket(), 2..4),
        begin in 0_u64..1 << 60,
        turns in turns(),
    ) {
        take_turns(&limits, begin, &turns);
    }

    #[test]
    fn windows_of_one_length(
        counts in prop::collection::vec(1_u32..=9, 2..4),
        window in prop_oneof![1_u64..=40, Just(60_000_000_000)],
        offset in any::<u64>(),
        begin in prop_oneof![0_u64..200, Just(1_760_000_000_000_000_000)],
        turns in turns(),
    ) {
        let length = Duration::from_nanos(window);
        let count = |index: usize| u64::from(counts[index]);
        let scale = Scale::of_window(*counts.iter().max().unwrap(), length);
        let logs: Vec<_> = counts.iter().map(|limit| SlidingLog::per(*limit, length)).collect();
        windows(&logs, (scale, count), begin, &turns);
        let sliding: Vec<_> = counts.iter().map(|limit| SlidingWindow::per(*limit, length)).collect();
        let twice = |index| count(index).max(2 * count(index) - 1);
        windows(&sliding, (scale, twice), begin, &turns);
        let fixed = |edges: fn(FixedWindow, u64) -> FixedWindow| -> Vec<_> {
            counts.iter().map(|limit| edges(FixedWindow::per(*limit, length), offset)).collect()
        };
        for limits in [
            fixed(|limit, _| limit),
            fixed(|limit, offset| limit.with_offset(Duration::from_nanos(offset))),
            fixed(|limit, _| limit.anchored()),
        ] {
            windows(&limits, (scale, |index| 2 * count(index)), begin, &turns);
        }
    }
}

/// One key, two bursts in turn, time standing still, as while a new configuration is rolled out: the larger burst passes, and
/// not ten thousand requests.
#[test]
fn two_bursts_in_turn_pass_the_larger_one() {
    let limits = [20, 5].map(|burst| TokenBucket::per_second(10).with_burst(burst));
    let mut state = 0;
    let asks = (0..10_000).map(|i| step(&limits[i % 2], 7_000, &mut state, &Request::ONE));
    let admitted = asks.filter(|answer| answer.decision.is_allowed()).count();
    assert_eq!(admitted, 20);
}

/// 5 a minute is attacked through 1000/s on its key for ten minutes: it lets pass 5 and one each 12 s, at most.
#[test]
fn a_slow_limit_is_not_forgiven_by_a_fast_one() {
    let (slow, fast) = (TokenBucket::per_minute(5), TokenBucket::per_second(1_000));
    let (mut state, mut admitted) = (0, 0);
    for ms in 0..=600_000_u64 {
        let now = (1_000_000 + ms) * 1_000_000;
        let _ = step(&fast, now, &mut state, &Request::ONE);
        admitted += step(&slow, now, &mut state, &Request::ONE)
            .decision
            .granted();
    }
    assert!((1..=55).contains(&admitted), "{admitted}");
}
