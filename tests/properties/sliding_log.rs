//! The exact log against a list of every token ever admitted, counted anew each time; on the heap and in a
//! slice.

use std::time::Duration;

use proptest::prelude::*;
use ratekeeper::{Decision, Outcome, Receipt, Request, SliceLog, SlidingLog};

use crate::support::{Amount, Scale, What, amount, at, config, edge, ns, peek, step, what};

/// Every token by its instant, oldest first.
#[derive(Debug)]
struct Model {
    limit: u64,
    window: u64,
    admitted: Vec<u64>,
}

impl Model {
    /// Tokens in the half-open window `(now − window, now]`.
    fn counted(&self, now: u64) -> u64 {
        let inside = |at: &&u64| now - **at < self.window;
        self.admitted.iter().filter(inside).count() as u64
    }

    fn passes(&self, now: u64, cost: u64) -> bool {
        self.counted(now) + cost <= self.limit
    }

    /// A token leaves the window at some token's instant plus the window; nothing changes in between.
    fn first_pass(&self, now: u64, cost: u64) -> u64 {
        let leaves = self.admitted.iter().map(|at| at + self.window);
        let pass = leaves
            .filter(|then| *then > now && self.passes(*then, cost))
            .min();
        pass.expect("a cost that fits passes at last")
    }

    fn gives_back(&mut self, now: u64, taken_at: u64, tokens: u64) {
        for _ in 0..tokens {
            let found = self.admitted.iter().position(|at| *at == taken_at);
            if let Some(index) = found.filter(|_| now - taken_at < self.window) {
                self.admitted.remove(index);
            }
        }
    }

    fn check(&self, now: u64, seen: &Decision) {
        assert_eq!(seen.remaining(), self.limit - self.counted(now));
        let last = self
            .admitted
            .last()
            .map_or(0, |at| (at + self.window).saturating_sub(now));
        assert_eq!(ns(seen.reset_after()), last);
    }
}

#[derive(Clone, Debug)]
enum Event {
    Ask(What),
    Refund(usize, Amount),
}

fn events(most: usize) -> impl Strategy<Value = Vec<(Amount, Event)>> {
    let event = prop_oneof![
        4 => what().prop_map(Event::Ask),
        1 => (any::<usize>(), amount()).prop_map(|(which, tokens)| Event::Refund(which, tokens)),
    ];
    prop::collection::vec((amount(), event), 1..most)
}

fn limits() -> impl Strategy<Value = SlidingLog> {
    let window = prop_oneof![3 => 1_u64..=9, 1 => Just(1_000), 1 => Just(60_000_000_000)];
    (1_u32..=9, window)
        .prop_map(|(limit, window)| SlidingLog::per(limit, Duration::from_nanos(window)))
}

fn follow(limit: SlidingLog, begin: u64, events: &[(Amount, Event)]) {
    let scale = Scale::of_window(limit.limit(), limit.window());
    let mut model = Model {
        limit: scale.limit,
        window: scale.full_ns,
        admitted: Vec::new(),
    };
    let (mut state, mut now) = (Default::default(), begin);
    let mut receipts: Vec<(u64, Receipt)> = Vec::new();
    for (time, event) in events {
        now += time.short_time(scale) / 2;
        model.check(now, &peek(&limit, now, &state));
        match event {
            Event::Ask(what) => {
                let ask = what.ask(scale.limit, 0);
                if ask.cost == 0 || ask.charge {
                    continue;
                }
                let grant = (scale.limit - model.counted(now)).min(ask.cost);
                let decision = step(&limit, now, &mut state, &ask.request()).decision;
                let fits = ask.at_least <= grant;
                assert_eq!(
                    decision.is_allowed(),
                    fits,
                    "{ask:?} with {model:?} at {now}"
                );
                match decision.outcome() {
                    Outcome::Denied { retry_after } => {
                        let pass = model.first_pass(now, ask.at_least);
                        assert_eq!(ns(retry_after), pass - now);
                    }
                    Outcome::TooLarge => assert!(ask.at_least > scale.limit),
                    _ => {
                        assert_eq!(decision.granted(), grant);
                        model.admitted.extend((0..grant).map(|_| now));
                        receipts.push((now, decision.into_receipt()));
                    }
                }
            }
            Event::Refund(which, tokens) => {
                if receipts.is_empty() {
                    continue;
                }
                let (taken_at, receipt) = receipts.swap_remove(which % receipts.len());
                let tokens = tokens.cost(receipt.charged());
                model.gives_back(now, taken_at, tokens.min(receipt.charged()));
                let answer = step(&limit, now, &mut state, &Request::refund(tokens, receipt));
                assert!(answer.decision.is_allowed());
                assert!(
                    answer.keep.is_none() || now - taken_at < scale.full_ns,
                    "long gone"
                );
            }
        }
        model.check(now, &peek(&limit, now, &state));
        for end in now..now + 3 {
            assert!(model.counted(end) <= model.limit);
        }
    }
}

