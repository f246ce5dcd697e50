//! Giving back, and standing in line.

use super::prelude::*;

const TEN: TokenBucket = TokenBucket::per_second(10).with_burst(5);

/// What was taken and not used comes back.
pub fn refunds_give_back(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "refunds_give_back");
    kit.clock()?;
    let client = kit.bucket(TEN);
    let receipt = client.take("three of five", 3)?.allowed()?.receipt;
    let refund = client
        .ask("two of these back", Request::refund(2, receipt))?
        .allowed()?;
    refund.leaves(4)?.resets_in(ms(100))?.grants(0)?;
    client.take("what is there then", 4)?.allowed()?.leaves(0)?;

    let client = kit.bucket(TEN);
    let receipt = client.take("all five", 5)?.allowed()?.receipt;
    kit.advance(ms(250))?;
    client
        .take("two that came back with time", 2)?
        .allowed()?
        .leaves(0)?;
    let refund = client
        .ask("the first five back", Request::refund(5, receipt))?
        .allowed()?;
    // 250 ms of the first charge are still owed; the rest has come back with time.
    refund.leaves(3)?.resets_in(ms(200))?;
    Ok(())
}

/// Nothing comes back that was not charged, or that has come back with time.
pub fn receipts_bound_refunds(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "receipts_bound_refunds");
    kit.clock()?;
    let client = kit.bucket(TEN);
    let first = client.take("all five", 5)?.allowed()?.receipt;
    let nothing = client.take("one more", 1)?.denied_for(ms(100))?.receipt;
    client
        .ask("the receipt of a denial", Request::refund(1, nothing))?
        .allowed()?
        .leaves(0)?;
    kit.advance(ms(500))?;
    client
        .take("five more, after the reset", 5)?
        .allowed()?
        .leaves(0)?;
    client
        .ask("the first five back, too late", Request::refund(5, first))?
        .allowed()?
        .leaves(0)?;
    client.take("one more", 1)?.denied_for(ms(100))?;

    let client = kit.bucket(TEN);
    let one = client.take("one of five", 1)?.allowed()?.receipt;
    client.take("three of four", 3)?.allowed()?.leaves(1)?;
    client
        .ask("four back for a receipt of one", Request::refund(4, one))?
        .allowed()?
        .leaves(2)?;
    Ok(())
}

/// Whoever would wait gets a place in line, behind those who came before, and not further ahead than the limit allows.
pub fn reservations_stand_in_line(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "reservations_stand_in_line");
    kit.clock()?;
    let client = kit.bucket(TEN.with_max_wait(ms(300)));
    client
        .take("all five", 5)?
        .allowed()?
        .waits(Duration::ZERO)?;
    let queue = |patience| Request::take(1).or_wait(patience);
    for place in [100, 200] {
        let turn = client.ask(format!("a place at {place} ms"), queue(SECOND))?;
        turn.allowed()?.waits(ms(place))?.grants(1)?.leaves(0)?;
    }
    client
        .ask("one who would wait 250 ms", queue(ms(250)))?
        .denied_for(ms(50))?;
    client
        .ask("a place at 300 ms", queue(SECOND))?
        .allowed()?
        .waits(ms(300))?
        .resets_in(ms(800))?;
    client
        .ask("beyond the limit's own bound", queue(SECOND))?
        .denied_for(ms(100))?;
    client
        .take("one who would not wait", 1)?
        .denied_for(ms(400))?;
    kit.advance(ms(400))?;
    client
        .take("after all who stood in line", 1)?
        .allowed()?
        .waits(Duration::ZERO)?;

    let client = kit.bucket(TEN);
    client
        .take("all five of a limit without a line", 5)?
        .allowed()?;
    client
        .ask("one who would wait", queue(SECOND))?
        .denied_for(ms(100))?;
    Ok(())
}

/// A place in line is free again if its owner leaves, unless somebody stands behind. While anybody stands in line, nothing else
/// comes back.
pub fn reservations_can_be_cancelled(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "reservations_can_be_cancelled");
    kit.clock()?;
    let client = kit.bucket(
        TokenBucket::per_second(10)
            .with_burst(1)
            .with_max_wait(SECOND),
    );
    let queue = |place| {
        let turn = client.ask(
            format!("a place at {place} ms"),
            Request::take(1).or_wait(SECOND),
        )?;
        Ok(turn.allowed()?.waits(ms(place))?.receipt)
    };
    let cancel = |case, receipt| client.ask(case, Request::refund(1, receipt));
    let (served, first, second) = (queue(0)?, queue(100)?, queue(200)?);
    cancel("one who has somebody behind", first)?
        .allowed()?
        .resets_in(ms(300))?;
    cancel("the last in line", second)?
        .allowed()?
        .resets_in(ms(200))?;
    let again = queue(200)?;
    cancel("the last in line, again", again)?
        .allowed()?
        .resets_in(ms(200))?;
    // Somebody stands in line: the token would be used a second time beside them.
    cancel("one who never had to wait", served)?
        .allowed()?
        .resets_in(ms(200))?;
    Ok(())
}

/// Work already done is charged, into debt if need be, but no deeper than the limit's longest wait.
pub fn charges_go_into_debt(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "charges_go_into_debt");
    kit.clock()?;
    let limit = TokenBucket::per_second(1)
        .with_burst(10)
        .with_max_wait(5 * SECOND);
    let client = kit.bucket(limit);
    client.take("all ten", 10)?.allowed()?;
    let charge = |cost| Request::up_to(cost).at_least(0).or_wait(Duration::MAX);
    let debt = client
        .ask("three that were used already", charge(3))?
        .allowed()?;
    debt.grants(3)?.leaves(0)?.resets_in(13 * SECOND)?;
    let rest = client.ask("ten more", charge(10))?.allowed()?;
    rest.grants(2)?.resets_in(15 * SECOND)?;
    client
        .take("one of a debt of five", 1)?
        .denied_for(6 * SECOND)?;
    Ok(())
}
