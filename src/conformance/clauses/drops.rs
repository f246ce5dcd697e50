//! Futures that are dropped before they are done.

use alloc::string::String;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use super::super::draw::Draw;
use super::super::run::{join_all, up_to_polls};
use super::prelude::*;
use crate::store::Item;

/// Requests in flight at a time.
const AT_ONCE: u32 = 16;

/// A request whose future is dropped is counted once or not at all, and the answers to others are not mixed up.
pub fn dropped_requests_count_at_most_once(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "dropped_requests_count_at_most_once");
    let rounds = (kit.requests() / AT_ONCE / 2).min(100);
    let capacity = 1_000_000;
    let client = kit.bucket(slow(capacity));
    let watched = client.with_key("watched").with_limit(slow(777));
    let mut draw = Draw::new(40);
    let completed = AtomicU64::new(0);
    for round in 1..=u64::from(rounds) {
        let polls: Vec<_> = (0..AT_ONCE)
            .map(|_| draw.of(&[0, 1, 1, 2, 3, 5, 1_000]))
            .collect();
        let (client, completed) = (&client, &completed);
        kit.run(join_all(polls.into_iter().map(|polls| async move {
            let asked = client
                .store
                .apply_async(&client.key, &client.limit, Request::ONE);
            if let Some(Ok(decision)) = up_to_polls(polls, asked).await {
                completed.fetch_add(decision.granted(), Ordering::Relaxed);
            }
        })));
        let case = format!("another key's request number {round}, after others were dropped");
        watched
            .take(case, 1)?
            .allowed()?
            .leaves(777 - round)?
            .names(0, 777)?;
    }
    let (completed, started) = (completed.into_inner(), u64::from(rounds * AT_ONCE));
    let peek = client.peek("after requests were dropped")?;
    let counted = capacity - peek.seen.remaining;
    kit.is(
        completed <= counted && counted <= started,
        format!("{started} requests were started, of which {completed} were answered before they were dropped"),
        format!("{completed} to {started} are counted"),
        counted,
    )
}

/// The items of a dropped batch know whether they were asked.
pub fn dropped_batches_know_what_was_asked(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "dropped_batches_know_what_was_asked");
    let capacity = 1_000_000;
    let client = kit.bucket(slow(capacity));
    let keys: [String; 3] = core::array::from_fn(|number| format!("key {number}"));
    let (mut least, mut most) = ([0_u64; 3], [0_u64; 3]);
    for polls in [0, 1, 2, 3, 5, 8, 1_000] {
        let mut items: Vec<_> = (0..12)
            .map(|place| Item::new(keys[place % 3].as_str(), &client.limit, Request::ONE))
            .collect();
        kit.run(up_to_polls(
            polls,
            client.store.apply_batch_async(&mut items),
        ));
        for (place, item) in items.into_iter().enumerate() {
            let is_answered = item.result().is_some();
            let (sure, possible) = match item.into_result() {
                Ok(decision) => (decision.granted(), decision.granted()),
                Err(error) if !is_answered && error.kind() == ErrorKind::Unknown => (0, 1),
                Err(_) => (0, 0),
            };
            least[place % 3] += sure;
            most[place % 3] += possible;
        }
    }
    for ((key, least), most) in keys.iter().zip(least).zip(most) {
        let peek = client
            .with_key(key.as_str())
            .peek("after batches were dropped")?;
        let counted = capacity - peek.seen.remaining;
        kit.is(
            least <= counted && counted <= most,
            format!("batches were dropped; of the items of {key:?}, {least} were allowed and {most} asked"),
            format!("{least} to {most} are counted"),
            counted,
        )?;
    }
    Ok(())
}
