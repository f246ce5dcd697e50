//! The two buckets without a number, `TokenBucket::UNLIMITED` and `BLOCKED`: what they say, and that they write nothing,
//! wherever a limit may stand.

use std::time::Duration;

use ratekeeper::{
    Algorithm, All, AnyAlgorithm, Carry, DashStore, Decision, KeyedLimiter, Limiter, Limits,
    Outcome, Receipt, Request, StdClock, TableStore, Timestamp, TokenBucket, headers,
};

/// The largest integer of a structured header field has fifteen digits.
const MOST: u64 = 10_u64.pow(15) - 1;

const NOW: Timestamp = Timestamp::from_nanos(1_700_000_000_000_000_000);
const UNLIMITED: TokenBucket = TokenBucket::UNLIMITED;
const BLOCKED: TokenBucket = TokenBucket::BLOCKED;

type Answer = (Outcome, u64, u64, Duration, u64);

fn said(decision: &Decision) -> Answer {
    assert_eq!(decision.limit(), decision.remaining());
    assert_eq!(decision.retry_after(), None);
    (
        decision.outcome(),
        decision.remaining(),
        decision.granted(),
        decision.wait(),
        decision.uncharged(),
    )
}

/// Whether a request is allowed, what is granted, what a charge had no room for.
type Short = (bool, u64, u64);

/// Requests, and what `UNLIMITED` and `BLOCKED` say to each.
fn requests() -> Vec<(Request, Short, Short)> {
    let old = || Receipt::new(5, NOW.as_nanos() + 1_000_000_000);
    let wait = Duration::from_secs(5);
    vec![
        (Request::PEEK, (true, 0, 0), (true, 0, 0)),
        (Request::ONE, (true, 1, 0), (false, 0, 0)),
        (Request::take(7), (true, 7, 0), (false, 0, 0)),
        (Request::take(MOST), (true, MOST, 0), (false, 0, 0)),
        (Request::take(MOST + 1), (false, 0, 0), (false, 0, 0)),
        (Request::take(u64::MAX), (false, 0, 0), (false, 0, 0)),
        (Request::take(7).or_wait(wait), (true, 7, 0), (false, 0, 0)),
        (Request::ONE.or_wait(wait), (true, 1, 0), (false, 0, 0)),
        (Request::up_to(7), (true, 7, 0), (false, 0, 0)),
        (Request::up_to(u64::MAX), (true, MOST, 0), (false, 0, 0)),
        (Request::up_to(7).at_least(0), (true, 7, 0), (true, 0, 0)),
        (
            Request::up_to(u64::MAX).at_least(MOST + 1),
            (false, 0, 0),
            (false, 0, 0),
        ),
        (Request::charge(7), (true, 7, 0), (true, 0, 7)),
        (
            Request::charge(MOST + 3),
            (true, MOST, 3),
            (true, 0, MOST + 3),
        ),
        (Request::refund(5, old()), (true, 0, 0), (true, 0, 0)),
        (
            Request::refund(5, old().with_run_at_ns(u64::MAX)),
            (true, 0, 0),
            (true, 0, 0),
        ),
    ]
}

fn expected(remaining: u64, (allowed, granted, uncharged): Short) -> Answer {
    let outcome = if allowed {
        Outcome::Allowed
    } else {
        Outcome::TooLarge
    };
    (outcome, remaining, granted, Duration::ZERO, uncharged)
}

#[test]
fn every_request_has_its_answer_and_writes_nothing() {
    let full = NOW.as_nanos();
    for tat in [
        0,
        1,
        full - 1,
        full,
        full + 1,
        full + 3_600_000_000_000,
        u64::MAX,
    ] {
        for (request, of_unlimited, of_blocked) in requests() {
            for version in [0, 3] {
                for (limit, remaining, of) in
                    [(UNLIMITED, MOST, of_unlimited), (BLOCKED, 0, of_blocked)]
                {
                    let limit = limit.with_version(version);
                    let mut state = tat;
                    let step = limit.step(NOW, &mut state, &request);
                    assert_eq!(
                        said(&step.decision),
                        expected(remaining, of),
                        "{limit}: {request:?}"
                    );
                    assert_eq!((state, step.keep), (tat, None), "{limit}: {request:?}");
                    // Zero but for what another limit left.
                    let owed = Duration::from_nanos(tat.saturating_sub(full));
                    assert_eq!(step.decision.reset_after(), owed);

                    let mut word = u128::from(tat) << 64;
                    let step = AnyAlgorithm::from(limit).step(NOW, &mut word, &request);
                    assert_eq!(said(&step.decision), expected(remaining, of));
                    assert_eq!((word, step.keep), (u128::from(tat) << 64, None));
                }
            }
        }
    }
}

#[test]
fn a_receipt_of_unlimited_gives_nothing_back() {
    let limit = TokenBucket::per_second(10);
    for ahead_ns in [0, 1, 500_000_000, 10_000_000_000] {
        let receipt = || {
            let decision = UNLIMITED.step(NOW, &mut 0, &Request::take(5)).decision;
            decision.into_receipt()
        };
        let tat = NOW.as_nanos() + ahead_ns;
        for at in [NOW, NOW + Duration::from_millis(100)] {
            let mut state = tat;
            let step = limit.step(at, &mut state, &Request::refund(5, receipt()));
            assert_eq!((state, step.keep), (tat, None));
        }
    }
}

