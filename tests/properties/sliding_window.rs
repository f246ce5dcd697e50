//! The sliding counter: its documented worst case is the true one, and its answers are those of counts
//! kept by hand.

use std::collections::HashSet;
use std::time::Duration;

use proptest::prelude::*;
use ratekeeper::{Outcome, Receipt, Request, SlidingWindow};

use crate::support::{Amount, Scale, What, amount, config, edge, ns, peek, step, what};

/// `max(L, 2L − 1 − ⌈2(L − 1)/W⌉)`: the most in a trailing window, as documented.
fn worst_case(limit: u64, window: u64) -> u64 {
    limit.max((2 * limit - 1).saturating_sub((2 * (limit - 1)).div_ceil(window)))
}

/// One more where the request that opened a window may have been given back.
fn worst_case_with_refunds(limit: u64, window: u64) -> u64 {
    limit.max(2 * limit - (2 * limit).div_ceil(window))
}

/// Every history of admissions over four windows, for small numbers: the worst trailing window is exactly
/// the documented one.
#[test]
fn the_documented_bound_is_the_supremum() {
    for (limit, longest) in [(1, 7), (2, 7), (3, 6), (4, 5)] {
        for window in 1..=longest {
            let window_ns = window as u64;
            let sliding = SlidingWindow::per(limit, Duration::from_nanos(window_ns));
            let limit = u64::from(limit);
            // A state, and how many were admitted in each of the last `window` nanoseconds.
            let mut reached = HashSet::from([(0_u128, vec![0_u64; window])]);
            let mut worst = 0;
            for now in 0..4 * window_ns + 2 {
                let mut next = HashSet::new();
                for (state, recent) in &reached {
                    let left = peek(&sliding, now, state).remaining();
                    for cost in 0..=left {
                        let mut state = *state;
                        let answer = step(&sliding, now, &mut state, &Request::take(cost));
                        assert!(answer.decision.is_allowed());
                        let mut recent = recent[1..].to_vec();
                        recent.push(cost);
                        worst = worst.max(recent.iter().sum());
                        next.insert((state, recent));
                    }
                }
                reached = next;
            }
            assert_eq!(
                worst,
                worst_case(limit, window_ns),
                "{limit} per {window_ns} ns"
            );
        }
    }
}

/// Tokens by the instant at which they were admitted, and where the current window began.
#[derive(Clone, Debug)]
struct Model {
    limit: u64,
    window: u64,
    start: u64,
    admitted: Vec<(u64, u64)>,
}

impl Model {
    fn in_span(&self, from: u64, to: u64) -> u64 {
        let inside = self
            .admitted
            .iter()
            .filter(|(at, _)| (from..to).contains(at));
        inside.map(|(_, tokens)| tokens).sum()
    }

    /// Counts of the window before and the current one, which begins anew once nothing counts.
    fn roll(&mut self, now: u64) -> (u64, u64) {
        while now >= self.start + self.window {
            self.start += self.window;
        }
        let before = self.in_span(self.start.saturating_sub(self.window), self.start);
        let current = self.in_span(self.start, self.start + self.window);
        if before + current == 0 {
            self.start = now;
        }
        (before, current)
    }

    fn at(&self, now: u64) -> (u64, u64, u64) {
        let mut copy = self.clone();
        let (before, current) = copy.roll(now);
        (before, current, now - copy.start)
    }

    /// The part of the window before that still counts, and all of the current one.
    fn passes(&self, now: u64, cost: u64) -> bool {
        let (before, current, elapsed) = self.at(now);
        let (window, left) = (u128::from(self.window), u128::from(self.window - elapsed));
        let counted = u128::from(before) * left + (u128::from(current) + u128::from(cost)) * window;
        counted <= u128::from(self.limit) * window
    }

    fn remaining(&self, now: u64) -> u64 {
        (1..=self.limit)
            .take_while(|cost| self.passes(now, *cost))
            .count() as u64
    }

    fn is_empty_at(&self, now: u64) -> bool {
        let (before, current, _) = self.at(now);
        before + current == 0
    }
}

#[derive(Clone, Debug)]
enum Event {
    Ask(What),
    Refund(usize, Amount),
}

fn events() -> impl Strategy<Value = Vec<(Amount, Event)>> {
    let event = prop_oneof![
        4 => what().prop_map(Event::Ask),
        1 => (any::<usize>(), amount()).prop_map(|(which, tokens)| Event::Refund(which, tokens)),
    ];
    prop::collection::vec((amount(), event), 1..60)
}

