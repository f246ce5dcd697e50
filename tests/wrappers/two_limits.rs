//! Two limits in turn on one key: what a wrapper remembers under one, it says under that only.
#![allow(unused_must_use)] // what the store was asked is what is looked at

use std::time::Duration;

use ratekeeper::store::{
    Breaker, DenyCache, FailClosed, FailOpen, Fallback, Leased, MemoryStore, Ready, Store,
};
use ratekeeper::{
    Algorithm, All, Carry, DashStore, Decision, ManualClock, Receipt, Request, Step, Timestamp,
    TokenBucket,
};

use crate::support::{Answer, Draw, LIMIT, MODES, NOW, SECOND, Script, ms};

/// As large as `LIMIT`, and a tenth of its waits.
const FAST: TokenBucket = TokenBucket::per_second(10).with_burst(10);

type Shared<'a> = DashStore<String, TokenBucket, &'a ManualClock>;

fn take<S: Store<str, TokenBucket>>(store: &S, limit: &TokenBucket, n: u64) -> Decision {
    store.apply("a", limit, Request::take(n)).unwrap()
}

#[test]
fn a_refusal_is_told_under_its_own_limit() {
    let (clock, reference) = (ManualClock::new(), ManualClock::new());
    for clock in [&clock, &reference] {
        clock.set(NOW);
    }
    let store = DenyCache::with_clock(Shared::with_clock(&clock), &clock);
    let plain = Shared::with_clock(&reference);
    assert!(take(&store, &LIMIT, 5).is_allowed() && take(&plain, &LIMIT, 5).is_allowed());
    // 5 s of debt: 0.9 s is what the fast one may owe before the tenth token.
    for (limit, retry_after) in [(&LIMIT, 1), (&FAST, 5)] {
        for _ in 0..2 {
            let n = if retry_after == 1 { 6 } else { 10 };
            let refused = take(&store, limit, n);
            assert_eq!(refused.retry_after(), Some(retry_after * SECOND));
            assert_eq!(refused, take(&plain, limit, n));
        }
    }
    assert_eq!(store.hits(), 2);
    for clock in [&clock, &reference] {
        clock.advance(ms(4_200));
    }
    // The slow one has six again; the fast one has two, and its refusal of one token was never asked for.
    assert_eq!(take(&store, &FAST, 2), take(&plain, &FAST, 2));
    assert!(take(&store, &LIMIT, 6).is_allowed() && take(&plain, &LIMIT, 6).is_allowed());
}

/// Equal sizes, equal algorithms: nothing but the numbers tells them apart. Either way, and several limits too.
#[test]
fn limits_of_one_size_are_told_apart() {
    for mode in MODES {
        for (one, other) in [(LIMIT, FAST), (FAST, LIMIT)] {
            told_apart(mode, &one, &other);
            told_apart(mode, &All([one, one]), &All([one, other]));
            told_apart(mode, &All((one, one)), &All((other, one)));
        }
        let waits = LIMIT.with_max_wait(SECOND);
        told_apart(mode, &LIMIT, &waits);
    }
}

fn told_apart<A: Algorithm>(mode: crate::support::Mode, one: &A, other: &A) {
    let (script, clock) = (Script::new([Answer::Deny(SECOND)]), ManualClock::new());
    let store = DenyCache::with_clock(&script, &clock);
    let take = |limit| mode.apply(&store, "a", limit, Request::ONE).unwrap();
    assert!(!take(one).is_allowed());
    script.then([Answer::Deny(3 * SECOND)]);
    assert_eq!(take(other).retry_after(), Some(3 * SECOND));
    // Both are remembered now.
    assert_eq!(take(one).retry_after(), Some(SECOND));
    assert_eq!(take(other).retry_after(), Some(3 * SECOND));
    assert_eq!((store.hits(), script.count()), (2, 2));

    let script = Script::default();
    let store = Leased::with_clock(&script, 3, &clock);
    for limit in [one, other, one, other, one, other] {
        let decision = mode.apply(&store, "a", limit, Request::ONE).unwrap();
        assert_eq!(decision.granted(), 1);
    }
    assert_eq!((store.hits(), script.count()), (4, 2), "two leases");
}

