//! Random histories, and what the pure machine says to them.

use super::super::draw::Draw;
use super::super::history::{Ask, History, Watch};
use super::prelude::*;

/// Random takes under random limits, with a clock that goes both ways: every answer is the machine's, to the nanosecond.
pub fn takes_agree_with_the_machine(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "takes_agree_with_the_machine");
    let open = |space: &str| Some(subject.buckets(space));
    History::new(kit, Need::Clock, &open)
        .of_forgetful_states()
        .of(Ask::Takes)
        .run(&mut |draw| buckets(draw, false), &mut ())
}

/// Random requests of every kind: partial grants, reservations, charges, refunds.
pub fn requests_agree_with_the_machine(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "requests_agree_with_the_machine");
    let open = |space: &str| Some(subject.buckets(space));
    History::new(kit, Need::Clock, &open)
        .of_forgetful_states()
        .run(&mut |draw| buckets(draw, true), &mut ())
}

/// Sliding windows answer like the machine.
pub fn windows_agree_with_the_machine(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "windows_agree_with_the_machine");
    let (tick, open) = (subject.window_tick(), |space: &str| subject.windows(space));
    let history = History::new(kit, Need::Windows, &open).of_forgetful_states();
    history
        .with_tick(tick)
        .run(&mut |draw| windows(draw, tick), &mut ())
}

/// Fixed windows answer like the machine.
pub fn fixed_windows_agree_with_the_machine(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "fixed_windows_agree_with_the_machine");
    let (tick, open) = (subject.window_tick(), |space: &str| {
        subject.fixed_windows(space)
    });
    let history = History::new(kit, Need::FixedWindows, &open).of_forgetful_states();
    history
        .with_tick(tick)
        .run(&mut |draw| fixed_windows(draw, tick), &mut ())
}

/// Several limits at once answer like the machine.
pub fn several_limits_agree_with_the_machine(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "several_limits_agree_with_the_machine");
    let open = |space: &str| subject.several(space);
    let history = History::new(kit, Need::Several, &open).of_forgetful_states();
    history.run(&mut several, &mut ())
}

/// Exact logs answer like the machine.
pub fn logs_agree_with_the_machine(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "logs_agree_with_the_machine");
    let (tick, open) = (subject.log_tick(), |space: &str| subject.logs(space));
    History::new(kit, Need::Logs, &open).with_tick(tick).run(
        &mut |draw| {
            let length = length(draw, tick);
            core::array::from_fn(|_| SlidingLog::per(count(draw).min(100), length))
        },
        &mut (),
    )
}

/// For stores of an algorithm of your own: that it is stepped as it says itself. `open` opens a store as
/// [`Subject::buckets`] does; `limits` are limits that share states.
pub fn your_algorithm_agrees_with_the_machine<A: Algorithm + Clone>(
    subject: &dyn Subject,
    open: &dyn Fn(&str) -> DynStore<str, A>,
    limits: &[A; 3],
) -> Checked {
    let kit = Kit::begin(subject, "your_algorithm_agrees_with_the_machine");
    let open = |space: &str| Some(open(space));
    History::new(kit, Need::Clock, &open).run(&mut |_| limits.clone(), &mut ())
}

/// Runs histories of each algorithm that the subject has, watched but not judged. Those that it lacks are missed by their own
/// clauses.
pub(super) fn watch_all<W>(kit: Kit<'_>, watch: &mut W) -> Checked
where
    W: Watch<TokenBucket>
        + Watch<SlidingWindow>
        + Watch<FixedWindow>
        + Watch<All<[TokenBucket; 3]>>,
{
    let subject = kit.subject;
    if subject.clock().is_none() {
        return Ok(());
    }
    let tick = subject.window_tick();
    let space = kit.space();

    let open = |space: &str| Some(subject.buckets(space));
    let history = History::new(kit, Need::Clock, &open).of_forgetful_states();
    history
        .watched()
        .run(&mut |draw| buckets(draw, true), watch)?;

    if subject.windows(&space).is_some() {
        let open = |space: &str| subject.windows(space);
        let history = History::new(kit, Need::Windows, &open).of_forgetful_states();
        history
            .with_tick(tick)
            .watched()
            .run(&mut |draw| windows(draw, tick), watch)?;
    }
    if subject.fixed_windows(&space).is_some() {
        let open = |space: &str| subject.fixed_windows(space);
        let history = History::new(kit, Need::FixedWindows, &open).of_forgetful_states();
        history
            .with_tick(tick)
            .watched()
            .run(&mut |draw| fixed_windows(draw, tick), watch)?;
    }
    if subject.several(&space).is_some() {
        let open = |space: &str| subject.several(space);
        let history = History::new(kit, Need::Several, &open).of_forgetful_states();
        history.watched().run(&mut several, watch)?;
    }
    Ok(())
}

/// Three limits, from a million a millisecond to one a month, that fill within 40 days.
pub(super) fn buckets(draw: &mut Draw, waiting: bool) -> [TokenBucket; 3] {
    core::array::from_fn(|_| {
        let tokens = draw.of(&[1, 2, 3, 7, 10, 60, 1_000, 1_000_003]);
        let period = draw.of(&[
            ms(1),
            SECOND,
            SECOND,
            SECOND,
            60 * SECOND,
            DAY / 24,
            DAY,
            30 * DAY,
        ]);
        let limit = TokenBucket::per(tokens, period);
        let burst = draw.of(&[1, 2, 5, 10, 100, tokens]);
        let most = (40 * DAY).as_nanos() * u128::from(tokens) / period.as_nanos();
        let limit = limit.with_burst(burst.min(u64::try_from(most).unwrap_or(u64::MAX)).max(1));
        if waiting && draw.once_in(2) {
            limit.with_max_wait(draw.of(&[ns(1), ms(150), 2 * SECOND, 10 * DAY]))
        } else {
            limit
        }
    })
}

/// Of one length: only the count of a window changes.
fn windows(draw: &mut Draw, tick: Duration) -> [SlidingWindow; 3] {
    let length = length(draw, tick);
    core::array::from_fn(|_| SlidingWindow::per(count(draw), length))
}

/// Of one length, offset and anchoring: only the count of a window changes.
fn fixed_windows(draw: &mut Draw, tick: Duration) -> [FixedWindow; 3] {
    let anchored = draw.once_in(2);
    let (window, offset) = (length(draw, tick), length(draw, tick));
    core::array::from_fn(|_| {
        let limit = FixedWindow::per(count(draw), window);
        if anchored {
            limit.anchored()
        } else {
            limit.with_offset(offset)
        }
    })
}

fn several(draw: &mut Draw) -> [All<[TokenBucket; 3]>; 3] {
    core::array::from_fn(|_| All(buckets(draw, true)))
}

fn count(draw: &mut Draw) -> u32 {
    draw.of(&[1, 2, 3, 10, 100, 1_000])
}

/// From 10 ms to 4 days, in whole ticks.
fn length(draw: &mut Draw, tick: Duration) -> Duration {
    tick.max(ms(1)) * draw.of(&[10, 999, 1_000, 60_000, 345_600_000])
}
