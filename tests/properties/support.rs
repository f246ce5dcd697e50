//! What the properties share: seeded configuration, random limits, instants and requests.

use std::fmt::Debug;
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use ratekeeper::{
    Algorithm, Carry, Decision, FixedWindow, Outcome, Request, SlidingLog, SlidingWindow, Step,
    Timestamp, TokenBucket,
};

/// `cases` random inputs from a fixed seed; nothing is written to disk.
pub(crate) fn config(cases: u32) -> ProptestConfig {
    let mut config = ProptestConfig {
        cases,
        failure_persistence: None,
        max_global_rejects: cases * 8,
        ..ProptestConfig::default()
    };
    if config.rng_seed == RngSeed::Random {
        config.rng_seed = RngSeed::Fixed(0x1bad_c0de);
    }
    config
}

pub(crate) const fn at(ns: u64) -> Timestamp {
    Timestamp::from_nanos(ns)
}

/// A duration in nanoseconds; everything the crate answers fits.
pub(crate) fn ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).expect("at most u64::MAX nanoseconds")
}

pub(crate) fn step<A: Algorithm>(limit: &A, now: u64, state: &mut A::State, r: &Request) -> Step {
    limit.step(at(now), state, r)
}

/// The answer to a peek, which must be allowed, charge nothing and write nothing.
pub(crate) fn peek<A: Algorithm>(limit: &A, now: u64, state: &A::State) -> Decision {
    let mut copy = state.clone();
    let step = step(limit, now, &mut copy, &Request::PEEK);
    assert!(same(&copy, state), "a peek moved {state:?} to {copy:?}");
    assert_eq!(step.keep, None, "a peek writes");
    assert_eq!(step.decision.outcome(), Outcome::Allowed);
    assert_eq!(
        (step.decision.granted(), step.decision.wait()),
        (0, Duration::ZERO)
    );
    step.decision
}

/// Whether `request` would pass, on a copy.
pub(crate) fn passes<A: Algorithm>(limit: &A, now: u64, state: &A::State, r: &Request) -> bool {
    let mut copy = state.clone();
    step(limit, now, &mut copy, r).decision.is_allowed()
}

/// States need no equality of their own.
pub(crate) fn same<S: Debug>(a: &S, b: &S) -> bool {
    format!("{a:?}") == format!("{b:?}")
}

/// The sizes that matter to a limit: requests are drawn around `limit`, steps of time around `token_ns`
/// and `full_ns`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    pub(crate) limit: u64,
    pub(crate) token_ns: u64,
    pub(crate) full_ns: u64,
}

impl Scale {
    pub(crate) fn of_bucket(bucket: &TokenBucket) -> Self {
        let (n, p) = (u128::from(bucket.tokens()), bucket.period().as_nanos());
        let clamp = |ns: u128| u64::try_from(ns).unwrap_or(u64::MAX);
        Self {
            limit: bucket.burst(),
            token_ns: clamp(p / n),
            full_ns: clamp((u128::from(bucket.burst()) * p).div_ceil(n)),
        }
    }

    pub(crate) fn of_window(limit: u32, window: Duration) -> Self {
        Self {
            limit: u64::from(limit),
            token_ns: ns(window) / u64::from(limit),
            full_ns: ns(window),
        }
    }
}

/// A random amount, to be scaled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Amount {
    kind: u8,
    raw: u64,
}

pub(crate) fn amount() -> impl Strategy<Value = Amount> {
    (any::<u8>(), edge()).prop_map(|(kind, raw)| Amount { kind, raw })
}

impl Amount {
    /// A step of time.
    pub(crate) fn time(self, scale: Scale) -> u64 {
        let below = |end: u64| self.raw % end.max(1);
        match self.kind % 16 {
            0..=3 => 0,
            4..=6 => below(4),
            7..=9 => below(scale.token_ns.saturating_add(2)),
            10..=12 => below(scale.full_ns.saturating_add(2)),
            13 => scale.full_ns.saturating_sub(2).saturating_add(below(5)),
            14 => below(scale.full_ns.saturating_mul(4)),
            _ => self.raw,
        }
    }

    /// A step of time that never leaps.
    pub(crate) fn short_time(self, scale: Scale) -> u64 {
        self.time(scale) % scale.full_ns.saturating_mul(4).saturating_add(4)
    }

    /// A number of tokens.
    pub(crate) fn cost(self, limit: u64) -> u64 {
        match self.kind % 16 {
            0 => 0,
            1..=5 => 1,
            6..=8 => 1 + self.raw % 3,
            9..=12 => 1 + self.raw % limit.max(1),
            13 => limit,
            14 => limit.saturating_add(1),
            _ => self.raw,
        }
    }
}

/// One way of taking; unlike a request it can be asked again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask {
    pub(crate) cost: u64,
    pub(crate) at_least: u64,
    pub(crate) wait_ns: u64,
    /// Take whatever the limit allows, never refused.
    pub(crate) charge: bool,
}

impl Ask {
    pub(crate) const fn take(cost: u64) -> Self {
        Self {
            cost,
            at_least: cost,
            wait_ns: 0,
            charge: false,
        }
    }

    pub(crate) const fn request(self) -> Request {
        if self.charge {
            return Request::charge(self.cost);
        }
        let wait = Duration::from_nanos(self.wait_ns);
        Request::take(self.cost)
            .at_least(self.at_least)
            .or_wait(wait)
    }
}

/// A random request, to be scaled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct What {
    cost: Amount,
    kind: u8,
    raw: u64,
}

pub(crate) fn what() -> impl Strategy<Value = What> {
    (amount(), any::<u8>(), edge()).prop_map(|(cost, kind, raw)| What { cost, kind, raw })
}

