//! Fixed windows against a count per window kept by hand, with clocks in both directions.

use std::time::Duration;

use proptest::prelude::*;
use ratekeeper::{FixedWindow, Outcome, Receipt, Request};

use crate::support::{Amount, Scale, What, amount, config, ns, peek, step, what};

/// The one window that counts.
#[derive(Clone, Copy, Debug)]
struct Open {
    start: u64,
    end: u64,
    count: u64,
}

#[derive(Debug)]
struct Model {
    fixed: FixedWindow,
    open: Option<Open>,
}

impl Model {
    /// The window that a first request at `now` would open.
    fn opening(&self, now: u64) -> Open {
        let window = ns(self.fixed.window());
        let offset = ns(self.fixed.offset());
        let (start, end) = if self.fixed.is_anchored() {
            (now, now + window)
        } else if now < offset {
            (0, offset)
        } else {
            let start = (0..=now)
                .rev()
                .find(|edge| *edge >= offset && (edge - offset) % window == 0);
            let start = start.expect("the offset is an edge");
            (start, start + window)
        };
        let count = 0;
        Open { start, end, count }
    }

    /// The window that counts at `now`: the open one until it ends, also for a reading from before it began. That reading
    /// comes from another clock, and to move the window back to it would end it sooner.
    fn at(&self, now: u64) -> Open {
        match self.open {
            Some(open) if now < open.end => open,
            _ => self.opening(now),
        }
    }

    /// An aligned window that counts nothing is as good as none.
    fn set(&mut self, open: Open) {
        self.open = (open.count > 0 || self.fixed.is_anchored()).then_some(open);
    }
}

#[derive(Clone, Debug)]
enum Event {
    Ask(What),
    Refund(usize, Amount),
}

fn events() -> impl Strategy<Value = Vec<(bool, Amount, Event)>> {
    let event = prop_oneof![
        4 => what().prop_map(Event::Ask),
        1 => (any::<usize>(), amount()).prop_map(|(which, tokens)| Event::Refund(which, tokens)),
    ];
    let back = prop_oneof![4 => Just(false), 1 => Just(true)];
    prop::collection::vec((back, amount(), event), 1..60)
}

/// Windows that begin anywhere, small enough to look for their edges.
fn limits() -> impl Strategy<Value = FixedWindow> {
    (1_u32..=9, 1_u64..=40, 0_u64..60, 0_u8..3).prop_map(|(limit, window, offset, kind)| {
        let fixed = FixedWindow::per(limit, Duration::from_nanos(window));
        match kind {
            0 => fixed,
            1 => fixed.with_offset(Duration::from_nanos(offset)),
            _ => fixed.anchored(),
        }
    })
}

fn follow(fixed: FixedWindow, begin: u64, events: Vec<(bool, Amount, Event)>) {
    let scale = Scale::of_window(fixed.limit(), fixed.window());
    let mut model = Model { fixed, open: None };
    let (mut state, mut now) = (0, begin);
    let mut receipts: Vec<(u64, Receipt)> = Vec::new();
    for (back, time, event) in events {
        let by = time.short_time(scale) / 2;
        now = if back {
            now.saturating_sub(by)
        } else {
            now + by
        };
        let mut open = model.at(now);
        match event {
            Event::Ask(what) => {
                let ask = what.plain(scale.limit);
                if ask.cost == 0 {
                    continue;
                }
                let fits = ask.cost <= scale.limit - open.count;
                let answer = step(&fixed, now, &mut state, &ask.request());
                assert_eq!(
                    answer.decision.is_allowed(),
                    fits,
                    "{ask:?} with {model:?} at {now}"
                );
                if let Outcome::Denied { retry_after } = answer.decision.outcome() {
                    assert_eq!(ns(retry_after), open.end - now);
                }
                if fits {
                    open.count += ask.cost;
                    receipts.push((open.start, answer.decision.into_receipt()));
                }
                if fits {
                    model.set(open);
                }
            }
            Event::Refund(which, tokens) => {
                if receipts.is_empty() {
                    continue;
                }
                let (start, receipt) = receipts.swap_remove(which % receipts.len());
                let tokens = tokens.cost(receipt.charged()).min(receipt.charged());
                let request = Request::refund(tokens, receipt);
                assert!(
                    step(&fixed, now, &mut state, &request)
                        .decision
                        .is_allowed()
                );
                let back = if start == open.start {
                    tokens.min(open.count)
                } else {
                    0
                };
                open.count -= back;
                if back > 0 {
                    model.set(open);
                }
            }
        }
        let open = model.at(now);
        let seen = peek(&fixed, now, &state);
        assert_eq!(
            seen.remaining(),
            scale.limit - open.count,
            "{model:?} at {now}"
        );
        let pending = model
            .open
            .is_some_and(|_| open.count > 0 || fixed.is_anchored());
        let over = model.open.is_none_or(|open| now >= open.end);
        let reset_ns = if pending && !over { open.end - now } else { 0 };
        assert_eq!(ns(seen.reset_after()), reset_ns, "{model:?} at {now}");
    }
}

