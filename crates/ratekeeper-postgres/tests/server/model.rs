//! The whole store against a map of values and the step in Rust: limits that change, versions, a clock that is moved to and fro,
//! charges, refunds, changes of a key's limit, singly and in batches.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use ratekeeper::store::{AsyncStore, Item, StateBytes, StoreError, step_stored};
use ratekeeper::{
    Carry, Change, Decision, ManualClock, Outcome, Receipt, Request, Timestamp, TokenBucket,
};
use ratekeeper_postgres::tokio_postgres::Client;

use crate::common::{Draw, client, database, store};

const NOW_NS: u64 = 1_767_225_600_000_000_000;
const STEPS: u32 = 6_000;

type Values = HashMap<&'static str, StateBytes>;

/// What a caller sees.
fn seen(
    result: Result<Decision, StoreError>,
) -> Result<(Outcome, [u64; 3], [Duration; 2], Receipt), String> {
    let decision = result.map_err(|error| format!("{:?}", error.kind()))?;
    let counts = [decision.limit(), decision.remaining(), decision.uncharged()];
    let times = [decision.reset_after(), decision.wait()];
    Ok((decision.outcome(), counts, times, decision.into_receipt()))
}

fn expected(
    values: &mut Values,
    key: &'static str,
    now: Timestamp,
    limit: &TokenBucket,
    request: &Request,
) -> Result<Decision, StoreError> {
    let step = step_stored(limit, now, values.get(key), request)?;
    if let Some(write) = step.write {
        values.insert(key, write.value);
    }
    Ok(step.decision)
}

async fn stored(client: &Client, key: &str) -> Option<Vec<u8>> {
    let key = format!("rl:test:{key}").into_bytes();
    let sql = "SELECT state FROM ratekeeper.states_v1 WHERE key = $1";
    let row = client.query_opt(sql, &[&key]).await.unwrap();
    row.map(|row| row.get(0))
}

/// Twice the same: a receipt cannot be copied.
fn requests(draw: &mut Draw, receipts: &mut Vec<(u64, u64, u64)>) -> [Request; 2] {
    let cost = draw.below(8);
    let wait = Duration::from_millis(draw.below(3_000));
    let kind = draw.below(8);
    let receipt = receipts.pop().filter(|_| kind < 2);
    [(), ()].map(|()| match (kind, receipt) {
        (0 | 1, Some((charged, mark, run_at_ns))) => {
            let receipt = Receipt::new(charged, mark).with_run_at_ns(run_at_ns);
            Request::refund(cost, receipt)
        }
        (2, _) => Request::charge(cost),
        (3, _) => Request::up_to(cost),
        (4, _) => Request::take(cost).or_wait(wait),
        _ => Request::take(cost.min(2)),
    })
}

#[tokio::test]
async fn every_answer_and_every_value_is_the_models() {
    let url = database("model").await;
    let (client, clock) = (client(&url).await, Arc::new(ManualClock::new()));
    let store = store(&url, 1).with_clock(clock.clone(), Duration::from_secs(1_000_000));
    let mut draw = Draw(8);
    let (mut values, mut receipts) = (Values::new(), Vec::new());
    let mut now_ns = NOW_NS;
    let limits = [
        TokenBucket::per_second(10).with_burst(20),
        TokenBucket::per_second(3).with_burst(5),
        TokenBucket::per(7, Duration::from_secs(3)).with_max_wait(Duration::from_secs(2)),
    ];
    let versions = [1, 2, 3].map(|version| {
        let limit = limits[usize::from(version) % 3];
        limit.with_version(version)
    });
    let another = limits[1].with_version(3);
    // None that reaches further than one with a number: what a number finds beyond its own reach is cut, and here the value is
    // put in place and found again where the step in Rust does both at once.
    let plain = [
        limits[1],
        limits[1].with_burst(2),
        TokenBucket::per_second(20),
    ];
    let (mut errors, mut allowed, mut denied, mut adopted) = (0, 0, 0, 0);
    for step in 0..STEPS {
        now_ns = match draw.below(12) {
            0 => now_ns.saturating_sub(draw.below(20_000_000_000)),
            1 => now_ns + draw.below(10_000_000_000),
            2 | 3 => now_ns,
            _ => now_ns + draw.below(200_000_000),
        };
        let now = Timestamp::from_nanos(now_ns);
        clock.set(now);
        if draw.once_in(40) {
            let key = draw.of(&["a", "b", "c"]);
            store.forget_async(key, &limits[0]).await.unwrap();
            values.remove(key);
        }
        let key = draw.of(&["a", "b", "c"]);
        let newest = usize::try_from(step / (STEPS / 3)).unwrap().min(2);
        let mut limit = || match draw.below(9) {
            0 => draw.of(&plain),
            1 if step % 50 == 0 => another,
            _ => versions[usize::try_from(draw.below(newest as u64 + 1)).unwrap()],
        };
        if step % 20 == 0 {
            let (old, new) = (limit(), limit());
            let carry = draw.of(&[Carry::Tokens, Carry::Debt, Carry::Full, Carry::Empty]);
            let change = Change {
                old: &old,
                new: &new,
                carry,
            };
            let model = step_stored(&change, now, values.get(key), &Request::PEEK).map(|step| {
                if let Some(write) = step.write {
                    values.insert(key, write.value);
                }
                step.decision
            });
            let found = store.change_async(key, &old, &new, carry).await;
            assert_eq!(seen(found), seen(model), "{change:?}");
        } else {
            let count = if step % 5 == 0 { 6 } else { 1 };
            let asked: Vec<_> = (0..count).map(|_| limit()).collect();
            let both: Vec<_> = asked
                .iter()
                .map(|_| requests(&mut draw, &mut receipts))
                .collect();
            let (ours, theirs): (Vec<_>, Vec<_>) = both.into_iter().map(|[a, b]| (a, b)).unzip();
            let mut items: Vec<_> = asked
                .iter()
                .zip(theirs)
                .map(|(limit, request)| Item::new(key, limit, request))
                .collect();
            store.apply_batch_async(&mut items).await;
            for ((item, limit), request) in items.into_iter().zip(&asked).zip(ours) {
                let model = seen(expected(&mut values, key, now, limit, &request));
                let found = seen(item.into_result());
                assert_eq!(found, model, "step {step}: {limit:?} {request:?}");
                match found {
                    Err(_) => errors += 1,
                    Ok((outcome, [burst, ..], _, receipt)) => {
                        allowed += u32::from(outcome == Outcome::Allowed);
                        denied += u32::from(outcome != Outcome::Allowed);
                        adopted += u32::from(burst != limit.burst());
                        if receipt.charged() > 0 {
                            receipts.push((receipt.charged(), receipt.mark(), receipt.run_at_ns()));
                        }
                    }
                }
            }
        }
        let model = values.get(key).map(|value| value.to_vec());
        assert_eq!(stored(&client, key).await, model, "step {step}");
    }
    assert!(
        errors > 10 && allowed > 3_000 && denied > 1_000 && adopted > 1_000,
        "{errors} {allowed} {denied} {adopted}"
    );
}