/// Random requests under two limits, changes from one to the other included, with a `DenyCache` and without: the same
/// answers at every instant.
#[test]
fn a_deny_cache_costs_no_accuracy_under_two_limits() {
    for seed in 0..20 {
        let clock = ManualClock::new();
        clock.set(NOW);
        let (plain, inner) = (Shared::with_clock(&clock), Shared::with_clock(&clock));
        let cached = DenyCache::with_clock(inner, &clock).with_max_age(Duration::MAX);
        let mut draw = Draw(seed);
        let limits = [TokenBucket::per_second(2).with_burst(6), FAST.with_burst(6)];
        for step in 0..5_000 {
            let place = draw.place(2);
            let (limit, other) = (&limits[place], &limits[1 - place]);
            if draw.below(60) == 0 {
                let change = |store: &dyn Store<str, TokenBucket>| {
                    store.try_change("a", other, limit, Carry::Tokens).unwrap()
                };
                assert_eq!(change(&plain), change(&cached), "{seed}, step {step}");
            }
            let n = 1 + draw.below(4);
            let (ours, theirs) = (take(&plain, limit, n), take(&cached, limit, n));
            assert_eq!(ours.outcome(), theirs.outcome(), "{seed}, step {step}");
            assert_eq!(ours.limit(), theirs.limit());
            clock.advance(ms(draw.below(300)));
        }
        assert!(cached.hits() > 50, "{}", cached.hits());
    }
}

/// Each limit's own bound, for both at once on one key, in every window: its burst, its refill, and what was bought before.
#[test]
fn what_is_bought_under_one_limit_is_not_spent_under_another() {
    const BATCH: u64 = 3;
    for seed in 0..20 {
        let clock = ManualClock::new();
        clock.set(NOW);
        let shared = Shared::with_clock(&clock);
        let store = Leased::with_clock(&shared, BATCH, &clock);
        let mut draw = Draw(seed);
        let limits = [TokenBucket::per_second(1).with_burst(4), FAST];
        let mut admitted: [Vec<u64>; 2] = Default::default();
        let mut now_ms = 0;
        for _ in 0..2_000 {
            let place = draw.place(2);
            if take(&store, &limits[place], 1).is_allowed() {
                admitted[place].push(now_ms);
            }
            let step_ms = draw.below(600);
            now_ms += step_ms;
            clock.advance(ms(step_ms));
        }
        for (times, (burst, token_ms)) in admitted.iter().zip([(4, 1_000), (10, 100)]) {
            for (first, from_ms) in times.iter().enumerate() {
                for (last, to_ms) in times.iter().enumerate().skip(first) {
                    let due = burst + (to_ms - from_ms) / token_ms + BATCH - 1;
                    assert!((last - first + 1) as u64 <= due, "{seed}");
                }
            }
        }
        assert!(store.hits() > 20, "{}", store.hits());
    }
}

#[test]
fn a_bought_token_goes_back_to_the_balance_of_its_limit() {
    let (script, clock) = (Script::default(), ManualClock::new());
    let store = Leased::with_clock(&script, 3, &clock);
    // Of each: two are left, one of them is spent.
    let [slow, _fast] = [LIMIT, FAST].map(|limit| {
        take(&store, &limit, 1);
        take(&store, &limit, 1).into_receipt()
    });
    script.calls();
    store.apply("a", &LIMIT, Request::refund(1, slow)).unwrap();
    assert_eq!(script.count(), 0);
    take(&store, &FAST, 1);
    assert_eq!(script.count(), 0);
    take(&store, &FAST, 1);
    assert_eq!(script.count(), 1, "one was left");
    take(&store, &LIMIT, 2);
    assert_eq!(script.count(), 0, "two are left");
}

/// Its numbers may change from one call to the next, as nobody outside can see.
#[derive(Debug)]
struct Changing(TokenBucket);

impl Algorithm for Changing {
    type State = u64;

