//! A limit that changes at run time.

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

/// A limit that changes at run time.
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

    /// Puts `new` in force as of `now`.
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
