//! What a caller asks of a limit, and the receipt for what it was charged.

use core::time::Duration;

/// How many limits one [`All`](crate::All) may combine; a [`Receipt`] has room for that many marks.
pub(crate) const MAX_LIMITS: usize = 4;

/// A question to a limit: take some tokens, or give some back.
///
/// The variants can be read (a remote store serialises them) but are made by the constructors only.
///
/// ```
/// use core::time::Duration;
/// use ratekeeper::Request;
///
/// let batch = Request::take(10); // ten tokens or nothing
/// let some = Request::up_to(10); // as many as there are, at least one
/// let queued = Request::take(1).or_wait(Duration::from_secs(2)); // stand in line for up to 2 s
/// assert_eq!(batch.cost() + some.cost() + queued.cost(), 21);
/// ```
#[non_exhaustive]
#[derive(Debug, PartialEq, Eq)]
pub enum Request {
    /// Take tokens.
    #[non_exhaustive]
    Take {
        /// Tokens asked for; 0 only looks (a peek) and never writes.
        cost: u64,
        /// The smallest grant the caller accepts. Equal to `cost`: all or nothing. Zero: never
        /// refused, possibly granted nothing.
        at_least: u64,
        /// How long the caller would wait for its turn; the limit's own `max_wait` caps it. Exactly [`Duration::MAX`] with an
        /// `at_least` of 0 is a charge (see [`Request::at_least`]): whoever sends a request elsewhere must not cut it.
        max_wait: Duration,
    },
    /// Give back tokens that were charged before.
    #[non_exhaustive]
    Refund {
        /// Tokens to give back; more than were charged counts as what was charged.
        cost: u64,
        /// What the charge handed out.
        receipt: Receipt,
    },
}

impl Request {
    /// One token, now or not at all.
    pub const ONE: Self = Self::take(1);
    /// Look without taking: always allowed, never writes.
    pub const PEEK: Self = Self::take(0);

    /// `n` tokens, all or nothing.
    #[inline]
    pub const fn take(n: u64) -> Self {
        Self::Take {
            cost: n,
            at_least: n,
            max_wait: Duration::ZERO,
        }
    }

    /// As many tokens as there are, from 1 to `n`.
    ///
    /// ```
    /// use ratekeeper::{Limiter, Request, Timestamp, TokenBucket};
    ///
    /// let limiter = Limiter::new(TokenBucket::per_second(3));
    /// let granted = limiter.apply_at(Request::up_to(10), Timestamp::ZERO).granted();
    /// assert_eq!(granted, 3);
    /// ```
    #[inline]
    pub const fn up_to(n: u64) -> Self {
        Self::Take {
            cost: n,
            at_least: if n == 0 { 0 } else { 1 },
            max_wait: Duration::ZERO,
        }
    }

    /// Changes the smallest acceptable grant. With 0 the request is never refused: it takes what
    /// there is, possibly nothing. A number above the cost means the cost. No effect on a refund.
    ///
    /// With 0 and a wait of [`Duration::MAX`] it is a [charge](Self::charge).
    #[inline]
    pub const fn at_least(self, n: u64) -> Self {
        match self {
            Self::Take { cost, max_wait, .. } => Self::Take {
                cost,
                at_least: if n < cost { n } else { cost },
                max_wait,
            },
            refund => refund,
        }
    }

    /// Allows the grant to lie up to `max` in the future (a reservation): the decision is then
    /// allowed and [`Decision::wait`](crate::Decision::wait) says how long to wait before acting.
    /// A limit refuses at once unless it was built with a `max_wait`, which also caps `max`. No
    /// effect on a refund.
    #[inline]
    pub const fn or_wait(self, max: Duration) -> Self {
        match self {
            Self::Take { cost, at_least, .. } => Self::Take {
                cost,
                at_least,
                max_wait: max,
            },
            refund => refund,
        }
    }

