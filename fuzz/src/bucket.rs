//! The token bucket by definition, in exact fractions: what a step must say, from the state, the instant and the request alone.
//!
//! Time is counted in `1/n` of a nanosecond and tokens in `1/P`, so that one unit of time refills one unit of tokens and a token
//! is `P` units. The machine is the exact bucket seen through a clock that is late by less than 2 ns: [`seen`] is that clock,
//! written down from its definition (token `j` begins at `j·P/n`, is seen on the next whole nanosecond, and lasts `⌊P/n⌋` ns in
//! sight), not from the machine's arithmetic.

use ratekeeper::{Request, TokenBucket};

/// What a step must come to.
#[derive(Debug, PartialEq, Eq)]
pub struct Expected {
    /// The state afterwards.
    pub tat_ns: u64,
    /// Tokens charged; `None` if the request is refused.
    pub granted: Option<u64>,
    /// Whether it can never pass.
    pub too_large: bool,
    /// Until it may act, if it was granted.
    pub wait_ns: u64,
}

/// A limit's numbers, as signed integers wide enough for all products.
#[derive(Clone, Copy)]
pub(crate) struct Numbers {
    pub(crate) n: i128,
    pub(crate) p: i128,
    pub(crate) burst: i128,
    pub(crate) max_wait_ns: i128,
}

impl Numbers {
    pub(crate) fn of(limit: &TokenBucket) -> Self {
        let nanos =
            |duration: std::time::Duration| i128::try_from(duration.as_nanos()).unwrap_or(0);
        Self {
            n: limit.tokens().into(),
            p: nanos(limit.period()),
            burst: limit.burst().into(),
            max_wait_ns: nanos(limit.max_wait()),
        }
    }

    /// Tokens take a whole number of nanoseconds.
    pub(crate) fn is_whole(self) -> bool {
        self.p % self.n == 0
    }

    /// More than a token a nanosecond: such buckets round each request up, and are only bounded here.
    pub(crate) fn is_dense(self) -> bool {
        self.n > self.p
    }

    /// What the late clock shows at `at_ns`, in units.
    pub(crate) fn seen(self, at_ns: i128) -> i128 {
        if self.is_whole() {
            return at_ns * self.n;
        }
        let token = at_ns * self.n / self.p;
        let begins_ns = (token * self.p + self.n - 1).div_euclid(self.n);
        let run_on_ns = (at_ns - begins_ns).min(self.p / self.n - 1);
        token * self.p + run_on_ns * self.n
    }

    /// Nanoseconds until a full burst comes back.
    pub(crate) fn capacity_ns(self) -> i128 {
        (self.burst * self.p + self.n - 1).div_euclid(self.n)
    }
}

/// What a step on `tat_ns` at `now_ns` must come to. For requests that take, and limits that are not dense.
///
/// # Panics
/// If a number leaves the range that small limits keep to.
pub fn expected(limit: &TokenBucket, tat_ns: u64, now_ns: u64, request: &Request) -> Expected {
    let numbers = Numbers::of(limit);
    assert!(!numbers.is_dense(), "dense buckets have no exact form");
    let Request::Take {
        cost,
        at_least,
        max_wait,
        ..
    } = request
    else {
        panic!("only takes")
    };
    let (cost, at_least) = (i128::from(*cost), i128::from(*at_least));
    let now = i128::from(now_ns);
    let wait_ns = i128::try_from(max_wait.as_nanos()).unwrap_or(i128::MAX);
    let is_charge = at_least == 0 && *max_wait == std::time::Duration::MAX;
    let wait_ns = wait_ns.min(numbers.max_wait_ns);
    let base = numbers.seen(now.max(tat_ns.into()));
    let unchanged = |granted: Option<u64>| Expected {
        tat_ns,
        granted,
        too_large: false,
        wait_ns: 0,
    };
    // The bucket has room for `c` at the instant `at`.
    let room =
        |c: i128, at: i128| base + c * numbers.p <= numbers.seen(at) + numbers.burst * numbers.p;
    // The TAT whose true value is this: the next whole nanosecond.
    let tat_of = |units: i128| {
        u64::try_from((units + numbers.n - 1).div_euclid(numbers.n)).expect("in range")
    };
    // When it begins to have room.
    let runs_at = |c: i128| {
        let mut at = now;
        while !room(c, at) {
            at += 1;
        }
        u64::try_from(at - now).expect("not before now")
    };
    let granted = |c: i128, wait_ns: u64| Expected {
        tat_ns: tat_of(base + c * numbers.p),
        granted: Some(u64::try_from(c).expect("in range")),
        too_large: false,
        wait_ns,
    };
    if cost == 0 {
        return unchanged(Some(0));
    }
    if is_charge {
        let top = (now + numbers.capacity_ns() + numbers.max_wait_ns) * numbers.n;
        let fits = (0..=cost)
            .rev()
            .find(|c| *c == 0 || base + c * numbers.p <= top);
        let charged = fits.unwrap_or(0);
        // Until at least nothing is owed beyond the burst.
        let owed = base + charged * numbers.p;
        let mut at = now;
        while owed > numbers.seen(at) + numbers.burst * numbers.p {
            at += 1;
        }
        let wait_ns = u64::try_from(at - now).expect("not before now");
        let whole = if charged == 0 {
            unchanged(Some(0))
        } else {
            granted(charged, 0)
        };
        return Expected { wait_ns, ..whole };
    }
    let least = at_least.min(cost);
    let most = (0..=cost.min(numbers.burst))
        .rev()
        .find(|c| room(*c, now + wait_ns))
        .unwrap_or(0);
    let grant = if least >= cost { cost } else { most };
    if grant == 0 && least == 0 {
        return unchanged(Some(0));
    }
    let asked = grant.max(least).max(1);
    if asked > numbers.burst {
        return Expected {
            too_large: true,
            ..unchanged(None)
        };
    }
    if room(asked, now + wait_ns) {
        granted(asked, runs_at(asked))
    } else {
        unchanged(None)
    }
}
