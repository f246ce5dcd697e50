//! How long states are kept.

use std::time::Instant;

use super::super::backend::Stored;
use super::super::history::{Left, Watch};
use super::agreement::watch_all;
use super::prelude::*;

/// Up to the last nanosecond before a key is as good as new, the store remembers what it owes.
pub fn states_last_until_they_are_fresh(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "states_last_until_they_are_fresh");
    kit.clock()?;
    // Lifetimes that end between whole milliseconds, seconds, hours and days.
    for token in [
        ns(700),
        ns(166_667),
        ns(100_900_001),
        ms(1_900),
        ms(86_400_001),
        29 * DAY,
    ] {
        let limit = TokenBucket::per(1, token).with_burst(2);
        for cost in [1, 2] {
            let client = kit.bucket(limit);
            let lifetime = token * cost;
            client
                .take("of a fresh key", u64::from(cost))?
                .allowed()?
                .resets_in(lifetime)?;
            for part in [2, 3, 2] {
                kit.advance(lifetime / part / 2)?;
                let _ = client.peek("while it is owed")?;
            }
            let passed = lifetime / 2 / 2 + lifetime / 3 / 2 + lifetime / 2 / 2;
            kit.advance(lifetime - passed - ns(1))?;
            let case = format!("one nanosecond before the {lifetime:?} are over");
            client.peek(&case)?.leaves(1)?.resets_in(ns(1))?;
            client.take(&case, 2)?.denied_for(ns(1))?;
            kit.advance(ns(1))?;
            client.peek("then")?.leaves(2)?.resets_in(Duration::ZERO)?;
        }
    }
    Ok(())
}

/// Each write sets a time to live that covers what the state owes, rounded up.
pub fn times_to_live_cover_what_is_owed(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "times_to_live_cover_what_is_owed");
    lifetimes(kit, &|case, stored, keep, written| {
        let left = keep.saturating_sub(written.elapsed);
        let is_kept = match &stored {
            Some(stored) => stored.time_to_live.is_none_or(|time| time >= left),
            None => left.is_zero(),
        };
        kit.is(
            is_kept,
            case,
            format!("a time to live of at least {left:?}"),
            stored,
        )
    })
}

/// Each write sets a time to live at all, and one that ends at most a day after the state is as good as absent, or when the
/// time before that write would have ended, which a store need not shorten.
pub fn states_do_not_live_for_ever(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "states_do_not_live_for_ever");
    lifetimes(kit, &|case, stored, keep, written| {
        let longest = keep.max(written.left).saturating_add(DAY);
        let ends = match &stored {
            Some(stored) => stored.time_to_live.is_some_and(|time| time <= longest),
            None => true,
        };
        kit.is(
            ends,
            case,
            format!("a time to live of at most {longest:?}"),
            stored,
        )
    })
}

/// When a state was written.
#[derive(Clone, Copy, Default)]
struct Written {
    /// So long ago at most.
    elapsed: Duration,
    /// What was left of the time to live before that.
    left: Duration,
}

/// Judges what is stored after a write that must be kept for the given time.
type Lifetime<'l> = &'l dyn Fn(&str, Option<Stored>, Duration, Written) -> Checked;

/// Judges the lifetimes of some writes that need no clock, and of random ones if there is one.
fn lifetimes(kit: Kit<'_>, judge: Lifetime<'_>) -> Checked {
    kit.backend()?;
    for (token, cost) in [
        (34 * DAY, 1),
        (30 * SECOND, 1),
        (ms(10_900), 2),
        (ns(2_000_000_001), 3),
    ] {
        let client = kit.bucket(TokenBucket::per(1, token).with_burst(3));
        let timer = Timer::start();
        client.take("of a fresh key", u64::from(cost))?.allowed()?;
        let stored = client.read()?;
        judge(
            &format!("{cost} taken of a token per {token:?}"),
            stored,
            token * cost,
            Written {
                elapsed: timer.elapsed(),
                left: Duration::ZERO,
            },
        )?;
    }
    watch_all(
        kit,
        &mut Watching {
            judge,
            timer: Timer::start(),
            left: Duration::ZERO,
        },
    )
}

struct Watching<'l> {
    judge: Lifetime<'l>,
    timer: Timer,
    /// Of the time to live, before the request.
    left: Duration,
}

impl<A: Algorithm> Watch<A> for Watching<'_> {
    fn before(&mut self, client: &Client<'_, A>) -> Checked {
        let stored = client.read()?;
        let left = stored.and_then(|stored| stored.time_to_live);
        self.left = left.unwrap_or_default();
        self.timer = Timer::start();
        Ok(())
    }

    fn after(&mut self, client: &Client<'_, A>, left: &Left<'_>) -> Checked {
        let Some(keep) = left.keep else {
            return Ok(());
        };
        let stored = client.read()?;
        let written = Written {
            elapsed: self.timer.elapsed(),
            left: self.left,
        };
        (self.judge)(left.case, stored, keep, written)
    }
}

/// Real time, by which a server counts down.
struct Timer(Instant);

impl Timer {
    #[allow(clippy::disallowed_methods)] // measures a backend's time, not a limit's
    fn start() -> Self {
        Self(Instant::now())
    }

    #[allow(clippy::disallowed_methods)]
    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

/// A backend that has lost everything forgives everybody once, and goes on.
pub fn lost_states_are_fresh(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "lost_states_are_fresh");
    let backend = kit.backend()?;
    let client = kit.bucket(slow(5));
    client.exhaust(5)?;
    if !backend.lose(&client.space) {
        return Err(kit.lacks(Need::Loss));
    }
    client.peek("after all data was lost")?.leaves(5)?;
    client.exhaust(5)?;
    Ok(())
}
