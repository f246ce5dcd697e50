//! The bound of `Leased`, by simulation in virtual time: several processes over one exact store.

use std::collections::VecDeque;
use std::time::Duration;

use ratekeeper::store::{Leased, Store};
use ratekeeper::{Clock as _, DashStore, ManualClock, Receipt, Request, TokenBucket};

use crate::support::{Draw, NOW, ms};

type Shared<'a> = DashStore<String, TokenBucket, &'a ManualClock>;
type Node<'a> = Leased<&'a Shared<'a>, &'a ManualClock>;

const BURST: u64 = 100;
/// One token each millisecond, so the bound has no rounding in it.
const PER_SECOND: u64 = 1_000;

struct World<'a> {
    clock: &'a ManualClock,
    nodes: Vec<Node<'a>>,
    /// When tokens were taken (positive) and given back, in nanoseconds.
    log: Vec<(u64, i64)>,
}

impl World<'_> {
    fn limit() -> TokenBucket {
        TokenBucket::per_second(PER_SECOND).with_burst(BURST)
    }

    fn take(&mut self, node: usize, cost: u64) -> Option<Receipt> {
        let decision = self.nodes[node]
            .apply("alice", &Self::limit(), Request::take(cost))
            .unwrap();
        let granted = i64::try_from(decision.granted()).unwrap();
        if granted > 0 {
            self.log.push((self.clock.now().as_nanos(), granted));
        }
        decision.is_allowed().then(|| decision.into_receipt())
    }

    fn give_back(&mut self, node: usize, receipt: Receipt) {
        let n = receipt.charged();
        self.log
            .push((self.clock.now().as_nanos(), -i64::try_from(n).unwrap()));
        let refund = Request::refund(n, receipt);
        assert!(
            self.nodes[node]
                .apply("alice", &Self::limit(), refund)
                .unwrap()
                .is_allowed()
        );
    }

    /// The largest excess over `B + R·w` of any closed window that ends now, in tokens, by looking at all of them.
    fn worst_window(&self) -> i64 {
        let mut worst = i64::MIN;
        for (first, (start_ns, _)) in self.log.iter().enumerate() {
            let mut tokens = 0;
            for (at_ns, change) in &self.log[first..] {
                tokens += change;
                let refilled = (at_ns - start_ns) / 1_000_000;
                worst = worst.max(tokens - i64::try_from(BURST + refilled).unwrap());
            }
        }
        worst
    }

    /// The excess over all time: the first window is the whole history.
    fn worst_history(&self) -> i64 {
        let start_ns = self.log[0].0;
        let mut tokens = 0;
        let excess = |(at_ns, change): &(u64, i64)| {
            tokens += change;
            tokens - i64::try_from(BURST + (at_ns - start_ns) / 1_000_000).unwrap()
        };
        self.log.iter().map(excess).max().unwrap()
    }
}

fn world<'a>(
    shared: &'a Shared<'a>,
    clock: &'a ManualClock,
    nodes: usize,
    batch: u64,
) -> World<'a> {
    let nodes = (0..nodes).map(|_| {
        Leased::with_clock(shared, batch, clock)
            .with_capacity(8)
            .unwrap()
    });
    World {
        clock,
        nodes: nodes.collect(),
        log: Vec::new(),
    }
}

fn shared(clock: &ManualClock) -> Shared<'_> {
    clock.set(NOW);
    DashStore::with_clock(clock)
}

/// Random demand, bursts and pauses included.
#[test]
fn no_window_exceeds_the_bound() {
    for (nodes, batch, refunds) in [
        (1, 10, false),
        (8, 10, false),
        (8, 50, true),
        (32, 3, true),
        (3, 200, true), // larger than the burst
    ] {
        let clock = ManualClock::new();
        let shared = shared(&clock);
        let mut world = world(&shared, &clock, nodes, batch);
        let mut draw = Draw(nodes as u64 + batch);
        let mut receipts: Vec<VecDeque<Receipt>> = (0..nodes).map(|_| VecDeque::new()).collect();
        for step in 0..6_000 {
            let node = draw.place(nodes);
            let cost = if draw.below(8) == 0 {
                1 + draw.below(batch.min(9))
            } else {
                1
            };
            if refunds && draw.below(6) == 0 {
                if let Some(receipt) = receipts[node].pop_front() {
                    world.give_back(node, receipt);
                }
            } else if let Some(receipt) = world.take(node, cost) {
                receipts[node].push_back(receipt);
            }
            match (step / 500) % 3 {
                0 => clock.advance(Duration::from_micros(draw.below(400))),
                1 => clock.advance(Duration::from_micros(draw.below(4_000))),
                _ if draw.below(100) == 0 => clock.advance(ms(draw.below(150))),
                _ => {}
            }
        }
        let most = i64::try_from(nodes as u64 * (batch - 1)).unwrap();
        let worst = world.worst_window();
        assert!(
            worst <= most,
            "{nodes} nodes, batches of {batch}: {worst} above the limit"
        );
        assert!(
            world.worst_history() <= 0,
            "{nodes} nodes, batches of {batch}"
        );
    }
}

/// Every process fills its balance, waits until the store is full again, and then all spend at once.
#[test]
fn the_bound_is_reached() {
    for (nodes, batch) in [(8, 10), (4, 25)] {
        let clock = ManualClock::new();
        let shared = shared(&clock);
        let mut world = world(&shared, &clock, nodes, batch);
        for node in 0..nodes {
            assert!(world.take(node, 1).is_some());
        }
        clock.advance(ms(BURST));
        for node in 0..nodes {
            for _ in 1..batch {
                assert!(world.take(node, 1).is_some());
            }
        }
        while world.take(0, 1).is_some() {}
        let reached = i64::try_from(nodes as u64 * (batch - 1)).unwrap();
        assert_eq!(world.worst_window(), reached);
        assert!(world.worst_history() <= 0);
    }
}

/// Under steady demand no more is lost than what expires: all of the limit is used.
#[test]
fn little_is_lost() {
    let clock = ManualClock::new();
    let shared = shared(&clock);
    let mut world = world(&shared, &clock, 4, 10);
    for step in 0..20_000 {
        world.take(step % 4, 1);
        clock.advance(Duration::from_micros(250));
    }
    let admitted: i64 = world.log.iter().map(|(_, tokens)| tokens).sum();
    let seconds = 5;
    let limit = i64::try_from(BURST + PER_SECOND * seconds).unwrap();
    assert!(
        (limit - 40..=limit).contains(&admitted),
        "{admitted} of {limit}"
    );
    let trips = world
        .nodes
        .iter()
        .map(|node| 5_000 - node.hits())
        .sum::<u64>();
    assert!(trips < 20_000, "{trips}");
}
