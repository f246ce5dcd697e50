//! Stores in this process against a map of machines: while all keys find room, every decision is the same; and with too little
//! room, no key passes more than its limit.

use std::collections::HashMap;
use std::sync::Arc;

use arbitrary::{Result, Unstructured};
use ratekeeper::{
    Algorithm, DashStore, ManualClock, MemoryStore, Overflow, Request, TableStore, Timestamp,
    TokenBucket, Ways,
};

use crate::bucket::Numbers;
use crate::input;

/// Runs both stores.
pub fn stores(data: &[u8]) {
    let mut u = Unstructured::new(data);
    let _ = run(&mut u);
}

fn run(u: &mut Unstructured<'_>) -> Result<()> {
    let clock = Arc::new(ManualClock::new());
    let seed: u64 = u.arbitrary()?;
    let policy = if u.arbitrary()? {
        Overflow::Inherit
    } else {
        Overflow::Deny
    };
    let slots = u.int_in_range(4..=40)?;
    let table = TableStore::<_, TokenBucket>::with_seed(slots, seed.into(), clock.clone());
    let table = table
        .expect("a legal capacity")
        .with_ways(Ways::Four)
        .with_overflow(policy);
    let dash = DashStore::<u64, TokenBucket, _>::with_capacity(slots, clock.clone());
    let dash = dash.expect("a legal capacity").with_overflow(policy);
    if u.arbitrary()? {
        compare(u, &clock, &table)
    } else {
        compare(u, &clock, &dash)
    }
}

struct Model {
    tat_ns: u64,
    /// When tokens ran, under the first limit.
    ran: Vec<(u64, u64)>,
}

fn compare(
    u: &mut Unstructured<'_>,
    clock: &ManualClock,
    store: &impl MemoryStore<u64, TokenBucket>,
) -> Result<()> {
    let limits = [input::bucket(u, false)?, input::bucket(u, false)?];
    let keys = u.int_in_range(1..=60)?;
    let mut models: HashMap<u64, Model> = HashMap::new();
    let mut now_ns = 1_000;
    while !u.is_empty() {
        now_ns = input::reading(u, now_ns, false)?;
        clock.set(Timestamp::from_nanos(now_ns));
        let key = u.int_in_range(0..=keys)?;
        let which = usize::from(u.ratio(1_u8, 4)?);
        let (limit, mut request) = (&limits[which], input::take(u, false)?);
        if input::is_charge(&request) {
            request = Request::ONE; // charges run when their work did, not when their turn comes
        }
        let model = models.entry(key).or_insert(Model {
            tat_ns: 0,
            ran: Vec::new(),
        });
        let mut alone = model.tat_ns;
        let step = limit.step(Timestamp::from_nanos(now_ns), &mut alone, &request);
        let decision = store.decide(&key, limit, request);
        // A store that has no room is stricter, never looser.
        assert!(
            decision.granted() <= step.decision.granted(),
            "key {key} under {limit} at {now_ns}: {decision:?} instead of {:?}",
            step.decision
        );
        if decision.granted() == step.decision.granted() && decision.is_allowed() {
            model.tat_ns = alone;
        } else if decision.granted() > 0 {
            let charged = Request::take(decision.granted());
            let mut less = model.tat_ns;
            let _ = limit.step(Timestamp::from_nanos(now_ns), &mut less, &charged);
            model.tat_ns = model.tat_ns.max(less);
        }
        if which == 0 && decision.granted() > 0 {
            let wait_ns = u64::try_from(decision.wait().as_nanos()).unwrap_or(u64::MAX);
            model.ran.push((now_ns + wait_ns, decision.granted()));
        }
    }
    let numbers = Numbers::of(&limits[0]);
    for (key, model) in &models {
        for (first_ns, _) in &model.ran {
            for (last_ns, _) in model.ran.iter().filter(|(last_ns, _)| last_ns >= first_ns) {
                let inside = model
                    .ran
                    .iter()
                    .filter(|(at, _)| (first_ns..=last_ns).contains(&at));
                let tokens: u64 = inside.map(|(_, tokens)| *tokens).sum();
                let span = i128::from(last_ns - first_ns) * numbers.n;
                let slack = 2 * numbers.n;
                let most = numbers.burst * numbers.p + span + slack;
                assert!(
                    i128::from(tokens) * numbers.p <= most,
                    "key {key}: {tokens} of {}",
                    limits[0]
                );
            }
        }
    }
    Ok(())
}