    /// Charges `n` tokens for work that was already done: never refused.
    ///
    /// A token bucket goes into debt for it, as far as its `max_wait` allows and no further; windows charge what there is.
    /// Only whole tokens are charged. [`Decision::granted`](crate::Decision::granted) says how many,
    /// [`uncharged`](crate::Decision::uncharged) how many found no room, and [`wait`](crate::Decision::wait) how long until the
    /// bucket has paid what it owes beyond its burst: whoever sleeps that long after each charge keeps to the rate.
    ///
    /// ```
    /// use core::time::Duration;
    /// use ratekeeper::{Limiter, Request, Timestamp, TokenBucket};
    ///
    /// let limit = TokenBucket::per_second(10).with_max_wait(Duration::from_secs(2));
    /// let limiter = Limiter::new(limit);
    /// let now = Timestamp::ZERO;
    /// let sent = limiter.apply_at(Request::charge(25), now);
    /// assert_eq!((sent.granted(), sent.uncharged()), (25, 0));
    /// assert_eq!(sent.wait(), Duration::from_millis(1_500)); // 15 more than the burst of 10
    /// let more = limiter.apply_at(Request::charge(25), now);
    /// assert_eq!((more.granted(), more.uncharged()), (5, 20)); // 2 s of debt is all there may be
    /// ```
    #[inline]
    pub const fn charge(n: u64) -> Self {
        Self::Take {
            cost: n,
            at_least: 0,
            max_wait: Duration::MAX,
        }
    }

    /// Whether this is a [charge](Self::charge).
    #[inline]
    pub(crate) const fn is_charge(&self) -> bool {
        matches!(self, Self::Take { at_least: 0, max_wait, .. }
            if max_wait.as_nanos() == Duration::MAX.as_nanos())
    }

    /// Gives `n` of the tokens that `receipt` stands for back.
    ///
    /// Before a reservation's instant this cancels it, which succeeds only while nobody stands
    /// behind it; afterwards, and for every other charge, tokens return as far as that can never
    /// over-admit. See [`Receipt`].
    #[inline]
    pub const fn refund(n: u64, receipt: Receipt) -> Self {
        Self::Refund { cost: n, receipt }
    }

    /// Tokens asked for, or to be given back.
    #[inline]
    pub const fn cost(&self) -> u64 {
        match self {
            Self::Take { cost, .. } | Self::Refund { cost, .. } => *cost,
        }
    }

    /// What was asked, for whoever answers after the request itself was given away.
    #[inline]
    pub(crate) const fn asked(&self) -> Asked {
        match self {
            Self::Take {
                cost,
                at_least,
                max_wait,
            } => Asked::Take {
                cost: *cost,
                at_least: *at_least,
                max_wait: *max_wait,
            },
            Self::Refund { cost, .. } => Asked::Refund { cost: *cost },
        }
    }

    /// The same take for exactly `cost` tokens.
    pub(crate) const fn with_exact_cost(&self, cost: u64) -> Self {
        match self {
            Self::Take { max_wait, .. } => Self::Take {
                cost,
                at_least: cost,
                max_wait: *max_wait,
            },
            Self::Refund { .. } => Self::PEEK,
        }
    }

    /// The same request with the receipt one of several limits would have handed out.
    #[inline]
    pub(crate) const fn for_limit(&self, index: usize) -> Self {
        match self {
            Self::Take {
                cost,
                at_least,
                max_wait,
            } => Self::Take {
                cost: *cost,
                at_least: *at_least,
                max_wait: *max_wait,
            },
            Self::Refund { cost, receipt } => Self::Refund {
                cost: *cost,
                receipt: receipt.for_limit(index),
            },
        }
    }
}

impl Request {
    /// In builds with debug assertions, makes sure that a receipt comes back where it was handed out: `origin` is a number for
    /// the key and one for the limit, 0 if there is none.
    #[inline(always)]
    pub(crate) fn assert_origin(&self, origin: impl FnOnce() -> (u64, u64)) {
        #[cfg(debug_assertions)]
        if let Self::Refund { receipt, .. } = self {
            let (key, limit) = origin();
            let differs = |here: u64, there: u64| here != 0 && there != 0 && here != there;
            assert!(
                !differs(key, receipt.origin.0),
                "this receipt was handed out for another key"
            );
            assert!(
                !differs(limit, receipt.origin.1),
                "this receipt was handed out under another limit"
            );
        }
        #[cfg(not(debug_assertions))]
        let _ = origin;
    }
}

