//! Limits that differ on one key, and keys that change their limit.

use super::prelude::*;
use crate::algorithm::Carry;
use crate::decision::Outcome;

/// The limit of each call counts, not one that was seen before: a key may have tiers. What is owed is time.
pub fn the_limit_of_the_call_counts(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "the_limit_of_the_call_counts");
    kit.clock()?;
    let limit = |tokens, burst| TokenBucket::per_second(tokens).with_burst(burst);

    let five = kit.bucket(limit(10, 5));
    five.exhaust(5)?;
    let two = five.with_limit(limit(10, 2));
    two.take("a burst of 2 after one of 5", 1)?
        .denied_for(ms(400))?
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

/// From slow to fast a key waits until its debt in time is paid; from fast to slow it is worth what it owes. Whatever the order,
/// together they pass no more than the looser one would.
pub fn limits_that_differ_pay_in_time(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "limits_that_differ_pay_in_time");
    kit.clock()?;
    let slow = TokenBucket::per(1, 12 * SECOND).with_burst(5);
    let fast = TokenBucket::per(1, ms(10)).with_burst(100);
    let free = kit.bucket(slow);
    free.take("three of 5 per minute", 3)?
        .allowed()?
        .resets_in(36 * SECOND)?;
    let paid = free.with_limit(fast);
    paid.take("then 100 per second", 1)?
        .denied_for(ms(35_010))?
        .leaves(0)?;
    kit.advance(ms(35_010))?;
    paid.take("as promised", 1)?.allowed()?.leaves(0)?;

    let paid = kit.bucket(fast);
    paid.exhaust(100)?;
    let free = paid.with_limit(slow);
    free.take("5 per minute, after a second's worth", 1)?
        .allowed()?
        .resets_in(13 * SECOND)?;

    let bursts = [20, 5].map(|burst| TokenBucket::per_second(10).with_burst(burst));
    let clients = kit.bucket(bursts[0]);
    let clients = bursts.map(|limit| clients.with_limit(limit));
    let mut admitted = 0;
    for (client, _) in clients.iter().cycle().zip(0..kit.requests()) {
        admitted += client
            .take("10 per second, burst 20 and 5 in turn", 1)?
            .seen
            .granted;
    }
    kit.equal(
        "tokens of 10 per second, burst 20 and 5 in turn, time standing still",
        20,
        admitted,
    )
}

/// A refusal under one limit forgives nothing that is owed under another.
pub fn refusals_forgive_nothing(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "refusals_forgive_nothing");
    kit.clock()?;
    let pairs = [
        (
            TokenBucket::per_minute(1_000),
            TokenBucket::per_minute(10).with_burst(2),
        ),
        (
            TokenBucket::per_second(10).with_burst(20),
            TokenBucket::per_second(10).with_burst(5),
        ),
        (
            TokenBucket::per_hour(10),
            TokenBucket::per_second(1_000).with_burst(1),
        ),
    ];
    for (large, small) in pairs {
        let client = kit.bucket(large);
        client
            .take("all of the larger limit", large.burst())?
            .allowed()?;
        let owed = client.peek("after that")?.leaves(0)?.seen.reset_after;
        let other = client.with_limit(small);
        for request in [
            Request::ONE,
            Request::PEEK,
            Request::take(small.burst()),
            Request::take(small.burst() + 1),
        ] {
            let case = format!("{request:?} under {small}, after all of {large}");
            other.ask(case, request)?.leaves(0)?.grants(0)?;
        }
        client
            .peek(format!("all of {large} are taken, and {small} has refused"))?
            .leaves(0)?
            .resets_in(owed)?;
    }
    Ok(())
}

/// A change moves a key from one limit to another once: whole tokens stay, full stays full, a raised burst comes in empty, and
/// debts beyond what the new limit can hold are cut to that.
pub fn changes_keep_tokens(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "changes_keep_tokens");
    kit.clock()?;
    let second = |burst| TokenBucket::per_second(1).with_burst(burst);
    let (hourly, paid) = (TokenBucket::per_hour(10), TokenBucket::per_second(1_000));

    let client = kit.bucket(second(5));
    client.take("all five of 1 per second", 5)?.allowed()?;
    let (client, peek) = client.change("that, to a burst of 20", second(20), Carry::Tokens)?;
    peek.allowed()?
        .leaves(0)?
        .resets_in(20 * SECOND)?
        .grants(0)?
        .names(0, 20)?;
    client.take("one more", 1)?.denied_for(SECOND)?;
    let fresh = client.with_key("fresh").with_limit(second(5));
    let (_, peek) = fresh.change("a fresh key, to a burst of 20", second(20), Carry::Tokens)?;
    peek.leaves(20)?.resets_in(Duration::ZERO)?;

    let client = kit.bucket(hourly);
    client.take("all of 10 per hour", 10)?.allowed()?;
    let (client, peek) = client.change("that, to 1000 per second", paid, Carry::Tokens)?;
    peek.leaves(0)?.resets_in(SECOND)?;
    client.take("one of these", 1)?.denied_for(ms(1))?;
    let (client, peek) = client.change("and back", hourly, Carry::Tokens)?;
    peek.leaves(0)?.resets_in(3_600 * SECOND)?;
    client
        .take("one of 10 per hour", 1)?
        .denied_for(360 * SECOND)?;

    let client = kit.bucket(TokenBucket::per(3, ns(10)).with_burst(4));
    client
        .take("three of 3 per 10 ns", 3)?
        .allowed()?
        .leaves(1)?
        .resets_in(ns(10))?;
    let new = TokenBucket::per(2, ns(5)).with_burst(6);
    let (_, peek) = client.change("that, to 2 per 5 ns", new, Carry::Tokens)?;
    peek.leaves(1)?.resets_in(ns(13))?;
    Ok(())
}