proptest! {
    #![proptest_config(config(3_000))]

    #[test]
    fn agrees_with_a_list_of_all_tokens(
        limit in limits(),
        begin in prop_oneof![0_u64..20, Just(1_760_000_000_000_000_000)],
        events in events(80),
    ) {
        follow(limit, begin, &events);
    }

    /// The slice answers like the heap, also where the buffer is longer than the limit and the clock runs
    /// back.
    #[test]
    fn a_slice_answers_like_the_heap(
        limit in limits(),
        spare in 0_usize..3,
        begin in 0_u64..40,
        events in prop::collection::vec((any::<bool>(), amount(), events(12)), 1..6),
    ) {
        let scale = Scale::of_window(limit.limit(), limit.window());
        let mut buffer = vec![7; limit.limit() as usize + spare];
        let mut slice = SliceLog::new(limit, &mut buffer).unwrap();
        let (mut state, mut now) = (Default::default(), begin);
        let mut receipts: Vec<(Receipt, Receipt)> = Vec::new();
        for (back, leap, events) in events {
            now = if back { now.saturating_sub(leap.time(scale)) } else { now };
            for (time, event) in events {
                now += time.short_time(scale) / 2;
                let (one, two) = match event {
                    Event::Ask(what) => {
                        let ask = what.ask(scale.limit, 0);
                        (ask.request(), ask.request())
                    }
                    Event::Refund(which, tokens) if !receipts.is_empty() => {
                        let (one, two) = receipts.swap_remove(which % receipts.len());
                        let tokens = tokens.cost(scale.limit);
                        (Request::refund(tokens, one), Request::refund(tokens, two))
                    }
                    Event::Refund(..) => (Request::PEEK, Request::PEEK),
                };
                let heap = step(&limit, now, &mut state, &one).decision;
                let slice = slice.apply_at(two, at(now));
                assert_eq!(heap, slice);
                if heap.granted() > 0 {
                    receipts.push((heap.into_receipt(), slice.into_receipt()));
                }
            }
        }
    }

    /// A reading from before the newest instant is decided as if it were that instant, which an allow records; only the waits
    /// count from the reading itself.
    #[test]
    fn a_reading_from_before_the_newest_instant_counts_as_that(
        limit in limits(),
        begin in 1_u64..1 << 40,
        behind in edge(),
        events in prop::collection::vec((amount(), what()), 1..20),
        cost in amount(),
    ) {
        let scale = Scale::of_window(limit.limit(), limit.window());
        let (mut state, mut now, mut newest) = (Default::default(), begin, None);
        for (time, what) in events {
            now += time.short_time(scale);
            let decision = step(&limit, now, &mut state, &what.plain(scale.limit).request()).decision;
            newest = if decision.granted() > 0 { Some(now) } else { newest };
        }
        let Some(newest) = newest else { return Ok(()) };
        let earlier = newest - behind % (newest + 1);
        let request = || Request::take(1 + cost.cost(scale.limit) % scale.limit);
        let (mut one, mut two) = (state.clone(), state);
        let there = step(&limit, newest, &mut one, &request());
        let here = step(&limit, earlier, &mut two, &request());
        assert_eq!(one, two);
        assert_eq!(there.keep.is_some(), here.keep.is_some());
        let lag = Duration::from_nanos(newest - earlier);
        let (there, here) = (there.decision, here.decision);
        assert_eq!(here.is_allowed(), there.is_allowed());
        assert_eq!(here.remaining(), there.remaining());
        assert_eq!(here.retry_after(), there.retry_after().map(|wait| wait + lag));
        assert_eq!(here.reset_after(), there.reset_after() + lag);
    }
}

/// However far the clock is behind, what was admitted keeps its instants: a refusal writes nothing, and its wait is true.
#[test]
fn any_lag_is_tolerated() {
    let log = SlidingLog::per(3, Duration::from_nanos(10));
    let mut state = Default::default();
    for (now, cost) in [(95, 1), (100, 2)] {
        assert!(
            step(&log, now, &mut state, &Request::take(cost))
                .decision
                .is_allowed()
        );
    }
    let before = state.clone();
    for (now, cost, wait) in [(90, 2, 20), (89, 3, 21), (1, 1, 104)] {
        let lagging = step(&log, now, &mut state, &Request::take(cost));
        assert_eq!((lagging.keep, &state), (None, &before));
        assert_eq!(lagging.decision.retry_after().map(ns), Some(wait));
    }
    assert_eq!(peek(&log, 105, &state).remaining(), 1);
    assert_eq!(peek(&log, 110, &state).remaining(), 3);
}