/// A request without its receipt, which alone forbids copies of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Take {
        cost: u64,
        at_least: u64,
        max_wait: Duration,
    },
    Refund {
        cost: u64,
    },
}

impl Asked {
    /// The request once more; a refund's receipt now stands for nothing.
    #[inline]
    pub(crate) const fn request(self) -> Request {
        match self {
            Self::Take {
                cost,
                at_least,
                max_wait,
            } => Request::Take {
                cost,
                at_least,
                max_wait,
            },
            Self::Refund { cost } => Request::Refund {
                cost,
                receipt: Receipt::NOTHING,
            },
        }
    }
}

/// Proof of a charge, good for giving tokens back once.
///
/// It is neither `Copy` nor `Clone`: using it twice could give the tokens back twice. It may be sent
/// to another task or kept until the work is done; dropping it keeps the charge.
///
/// # What a refund gives back
/// With `B` the burst and `T` the time per token, for a token bucket:
///
/// * Always: tokens taken minus tokens given back, each counted when it happens, stay within
///   `B + W/T` in any span of `W`.
/// * Counting the refunded request as if it had never been made, the same bound holds if nobody else
///   gave tokens back in between; otherwise the excess is at most what those others gave back, and
///   at most this refund's own cost.
/// * A refund that comes after the bucket would have refilled anyway gives back nothing.
///
/// * While others stand in line behind the charge (reservations that have not begun, or charges beyond the burst), it gives back
///   nothing: their instants are promised already, and the tokens would be used twice. Without a `max_wait` there is no line. With
///   one, at 90 % load and requests that give back part of what they took, 9 % of refunds act instead of 92 %: estimate low and
///   [charge](Request::charge) the rest, or let a queue ask only when a token is there.
///
/// Windows and the exact log count requests, so there a refund is exact while the charge is still
/// inside the window.
///
/// # Where it may be spent
/// At the key and under the limit that handed it out; it names neither. Spent elsewhere, it gives back what was never charged
/// there. Builds with debug assertions notice: the limiters and their views then panic, but for a pair of keys (or limits) in
/// 2⁶⁴ that they take for one.
#[derive(Debug)]
pub struct Receipt {
    charged: u64,
    /// What each of several limits was charged: the same, but for charges that one of them had less room for.
    charges: [u64; MAX_LIMITS],
    /// When a reservation's turn comes; 0 for a charge that did not have to wait.
    run_at_ns: u64,
    /// Where the charge left each limit's state: the bucket's new TAT, a window's start, the log's
    /// instant.
    marks: [u64; MAX_LIMITS],
    /// Numbers for the key and the limit, 0 if unknown.
    #[cfg(debug_assertions)]
    origin: (u64, u64),
}

/// Two receipts are equal if they give back the same.
impl PartialEq for Receipt {
    fn eq(&self, other: &Self) -> bool {
        let key = |r: &Self| (r.charged, r.charges, r.run_at_ns, r.marks);
        key(self) == key(other)
    }
}

impl Eq for Receipt {}

impl Receipt {
    /// The receipt of a request that charged nothing.
    pub(crate) const NOTHING: Self = Self::new(0, 0);
    /// The mark of tokens that no store was charged: an instant so long ago that nothing of it can be given back.
    pub(crate) const VOID_MARK: u64 = 0;
    /// The mark of tokens that came from a lease; to the store itself as void as the other.
    #[cfg(feature = "alloc")]
    pub(crate) const LEASED_MARK: u64 = 1;

    /// For authors of algorithms: `charged` tokens, and a mark by which a later refund finds them. Users of limits get their
    /// receipts from [decisions](crate::Decision::into_receipt).
    ///
    /// The marks 0 and 1 are those of tokens that a wrapper handed out
    /// ([`FailOpen`](crate::store::FailOpen), [`Leased`](crate::store::Leased)): on a clock that counts from the Unix
    /// epoch, a refund with one of them must give nothing back.
    #[doc(hidden)]
    #[inline]
    pub const fn new(charged: u64, mark: u64) -> Self {
        Self {
            charged,
            charges: [charged, 0, 0, 0],
            run_at_ns: 0,
            marks: [mark, 0, 0, 0],
            #[cfg(debug_assertions)]
            origin: (0, 0),
        }
    }