/// What a key takes along is a choice: its tokens, its debt in time, or nothing, full or empty.
pub fn changes_carry_what_was_chosen(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "changes_carry_what_was_chosen");
    kit.clock()?;
    let limit = |burst| TokenBucket::per_second(1).with_burst(burst);
    for (carry, left, reset) in [
        (Carry::Tokens, 1, 19 * SECOND),
        (Carry::Debt, 16, 4 * SECOND),
        (Carry::Full, 20, Duration::ZERO),
        (Carry::Empty, 0, 20 * SECOND),
    ] {
        let client = kit.bucket(limit(5));
        client.take("four of five", 4)?.allowed()?.leaves(1)?;
        let case = format!("that, to a burst of 20, carrying {carry:?}");
        let (client, peek) = client.change(&case, limit(20), carry)?;
        peek.allowed()?.leaves(left)?.resets_in(reset)?;
        client.peek(case)?.leaves(left)?.resets_in(reset)?;
    }
    let open = |limit| kit.client(Need::Windows, |s, space| s.windows(space), limit);
    let Ok(client) = open(SlidingWindow::per_second(10)) else {
        return Ok(());
    };
    client.take("three of a window of ten", 3)?.allowed()?;
    let case = "that, to four a window";
    let (client, peek) = client.change(case, SlidingWindow::per_second(4), Carry::Tokens)?;
    peek.leaves(1)?;
    client.take("two of one", 2)?.denied()?;
    client.take("one", 1)?.allowed()?.leaves(0)?;
    Ok(())
}

/// A window's counts mean nothing to one of another length, offset or anchoring: under that, the key is another one, or not
/// supported. What is counted stays counted.
pub fn other_windows_count_for_themselves(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "other_windows_count_for_themselves");
    kit.clock()?;
    let hour = 3_600 * SECOND;
    let sliding = kit.client(
        Need::Windows,
        |s, space| s.windows(space),
        SlidingWindow::per_hour(10),
    )?;
    in_turn(
        &sliding,
        sliding.with_limit(SlidingWindow::per_second(1_000)),
    )?;
    let fixed = |limit| kit.client(Need::FixedWindows, |s, space| s.fixed_windows(space), limit);
    let hourly = FixedWindow::per_hour(10);
    let Ok(client) = fixed(hourly) else {
        return Ok(());
    };
    let other = client.with_limit(FixedWindow::per_second(1_000));
    in_turn(&client, other)?;
    for other in [hourly.anchored(), hourly.with_offset(hour / 2)] {
        let client = fixed(hourly)?;
        let other = client.with_limit(other);
        in_turn(&client, other)?;
    }
    Ok(())
}

/// Ten an hour are taken; then both ask once a second.
fn in_turn<A: Algorithm>(hourly: &Client<'_, A>, other: Client<'_, A>) -> Checked {
    let kit = hourly.kit;
    hourly
        .take("ten of ten per hour", 10)?
        .allowed()?
        .leaves(0)?;
    let mut granted = 0;
    for second in 1..=60 {
        kit.advance(SECOND)?;
        match other.try_ask(Request::ONE) {
            Ok(decision) if decision.outcome() == Outcome::Unsupported => {}
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Unsupported => {}
            Err(error) => {
                return Err(kit.broken("another window", "a decision", Shown(&error)));
            }
        }
        let case = format!("another window asks in between, second {second}");
        granted += hourly.take(case, 1)?.seen.granted;
    }
    kit.equal(
        "tokens of an hour whose ten are taken, in its first minute",
        0,
        granted,
    )
}

/// A charge takes whole tokens, as many as there is room for; if there is room for none, it writes nothing, or charges that
/// come often would keep everybody out.
pub fn charges_take_whole_tokens_or_nothing(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "charges_take_whole_tokens_or_nothing");
    kit.clock()?;
    let limit = TokenBucket::per_second(1).with_burst(5);
    let client = kit.bucket(limit.with_max_wait(10 * SECOND));
    let charged = client
        .ask("20 charged, room for 15", Request::charge(20))?
        .allowed()?;
    charged
        .grants(15)?
        .leaves_uncharged(5)?
        .resets_in(15 * SECOND)?
        .waits(10 * SECOND)?;
    kit.advance(ms(500))?;
    let charged = client
        .ask("3 charged, room for half of one", Request::charge(3))?
        .allowed()?;
    charged
        .grants(0)?
        .leaves_uncharged(3)?
        .resets_in(ms(14_500))?;
    kit.advance(ms(500))?;
    let charged = client
        .ask("3 charged, room for one", Request::charge(3))?
        .allowed()?;
    charged
        .grants(1)?
        .leaves_uncharged(2)?
        .resets_in(15 * SECOND)?;

    // One each half second: five at once, and then one a second.
    let client = kit.bucket(limit);
    let mut charged = 0;
    for half in 0..40 {
        let case = format!("1 charged, at {half} half seconds");
        charged += client.ask(case, Request::charge(1))?.seen.granted;
        kit.advance(ms(500))?;
    }
    kit.equal("charged at 1 per second, burst 5, in 19.5 s", 24, charged)
}
