//! What does not change a state leaves no trace in the backend.

use super::super::backend::Stored;
use super::super::history::{Left, Watch};
use super::agreement::watch_all;
use super::prelude::*;

/// A limit that lets callers wait, so that each kind of request can be refused.
fn limit() -> TokenBucket {
    slow(5).with_max_wait(DAY)
}

/// Requests that take nothing from an empty bucket; those that a store does not support are left out by the callers.
fn refused() -> [(&'static str, Request); 6] {
    [
        ("a peek", Request::PEEK),
        ("a denial", Request::ONE),
        ("a request that is too large", Request::take(6)),
        (
            "a reservation that is refused",
            Request::take(2).or_wait(DAY),
        ),
        ("a partial grant that is refused", Request::up_to(3)),
        ("a partial grant of nothing", Request::up_to(3).at_least(0)),
    ]
}

/// Denials, peeks and requests that are too large leave a stored state alone: its value, its expiry, its version.
pub fn refusals_write_nothing(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "refusals_write_nothing");
    kit.backend()?;
    let client = kit.bucket(limit());
    client.exhaust(5)?;
    let mut lacking = None;
    for (case, request) in refused() {
        let before = client.stored("five of five taken")?;
        if before.version.is_none() {
            lacking = Some(Need::Versions);
        }
        match client.ask(case, request) {
            Ok(_) => {}
            Err(Finding::Lacks { need, .. }) => lacking = Some(need),
            Err(finding) => return Err(finding),
        }
        is_untouched(kit, case, Some(&before), client.read()?)?;
    }
    watch_all(kit, &mut Untouched(None))?;
    lacking.map_or(Ok(()), |need| Err(kit.lacks(need)))
}

/// That a step of the machine which does not write leaves the backend as it is.
struct Untouched(Option<Stored>);

impl<A: Algorithm> Watch<A> for Untouched {
    fn before(&mut self, client: &Client<'_, A>) -> Checked {
        self.0 = client.read()?;
        Ok(())
    }

    fn after(&mut self, client: &Client<'_, A>, left: &Left<'_>) -> Checked {
        if left.keep.is_some() {
            return Ok(());
        }
        let after = client.read()?;
        is_untouched(client.kit, left.case, self.0.as_ref(), after)
    }
}

fn is_untouched(
    kit: Kit<'_>,
    case: impl fmt::Display,
    before: Option<&Stored>,
    after: Option<Stored>,
) -> Checked {
    let Some(before) = before else {
        return kit.is(after.is_none(), case, "no value is stored", after);
    };
    let is_same = after.as_ref().is_some_and(|after| {
        after.bytes == before.bytes
            && after.version == before.version
            && !lives_longer(before, after)
    });
    // Whatever expired meanwhile was not kept by the request.
    let has_expired = after.is_none() && before.time_to_live.is_some_and(|left| left < SECOND);
    kit.is(
        is_same || has_expired,
        case,
        format!("the stored value is as before: {before:?}"),
        after,
    )
}

fn lives_longer(before: &Stored, after: &Stored) -> bool {
    match (before.time_to_live, after.time_to_live) {
        (Some(before), Some(after)) => after > before,
        (before, after) => before.is_some() != after.is_some(),
    }
}

/// Nor do they renew its expiry: a state that is refused for ever would be kept for ever.
pub fn refusals_prolong_nothing(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "refusals_prolong_nothing");
    kit.backend()?;
    let client = kit.bucket(limit());
    client.exhaust(5)?;
    kit.pass(ms(50))?;
    for (case, request) in refused() {
        let before = client.stored("50 ms after five of five were taken")?;
        match client.ask(case, request) {
            Ok(_) | Err(Finding::Lacks { .. }) => {}
            Err(finding) => return Err(finding),
        }
        let after = client.read()?;
        let is_older = after
            .as_ref()
            .is_some_and(|after| !lives_longer(&before, after));
        let case = format!("{case}, 50 ms after the last write");
        kit.is(
            is_older,
            case,
            format!("no longer to live than {before:?}"),
            after,
        )?;
    }
    Ok(())
}

/// A key that was only looked at, or asked for too much, does not come into being.
pub fn refusals_create_nothing(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "refusals_create_nothing");
    kit.backend()?;
    let client = kit.bucket(limit());
    for (case, request) in [
        ("a peek at a missing key", Request::PEEK),
        (
            "a request that is too large for a missing key",
            Request::take(6),
        ),
        ("the largest request of all", Request::take(u64::MAX)),
    ] {
        client.ask(case, request)?;
        let after = client.read()?;
        kit.is(after.is_none(), case, "no value is stored", after)?;
    }
    Ok(())
}
