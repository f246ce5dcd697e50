//! Changing a limit at a known instant. A key keeps the tokens it had, cut to the new burst, or what else the caller chooses to
//! carry over; a full bucket stays full. Debts beyond the new reach are cut to it: in time, five seconds on a fast limit would
//! be weeks on a slow one. Only the caller who orders a change gets one; a call under another limit gets none.

use std::time::Duration;

use proptest::prelude::*;
use ratekeeper::{
    Algorithm, All, Carry, Change, FixedWindow, Outcome, Request, SlidingLog, SlidingWindow, State,
    TokenBucket,
};

use crate::exact::{burst, full_ns, horizon, is_dense, late, on_time, period, tokens};
use crate::support::{
    Amount, Scale, What, amount, any_bucket, any_window, at, bucket, carry, config, edge, ns, peek,
    realistic_bucket, small_bucket, start, step, what,
};

fn changed(new: &TokenBucket, now: u64, state: u64, old: &TokenBucket, carry: Carry) -> u64 {
    let mut state = state;
    assert!(new.change(at(now), &mut state, old, carry));
    state
}

fn keeping_tokens(new: &TokenBucket, now: u64, state: u64, old: &TokenBucket) -> u64 {
    changed(new, now, state, old, Carry::Tokens)
}

/// The level in units of the bucket's own `1/period` tokens; below zero when booked ahead.
fn level(limit: &TokenBucket, now: u64, state: u64) -> i128 {
    let owed = (late(limit, state) - late(limit, now)).max(0);
    burst(limit) * period(limit) - owed
}

/// A state that `limit` leaves behind.
fn used(limit: &TokenBucket, now: &mut u64, history: &[(Amount, What)]) -> u64 {
    let mut state = 0;
    for (time, what) in history {
        *now += time.short_time(Scale::of_bucket(limit)) / 8;
        let ask = what.ask(limit.burst(), ns(limit.max_wait()));
        let _ = step(limit, *now, &mut state, &ask.request());
    }
    state
}

fn compare(old: &TokenBucket, new: &TokenBucket, mut now: u64, history: &[(Amount, What)]) {
    let state = used(old, &mut now, history);
    let moved = keeping_tokens(new, now, state, old);
    let (before, after) = (peek(old, now, &state), peek(new, now, &moved));
    if before.reset_after().is_zero() {
        assert!(after.reset_after().is_zero(), "full, but no longer");
        return;
    }
    let kept = before.remaining().min(new.burst());
    if is_dense(new) {
        assert!(after.remaining() <= kept);
    } else {
        assert_eq!(
            after.remaining(),
            kept,
            "{old} with {} to {new}",
            before.remaining()
        );
    }
    let legal = u128::from(now) + u128::from(full_ns(new)) + new.max_wait().as_nanos();
    assert!(
        u128::from(moved) <= legal,
        "a state that nobody could have left"
    );

    // Fractions of a token, on the common denominator of both periods: kept to two nanoseconds of either
    // bucket. A debt is cut at the new bucket's deepest.
    let deepest = burst(new) * period(new) - on_time(new, full_ns(new) + ns(new.max_wait()));
    let kept = (level(old, now, state) * period(new))
        .min(burst(new) * period(new) * period(old))
        .max(deepest * period(old));
    let got = level(new, now, moved) * period(old);
    let two_ns = 2 * (tokens(new) * period(old) + tokens(old) * period(new));
    assert!(
        got <= kept + two_ns,
        "{got} of {kept} gained from {old} to {new}"
    );
    if !is_dense(new) && !is_dense(old) {
        assert!(
            got >= kept - two_ns,
            "{got} of {kept} lost from {old} to {new}"
        );
    }
}

fn history() -> impl Strategy<Value = Vec<(Amount, What)>> {
    prop::collection::vec((amount(), what()), 1..8)
}

