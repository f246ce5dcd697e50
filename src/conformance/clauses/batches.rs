//! Several requests in one call.

use alloc::string::String;
use alloc::vec::Vec;

use super::super::draw::Draw;
use super::agreement::buckets;
use super::prelude::*;
use crate::store::Item;

/// Each item of a batch is answered and counted once, in order for each key, also where a key occurs many times.
pub fn batches_count_every_item(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "batches_count_every_item");
    let client = kit.bucket(slow(150));
    let mut left = [150_u64; 2];
    for (round, allowed) in [("cold", 200), ("warm", 100)] {
        let mut items: Vec<_> = (0..200)
            .map(|place| Item::new(["one", "other"][place % 2], &client.limit, Request::ONE))
            .collect();
        kit.run(client.store.apply_batch_async(&mut items));
        let mut passed = 0;
        for (place, item) in items.into_iter().enumerate() {
            let case = format!("item {place} of 200 on two keys, {round}");
            let seen = answer(kit, &case, item)?;
            let left = &mut left[place % 2];
            *left = left.saturating_sub(u64::from(seen.outcome == crate::Outcome::Allowed));
            kit.equal(format!("what {case} leaves"), *left, seen.remaining)?;
            passed += seen.granted;
        }
        kit.equal(
            format!("allowed of 200 on two keys of 150 each, {round}"),
            allowed,
            passed,
        )?;
    }
    let mut none: [Item<'_, str, TokenBucket>; 0] = [];
    kit.run(client.store.apply_batch_async(&mut none));
    client
        .with_key("one")
        .peek("after an empty batch")?
        .leaves(0)?;
    Ok(())
}

/// Items with keys, limits and costs of their own are answered as if they had been asked one by one.
pub fn batches_agree_with_the_machine(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "batches_agree_with_the_machine");
    kit.clock()?;
    let client = kit.bucket(slow(5));
    let mut draw = Draw::new(41);
    let keys = ["", "a", "b", "a:b", "é"];
    // A limit for each key; a state's limit may change, but that is another clause's matter.
    let limits: Vec<_> = keys
        .iter()
        .flat_map(|_| buckets(&mut draw, false))
        .step_by(3)
        .collect();
    let mut machines = keys.map(|_| kit.machine(ns(1)));
    for round in 0..(kit.requests() / 20).min(200) {
        let mut asked = Vec::new();
        let mut items = Vec::new();
        for _ in 0..draw.below(40) {
            let which = draw.of(&[0, 1, 1, 1, 2, 3, 4]);
            let cost = draw.of(&[0, 1, 1, 1, 2, 3, 7, 1_000, u64::MAX]);
            asked.push((which, cost));
            items.push(Item::new(keys[which], &limits[which], Request::take(cost)));
        }
        kit.run(client.store.apply_batch_async(&mut items));
        for (place, (item, (which, cost))) in items.into_iter().zip(asked).enumerate() {
            let (machine, limit) = (&mut machines[which], &limits[which]);
            let said = machine.step(limit, kit.now()?, &Request::take(cost));
            let case = format!(
                "batch {round}, item {place}: {cost} of {limit} for the key {:?}",
                keys[which]
            );
            let seen = answer(kit, &case, item)?;
            kit.equal(case, said.seen, seen)?;
        }
        let most_ns = 1 << draw.below(31);
        kit.advance(ns(draw.below(most_ns)))?;
    }
    Ok(())
}

/// An item that has been answered is done: a second call neither counts it again nor changes its answer.
pub fn answered_items_are_left_alone(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "answered_items_are_left_alone");
    let client = kit.bucket(slow(5));
    let key = client.key.as_str();
    let mut items = [2, 1].map(|cost| Item::new(key, &client.limit, Request::take(cost)));
    for _ in 0..2 {
        kit.run(client.store.apply_batch_async(&mut items));
    }
    client
        .peek("a batch of two and one, given to the store twice")?
        .leaves(2)?;
    for (item, left) in items.into_iter().zip([3, 2]) {
        let case = "an item of a batch that was given to the store twice";
        let seen = answer(kit, case, item)?;
        kit.equal(case, left, seen.remaining)?;
    }
    Ok(())
}

/// An item that cannot be decided has an error of its own, and the others are decided.
pub fn bad_items_spoil_no_others(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "bad_items_spoil_no_others");
    let backend = kit.backend()?;
    let client = kit.bucket(slow(5));
    if !backend.write(&client.space, "bad", b"hello") {
        return Err(kit.lacks(Need::ForeignValues));
    }
    let keys = ["good", "bad", "good", "better", "bad", "good"];
    let mut items = keys.map(|key| Item::new(key, &client.limit, Request::ONE));
    kit.run(client.store.apply_batch_async(&mut items));
    let left = [Some(4), None, Some(3), Some(4), None, Some(2)];
    for ((place, item), left) in items.into_iter().enumerate().zip(left) {
        let case =
            format!("item {place} of a batch in which items 1 and 4 meet a value that is no state");
        match (item.into_result(), left) {
            (Ok(decision), Some(left)) => kit.equal(case, left, decision.remaining())?,
            (Err(error), None) if error.kind() == ErrorKind::Corrupt => {}
            (result, left) => {
                let expected = left.map_or(String::from("an error of kind Corrupt"), |left| {
                    format!("{left} left")
                });
                return Err(kit.broken(case, expected, format!("{result:?}")));
            }
        }
    }
    Ok(())
}

fn answer<K: ?Sized, A: Algorithm>(
    kit: Kit<'_>,
    case: &str,
    item: Item<'_, K, A>,
) -> Result<Seen, Finding> {
    match item.into_result() {
        Ok(decision) => Ok(Seen::from(&decision)),
        Err(error) => Err(kit.broken(case, "a decision", Shown(&error))),
    }
}
