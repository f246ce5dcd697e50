//! The sliding counter: its documented worst case is the true one, and its answers are those of counts
//! kept by hand.

use std::collections::HashSet;
use std::time::Duration;

use proptest::prelude::*;
use ratekeeper::{Outcome, Receipt, Request, SlidingWindow};

use crate::support::{Amount, Scale, What, amount, config, ns, peek, step, what};

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

    /// A key waits at most three windows, whatever its clock did.
    #[test]
    fn a_backward_step_costs_three_windows(
        limit in 1_u32..=12,
        window in prop_oneof![1_u64..=12, Just(60_000_000_000)],
        begin in 0_u64..1 << 40,
        events in prop::collection::vec((any::<bool>(), amount(), what()), 1..60),
    ) {
        let sliding = SlidingWindow::per(limit, Duration::from_nanos(window));
        let scale = Scale::of_window(limit, sliding.window());
        let (mut state, mut now) = (0, begin);
        for (back, time, what) in events {
            let by = time.short_time(scale);
            now = if back { now.saturating_sub(by) } else { now + by };
            let answer = step(&sliding, now, &mut state, &what.ask(scale.limit, 0).request());
            for cost in 1..=scale.limit {
                let next = step(&sliding, now, &mut state.clone(), &Request::take(cost)).decision;
                let windows = if answer.repaired { 2 } else { 3 };
                let longest = Duration::from_nanos(window * windows);
                assert!(next.retry_after().is_none_or(|wait| wait <= longest));
            }
        }
    }
}

/// One window of lag is an old reading; a nanosecond more is a clock that was set back, and the window
/// moves to it with its counts.
#[test]
fn one_window_of_lag_is_tolerated() {
    let sliding = SlidingWindow::per(2, Duration::from_nanos(10));
    let mut state = 0;
    assert!(
        step(&sliding, 100, &mut state, &Request::take(2))
            .decision
            .is_allowed()
    );
    let lagging = step(&sliding, 90, &mut state, &Request::ONE);
    assert_eq!((lagging.repaired, lagging.keep), (false, None));
    assert_eq!(lagging.decision.retry_after().map(ns), Some(25));
    let stepped = step(&sliding, 89, &mut state, &Request::ONE);
    assert!(stepped.repaired && stepped.keep.is_some());
    assert_eq!(stepped.decision.retry_after().map(ns), Some(15));
    assert!(
        !step(&sliding, 103, &mut state, &Request::ONE)
            .decision
            .is_allowed()
    );
    assert!(
        step(&sliding, 104, &mut state, &Request::ONE)
            .decision
            .is_allowed()
    );
}
