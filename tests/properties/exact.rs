//! The token bucket by definition: a level in exact fractions, refilled continuously, cut at the burst.
//! Tokens are counted in `1/period`ths and time in `1/tokens`ths of a nanosecond, which makes both whole
//! numbers and one unit of time refill one unit of the level.

use ratekeeper::TokenBucket;

pub(crate) fn tokens(bucket: &TokenBucket) -> i128 {
    i128::from(bucket.tokens())
}

pub(crate) fn period(bucket: &TokenBucket) -> i128 {
    i128::try_from(bucket.period().as_nanos()).expect("a period fits 64 bits")
}

pub(crate) fn burst(bucket: &TokenBucket) -> i128 {
    i128::from(bucket.burst())
}

/// More than one token a nanosecond.
pub(crate) fn is_dense(bucket: &TokenBucket) -> bool {
    tokens(bucket) > period(bucket)
}

/// A token takes a whole number of nanoseconds.
pub(crate) fn is_whole(bucket: &TokenBucket) -> bool {
    period(bucket) % tokens(bucket) == 0
}

/// Time to fill, in whole nanoseconds.
pub(crate) fn full_ns(bucket: &TokenBucket) -> u64 {
    let units = u128::from(bucket.burst()) * bucket.period().as_nanos();
    u64::try_from(units.div_ceil(u128::from(bucket.tokens()))).expect("a burst refills in 64 bits")
}

/// The last instant from which nothing that the bucket may grant reaches past the end of time.
pub(crate) fn horizon(bucket: &TokenBucket) -> Option<u64> {
    let wait_ns = u64::try_from(bucket.max_wait().as_nanos()).ok()?;
    (u64::MAX - full_ns(bucket)).checked_sub(wait_ns)
}

/// An instant on the true clock.
pub(crate) fn on_time(bucket: &TokenBucket, now: u64) -> i128 {
    tokens(bucket) * i128::from(now)
}

/// An instant on the late clock through which the machine sees an exact bucket. Token `j` begins at `j·T`,
/// seen on the next whole nanosecond; from there the clock runs on, but stops short of the part of a
/// nanosecond that is left of the token.
pub(crate) fn late(bucket: &TokenBucket, now: u64) -> i128 {
    let (n, p) = (tokens(bucket), period(bucket));
    if is_dense(bucket) || is_whole(bucket) {
        return on_time(bucket, now);
    }
    let now = i128::from(now);
    let token = now * n / p;
    let seen_at = -((-token * p).div_euclid(n));
    let run_on = (now - seen_at).min(p / n - 1);
    token * p + run_on * n
}

/// How late that clock ever is: one nanosecond and the fraction of another.
pub(crate) fn slack(bucket: &TokenBucket) -> i128 {
    if is_dense(bucket) || is_whole(bucket) {
        0
    } else {
        tokens(bucket) + period(bucket) % tokens(bucket) - 1
    }
}

/// A bucket in exact fractions. Its level may be below zero, by reservations.
#[derive(Clone, Debug)]
pub(crate) struct Exact {
    period: i128,
    full: i128,
    level: i128,
    then: i128,
}

impl Exact {
    pub(crate) fn full(bucket: &TokenBucket, now: i128) -> Self {
        let full = burst(bucket) * period(bucket);
        Self {
            period: period(bucket),
            full,
            level: full,
            then: now,
        }
    }

    /// The level in units.
    pub(crate) fn level_at(&self, now: i128) -> i128 {
        self.full.min(self.level + (now - self.then))
    }

    pub(crate) fn is_full_at(&self, now: i128) -> bool {
        self.level_at(now) == self.full
    }

    pub(crate) fn advance(&mut self, now: i128) {
        (self.level, self.then) = (self.level_at(now), now);
    }

    /// Whole tokens there are.
    pub(crate) fn available_at(&self, now: i128) -> i128 {
        self.level_at(now).div_euclid(self.period).max(0)
    }

    /// Whole tokens that can be overdrawn before the bucket would be full only at `top`.
    pub(crate) fn overdraft(&self, top: i128) -> i128 {
        let owed = self.full - self.level;
        (top - self.then - owed).div_euclid(self.period)
    }

    pub(crate) fn take(&mut self, tokens: i128) {
        self.level -= tokens * self.period;
    }
}

/// The most that was ever taken in a window beyond what the rate gives back in it: over all windows that
/// end now, in units.
#[derive(Clone, Debug)]
pub(crate) struct Meter {
    worst: i128,
    then: i128,
}

impl Meter {
    pub(crate) const fn new() -> Self {
        Self { worst: 0, then: 0 }
    }

    /// Counts units taken (or, negative, given back) at an instant that is not before the last one.
    pub(crate) fn count(&mut self, now: i128, units: i128) -> i128 {
        self.worst = (self.worst - (now - self.then)).max(0) + units;
        self.then = now;
        self.worst
    }
}

/// An exact bucket on the true clock for the full range of every number. It starts with [`slack`] units
/// more than its burst, because the machine may see its clock that much later in one place than in
/// another.
#[derive(Clone, Debug)]
pub(crate) struct Wide {
    tokens: u128,
    period: u128,
    slack: u128,
    full: u128,
    level: u128,
    then: u64,
    /// Units that every take loses on top.
    toll: u128,
}

impl Wide {
    pub(crate) fn full(bucket: &TokenBucket, now: u64) -> Self {
        let (tokens, period) = (u128::from(bucket.tokens()), bucket.period().as_nanos());
        let slack = if tokens > period || period % tokens == 0 {
            0
        } else {
            tokens + period % tokens - 1
        };
        let full = u128::from(bucket.burst()) * period + slack;
        Self {
            tokens,
            period,
            slack,
            full,
            level: full,
            then: now,
            toll: 0,
        }
    }

    /// The same, losing less than a nanosecond with every take if the rate is dense: no request is rounded up
    /// by more.
    pub(crate) fn with_toll(mut self) -> Self {
        self.toll = if self.tokens > self.period {
            self.tokens - 1
        } else {
            0
        };
        self
    }

    pub(crate) fn advance(&mut self, now: u64) {
        let refill = u128::from(now - self.then) * self.tokens;
        let level = self.level.checked_add(refill).unwrap_or(self.full);
        (self.level, self.then) = (level.min(self.full), now);
    }

    /// Whether `cost` tokens may pass at all.
    pub(crate) fn may_pass(&self, cost: u64) -> bool {
        self.level >= u128::from(cost) * self.period
    }

    /// Whether `cost` tokens must pass: they are there even on the latest clock.
    pub(crate) fn must_pass(&self, cost: u64) -> bool {
        self.level >= self.cost(cost) + 2 * self.slack
    }

    fn cost(&self, tokens: u64) -> u128 {
        u128::from(tokens) * self.period + self.toll
    }

    pub(crate) fn take(&mut self, tokens: u64) {
        self.level = self.level.saturating_sub(self.cost(tokens));
    }
}