fn follow(sliding: &SlidingWindow, begin: u64, events: &[(Amount, Event)]) {
    let scale = Scale::of_window(sliding.limit(), sliding.window());
    let (limit, window) = (scale.limit, scale.full_ns);
    let mut model = Model {
        limit,
        window,
        start: begin,
        admitted: Vec::new(),
    };
    let (mut state, mut now) = (0, begin);
    let mut receipts: Vec<(u64, Receipt)> = Vec::new();
    for (time, event) in events {
        now += time.short_time(scale) / 2;
        match event {
            Event::Ask(what) => {
                let ask = what.plain(limit);
                if ask.cost == 0 {
                    continue;
                }
                let passes = model.passes(now, ask.cost);
                let decision = step(sliding, now, &mut state, &ask.request()).decision;
                assert_eq!(
                    decision.is_allowed(),
                    passes,
                    "{ask:?} with {model:?} at {now}"
                );
                if passes {
                    model.roll(now);
                    model.admitted.push((now, ask.cost));
                    receipts.push((now, decision.into_receipt()));
                } else if let Outcome::Denied { retry_after } = decision.outcome() {
                    let pass = (now + 1..).find(|then| model.passes(*then, ask.cost));
                    assert_eq!(ns(retry_after), pass.unwrap() - now);
                } else {
                    assert!(ask.cost > limit);
                }
            }
            Event::Refund(which, tokens) => {
                if receipts.is_empty() {
                    continue;
                }
                let (taken_at, receipt) = receipts.swap_remove(which % receipts.len());
                let tokens = tokens.cost(receipt.charged());
                let mut back = tokens.min(receipt.charged());
                for (_, left) in model.admitted.iter_mut().filter(|(at, _)| *at == taken_at) {
                    let taken = back.min(*left);
                    (back, *left) = (back - taken, *left - taken);
                }
                let answer = step(sliding, now, &mut state, &Request::refund(tokens, receipt));
                assert!(answer.decision.is_allowed());
            }
        }
        let seen = peek(sliding, now, &state);
        assert_eq!(seen.remaining(), model.remaining(now), "{model:?} at {now}");
        let empty = (now..).find(|then| model.is_empty_at(*then));
        assert_eq!(ns(seen.reset_after()), empty.unwrap() - now);
        let trailing = model.in_span((now + 1).saturating_sub(window), now + 1);
        assert!(trailing <= worst_case_with_refunds(limit, window));
        if receipts.len() == model.admitted.len() {
            assert!(
                trailing <= worst_case(limit, window),
                "nothing was given back"
            );
        }
    }
}

proptest! {
    #![proptest_config(config(1_500))]

    #[test]
    fn agrees_with_counts_by_hand(
        limit in 1_u32..=12,
        window in prop_oneof![1_u64..=12, 13_u64..=200],
        begin in prop_oneof![0_u64..20, Just(1_760_000_000_000_000_000)],
        events in events(),
    ) {
        follow(&SlidingWindow::per(limit, Duration::from_nanos(window)), begin, &events);
    }

    /// A reading from before the window's start is decided as if it were that start, to the last number; only the waits
    /// count from the reading itself. (The counts come from another clock and are honest; to move them would forgive some.)
    #[test]
    fn a_reading_from_before_the_window_counts_as_its_start(
        limit in 1_u32..=12,
        window in prop_oneof![1_u64..=12, Just(60_000_000_000)],
        begin in 1_u64..1 << 40,
        behind in edge(),
        events in prop::collection::vec((amount(), what()), 1..20),
        cost in amount(),
    ) {
        let sliding = SlidingWindow::per(limit, Duration::from_nanos(window));
        let scale = Scale::of_window(limit, sliding.window());
        let (mut state, mut now, mut opened) = (0, begin, None);
        for (time, what) in events {
            now += time.short_time(scale);
            let decision = step(&sliding, now, &mut state, &what.plain(scale.limit).request()).decision;
            if decision.granted() > 0 {
                opened = Some(decision.into_receipt().mark());
            }
        }
        let Some(start) = opened else { return Ok(()) };
        let earlier = start - behind % (start + 1);
        let request = || Request::take(1 + cost.cost(scale.limit) % scale.limit);
        let (mut one, mut two) = (state, state);
        let there = step(&sliding, start, &mut one, &request());
        let here = step(&sliding, earlier, &mut two, &request());
        assert_eq!(one, two);
        assert_eq!(there.keep.is_some(), here.keep.is_some());
        let lag = Duration::from_nanos(start - earlier);
        let (there, here) = (there.decision, here.decision);
        assert_eq!(here.is_allowed(), there.is_allowed());
        assert_eq!(here.remaining(), there.remaining());
        assert_eq!(here.retry_after(), there.retry_after().map(|wait| wait + lag));
        assert_eq!(here.reset_after(), there.reset_after() + lag);
    }
}

/// However far the clock is behind, the window and its counts stay: a refusal writes nothing, and its wait is the true one.
#[test]
fn any_lag_is_tolerated() {
    let sliding = SlidingWindow::per(2, Duration::from_nanos(10));
    let mut state = 0;
    assert!(
        step(&sliding, 100, &mut state, &Request::take(2))
            .decision
            .is_allowed()
    );
    let before = state;
    for (now, wait) in [(90, 25), (89, 26), (0, 115)] {
        let lagging = step(&sliding, now, &mut state, &Request::ONE);
        assert_eq!((lagging.keep, state), (None, before));
        assert_eq!(lagging.decision.retry_after().map(ns), Some(wait));
    }
    assert!(
        !step(&sliding, 114, &mut state, &Request::ONE)
            .decision
            .is_allowed()
    );
    assert!(
        step(&sliding, 115, &mut state, &Request::ONE)
            .decision
            .is_allowed()
    );
}