proptest! {
    #![proptest_config(config(3_000))]

    #[test]
    fn agrees_with_a_count_by_hand(fixed in limits(), begin in 0_u64..200, events in events()) {
        follow(fixed, begin, events);
    }

    /// Never more than `2 · limit` in a trailing window, counted by hand.
    #[test]
    fn twice_the_limit_and_never_more(
        fixed in limits(),
        begin in 0_u64..100,
        events in prop::collection::vec((amount(), what()), 1..80),
    ) {
        let scale = Scale::of_window(fixed.limit(), fixed.window());
        let (mut state, mut now) = (0, begin);
        let mut admitted: Vec<(u64, u64)> = Vec::new();
        for (time, what) in events {
            now += time.short_time(scale) / 2;
            let answer = step(&fixed, now, &mut state, &what.plain(scale.limit).request());
            admitted.push((now, answer.decision.granted()));
            let trailing = admitted.iter().filter(|(at, _)| now - at < scale.full_ns);
            assert!(trailing.map(|(_, tokens)| tokens).sum::<u64>() <= 2 * scale.limit);
        }
    }
}

/// A burst on each side of an edge.
#[test]
fn twice_the_limit_is_attained() {
    for (fixed, first, second) in [
        (FixedWindow::per(3, Duration::from_nanos(10)), 109, 110),
        (
            FixedWindow::per(3, Duration::from_nanos(10)).with_offset(Duration::from_nanos(4)),
            113,
            114,
        ),
    ] {
        let mut state = 0;
        for now in [first, second] {
            assert!(
                step(&fixed, now, &mut state, &Request::take(3))
                    .decision
                    .is_allowed()
            );
        }
        assert_eq!(peek(&fixed, second, &state).remaining(), 0);
    }
    let anchored = FixedWindow::per(3, Duration::from_nanos(10)).anchored();
    let mut state = 0;
    for (now, cost) in [(100, 1), (109, 2), (110, 3)] {
        assert!(
            step(&anchored, now, &mut state, &Request::take(cost))
                .decision
                .is_allowed()
        );
    }
}

/// Five a minute from the first request: a refund half way does not start the minute again.
#[test]
fn a_refund_never_moves_an_anchored_window() {
    let second = 1_000_000_000;
    let fixed = FixedWindow::per_minute(5).anchored();
    let mut state = 0;
    let taken = step(&fixed, 0, &mut state, &Request::ONE)
        .decision
        .into_receipt();
    let back = step(&fixed, 30 * second, &mut state, &Request::refund(1, taken));
    assert_eq!(ns(back.decision.reset_after()), 30 * second);
    assert!(
        step(&fixed, 31 * second, &mut state, &Request::take(5))
            .decision
            .is_allowed()
    );
    let refused = step(&fixed, 32 * second, &mut state, &Request::ONE).decision;
    assert_eq!(refused.retry_after().map(ns), Some(28 * second));
}
