//! Windows and logs read by clocks that differ by up to `d`: their bound holds in every real window of `W − d`. Counted by
//! brute force: the admitted tokens are written down with the real time and added up for every window.

use std::time::Duration;

use proptest::prelude::*;
use ratekeeper::{Algorithm, FixedWindow, Request, SlidingLog, SlidingWindow};

use crate::support::{Amount, Scale, What, amount, config, step, what};

fn visits() -> impl Strategy<Value = Vec<(Amount, u64, What)>> {
    prop::collection::vec((amount(), any::<u64>(), what()), 1..60)
}

/// The most tokens in a half-open real window of `window_ns − apart_ns`.
fn most<A: Algorithm>(
    limit: &A,
    (scale, apart_ns): (Scale, u64),
    begin: u64,
    visits: &[(Amount, u64, What)],
) -> u64 {
    let (mut state, mut real) = (A::State::default(), begin);
    let mut log: Vec<(u64, u64)> = Vec::new();
    for (pause, error, what) in visits {
        real += pause.short_time(scale) / 4;
        let reading = real + error % (apart_ns + 1);
        let request = what.plain(scale.limit).request();
        let decision = step(limit, reading, &mut state, &request).decision;
        log.push((real, decision.granted()));
    }
    let length = scale.full_ns - apart_ns;
    let in_window = |end: u64| {
        let inside = log.iter().filter(|(at, _)| *at <= end && end - at < length);
        inside.map(|(_, tokens)| tokens).sum::<u64>()
    };
    log.iter()
        .map(|(end, _)| in_window(*end))
        .max()
        .unwrap_or(0)
}

proptest! {
    #![proptest_config(config(4_000))]

    #[test]
    fn windows_and_logs(
        limit in 1_u32..=9,
        window in prop_oneof![1_u64..=40, Just(60_000_000_000)],
        apart in any::<u64>(),
        offset in any::<u64>(),
        begin in prop_oneof![0_u64..200, Just(1_760_000_000_000_000_000)],
        visits in visits(),
    ) {
        let length = Duration::from_nanos(window);
        let apart_ns = apart % window;
        let scale = (Scale::of_window(limit, length), apart_ns);
        let limit_tokens = u64::from(limit);
        let log = SlidingLog::per(limit, length);
        assert!(most(&log, scale, begin, &visits) <= limit_tokens);
        let sliding = SlidingWindow::per(limit, length);
        assert!(most(&sliding, scale, begin, &visits) <= limit_tokens.max(2 * limit_tokens - 2));
        let aligned = FixedWindow::per(limit, length);
        for fixed in [aligned, aligned.with_offset(Duration::from_nanos(offset % window)), aligned.anchored()] {
            assert!(most(&fixed, scale, begin, &visits) <= 2 * limit_tokens);
        }
    }
}

/// In a window of the full length it may be twice that: the difference of the clocks cannot be told from time.
#[test]
fn a_whole_window_may_hold_twice_the_log() {
    let log = SlidingLog::per(3, Duration::from_nanos(10));
    let mut state = Default::default();
    // The second clock is 4 ns ahead, so 10 ns after the first reading are 6 ns of real time.
    for reading in [100, 106 + 4] {
        let taken = step(&log, reading, &mut state, &Request::take(3));
        assert!(taken.decision.is_allowed());
    }
}