proptest! {
    #![proptest_config(config(6_000))]

    #[test]
    fn small(old in small_bucket(), new in small_bucket(), now in 0_u64..60, history in history()) {
        compare(&old, &new, now, &history);
    }

    #[test]
    fn realistic(
        old in realistic_bucket(),
        new in realistic_bucket(),
        now in 0_u64..1 << 60,
        history in history(),
    ) {
        compare(&old, &new, now, &history);
    }

    /// Nothing wraps, and no key gains by a change.
    #[test]
    fn any_numbers(old in any_bucket(), new in any_bucket(), now in start(), state in edge()) {
        let moved = keeping_tokens(&new, now, state, &old);
        let (before, after) = (peek(&old, now, &state), peek(&new, now, &moved));
        let was_full = before.reset_after().is_zero();
        if [&old, &new].iter().all(|limit| horizon(limit).is_some_and(|last| now <= last)) {
            assert!(was_full || after.remaining() <= before.remaining());
        }
        assert_eq!(keeping_tokens(&old, now, state, &old), state, "no change at all");
        assert!(!was_full || after.reset_after().is_zero());
        assert!(state > now || moved == state, "a key long forgotten is written");
        assert!(state <= now || moved >= now, "pushed into the past");
        let reach = u128::from(now) + u128::from(full_ns(&new)) + new.max_wait().as_nanos();
        assert!(moved == state || u128::from(moved) <= reach, "a debt beyond the new reach");
    }

    /// Who owes more before owes no less after.
    #[test]
    fn monotone_in_the_state(
        old in any_bucket(),
        new in any_bucket(),
        now in start(),
        ahead in edge(),
        further in edge(),
        carry in carry(),
    ) {
        let one = now.saturating_add(ahead);
        let two = one.saturating_add(further);
        let (one, two) = (one, two).min((two, one));
        if old != new || carry != Carry::Tokens {
            assert!(changed(&new, now, one, &old, carry) <= changed(&new, now, two, &old, carry));
        }
    }

    /// The other choices, by what they are for.
    #[test]
    fn what_else_may_be_carried_over(
        old in any_bucket(),
        new in any_bucket(),
        now in start(),
        state in edge(),
    ) {
        assert_eq!(changed(&new, now, state, &old, Carry::Debt), state);
        let full = changed(&new, now, state, &old, Carry::Full);
        assert!(full <= state && peek(&new, now, &full).reset_after().is_zero());
        let empty = changed(&new, now, state, &old, Carry::Empty);
        if horizon(&new).is_some_and(|last| now <= last) {
            let seen = peek(&new, now, &empty);
            assert_eq!(seen.remaining(), 0);
            assert!(ns(seen.reset_after()) <= full_ns(&new));
            // Empty and not overdrawn: the first token comes as after a whole burst.
            let mut drained = 0;
            let all = step(&new, now, &mut drained, &Request::take(new.burst()));
            assert!(all.decision.is_allowed());
            assert_eq!(empty, drained);
        }
    }

    /// To and fro at one instant: no token in the key's favour but what the smaller burst has no room for.
    #[test]
    fn to_and_fro_at_one_instant(
        old in small_bucket(),
        new in small_bucket(),
        now in 0_u64..60,
        ahead in 0_u64..200,
        times in 1_usize..8,
    ) {
        let mut state = now + ahead;
        let before = peek(&old, now, &state).remaining();
        for _ in 0..times {
            state = keeping_tokens(&new, now, state, &old);
            state = keeping_tokens(&old, now, state, &new);
        }
        let after = peek(&old, now, &state).remaining();
        // Debts beyond the reach, and full buckets, aside: those say so themselves.
        if before < old.burst().min(new.burst()) {
            assert!(after <= before, "{before} became {after}");
        }
    }

    /// Several limits are changed one by one, and all of them or none.
    #[test]
    fn each_of_several(
        old in [small_bucket(), small_bucket()],
        new in [small_bucket(), small_bucket()],
        now in 0_u64..60,
        states in [0_u64..200, 0_u64..200],
        carry in carry(),
    ) {
        let expected = [0, 1].map(|i| changed(&new[i], now, states[i], &old[i], carry));
        let mut moved = states;
        assert!(All(new).change(at(now), &mut moved, &All(old), carry));
        assert_eq!(moved, expected);
        let mut moved = (states[0], states[1]);
        assert!(All((new[0], new[1])).change(at(now), &mut moved, &All((old[0], old[1])), carry));
        assert_eq!(moved, expected.into());
        let window = |ms| SlidingWindow::per(5, Duration::from_millis(ms));
        let (one, two) = (All((old[0], window(1))), All((new[0], window(2))));
        let mut moved = (states[0], u128::from(states[1]) << 64 | 3);
        let before = moved;
        assert!(!two.change(at(now), &mut moved, &one, carry), "windows of another length");
        assert_eq!(moved, before);
    }

    /// Windows and logs keep what they counted; a window of another length counts something else, so it is refused and the state
    /// stays.
    #[test]
    fn windows_keep_their_counts(
        (limit, length) in any_window(),
        raised in 1_u32..20,
        now in start(),
        word in any::<u128>(),
        carry in carry(),
        cost in 1_u64..9,
    ) {
        let longer = length + Duration::from_nanos(1);
        prop_assume!(longer.as_nanos() <= u128::from(u64::MAX));
        let windows = [SlidingWindow::per(limit, length), SlidingWindow::per(raised, length)];
        window_changes(windows, SlidingWindow::per(limit, longer), (now, word, carry));
        let aligned = FixedWindow::per(limit, length);
        let fixed = [aligned, FixedWindow::per(raised, length)];
        window_changes(fixed, FixedWindow::per(limit, longer), (now, word, carry));
        window_changes(fixed, aligned.anchored(), (now, word, carry));
        let shifted = aligned.with_offset(Duration::from_nanos(1));
        if shifted != aligned {
            window_changes(fixed, shifted, (now, word, carry));
        }
        let log = SlidingLog::per(1 + limit % 12, length);
        let mut ring = Default::default();
        let _ = step(&log, now, &mut ring, &Request::up_to(cost));
        let logs = [log, SlidingLog::per(raised, length)];
        window_changes(logs, SlidingLog::per(1, longer), (now, ring, carry));
    }

    /// The algorithm that stores run: it answers a peek under the new limit, writes exactly when the state moves, and reads nothing
    /// but its arguments.
    #[test]
    fn as_an_algorithm_it_is_pure(
        old in any_bucket(),
        new in any_bucket(),
        now in start(),
        state in edge(),
        carry in carry(),
    ) {
        let change = Change { old: &old, new: &new, carry };
        let expected = changed(&new, now, state, &old, carry);
        for request in [Request::PEEK, Request::take(3), Request::charge(7)] {
            let mut moved = state;
            let answer = change.step(at(now), &mut moved, &request);
            assert_eq!(moved, expected);
            assert_eq!(answer.keep.is_some(), moved != state);
            assert_eq!(answer.decision, peek(&new, now, &moved));
            if let Some(keep) = answer.keep {
                assert!(keep >= answer.decision.reset_after());
            }
        }
    }
}