#[test]
fn nothing_else_makes_them_count() {
    for limit in [UNLIMITED, BLOCKED] {
        assert_eq!(limit.with_burst(5), limit);
        assert_eq!(limit.with_max_wait(Duration::from_secs(5)), limit);
        assert_eq!(limit.max_wait(), Duration::ZERO);
        assert_ne!(limit.with_version(1), limit);
        assert!(limit.tokens() > 0 && !limit.period().is_zero());
    }
    assert!(UNLIMITED.is_unlimited() && !UNLIMITED.is_blocked());
    assert!(BLOCKED.with_version(2).is_blocked() && !BLOCKED.is_unlimited());
    assert_eq!((UNLIMITED.burst(), BLOCKED.burst()), (MOST, 0));
    let finite = TokenBucket::per_second(1);
    assert!(!finite.is_unlimited() && !finite.is_blocked());
    // Versions stay with whatever else changes.
    let changed = finite
        .with_version(7)
        .with_burst(9)
        .with_max_wait(Duration::from_secs(1));
    assert_eq!((changed.version(), changed.burst()), (7, 9));
}

/// Blocking and unblocking forgives nothing, nor does a time without a limit.
#[test]
fn a_change_to_them_and_back_keeps_the_state() {
    let limit = TokenBucket::per_hour(10);
    let mut state = 0;
    assert!(
        limit
            .step(NOW, &mut state, &Request::take(10))
            .decision
            .is_allowed()
    );
    let drained = state;
    for other in [UNLIMITED, BLOCKED] {
        for carry in [Carry::Tokens, Carry::Debt] {
            assert!(other.change(NOW, &mut state, &limit, carry));
            assert!(limit.change(NOW, &mut state, &other, carry));
            assert_eq!(state, drained);
        }
        assert!(other.change(NOW, &mut state, &limit, Carry::Empty));
        assert_eq!(state, drained);
        let mut full = state;
        assert!(other.change(NOW, &mut full, &limit, Carry::Full));
        assert_eq!(full, NOW.as_nanos()); // asked for
        let mut empty = 0;
        assert!(limit.change(NOW, &mut empty, &other, Carry::Empty));
        assert_eq!(empty, drained);
    }
}

fn checks<S>(limiter: &KeyedLimiter<u32, TokenBucket, S>)
where
    S: ratekeeper::MemoryStore<u32, TokenBucket>,
{
    let is_unlimited = limiter.algorithm().is_unlimited();
    for key in 0..100 {
        assert_eq!(limiter.check(&key).is_allowed(), is_unlimited);
        assert_eq!(limiter.check_n(&key, 1_000).is_allowed(), is_unlimited);
        for (request, of_unlimited, of_blocked) in requests() {
            let (remaining, of) = if is_unlimited {
                (MOST, of_unlimited)
            } else {
                (0, of_blocked)
            };
            assert_eq!(said(&limiter.apply(&key, request)), expected(remaining, of));
        }
    }
}

#[test]
fn no_key_takes_a_place() {
    for limit in [UNLIMITED, BLOCKED] {
        let dash = KeyedLimiter::<u32>::new(limit);
        checks(&dash);
        assert_eq!(dash.store().len(), 0);
        let table: TableStore = TableStore::with_clock(1 << 10, StdClock::new()).unwrap();
        let table = KeyedLimiter::<u32, TokenBucket, _>::with_store(limit, table);
        checks(&table);
        assert_eq!(
            (table.store().replaced(), table.store().overflowed()),
            (0, 0)
        );
        assert_eq!(table.store().occupied(&TokenBucket::per_day(1)), 0);

        let limiter = Limiter::new(limit);
        assert_eq!(limiter.check_at(NOW).is_allowed(), limit.is_unlimited());
        assert_eq!(
            limiter.apply_at(Request::PEEK, NOW).reset_after(),
            Duration::ZERO
        );
    }
}

/// Of several limits, one without a number neither speaks nor charges, and a blocked one stops all.
#[test]
fn beside_other_limits() {
    let two = TokenBucket::per_hour(2);
    let limiter = Limiter::new(All([UNLIMITED, two]));
    let first = limiter.check_at(NOW);
    assert_eq!(
        (
            first.is_allowed(),
            first.index(),
            first.limit(),
            first.remaining()
        ),
        (true, 1, 2, 1)
    );
    assert_eq!(limiter.apply_at(Request::up_to(5), NOW).granted(), 1);
    assert_eq!(limiter.check_at(NOW).index(), 1);

    let blocked: All<[AnyAlgorithm; 2]> = "2/h; blocked".parse().unwrap();
    let mut state = Default::default();
    let step = blocked.step(NOW, &mut state, &Request::ONE);
    assert_eq!(
        (step.decision.outcome(), step.decision.index()),
        (Outcome::TooLarge, 1)
    );
    assert_eq!((state, step.keep), ([0; 2], None));

    let limits: Limits = "unlimited; unlimited v2".parse().unwrap();
    let keyed = KeyedLimiter::<u32, Limits, _>::with_store(limits, DashStore::<u32, Limits>::new());
    let decision = keyed.check_n(&1, 77);
    assert_eq!(
        (
            decision.is_allowed(),
            decision.granted(),
            decision.remaining()
        ),
        (true, 77, MOST)
    );
    assert_eq!(keyed.store().len(), 0);
}

#[test]
fn what_a_client_is_told_fits_a_header() {
    let unlimited = Limiter::new(UNLIMITED).check_at(NOW);
    let field = headers::RateLimit("all", &unlimited).to_string();
    assert_eq!(field, r#""all";r=999999999999999;t=0"#);
    let blocked = Limiter::new(BLOCKED).check_at(NOW);
    assert_eq!(
        headers::RateLimit("all", &blocked).to_string(),
        r#""all";r=0;t=0"#
    );
    assert_eq!(headers::retry_after(&blocked), None);
}