    fn step(&self, now: Timestamp, state: &mut u64, request: &Request) -> Step {
        self.0.step(now, state, request)
    }
}

#[test]
fn of_a_limit_that_changes_nothing_is_remembered() {
    for mode in MODES {
        let (script, clock) = (Script::default(), ManualClock::new());
        let limit = Changing(LIMIT);
        let store = DenyCache::with_clock(&script, &clock);
        script.then(vec![Answer::Deny(SECOND); 2]);
        for allowed in [false, false, true] {
            let decision = mode.apply(&store, "a", &limit, Request::ONE).unwrap();
            assert_eq!(decision.is_allowed(), allowed);
        }
        assert_eq!((script.count(), store.hits()), (3, 0));
        // Also as one of several.
        let limit = All([Changing(LIMIT), Changing(FAST)]);
        script.then(vec![Answer::Deny(SECOND); 2]);
        for _ in 0..2 {
            mode.apply(&store, "a", &limit, Request::ONE).unwrap();
        }
        assert_eq!((script.count(), store.hits()), (2, 0));

        let store = Leased::with_clock(&script, 5, &clock);
        for _ in 0..3 {
            let decision = mode
                .apply(&store, "a", &Changing(LIMIT), Request::ONE)
                .unwrap();
            assert_eq!(decision.into_receipt(), Receipt::new(1, mark(&script)));
        }
        assert_eq!((script.count(), store.hits()), (3, 0));
    }
}

/// What a fresh key's receipt says.
fn mark(_: &Script) -> u64 {
    let fresh = LIMIT.step(NOW, &mut 0, &Request::ONE).decision;
    fresh.into_receipt().mark()
}

/// These remember nothing of a key.
#[test]
fn the_others_ask_each_time() {
    let clock = ManualClock::new();
    clock.set(NOW);
    let stores: [&dyn Store<str, TokenBucket>; 4] = [
        &FailOpen::new(Shared::with_clock(&clock)),
        &FailClosed::new(Shared::with_clock(&clock)),
        &Fallback::new(Shared::with_clock(&clock), Shared::with_clock(&clock)),
        &Breaker::with_clock(Shared::with_clock(&clock), 1, SECOND, &clock),
    ];
    for store in stores {
        // 4 s of debt: the slow one has six left, the fast one none for three seconds.
        let outcome = |limit, n| store.apply("a", limit, Request::take(n)).unwrap();
        assert!(outcome(&LIMIT, 4).is_allowed());
        assert_eq!(outcome(&FAST, 1).retry_after(), Some(ms(3_100)));
        assert_eq!(outcome(&LIMIT, 7).retry_after(), Some(SECOND));
        assert!(outcome(&LIMIT, 6).is_allowed());
    }
}

/// `10/s burst 20` and `10/s burst 5` in turn, time standing still: 20 pass, through every wrapper.
#[test]
fn two_bursts_in_turn_are_worth_the_larger() {
    let limits = [20, 5].map(|burst| TokenBucket::per_second(10).with_burst(burst));
    let clock = ManualClock::new();
    clock.set(NOW);
    let shared = || Ready(Shared::with_clock(&clock));
    let stores: [&dyn Store<str, TokenBucket>; 5] = [
        &shared(),
        &FailOpen::new(shared()),
        &DenyCache::with_clock(shared(), &clock),
        &Leased::with_clock(shared(), 2, &clock),
        &Breaker::with_clock(DenyCache::with_clock(shared(), &clock), 1, SECOND, &clock),
    ];
    for store in stores {
        let asked = limits.iter().cycle().take(10_000);
        let admitted = asked.filter(|limit| {
            let decision = store.apply("a", limit, Request::ONE).unwrap();
            decision.is_allowed()
        });
        assert_eq!(admitted.count(), 20);
    }
    let plain = Shared::with_clock(&clock);
    let admitted = limits.iter().cycle().take(10_000);
    let admitted = admitted.filter(|limit| plain.decide("a", *limit, Request::ONE).is_allowed());
    assert_eq!(admitted.count(), 20);
}