impl What {
    pub(crate) fn plain(self, limit: u64) -> Ask {
        Ask::take(self.cost.cost(limit))
    }

    pub(crate) fn ask(self, limit: u64, max_wait_ns: u64) -> Ask {
        let cost = self.cost.cost(limit);
        let wait_ns = match self.kind / 16 % 4 {
            0 | 1 => 0,
            2 => self.raw % max_wait_ns.saturating_add(2).max(2),
            _ => self.raw,
        };
        let (at_least, charge) = match self.kind % 16 {
            0..=8 => (cost, false),
            9 | 10 => (cost.min(1), false),
            11 => (0, false),
            12 | 13 => (self.raw % cost.max(1), false),
            _ => (0, true),
        };
        Ask {
            cost,
            at_least,
            wait_ns,
            charge,
        }
    }
}

/// Any number, often one where something could wrap.
pub(crate) fn edge() -> impl Strategy<Value = u64> {
    prop_oneof![
        3 => 0_u64..8,
        2 => 0_u64..1_000,
        3 => any::<u64>(),
        2 => (0_u32..64, any::<u64>()).prop_map(|(bits, raw)| raw >> bits),
        1 => (0_u32..64, 0_u64..3).prop_map(|(bit, off)| (1_u64 << bit).wrapping_add(off).wrapping_sub(1)),
        1 => (0_u64..4).prop_map(|off| u64::MAX - off),
    ]
}

/// A bucket from parts; the burst is cut to what fits.
pub(crate) fn bucket(tokens: u64, period_ns: u64, burst: u64, max_wait_ns: u64) -> TokenBucket {
    TokenBucket::new(tokens, Duration::from_nanos(period_ns), 1)
        .expect("a burst of one always fits")
        .with_burst(burst)
        .with_max_wait(Duration::from_nanos(max_wait_ns))
}

/// Small numbers, of which every phase is met; a third of them above one token a nanosecond.
pub(crate) fn small_bucket() -> impl Strategy<Value = TokenBucket> {
    (1_u64..=16, 1_u64..=30, 1_u64..=6, any::<bool>(), 0_u64..=90).prop_map(
        |(n, p, b, waits, s)| {
            let max_wait_ns = if waits { s } else { 0 };
            bucket(n, p, b, max_wait_ns)
        },
    )
}

pub(crate) const RATES: [(u64, u64); 12] = [
    (1, 1_000_000_000),
    (3, 1_000_000_000),
    (7, 1_000_000_000),
    (100, 60_000_000_000),
    (1_000, 3_600_000_000_000),
    (1_000_000, 86_400_000_000_000),
    (3, 90_000_000_000),
    (300_000, 1_000_000_000),
    (999_983, 1_000_000_000),
    (600_000_001, 1_000_000_000),
    (1_000_000_001, 1_000_000_000),
    (3_000_000_000, 1_000_000_000),
];

/// Rates that people write.
pub(crate) fn realistic_bucket() -> impl Strategy<Value = TokenBucket> {
    let rate = prop::sample::select(&RATES[..]);
    let waits = prop::sample::select(&[0, 1, 1_000_000_000, 30_000_000_001][..]);
    (rate, 1_u64..=50, waits).prop_map(|((n, p), b, s)| bucket(n, p, b, s))
}

/// Rates that nobody should write.
pub(crate) fn extreme_bucket() -> impl Strategy<Value = TokenBucket> {
    (edge(), edge(), edge(), edge())
        .prop_map(|(n, p, b, s)| bucket(n.max(1), p.max(1), b.max(1), s))
}

pub(crate) fn any_bucket() -> impl Strategy<Value = TokenBucket> {
    prop_oneof![3 => small_bucket(), 2 => realistic_bucket(), 2 => extreme_bucket()]
}

/// A count and a length for a window algorithm.
pub(crate) fn any_window() -> impl Strategy<Value = (u32, Duration)> {
    let length = prop_oneof![
        4 => 1_u64..=12,
        2 => prop::sample::select(&[1_000, 1_000_000_000, 60_000_000_000, 86_400_000_000_000][..]),
        1 => edge().prop_map(|ns| ns.max(1)),
    ];
    let limit =
        prop_oneof![4 => 1_u32..=6, 2 => 1_u32..=200, 1 => any::<u32>().prop_map(|l| l.max(1))];
    (limit, length).prop_map(|(limit, length)| (limit, Duration::from_nanos(length)))
}

pub(crate) fn sliding_window() -> impl Strategy<Value = SlidingWindow> {
    any_window().prop_map(|(limit, window)| SlidingWindow::per(limit, window))
}

/// Small limits: a log holds every instant.
pub(crate) fn sliding_log() -> impl Strategy<Value = SlidingLog> {
    any_window().prop_map(|(limit, window)| SlidingLog::per(1 + limit % 12, window))
}

pub(crate) fn fixed_window() -> impl Strategy<Value = FixedWindow> {
    (any_window(), any::<u8>(), edge()).prop_map(|((limit, window), kind, raw)| {
        let fixed = FixedWindow::per(limit, window);
        match kind % 3 {
            0 => fixed,
            1 => fixed.with_offset(Duration::from_nanos(raw)),
            _ => fixed.anchored(),
        }
    })
}

/// An instant to begin at.
pub(crate) fn start() -> impl Strategy<Value = u64> {
    prop_oneof![
        3 => 0_u64..40,
        2 => Just(1_760_000_000_000_000_000),
        2 => edge(),
        1 => (0_u64..100).prop_map(|off| u64::MAX - off),
    ]
}

/// What a change of limits carries over.
pub(crate) fn carry() -> impl Strategy<Value = Carry> {
    prop::sample::select(&[Carry::Tokens, Carry::Debt, Carry::Full, Carry::Empty][..])
}
