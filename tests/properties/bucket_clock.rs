//! Clocks that differ: a state ahead of the caller is debt, which nobody forgives. Where readings lie within `d` of the real
//! time, every real span of `W` holds at most `B + (W + d)/T`, however often they run back and forth; where they drift, what
//! counts is the largest reading in the span less the first. Counted by brute force over every span.

use proptest::prelude::*;
use ratekeeper::{Outcome, Request, TokenBucket};

use crate::exact::{burst, full_ns, on_time, period, slack};
use crate::support::{
    Amount, Scale, What, amount, any_bucket, config, edge, ns, peek, realistic_bucket,
    small_bucket, step, what,
};

/// One request: real time passes, then it reads a clock.
#[derive(Clone, Copy, Debug)]
struct Visit {
    pause: Amount,
    /// Which of four clocks, each with an error of its own, or (4 and above) one that jumps about.
    clock: u8,
    jump: u64,
    what: What,
}

fn visits() -> impl Strategy<Value = Vec<Visit>> {
    let visit = (amount(), 0_u8..6, any::<u64>(), what());
    let visit = visit.prop_map(|(pause, clock, jump, what)| Visit {
        pause,
        clock,
        jump,
        what,
    });
    prop::collection::vec(visit, 1..60)
}

/// Tokens admitted, when by real time and at which reading.
struct Admitted {
    real: u64,
    reading: u64,
    tokens: i128,
}

/// Every span that begins and ends with an admission: the tokens in it, and the time that may have refilled them.
fn in_every_span(limit: &TokenBucket, log: &[Admitted], covered_ns: impl Fn(&[&Admitted]) -> u64) {
    let log: Vec<_> = log.iter().filter(|admitted| admitted.tokens > 0).collect();
    for first in 0..log.len() {
        let mut tokens = 0;
        for last in first..log.len() {
            tokens += log[last].tokens;
            let flowed = on_time(limit, covered_ns(&log[first..=last]));
            assert!(
                tokens * period(limit) <= burst(limit) * period(limit) + flowed + slack(limit),
                "{tokens} tokens from {} to {}",
                log[first].real,
                log[last].real
            );
        }
    }
}

/// Readings within `apart_ns` of each other.
fn apart(limit: &TokenBucket, begin: u64, apart_ns: u64, errors: [u64; 4], visits: &[Visit]) {
    let scale = Scale::of_bucket(limit);
    let (mut state, mut real) = (0, begin);
    let mut log = Vec::new();
    for visit in visits {
        real += visit.pause.short_time(scale) / 4;
        let error = errors.get(usize::from(visit.clock));
        let reading = real + error.copied().unwrap_or(visit.jump) % (apart_ns + 1);
        let ask = visit.what.plain(limit.burst());
        let tokens = step(limit, reading, &mut state, &ask.request())
            .decision
            .granted();
        log.push(Admitted {
            real,
            reading,
            tokens: tokens.into(),
        });
    }
    in_every_span(limit, &log, |span| {
        span[span.len() - 1].real - span[0].real + apart_ns
    });
}

/// Readings in both directions, as far as they like.
fn drifting(limit: &TokenBucket, begin: u64, visits: &[Visit]) {
    let scale = Scale::of_bucket(limit);
    let (mut state, mut reading) = (0, begin);
    let mut log = Vec::new();
    for visit in visits {
        let by = visit.pause.short_time(scale);
        reading = if visit.clock % 2 == 0 {
            reading + by
        } else {
            reading.saturating_sub(by)
        };
        let ask = visit.what.plain(limit.burst());
        let tokens = step(limit, reading, &mut state, &ask.request())
            .decision
            .granted();
        log.push(Admitted {
            real: reading,
            reading,
            tokens: tokens.into(),
        });
    }
    in_every_span(limit, &log, |span| {
        let largest = span.iter().map(|admitted| admitted.reading).max().unwrap();
        largest - span[0].reading
    });
}

