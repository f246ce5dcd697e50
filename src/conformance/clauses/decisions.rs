//! What one caller is told, in numbers worked out by hand.

use super::prelude::*;

/// Ten a second, five at once: a token every 100 ms.
const TEN: TokenBucket = TokenBucket::per_second(10).with_burst(5);

/// A fresh key passes its burst, is denied with all numbers, and passes exactly when it was promised.
pub fn bursts_end_in_a_promise(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "bursts_end_in_a_promise");
    kit.clock()?;
    let client = kit.bucket(TEN);
    let first = client.take("the first of five", 1)?.allowed()?;
    first
        .leaves(4)?
        .resets_in(ms(100))?
        .waits(Duration::ZERO)?
        .grants(1)?
        .names(0, 5)?;
    for left in (0..4).rev() {
        client
            .take(format!("{left} left"), 1)?
            .allowed()?
            .leaves(left)?;
    }
    let sixth = client.take("the sixth of five", 1)?.denied_for(ms(100))?;
    sixth.leaves(0)?.resets_in(ms(500))?.names(0, 5)?;
    kit.advance(ms(100) - ns(1))?;
    client
        .take("one nanosecond early", 1)?
        .denied_for(ns(1))?
        .leaves(0)?;
    kit.advance(ns(1))?;
    client
        .take("as promised", 1)?
        .allowed()?
        .leaves(0)?
        .resets_in(ms(500))?;
    Ok(())
}

/// A denial is a decision, however often; an error would say that there is none.
pub fn denials_are_answers(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "denials_are_answers");
    let client = kit.bucket(slow(5));
    client
        .take("all five of a fresh key", 5)?
        .allowed()?
        .leaves(0)?;
    for attempt in 1..=20 {
        client
            .take(format!("attempt {attempt} after that"), 1)?
            .denied()?
            .leaves(0)?;
    }
    client
        .take("more than the limit ever holds", 6)?
        .too_large()?
        .leaves(0)?;
    Ok(())
}

/// However many are denied, nobody has to wait longer for it.
pub fn denials_cost_nothing(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "denials_cost_nothing");
    kit.clock()?;
    let client = kit.bucket(TEN);
    client.exhaust(5)?;
    for attempt in 1..=100 {
        client
            .take(format!("denial {attempt}"), 1)?
            .denied_for(ms(100))?;
    }
    kit.advance(ms(100))?;
    client.take("100 ms after 100 denials", 1)?.allowed()?;
    client.take("and one more", 1)?.denied_for(ms(100))?;
    Ok(())
}

/// A peek is always allowed, takes nothing, and tells what there is.
pub fn peeks_take_nothing(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "peeks_take_nothing");
    kit.clock()?;
    let client = kit.bucket(TEN);
    let peek = client.peek("a peek at a fresh key")?.allowed()?;
    peek.leaves(5)?.resets_in(Duration::ZERO)?.grants(0)?;
    client
        .take("one after the peek", 1)?
        .allowed()?
        .leaves(4)?
        .resets_in(ms(100))?;
    for peek in ["a peek after one", "another"] {
        client
            .peek(peek)?
            .allowed()?
            .leaves(4)?
            .resets_in(ms(100))?;
    }
    client.take("the other four", 4)?.allowed()?.leaves(0)?;
    client
        .peek("a peek at an empty bucket")?
        .allowed()?
        .leaves(0)?
        .resets_in(ms(500))?;
    Ok(())
}

/// A request for several tokens takes that many or none.
pub fn costs_are_counted(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "costs_are_counted");
    kit.clock()?;
    let client = kit.bucket(TEN);
    client
        .take("three of five", 3)?
        .allowed()?
        .leaves(2)?
        .grants(3)?;
    client
        .take("three of two", 3)?
        .denied_for(ms(100))?
        .leaves(2)?;
    client.take("two of two", 2)?.allowed()?.leaves(0)?;
    let all = kit.bucket(TEN).take("five of five", 5)?.allowed()?;
    all.leaves(0)?.resets_in(ms(500))?.grants(5)?;
    Ok(())
}

/// A cost beyond the limit never passes, so no wait is named, and nothing overflows.
pub fn large_costs_never_pass(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "large_costs_never_pass");
    let client = kit.bucket(slow(5));
    for cost in [6, u64::from(u32::MAX), 1 << 53, u64::MAX >> 1, u64::MAX] {
        client
            .take(format!("{cost} of a fresh five"), cost)?
            .too_large()?
            .leaves(5)?;
    }
    client.take("four of five", 4)?.allowed()?.leaves(1)?;
    client
        .take("u64::MAX of one", u64::MAX)?
        .too_large()?
        .leaves(1)?;
    client.take("the last one", 1)?.allowed()?.leaves(0)?;
    Ok(())
}

/// Tokens come back as time passes, up to the burst and no further.
pub fn tokens_come_back(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "tokens_come_back");
    kit.clock()?;
    let client = kit.bucket(TEN);
    client.exhaust(5)?;
    kit.advance(ms(250))?;
    client.peek("250 ms later")?.leaves(2)?.resets_in(ms(250))?;
    client
        .take("two of them", 2)?
        .allowed()?
        .leaves(0)?
        .resets_in(ms(450))?;
    client.take("a third", 1)?.denied_for(ms(50))?;
    kit.advance(ms(450))?;
    for (case, idle) in [
        ("after its reset", Duration::ZERO),
        ("10 years later", 10 * YEAR),
    ] {
        kit.advance(idle)?;
        client.peek(case)?.leaves(5)?.resets_in(Duration::ZERO)?;
        client
            .take(case, 5)?
            .allowed()?
            .leaves(0)?
            .resets_in(ms(500))?;
    }
    Ok(())
}

/// A caller who asks for up to so many gets what there is, but not less than it accepts.
pub fn partial_grants_give_what_there_is(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "partial_grants_give_what_there_is");
    kit.clock()?;
    let client = kit.bucket(TEN);
    let ask = |case, request| client.ask(case, request);
    ask("up to 3 of 5", Request::up_to(3))?
        .allowed()?
        .grants(3)?
        .leaves(2)?;
    ask("up to 10 of 2", Request::up_to(10))?
        .allowed()?
        .grants(2)?
        .leaves(0)?;
    ask("up to 10 of 0", Request::up_to(10))?.denied_for(ms(100))?;
    let perhaps = Request::up_to(10).at_least(0);
    ask("up to 10 of 0, perhaps nothing", perhaps)?
        .allowed()?
        .grants(0)?
        .resets_in(ms(500))?;
    kit.advance(ms(250))?;
    let three = || Request::up_to(4).at_least(3);
    ask("3 or 4 of 2", three())?.denied_for(ms(50))?.leaves(2)?;
    kit.advance(ms(50))?;
    ask("3 or 4 of 3", three())?
        .allowed()?
        .grants(3)?
        .leaves(0)?;
    Ok(())
}