    /// Tokens that were charged.
    #[inline]
    pub const fn charged(&self) -> u64 {
        self.charged
    }

    /// Tokens that the limit at `index` of several was charged; 0 if there are not so many. They differ only after a
    /// [charge](Request::charge), which goes to each limit as far as that has room.
    #[inline]
    pub const fn charged_to(&self, index: usize) -> u64 {
        if index < MAX_LIMITS {
            self.charges[index]
        } else {
            0
        }
    }

    /// For authors of algorithms: the mark given to [`Receipt::new`].
    #[inline]
    pub const fn mark(&self) -> u64 {
        self.marks[0]
    }

    /// For authors of stores: the mark of the limit at `index` of several, 0 if there are not so many.
    #[inline]
    pub const fn mark_of(&self, index: usize) -> u64 {
        if index < MAX_LIMITS {
            self.marks[index]
        } else {
            0
        }
    }

    /// For authors of algorithms: the instant, in nanoseconds, before which the work this receipt
    /// was handed out for cannot have begun; 0 unless it was a reservation.
    #[inline]
    pub const fn run_at_ns(&self) -> u64 {
        self.run_at_ns
    }

    /// For authors of algorithms: marks the receipt as that of a reservation due at `run_at_ns`.
    #[inline]
    #[must_use]
    pub const fn with_run_at_ns(mut self, run_at_ns: u64) -> Self {
        self.run_at_ns = run_at_ns;
        self
    }

    /// Says where it was handed out; see [`Request::assert_origin`].
    #[inline(always)]
    #[cfg_attr(not(debug_assertions), allow(unused_mut))]
    pub(crate) fn with_origin(mut self, origin: impl FnOnce() -> (u64, u64)) -> Self {
        #[cfg(debug_assertions)]
        if self.charged > 0 {
            self.origin = origin();
        }
        #[cfg(not(debug_assertions))]
        let _ = origin;
        self
    }

    /// The part of this receipt that concerns the limit at `index`.
    #[inline]
    const fn for_limit(&self, index: usize) -> Self {
        Self::new(self.charges[index], self.marks[index]).with_run_at_ns(self.run_at_ns)
    }

    /// For authors of stores: the marks of several limits, in order; see [`mark_of`](Self::mark_of).
    #[inline]
    #[must_use]
    pub const fn with_marks(mut self, marks: [u64; 4]) -> Self {
        self.marks = marks;
        self.charges = [self.charged; MAX_LIMITS];
        self
    }

    /// The same charge under another mark.
    #[inline(always)]
    pub(crate) const fn with_mark(mut self, mark: u64) -> Self {
        self.marks[0] = mark;
        self
    }

    /// For authors of stores: what each of several limits was charged, in order; see [`charged_to`](Self::charged_to). Say it
    /// after the marks.
    #[inline]
    #[must_use]
    pub const fn with_charges(mut self, charges: [u64; 4]) -> Self {
        self.charges = charges;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_least_never_exceeds_the_cost() {
        assert_eq!(Request::up_to(3).at_least(9), Request::take(3));
        assert_eq!(Request::up_to(0), Request::PEEK);
    }

    #[test]
    fn what_was_asked_is_the_request_without_its_receipt() {
        let take = || {
            Request::up_to(7)
                .at_least(3)
                .or_wait(Duration::from_secs(2))
        };
        assert_eq!(take().asked().request(), take());
        let refund = Request::refund(7, Receipt::new(7, 9));
        let again = Request::refund(7, Receipt::NOTHING);
        assert_eq!(refund.asked().request(), again);
    }

    #[test]
    fn refunds_ignore_the_knobs_of_a_take() {
        let refund = || Request::refund(2, Receipt::new(2, 7));
        assert_eq!(refund().at_least(5).or_wait(Duration::MAX), refund());
    }
}