proptest! {
    #![proptest_config(config(3_000))]

    #[test]
    fn small(
        limit in small_bucket(),
        begin in 0_u64..500,
        apart_ns in 0_u64..60,
        errors in any::<[u64; 4]>(),
        visits in visits(),
    ) {
        apart(&limit, begin, apart_ns, errors, &visits);
        drifting(&limit, begin, &visits);
    }

    #[test]
    fn realistic(
        limit in realistic_bucket(),
        begin in 0_u64..1 << 60,
        apart_ns in 0_u64..1 << 40,
        errors in any::<[u64; 4]>(),
        visits in visits(),
    ) {
        apart(&limit, begin, apart_ns, errors, &visits);
        drifting(&limit, begin, &visits);
    }

    /// Whatever the state, the whole burst is there when its debt in time is paid, not before, and nothing that is asked
    /// meanwhile and refused changes that.
    #[test]
    fn a_debt_is_paid_when_its_time_is_over(
        limit in any_bucket(),
        state in edge(),
        now in edge(),
        asks in prop::collection::vec((edge(), what()), 0..8),
    ) {
        let paid = state.max(now);
        prop_assume!(paid <= u64::MAX - full_ns(&limit));
        let mut state = state;
        for (earlier, what) in asks {
            let ask = what.ask(limit.burst(), ns(limit.max_wait()));
            let before = state;
            let answer = step(&limit, earlier.min(now), &mut state, &ask.request());
            if answer.decision.granted() > 0 {
                return Ok(()); // another debt
            }
            assert_eq!((answer.keep, state), (None, before));
        }
        assert_owed(&limit, state, now);
        let all = step(&limit, paid, &mut state, &Request::take(limit.burst()));
        assert_eq!(all.decision.outcome(), Outcome::Allowed);
    }
}

/// The debt that a peek shows. A state that no step leaves behind may be a nanosecond off the lattice.
fn assert_owed(limit: &TokenBucket, state: u64, now: u64) {
    let reset_ns = ns(peek(limit, now, &state).reset_after());
    let owed_ns = state.saturating_sub(now);
    assert!(owed_ns - reset_ns <= u64::from(slack(limit) > 0));
}

/// The difference of the clocks counts once, not with each reading, and that much is attained.
#[test]
fn the_difference_counts_once() {
    let limit = TokenBucket::per_second(1).with_burst(10);
    let second = 1_000_000_000;
    let (mut state, mut admitted) = (0, 0);
    // Two cores, 1.6 s apart, ask in turn every millisecond for 100 s of real time.
    for ms in 0..=100_000_u64 {
        let real = 1_000 * second + ms * 1_000_000;
        let reading = real + if ms % 2 == 0 { 0 } else { 1_600_000_000 };
        admitted += step(&limit, reading, &mut state, &Request::ONE)
            .decision
            .granted();
    }
    // The burst, and 100 s; with every reading's difference it would be 50,000.
    assert!((110..=10 + 101).contains(&admitted), "{admitted}");
    // Attained: all that was there before, then all that the other clock sees.
    let (mut state, mut admitted) = (0, 0);
    for reading in [100, 103] {
        let take = Request::up_to(10);
        admitted += step(&limit, reading * second, &mut state, &take)
            .decision
            .granted();
    }
    assert_eq!(admitted, 10 + 3);
}

/// The step itself: five taken at 100 s, then the clock says 90 s. The debt is honest, so the wait is long, and nothing is
/// written: a clock that is right again finds what it left. ([`ratekeeper::UnixClock`] never shows such a reading.)
#[test]
fn a_backward_step_waits_and_writes_nothing() {
    let limit = TokenBucket::per_second(1).with_burst(5);
    let second = 1_000_000_000;
    let mut state = 0;
    assert!(
        step(&limit, 100 * second, &mut state, &Request::take(5))
            .decision
            .is_allowed()
    );
    for (now, wait) in [(90, 11), (91, 10)] {
        let refused = step(&limit, now * second, &mut state, &Request::ONE);
        assert_eq!(refused.decision.retry_after().map(ns), Some(wait * second));
        assert_eq!((refused.keep, state), (None, 105 * second));
    }
    assert_eq!(peek(&limit, 101 * second, &state).remaining(), 1);
}
