//! Rates, clocks that are stepped, and limits that change.

use super::prelude::*;

/// A third of a second is no whole number of nanoseconds, and still three a second are three a second.
pub fn rates_do_not_drift(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "rates_do_not_drift");
    let start = kit.now()?;
    let client = kit.bucket(TokenBucket::per_second(3));
    client
        .take("three of three", 3)?
        .allowed()?
        .leaves(0)?
        .resets_in(SECOND)?;
    client.take("a fourth", 1)?.denied_for(ns(333_333_334))?;
    let mut granted = 0;
    for poll in 1..=150 {
        kit.advance(ms(20))?;
        granted += client
            .take(format!("poll {poll} at 20 ms each"), 1)?
            .seen
            .granted;
    }
    kit.equal("tokens of 3 per second, polled for 3 s", 9, granted)?;

    let client = kit.bucket(TokenBucket::per_second(7).with_burst(1));
    kit.clock()?.set(start);
    for turn in 0..70_u64 {
        let when = (turn * 1_000_000_000).div_ceil(7);
        kit.clock()?.set(start + ns(when));
        client
            .take(format!("number {turn} of 7 per second"), 1)?
            .allowed()?;
        let next = ((turn + 1) * 1_000_000_000).div_ceil(7);
        client
            .take(format!("just after number {turn} of 7 per second"), 1)?
            .denied_for(ns(next - when))?;
    }
    Ok(())
}

/// From ten million a second to one a month: states that last for nanoseconds are stored, too.
pub fn fast_and_slow_rates_are_exact(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "fast_and_slow_rates_are_exact");
    kit.clock()?;
    let client = kit.bucket(TokenBucket::per_second(10_000_000).with_burst(3));
    client
        .take("3 of 10 million per second", 3)?
        .allowed()?
        .leaves(0)?;
    client.take("a fourth", 1)?.denied_for(ns(100))?;
    kit.advance(ns(100))?;
    client.take("100 ns later", 1)?.allowed()?;
    client.take("and one more", 1)?.denied_for(ns(100))?;

    let client = kit.bucket(TokenBucket::per_second(6_000));
    client
        .take("1 of 6000 per second", 1)?
        .allowed()?
        .resets_in(ns(166_667))?;
    client
        .take("6000 more", 6_000)?
        .denied_for(ns(166_667))?
        .leaves(5_999)?;

    let client = kit.bucket(TokenBucket::per(1, 30 * DAY).with_burst(3));
    client
        .take("3 of 1 per 30 days", 3)?
        .allowed()?
        .leaves(0)?
        .resets_in(90 * DAY)?;
    client.take("a fourth", 1)?.denied_for(30 * DAY)?;
    kit.advance(30 * DAY)?;
    client.take("30 days later", 1)?.allowed()?.leaves(0)?;
    Ok(())
}

/// Limits at the end of the numbers are enforced exactly, or refused as unsupported: never approximately.
pub fn limits_at_the_edge_are_exact_or_refused(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "limits_at_the_edge_are_exact_or_refused");
    let start = kit.now()?;
    let longest = Duration::from_nanos(u64::MAX);
    let limit = |tokens, period, burst| TokenBucket::per(tokens, period).with_burst(burst);
    let limits = [
        limit(u64::MAX, SECOND, u64::MAX),
        limit(u64::MAX, longest, u64::MAX),
        limit(1, ns(1), u64::MAX),
        limit(1, longest, 1),
        limit(600_000_001, SECOND, 5),
        limit(1_000_000_001, SECOND, 1),
        limit(1_000_000, DAY, 1_000_000),
        limit(1, DAY / 24, 5_000_000),
        limit(7, YEAR, 7).with_max_wait(longest),
    ];
    let mut all_supported = true;
    for limit in limits {
        kit.clock()?.set(start);
        let client = kit.bucket(limit);
        let mut machine = Machine::new(ns(1));
        for (cost, then) in [
            (1, Duration::ZERO),
            (limit.burst() - 1, Duration::ZERO),
            (1, ns(1)),
            (limit.burst(), ns(1)),
            (1, YEAR),
            (u64::MAX, Duration::ZERO),
            (limit.burst(), SECOND),
            (0, Duration::ZERO),
        ] {
            let expected = machine.step(&limit, kit.now()?, &Request::take(cost)).seen;
            let case = format!(
                "{cost} of {limit}, {:?} after the start",
                kit.now()?.saturating_since(start)
            );
            match client.try_ask(Request::take(cost)) {
                Ok(decision) => kit.equal(case, expected, Seen::from(&decision))?,
                Err(error) if error.kind() == ErrorKind::Unsupported => {
                    all_supported = false;
                    break;
                }
                Err(error) => return Err(kit.broken(case, format!("{expected:?}"), Shown(&error))),
            }
            kit.advance(then)?;
        }
    }
    if all_supported {
        Ok(())
    } else {
        Err(kit.lacks(Need::ExtremeLimits))
    }
}

/// A clock that is stepped back gains nobody anything, and makes nobody wait longer than one refill.
pub fn clock_steps_lock_nobody_out(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "clock_steps_lock_nobody_out");
    kit.clock()?;
    for back in [ms(50), SECOND, DAY, YEAR] {
        let client = kit.bucket(TokenBucket::per_second(10).with_burst(5));
        client.exhaust(5)?;
        kit.step_back(back)?;
        let case = format!("one of an empty bucket, the clock {back:?} back");
        client
            .take(case, 1)?
            .denied_for(ms(100))?
            .leaves(0)?
            .resets_in(ms(500))?;
        kit.advance(back)?;
    }
    Ok(())
}

/// What a stepped clock left too far in the future is cut back, and that is stored even with a denial: otherwise every denial
/// starts the wait anew.
pub fn repairs_are_written(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "repairs_are_written");
    kit.clock()?;
    for back in [10 * SECOND, YEAR] {
        let client = kit.bucket(TokenBucket::per_second(1).with_burst(5));
        client.exhaust(5)?;
        kit.step_back(back)?;
        client
            .take(format!("the clock {back:?} back"), 1)?
            .denied_for(SECOND)?;
        kit.advance(ms(400))?;
        client
            .take("0.4 s after that denial", 1)?
            .denied_for(ms(600))?;
        kit.advance(ms(600))?;
        client
            .take("1 s after it, as promised", 1)?
            .allowed()?
            .leaves(0)?;
    }
    Ok(())
}

/// The limit of each call counts, not one that was seen before: a key may change tiers.
pub fn the_limit_of_the_call_counts(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "the_limit_of_the_call_counts");
    kit.clock()?;
    let limit = |tokens, burst| TokenBucket::per_second(tokens).with_burst(burst);

    let five = kit.bucket(limit(10, 5));
    five.exhaust(5)?;
    let two = five.with_limit(limit(10, 2));
    two.take("a burst of 2 after one of 5", 1)?
        .denied_for(ms(100))?
        .names(0, 2)?;

    let two = kit.bucket(limit(10, 2));
    two.exhaust(2)?;
    let five = two.with_limit(limit(10, 5));
    five.take("a burst of 5 after one of 2", 3)?
        .allowed()?
        .leaves(0)?
        .resets_in(ms(500))?;

    let fast = kit.bucket(limit(10, 5));
    fast.exhaust(5)?;
    let slow = fast.with_limit(limit(1, 5));
    slow.take("1 per second after 10 per second", 4)?
        .allowed()?
        .leaves(0)?
        .resets_in(ms(4_500))?;
    slow.take("one more", 1)?.denied_for(ms(500))?;
    Ok(())
}
