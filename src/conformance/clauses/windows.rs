//! Windows, logs, and several limits at once.

use super::prelude::*;

/// The counter forgets the window before it as it slides out; there is no second burst at the edge.
pub fn sliding_windows_slide(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "sliding_windows_slide");
    kit.clock()?;
    let client = kit.client(
        Need::Windows,
        |s, space| s.windows(space),
        SlidingWindow::per_second(10),
    )?;
    client
        .take("ten of ten", 10)?
        .allowed()?
        .leaves(0)?
        .resets_in(ms(2_000))?
        .names(0, 10)?;
    client.take("one more at once", 1)?.denied_for(ms(1_100))?;
    kit.advance(ms(100))?;
    client.take("at 0.1 s", 1)?.denied_for(ms(1_000))?;
    kit.advance(ms(900))?;
    client
        .take("at 1 s, the edge", 1)?
        .denied_for(ms(100))?
        .leaves(0)?;
    kit.advance(ms(500))?;
    client
        .take("five at 1.5 s", 5)?
        .allowed()?
        .leaves(0)?
        .resets_in(ms(1_500))?;
    client.take("a sixth", 1)?.denied_for(ms(100))?;
    client.take("eleven", 11)?.too_large()?;
    kit.advance(ms(100))?;
    client.take("at 1.6 s", 1)?.allowed()?.leaves(0)?;
    kit.advance(ms(1_400))?;
    client
        .peek("at 3 s")?
        .leaves(10)?
        .resets_in(Duration::ZERO)?;
    Ok(())
}

/// Aligned windows turn with the clock, anchored ones with their first request.
pub fn fixed_windows_turn(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "fixed_windows_turn");
    kit.clock()?;
    let limit = FixedWindow::per_minute(5);
    let open = |limit| kit.client(Need::FixedWindows, |s, space| s.fixed_windows(space), limit);
    let client = open(limit)?;
    kit.advance(ms(58_700))?;
    client
        .take("five at 58.7 s", 5)?
        .allowed()?
        .leaves(0)?
        .resets_in(ms(1_300))?;
    client.take("one more", 1)?.denied_for(ms(1_300))?;
    kit.advance(ms(1_300))?;
    client
        .take("on the minute", 1)?
        .allowed()?
        .leaves(4)?
        .resets_in(ms(60_000))?;

    let client = open(limit.with_offset(ms(10_000)))?;
    client
        .take("five of a minute that turns at 10 s", 5)?
        .allowed()?
        .resets_in(ms(10_000))?;

    let client = open(limit.anchored())?;
    kit.advance(ms(7_000))?;
    client
        .take("three, which open a window", 3)?
        .allowed()?
        .leaves(2)?
        .resets_in(ms(60_000))?;
    kit.advance(ms(59_999))?;
    client
        .take("three of two", 3)?
        .denied_for(ms(1))?
        .leaves(2)?;
    kit.advance(ms(1))?;
    client
        .take("five in the next one", 5)?
        .allowed()?
        .leaves(0)?
        .resets_in(ms(60_000))?;
    Ok(())
}

/// The log holds its limit in every window, wherever that begins.
pub fn logs_are_exact(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "logs_are_exact");
    kit.clock()?;
    let client = kit.client(
        Need::Logs,
        |s, space| s.logs(space),
        SlidingLog::per_second(3),
    )?;
    client.take("one of three", 1)?.allowed()?.leaves(2)?;
    kit.advance(ms(900))?;
    client
        .take("two at 0.9 s", 2)?
        .allowed()?
        .leaves(0)?
        .resets_in(ms(1_000))?;
    client.take("one more", 1)?.denied_for(ms(100))?;
    kit.advance(ms(100))?;
    client
        .take("two when one has left", 2)?
        .denied_for(ms(900))?
        .leaves(1)?;
    client
        .take("one", 1)?
        .allowed()?
        .leaves(0)?
        .resets_in(ms(1_000))?;
    kit.advance(ms(1_000))?;
    client
        .peek("a second later")?
        .leaves(3)?
        .resets_in(Duration::ZERO)?;
    Ok(())
}

/// Of several limits all are charged or none, and the one that refuses is named.
pub fn several_limits_are_all_or_nothing(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "several_limits_are_all_or_nothing");
    kit.clock()?;
    let hourly = |tokens| TokenBucket::per_hour(tokens);
    let open = |limits| kit.client(Need::Several, |s, space| s.several(space), All(limits));

    let client = open([
        TokenBucket::per_second(5),
        TokenBucket::per_minute(7),
        hourly(1_000),
    ])?;
    client
        .take("five of 5 per second, 7 per minute", 5)?
        .allowed()?
        .names(0, 5)?
        .leaves(0)?;
    client
        .take("one more", 1)?
        .denied_for(ms(200))?
        .names(0, 5)?;
    kit.advance(SECOND)?;
    client
        .take("two, a second later", 2)?
        .allowed()?
        .names(1, 7)?
        .leaves(0)?;
    client.take("one more", 1)?.denied()?.names(1, 7)?;

    for scarce in 0..3 {
        let mut limits = [TokenBucket::per_second(10); 3];
        limits[scarce] = hourly(2);
        let client = open(limits)?;
        for _ in 0..2 {
            client.take("one of 2 per hour", 1)?.allowed()?;
        }
        for _ in 0..5 {
            client.take("a third", 1)?.denied()?.names(scarce, 2)?;
        }
        limits[scarce] = hourly(2).with_burst(2_000);
        let client = client.with_limit(All(limits));
        let first_other = usize::from(scarce == 0);
        client
            .peek("what the denials took from the others")?
            .leaves(8)?
            .names(first_other, 10)?;
    }
    Ok(())
}
