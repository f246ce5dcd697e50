//! Several limits on one key, chosen at run time: how many, and which.

use core::fmt;
use core::slice;

use super::all::{
    change_each_of, kind_of_all, longest_debt_ns, open_bodies, seal_bodies, step_each_of, tag_of,
    write_kinds,
};
use super::{Algorithm, AnyAlgorithm, Carry, StateKind, Step};
use crate::invalid_limit::InvalidLimit;
use crate::request::{MAX_LIMITS, Request};
use crate::time::Timestamp;

/// One to four limits on one key from one text, such as `"10/s burst 20; sliding 1000/h"`, all of which must allow.
///
/// It is to [`All`](crate::All) what [`AnyAlgorithm`] is to the algorithms: the same rule, all are charged or none, and the
/// same decisions, for a configuration file that says how many limits there are. Where the program knows that,
/// [`All`](crate::All) takes less memory.
///
#[cfg_attr(feature = "std", doc = "```")]
#[cfg_attr(not(feature = "std"), doc = "```ignore")]
/// use ratekeeper::{Limiter, Limits, Request, Timestamp};
///
/// let limits: Limits = "10/s burst 2; fixed 1000/day".parse()?;
/// assert_eq!(limits.len(), 2);
/// assert_eq!(limits.to_string(), "10/s burst 2; fixed 1000/day");
///
/// let limiter = Limiter::new(limits);
/// let decision = limiter.apply_at(Request::take(3), Timestamp::ZERO);
/// assert_eq!((decision.is_allowed(), decision.index()), (false, 0));
/// # Ok::<(), ratekeeper::InvalidLimit>(())
/// ```
///
/// The state is 64 bytes under a lock, however many limits there are; to be shared between threads it needs the feature
/// `std`. Two sets of limits are equal when they have the same limits in the same order.
///
/// `log` is none of them, since its state has no fixed size. A bucket with a version may be one in this process, where the
/// version says nothing; shared stores refuse it among others, for which it would decide as well.
///
/// # Bounds
/// Those of each limit. A key may go on under limits of other numbers; the algorithms, the windows' lengths and the order must
/// stay, or the answer is [`Outcome::Unsupported`](crate::Outcome::Unsupported).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Limits {
    /// The first one also stands in the places that are not used, so that equal limits are equal here.
    members: [AnyAlgorithm; MAX_LIMITS],
    /// From 1 to 4.
    len: usize,
}

#[allow(clippy::len_without_is_empty)] // never empty
impl Limits {
    /// The most limits that can be kept together: 4.
    pub const MOST: usize = MAX_LIMITS;

    /// These limits, at once.
    ///
    /// ```
    /// use ratekeeper::{AnyAlgorithm, InvalidLimit, Limits, TokenBucket};
    ///
    /// let rates = [TokenBucket::per_second(10), TokenBucket::per_hour(1_000)];
    /// assert_eq!(Limits::new(rates), "10/s; 1000/h".parse());
    /// assert_eq!(Limits::new([] as [AnyAlgorithm; 0]), Err(InvalidLimit::NotOneToFour));
    /// ```
    ///
    /// # Errors
    /// [`InvalidLimit::NotOneToFour`] if there are none, or more than four.
    pub fn new<L: Into<AnyAlgorithm>>(
        limits: impl IntoIterator<Item = L>,
    ) -> Result<Self, InvalidLimit> {
        let mut limits = limits.into_iter().map(Into::into);
        let first = limits.next().ok_or(InvalidLimit::NotOneToFour)?;
        let mut members = [first; MAX_LIMITS];
        let mut len = 1;
        for limit in limits {
            *members.get_mut(len).ok_or(InvalidLimit::NotOneToFour)? = limit;
            len += 1;
        }
        Ok(Self { members, len })
    }

    /// How many there are, from 1 to 4.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// The limits in their order; a decision's [`index`](crate::Decision::index) counts them.
    pub fn iter(&self) -> slice::Iter<'_, AnyAlgorithm> {
        self.members().iter()
    }

    fn members(&self) -> &[AnyAlgorithm] {
        &self.members[..self.len]
    }
}

impl<'a> IntoIterator for &'a Limits {
    type Item = &'a AnyAlgorithm;
    type IntoIter = slice::Iter<'a, AnyAlgorithm>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// [`Limits::new`].
impl TryFrom<&[AnyAlgorithm]> for Limits {
    type Error = InvalidLimit;

    fn try_from(limits: &[AnyAlgorithm]) -> Result<Self, InvalidLimit> {
        Self::new(limits.iter().copied())
    }
}

impl Algorithm for Limits {
    /// Each limit's state at its place, the others zero.
    type State = [u128; MAX_LIMITS];

    fn step(&self, now: Timestamp, states: &mut Self::State, request: &Request) -> Step {
        match self.len {
            1 => step_each_of::<1, 4, _>(&self.members, now, states, request),
            2 => step_each_of::<2, 4, _>(&self.members, now, states, request),
            3 => step_each_of::<3, 4, _>(&self.members, now, states, request),
            _ => step_each_of::<4, 4, _>(&self.members, now, states, request),
        }
    }

    /// To as many limits of the same kinds.
    fn change(&self, now: Timestamp, states: &mut Self::State, old: &Self, carry: Carry) -> bool {
        change_each_of(self.members(), now, states, old.members(), carry)
    }

    fn debt_ns(&self, now: Timestamp, states: &Self::State) -> u64 {
        longest_debt_ns(self.members(), now, states)
    }

    fn state_kind(&self) -> StateKind {
        kind_of_all(self.members())
    }

    fn tag(&self) -> u8 {
        tag_of(self.members().iter().map(Algorithm::tag))
    }

    /// Like an array of as many.
    fn wire_len(&self) -> usize {
        self.members().iter().map(Algorithm::wire_len).sum()
    }

    fn open_body(&self, now: Timestamp, body: &[u8]) -> (Self::State, bool) {
        open_bodies(self.members(), now, body)
    }

    fn seal_body(
        &self,
        states: &Self::State,
        before: Option<(&Self::State, &[u8])>,
        takes: bool,
        out: &mut [u8],
    ) {
        let before = before.map(|(states, body)| (&states[..], body));
        seal_bodies(self.members(), states, before, takes, out);
    }

    fn is_stateless(&self) -> bool {
        self.members().iter().all(Algorithm::is_stateless)
    }

    fn write_kind(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        write_kinds(self.members(), out)
    }
}
