//! Virtual time: who asks when, and who was let through.

use std::time::Duration;

use ratekeeper::{Algorithm, Overflow, Request, Timestamp, TokenBucket};

use super::latency::Samples;
use super::report::resident_kib;
use super::stores::BoundedStore;

/// Everybody's limit.
pub(crate) const LIMIT: TokenBucket = TokenBucket::per_second(10).with_burst(20);

const HONEST: usize = 1_000;
const DRAINED: usize = 100;
/// Keys: honest clients from 0, drained ones from here, new keys down from the top.
const FIRST_DRAINED: u64 = 1_000_000;
/// A drained client, chosen at random, asks at every tick: 100 times a second each on average, ten times the limit. An
/// honest one asks at every other tick: 5 times a second each, half the limit.
const TICK: Duration = Duration::from_micros(100);
const TICKS_PER_SECOND: u64 = 10_000;
/// Ticks before the flood: the drained clients are drained, and each honest one is known.
const CALM: u64 = 3 * TICKS_PER_SECOND;

/// Keys that come once each.
#[derive(Debug)]
pub(crate) struct Flood {
    pub(crate) name: &'static str,
    per_tick: u64,
    cost: u64,
}

impl Flood {
    pub(crate) const fn new(name: &'static str, keys_per_second: u64, cost: u64) -> Self {
        Self {
            name,
            per_tick: keys_per_second / TICKS_PER_SECOND,
            cost,
        }
    }
}

/// A share of something.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Share {
    pub(crate) part: u64,
    pub(crate) whole: u64,
}

impl Share {
    fn count(&mut self, is_part: bool) {
        self.part += u64::from(is_part);
        self.whole += 1;
    }
}

/// A client, and what it would have got alone in the world.
#[derive(Clone, Copy, Debug, Default)]
struct Client {
    admitted: u64,
    allowance: u64,
    /// The state of a limiter of its own.
    alone: u64,
    /// By how much it was ever ahead of the allowance.
    excess: u64,
}

impl Client {
    /// Asks for one token. Returns whether that was refused against the limit.
    fn ask(&mut self, store: &impl BoundedStore, key: u64, now: Timestamp) -> bool {
        let admitted = store.decide_at(&key, &LIMIT, Request::ONE, now).granted();
        let alone = LIMIT.step(now, &mut self.alone, &Request::ONE);
        let allowed = alone.decision.granted();
        self.admitted += admitted;
        self.allowance += allowed;
        let ahead = self.admitted.saturating_sub(self.allowance);
        self.excess = self.excess.max(ahead);
        admitted < allowed
    }
}

/// What a flood did.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Requests of honest clients during the flood that were refused although their own use allowed them.
    pub(crate) honest_refused: Share,
    /// Admitted requests of drained clients, of those that their limit allows.
    pub(crate) drained_admitted: Share,
    /// Drained clients that got exactly their allowance.
    pub(crate) drained_exactly: Share,
    /// The most that any of those was ever ahead of its allowance.
    pub(crate) drained_excess: u64,
    pub(crate) flood_passed: Share,
    /// Resident memory when half of the flood had come and at its end, where the system tells.
    pub(crate) resident_kib: Option<(u64, u64)>,
}

impl Outcome {
    /// What the policy's documentation promises and this outcome contradicts.
    pub(crate) fn broken_promises(&self, overflow: Overflow) -> Vec<String> {
        let mut broken = Vec::new();
        let exact = self.drained_exactly.part == self.drained_exactly.whole;
        match overflow {
            // An evicted client comes back as a newcomer and is charged for a stranger: less, never more.
            Overflow::Inherit if self.drained_excess > 0 => {
                broken.push(format!(
                    "a drained client got {} too many",
                    self.drained_excess
                ));
            }
            // Nobody in debt is evicted, so those that are in the store notice nothing.
            Overflow::Deny | Overflow::Admit if !exact => {
                broken.push(format!(
                    "drained clients and their limit: {:?}",
                    self.drained_exactly
                ));
            }
            _ => {}
        }
        if overflow == Overflow::Admit && self.honest_refused.part > 0 {
            broken.push(format!(
                "honest clients were refused: {:?}",
                self.honest_refused
            ));
        }
        if let Some((before, after)) = self
            .resident_kib
            .filter(|(before, after)| before + 512 < *after)
        {
            broken.push(format!("memory grew from {before} KiB to {after} KiB"));
        }
        broken
    }
}

/// Lets `keys` new keys loose on `store`.
pub(crate) fn run(
    store: &impl BoundedStore,
    flood: &Flood,
    keys: u64,
    samples: &mut Samples,
) -> Outcome {
    samples.clear();
    let mut random = Random(1);
    let mut honest = [Client::default(); HONEST];
    let mut drained = [Client::default(); DRAINED];
    let mut honest_refused = Share::default();
    let mut flood_passed = Share::default();
    let mut halfway_kib = None;
    let mut now = Timestamp::from_nanos(1_000_000_000_000);
    for tick in 0..CALM + keys / flood.per_tick {
        let is_flooded = tick >= CALM;
        if is_flooded {
            let first = flood_passed.whole;
            for i in first..first + flood.per_tick {
                let key = u64::MAX - i;
                let request = Request::take(flood.cost);
                let decision = samples.time(i, || store.decide_at(&key, &LIMIT, request, now));
                flood_passed.count(decision.is_allowed());
            }
            if halfway_kib.is_none() && flood_passed.whole >= keys / 2 {
                halfway_kib = resident_kib();
            }
        }
        let (number, key) = random.below(DRAINED);
        drained[number].ask(store, FIRST_DRAINED + key, now);
        if tick % 2 == 0 {
            let (number, key) = random.below(HONEST);
            let refused = honest[number].ask(store, key, now);
            if is_flooded {
                honest_refused.count(refused);
            }
        }
        now = now + TICK;
    }

    let mut outcome = Outcome {
        honest_refused,
        drained_admitted: Share::default(),
        drained_exactly: Share::default(),
        drained_excess: 0,
        flood_passed,
        resident_kib: halfway_kib.zip(resident_kib()),
    };
    for client in drained {
        outcome.drained_admitted.part += client.admitted;
        outcome.drained_admitted.whole += client.allowance;
        let is_exact = client.admitted == client.allowance;
        outcome.drained_exactly.count(is_exact);
        outcome.drained_excess = outcome.drained_excess.max(client.excess);
    }
    outcome
}

/// Marsaglia's xorshift: the same numbers in every run.
struct Random(u64);

impl Random {
    /// A number below `end`, as an index and as a key.
    fn below(&mut self, end: usize) -> (usize, u64) {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        let key = (self.0 >> 11) % end as u64;
        (usize::try_from(key).expect("below `end`"), key)
    }
}
