//! The two buckets without a number: one that lets everything pass, one that lets nothing pass.
//!
//! Tables of tiers hold `&'static TokenBucket`, and a key keeps its kind of algorithm when its tier changes; so both are
//! buckets, and not kinds of their own. Neither ever writes a state. What a key owes under another limit stays
//! where it is, grows old as time passes, and is met again by the next limit that counts: blocking a key and
//! unblocking it forgives nothing, nor does a day without a limit that ends early.
//!
//! # Speed
//! Their internal burst is 0. Every take begins by comparing its cost with the burst, which an ordinary bucket needs in any
//! case; here it fails and leads to the cold refusal, and only there (and on the paths that are never folded into a caller)
//! the flag is read. An ordinary bucket's check runs the instructions it would run without them.

use core::time::Duration;

use super::TokenBucket;
use super::lattice::Lattice;
use crate::algorithm::Step;
use crate::decision::{Decision, Outcome};
use crate::rate::Rate;
use crate::request::Receipt;

/// Whether a bucket is one that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Extent {
    Finite,
    Unlimited,
    Blocked,
}

/// What `UNLIMITED` says it has: the largest integer of a structured header field (RFC 9651, 3.3.1).
const MOST: u64 = 999_999_999_999_999;

impl TokenBucket {
    /// Lets everything pass, up to 999,999,999,999,999 tokens at once; for tiers and routes that have no limit. In text,
    /// `unlimited`.
    ///
    /// It never writes: a key that was only ever checked under it takes no place in a store. A cost above that number, the
    /// largest that an HTTP field can state, is [`Outcome::TooLarge`]. The decision says it as `limit` and as `remaining`,
    /// never a wait, and grants what was asked; the receipt gives nothing back, here or under another limit.
    ///
    /// What another limit left on a key stays there and is said by `reset_after`, which is zero otherwise.
    ///
    /// ```
    /// use ratekeeper::{Limiter, Request, Timestamp, TokenBucket};
    ///
    /// let limiter = Limiter::new("unlimited".parse::<TokenBucket>()?);
    /// let decision = limiter.apply_at(Request::take(1_000_000), Timestamp::ZERO);
    /// assert!(decision.is_allowed());
    /// assert_eq!(decision.remaining(), 999_999_999_999_999);
    /// # Ok::<(), ratekeeper::InvalidLimit>(())
    /// ```
    pub const UNLIMITED: Self = Self::of_extent(Extent::Unlimited);

    /// Lets nothing pass. In text, `blocked`.
    ///
    /// A bucket of burst 0: every cost above 0 is [`Outcome::TooLarge`], since no wait would help; a peek is allowed and
    /// says that 0 remain; a charge for work already done is allowed and charges 0. It never writes. What the key
    /// owed before stays and is said by `reset_after`, so that blocking a key and unblocking it forgives nothing.
    ///
    /// ```
    /// use ratekeeper::{Limiter, Outcome, Request, Timestamp, TokenBucket};
    ///
    /// let limiter = Limiter::new(TokenBucket::BLOCKED);
    /// assert_eq!(limiter.check_at(Timestamp::ZERO).outcome(), Outcome::TooLarge);
    /// assert_eq!(limiter.apply_at(Request::PEEK, Timestamp::ZERO).remaining(), 0);
    /// ```
    pub const BLOCKED: Self = Self::of_extent(Extent::Blocked);

    /// Whether this is [`UNLIMITED`](Self::UNLIMITED), whatever its version.
    #[inline]
    pub const fn is_unlimited(&self) -> bool {
        matches!(self.extent, Extent::Unlimited)
    }

    /// Whether this is [`BLOCKED`](Self::BLOCKED), whatever its version.
    #[inline]
    pub const fn is_blocked(&self) -> bool {
        matches!(self.extent, Extent::Blocked)
    }

    /// Whether this bucket counts at all.
    #[inline]
    pub(super) const fn is_finite(&self) -> bool {
        matches!(self.extent, Extent::Finite)
    }

    const fn of_extent(extent: Extent) -> Self {
        // Numbers with which the arithmetic of backends and users neither divides by zero nor strays far: 1/s with room for
        // none, and as many as can be said per nanosecond.
        let (tokens, period_ns) = match extent {
            Extent::Unlimited => (MOST, 1),
            Extent::Finite | Extent::Blocked => (1, 1_000_000_000),
        };
        let rate = Rate::new(tokens, period_ns);
        Self {
            tokens,
            period_ns,
            burst: 0,
            max_wait_ns: 0,
            rate,
            capacity_ns: 0,
            reach_ns: 0,
            lattice: Lattice::new(rate),
            all_but_one: (0, 0),
            extent,
            version: 0,
        }
    }

    /// The whole step of a bucket that does not count. A refund is a peek: neither has anything to give back.
    #[inline]
    pub(super) fn extreme(
        &self,
        now_ns: u64,
        tat_ns: u64,
        cost: u64,
        at_least: u64,
        is_charge: bool,
    ) -> Step {
        let most = self.burst();
        let (grant, at_least) = (cost.min(most), at_least.min(cost));
        let outcome = if grant < at_least {
            Outcome::TooLarge
        } else {
            Outcome::Allowed
        };
        // Stores forget keys that say 0 here, and what another limit left on the key must not be forgotten.
        let owed = Duration::from_nanos(tat_ns.saturating_sub(now_ns));
        let mut decision = Decision::new(outcome, most, most, owed);
        if grant >= at_least {
            // With a mark so long ago, no limit gives anything back for it.
            decision = decision.with_receipt(Receipt::new(grant, Receipt::VOID_MARK));
        }
        if is_charge {
            decision = decision.with_uncharged(cost - grant);
        }
        Step::unchanged(decision)
    }
}