/// A change between windows that share their counts, and one to `other`, which does not.
fn window_changes<A: Algorithm>(
    [old, new]: [A; 2],
    other: A,
    (now, state, carry): (u64, A::State, Carry),
) {
    let mut moved = state.clone();
    assert!(new.change(at(now), &mut moved, &old, carry));
    match carry {
        Carry::Tokens | Carry::Debt => assert_eq!(moved, state),
        Carry::Full => assert_eq!(moved, A::State::default()),
        _ => assert_eq!(peek(&new, now, &moved).remaining(), 0),
    }
    let mut moved = state.clone();
    assert!(!other.change(at(now), &mut moved, &old, carry));
    assert_eq!(moved, state);
    let refused = Change {
        old: &old,
        new: &other,
        carry,
    };
    let answer = refused.step(at(now), &mut moved, &Request::PEEK);
    assert_eq!(answer.decision.outcome(), Outcome::Unsupported);
    assert_eq!((answer.keep, moved), (None, state));
}

/// An algorithm of one's own can keep the debt or start full; what it does not know how to move stays.
#[test]
fn other_algorithms_keep_or_forget() {
    fn moved<S: State>(limit: &impl Algorithm<State = S>, state: S, carry: Carry) -> Option<S> {
        let mut state = state;
        let changed = Change {
            old: limit,
            new: limit,
            carry,
        };
        let answer = changed.step(at(0), &mut state, &Request::PEEK);
        (answer.decision.outcome() == Outcome::Allowed).then_some(state)
    }
    let limit = Own(bucket(1, 10, 5, 0));
    assert_eq!(moved(&limit, 77, Carry::Debt), Some(77));
    assert_eq!(moved(&limit, 77, Carry::Full), Some(0));
    assert_eq!(moved(&limit, 77, Carry::Tokens), None);
    assert_eq!(moved(&limit, 77, Carry::Empty), None);
}

/// An algorithm with nothing but a step.
#[derive(Debug)]
struct Own(TokenBucket);

impl Algorithm for Own {
    type State = u64;

    fn step(
        &self,
        now: ratekeeper::Timestamp,
        tat: &mut u64,
        request: &Request,
    ) -> ratekeeper::Step {
        self.0.step(now, tat, request)
    }
}
