//! Rates, and clocks that are set back.

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
        let mut machine = kit.machine(ns(1));
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

/// How far a clock must be set back for a value to prove it, and so to be repaired.
fn provable(kit: Kit<'_>) -> Result<Duration, Finding> {
    match kit.subject.repairs() {
        Repairs::Nothing => Err(kit.lacks(Need::Repairs)),
        Repairs::Proven => Ok(Duration::ZERO),
        Repairs::Stamped { max_skew } => Ok(max_skew),
    }
}

/// In a shared store, a clock that is set back gains nobody anything, and makes nobody wait longer than one refill.
pub fn clock_steps_lock_nobody_out(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "clock_steps_lock_nobody_out");
    kit.clock()?;
    provable(kit)?;
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

/// A value that proves that the clock was set back is cut to its own reach, and that is stored even with a denial: otherwise
/// every denial starts the wait anew.
pub fn repairs_are_written(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "repairs_are_written");
    kit.clock()?;
    let least = provable(kit)?;
    for back in [least + 10 * SECOND, YEAR] {
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

/// A window that begins after now proves it, too: it begins now, with its counts.
pub fn windows_ahead_begin_now(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "windows_ahead_begin_now");
    kit.clock()?;
    let back = provable(kit)? + 60 * SECOND;
    let limit = SlidingWindow::per_second(10);
    let client = kit.client(Need::Windows, |s, space| s.windows(space), limit)?;
    client.take("seven of ten", 7)?.allowed()?.leaves(3)?;
    kit.step_back(back)?;
    // Seven of ten until the window has passed; then they slide out, one each seventh of a second.
    let denied = client.take("four more, the clock set back", 4)?;
    denied.denied_for(ns(1_142_857_143))?.leaves(3)?;
    client
        .take("three", 3)?
        .allowed()?
        .leaves(0)?
        .resets_in(2 * SECOND)?;
    Ok(())
}

/// Where nothing proves a step of the clock, a state ahead of it is debt, to the nanosecond: nothing is cut.
pub fn states_ahead_are_debt(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "states_ahead_are_debt");
    kit.clock()?;
    let client = kit.bucket(TokenBucket::per_second(1).with_burst(5));
    client.exhaust(5)?;
    // 1/s burst 5 at 90 s, where another caller left 105 s.
    if subject.repairs() == Repairs::Nothing {
        kit.step_back(10 * SECOND)?;
        let denied = client.take("one of five, 10 s before they were taken", 1)?;
        denied
            .denied_for(11 * SECOND)?
            .leaves(0)?
            .resets_in(15 * SECOND)?;
        let peek = client.peek("a peek after that denial")?;
        peek.leaves(0)?.resets_in(15 * SECOND)?;
        kit.advance(6 * SECOND)?;
        client.take("6 s later", 1)?.denied_for(5 * SECOND)?;
        kit.advance(5 * SECOND)?;
        client.take("as promised", 1)?.allowed()?.leaves(0)?;
        client.take("and one more", 1)?.denied_for(SECOND)?;
    }
    let limit = TokenBucket::per_hour(60).with_burst(10);
    let hourly = kit.bucket(limit);
    hourly.exhaust(10)?;
    // Further ahead than this limit could ever book.
    let fast = hourly.with_limit(TokenBucket::per_second(1).with_burst(5));
    let debt = 600 * SECOND - 4 * SECOND;
    fast.take("1 per second, after ten of 60 per hour", 1)?
        .denied_for(debt)?
        .leaves(0)?;
    hourly
        .peek("60 per hour, after that denial")?
        .leaves(0)?
        .resets_in(600 * SECOND)?;
    kit.advance(debt)?;
    fast.take("as promised", 1)?.allowed()?.leaves(0)?;
    Ok(())
}

/// Readings of the clock that are behind the newest one find debt: where they differ by up to `d`, `burst + (W + d) / T` pass
/// in `W`. Only what proves a step back is repaired, and then each later step forward is worth at most its own length.
pub fn readings_behind_find_debt(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "readings_behind_find_debt");
    kit.clock()?;
    const TURNS: u64 = 50;
    let behind = 10 * SECOND;
    let client = kit.bucket(TokenBucket::per_second(1).with_burst(10));
    let mut admitted = 0;
    let mut ask = |case: &str| -> Checked {
        for _ in 0..12 {
            admitted += client.take(case, 1)?.seen.granted;
        }
        Ok(())
    };
    for _ in 0..TURNS {
        ask("one of 1 per second, at 90 s")?;
        kit.advance(behind)?;
        ask("one of 1 per second, at 100 s")?;
        kit.step_back(behind)?;
    }
    let forwards = match subject.repairs() {
        Repairs::Proven => TURNS,
        Repairs::Stamped { max_skew } if max_skew < behind => TURNS,
        Repairs::Nothing | Repairs::Stamped { .. } => 1,
    };
    let due = 10 + 10 * forwards;
    kit.is(
        admitted <= due,
        format!("{TURNS} turns at two instants 10 s apart, 1 per second, burst 10"),
        format!("at most {due} are allowed"),
        admitted,
    )
}
