//! A limit that changes at run time.
//!
//! A record holds the last limits, each with the instant from which on it holds. A bucket's state says under which of them it came
//! about; a step opens it through the changes it missed and decides. What makes that right:
//!
//! * **(a) No torn limit**: sequence numbers around the words, with fences; see `record`.
//! * **(b) The generation is looked up after the state was loaded**, hence the two fences of `bucket`; otherwise `g + 1` reads as
//!   `g − 3`.
//! * **(c) Opening is pure and keeps order**: it depends on the state and the record alone, so a key that comes late sees
//!   what it would have seen at the change, waits stay exact, and a refusal writes nothing.
//! * **(d) A state that missed 4 changes (8, 12, …) is not opened**: it is a debt in time under the limit in force,
//!   which is safe under any limit.
//! * **(e) A receipt's mark is the whole word** and is opened like the state, in the same generation. Where both were cut to one
//!   reach but were not the same, it gives back nothing.
//! * **(f) No store compares states as words**: what is compared is `debt_ns`, which opens them.

mod bucket;
mod changeable;
#[cfg(all(test, loom))]
mod model;
mod plain;
mod record;
mod word;

use core::fmt;

pub use self::changeable::Changeable;
pub(crate) use self::plain::Plain;
use self::record::Record;
pub(crate) use self::word::LiveWord;
use super::{Algorithm, Carry, Misfit, StateKind, Step, TokenBucket};
use crate::invalid_limit::InvalidLimit;
use crate::request::Request;
use crate::sync::const_unless_modelled;
use crate::time::Timestamp;

mod sealed {
    pub trait Sealed {}
}

/// A limit that changes at run time, for all keys at once: a reloaded configuration, a switch in an emergency.
///
/// ```
/// use ratekeeper::{Limiter, Live, Timestamp, TokenBucket};
///
/// static LIMIT: Limiter<Live> = Limiter::new(Live::new(TokenBucket::per_hour(10)));
///
/// let now = Timestamp::from_nanos(1_000);
/// assert_eq!(LIMIT.check_at(now).remaining(), 9);
/// LIMIT.set_at(TokenBucket::per_second(5), now)?;
/// assert_eq!(LIMIT.check_at(now).remaining(), 4); // nine of ten were left, and five fit
/// # Ok::<(), ratekeeper::InvalidLimit>(())
/// ```
///
/// [`Limiter::set`](crate::Limiter::set) and [`KeyedLimiter::set`](crate::KeyedLimiter::set) change it. Setting the limit that is in
/// force changes nothing.
///
/// # What is kept
/// Each key keeps its whole tokens, at most as many as the new limit holds; a full bucket stays full; a raised burst comes in
/// empty; what is owed beyond the new burst and `max_wait` is cut to that. The change takes place at its instant, however late a
/// key comes. Windows keep their counts, and only the count may change: see [`Changeable`].
/// [`UNLIMITED`](TokenBucket::UNLIMITED) and [`BLOCKED`](TokenBucket::BLOCKED) leave what a key owes as it is.
///
/// A key that was not charged during four changes, or eight, keeps its debt in time instead: it is full again when it would have been.
///
/// # Bounds
/// A key passes at most the burst at the start, what each limit refills while it holds, each raise of the burst, and what refills in
/// 3 ns more for each change. A thread that was on its way with the old limit when it changed adds what that one refills in the
/// delay, and what it took then once more. A key untouched for four changes or more adds a burst at most. Requests that wait
/// keep their instants, so their tokens count once more with each change. Stated waits are exact until the next change.
///
/// # Price
/// A check reads the limit without locks and copies it: about twice the plain bucket's time when allowed and four times when
/// refused. A key that has missed changes and is refused is opened again each time, at some 15 times a check. Reading never waits for a
/// [`set`](crate::Limiter::set), but setters wait for each other, spinning: on one core without an operating system, do not call it
/// from an interrupt that may come in the middle of another. Bucket states end in the year 2116: beyond it all is
/// [`TooLarge`](crate::Outcome::TooLarge). The value takes about 1.3 kB.
///
/// # What it is not for
/// * Another process does not learn of the change: on a shared store, give the limit a version number.
/// * One key that moves to another tier: [`KeyedLimiter::change`](crate::KeyedLimiter::change).
/// * [`KeyedLimiter::under`](crate::KeyedLimiter::under): only the limiter's own `Live` can read its keys, so neither a plain
///   bucket nor another `Live` can be lent. Make the limiter of a plain limit and lend `live.get()`.
///
/// ```compile_fail,E0277
/// use ratekeeper::{KeyedLimiter, Live, TokenBucket};
///
/// let users = KeyedLimiter::<u64, Live>::new(Live::new(TokenBucket::per_second(1)));
/// let other = Live::new(TokenBucket::per_second(2));
/// users.under(&other).check(&1);
/// ```
pub struct Live<A = TokenBucket> {
    first: A,
    record: Record,
}

impl<A: Changeable> Live<A> {
    const_unless_modelled! {
        /// A limit that will be in force until it is changed.
        pub const fn new(limit: A) -> Self {
            Self {
                first: limit,
                record: Record::new(),
            }
        }
    }

    /// The limit in force.
    pub fn get(&self) -> A {
        self.first.current(&self.record)
    }

    /// Puts `new` in force as of `now`: for a limit that stands in no limiter and whose [`get`](Self::get) is lent. In a limiter, its
    /// own `set` also asks the store.
    ///
    /// # Errors
    /// [`InvalidLimit`] if that would change what cannot change.
    pub fn set_at(&self, new: A, now: Timestamp) -> Result<(), InvalidLimit> {
        self.first.may_become(&new)?;
        self.first.set(&self.record, now, &new);
        Ok(())
    }
}

impl<A: Changeable> Algorithm for Live<A> {
    type State = A::LiveState;

    #[inline(always)]
    fn step(&self, now: Timestamp, state: &mut Self::State, request: &Request) -> Step {
        self.first.step_live(&self.record, now, state, request)
    }

    /// Two of these share no states: each has generations of its own. It can only forget.
    fn change(&self, _now: Timestamp, state: &mut Self::State, _old: &Self, carry: Carry) -> bool {
        if carry != Carry::Full {
            return false;
        }
        *state = Self::State::default();
        true
    }

    #[inline]
    fn debt_ns(&self, now: Timestamp, state: &Self::State) -> u64 {
        self.first.debt_live_ns(&self.record, now, state)
    }

    /// What all its limits have in common.
    #[inline]
    fn state_kind(&self) -> StateKind {
        self.first.state_kind()
    }

    fn in_ticks(&self, tick_ns: u64, most: u32) -> Result<Self, Misfit> {
        self.get().in_ticks(tick_ns, most).map(Self::new)
    }

    #[inline]
    fn step_in_ticks(
        &self,
        ticks: (u64, u32),
        now: Timestamp,
        state: &mut Self::State,
        request: &Request,
    ) -> Option<Step> {
        self.first
            .step_live_in_ticks(&self.record, ticks, now, state, request)
    }
}

impl<A: Changeable> From<A> for Live<A> {
    fn from(limit: A) -> Self {
        Self::new(limit)
    }
}

impl<A: Changeable> fmt::Debug for Live<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Live").field(&self.get()).finish()
    }
}
