//! Cells: shared homes of a single state, in which a step is atomic.
//!
//! # Why relaxed orderings suffice
//! A state is self-contained: all of it is in one word, and nothing else in memory is published through
//! it. Exactness needs only that the words of one cell form one order (coherence) and that a
//! compare-exchange acts on the newest (atomicity); every ordering gives both.

use core::fmt::{self, Debug};
use core::marker::PhantomData;

use crate::algorithm::{Algorithm, Step};
use crate::request::Request;
use crate::state::State;
use crate::sync::{AtomicU64, AtomicU128, Lock, Ordering, Shareable};
use crate::time::Timestamp;

/// A shared home for one state.
pub trait Cell<S>: Debug + Send + Shareable {
    /// A cell that holds the state of a key never seen.
    const FRESH: Self;

    /// Runs one step at `now`. The reading may be older than the state it meets.
    fn apply<A>(&self, algorithm: &A, request: &Request, now: Timestamp) -> Step
    where
        A: Algorithm<State = S>;

    /// Forgets everything.
    fn reset(&self);

    /// Shows the state.
    fn with_state<R>(&self, f: impl FnOnce(&S) -> R) -> R;

    /// A cell that holds `state`.
    fn holding(state: S) -> Self
    where
        Self: Sized;
}

/// The lock-free step: load, decide, exchange; again if somebody else was faster.
#[inline(always)]
pub(crate) fn exchange_loop<S: Copy, A: Algorithm<State = S>>(
    algorithm: &A,
    request: &Request,
    now: Timestamp,
    mut word: S,
    exchange: impl Fn(S, S) -> Result<S, S>,
) -> Step {
    loop {
        let mut state = word;
        let step = algorithm.step(now, &mut state, request);
        if step.keep.is_none() {
            return step;
        }
        match exchange(word, state) {
            Ok(_) => return step,
            Err(newer) => word = newer,
        }
    }
}

/// What fits 64 bits, all zero when fresh.
pub trait SingleWord: Copy + Send + Sync + 'static {
    fn into_word(self) -> u64;
    fn from_word(word: u64) -> Self;
}

/// 64 bits.
pub struct WordCell<S>(AtomicU64, PhantomData<S>);

impl<S> Debug for WordCell<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WordCell").field(&self.0).finish()
    }
}

impl<S: SingleWord> Cell<S> for WordCell<S> {
    #[allow(clippy::declare_interior_mutable_const)] // a fresh cell each time is the point
    const FRESH: Self = Self(AtomicU64::new(0), PhantomData);

    #[inline(always)] // or the step is copied through memory: 74 against 63 ns for a keyed check
    fn apply<A>(&self, algorithm: &A, request: &Request, now: Timestamp) -> Step
    where
        A: Algorithm<State = S>,
    {
        let word = S::from_word(self.0.load(Ordering::Relaxed));
        exchange_loop(algorithm, request, now, word, |old, new| {
            let (old, new) = (old.into_word(), new.into_word());
            self.0
                .compare_exchange_weak(old, new, Ordering::Relaxed, Ordering::Relaxed)
                .map(S::from_word)
                .map_err(S::from_word)
        })
    }

    fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    #[inline]
    fn with_state<R>(&self, f: impl FnOnce(&S) -> R) -> R {
        f(&S::from_word(self.0.load(Ordering::Relaxed)))
    }

    fn holding(state: S) -> Self {
        Self(AtomicU64::new(state.into_word()), PhantomData)
    }
}

/// What fits 128 bits, all zero when fresh.
pub trait PairWord: Copy + Send + Sync + 'static {
    fn into_word(self) -> u128;
    fn from_word(word: u128) -> Self;
}

/// 128 bits. On targets without such an exchange, portable-atomic takes a lock around each access.
pub struct PairCell<S>(AtomicU128, PhantomData<S>);

impl<S> Debug for PairCell<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PairCell").field(&self.0).finish()
    }
}

impl<S: PairWord> Cell<S> for PairCell<S> {
    #[allow(clippy::declare_interior_mutable_const)] // a fresh cell each time is the point
    const FRESH: Self = Self(AtomicU128::new(0), PhantomData);

    #[inline(always)] // as above
    fn apply<A>(&self, algorithm: &A, request: &Request, now: Timestamp) -> Step
    where
        A: Algorithm<State = S>,
    {
        let word = S::from_word(self.0.load(Ordering::Relaxed));
        exchange_loop(algorithm, request, now, word, |old, new| {
            let (old, new) = (old.into_word(), new.into_word());
            self.0
                .compare_exchange_weak(old, new, Ordering::Relaxed, Ordering::Relaxed)
                .map(S::from_word)
                .map_err(S::from_word)
        })
    }

    fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    #[inline]
    fn with_state<R>(&self, f: impl FnOnce(&S) -> R) -> R {
        f(&S::from_word(self.0.load(Ordering::Relaxed)))
    }

    fn holding(state: S) -> Self {
        Self(AtomicU128::new(state.into_word()), PhantomData)
    }
}

/// Wider states, and the exact log's ring, under a lock.
#[derive(Debug)]
pub struct LockCell<S>(Lock<S>);

impl<S: State> Cell<S> for LockCell<S> {
    #[allow(clippy::declare_interior_mutable_const)] // a fresh cell each time is the point
    const FRESH: Self = Self(Lock::new(S::FRESH));

    fn apply<A>(&self, algorithm: &A, request: &Request, now: Timestamp) -> Step
    where
        A: Algorithm<State = S>,
    {
        self.0.with(|state| algorithm.step(now, state, request))
    }

    fn reset(&self) {
        self.0.with(|state| *state = S::FRESH);
    }

    fn with_state<R>(&self, f: impl FnOnce(&S) -> R) -> R {
        self.0.with(|state| f(state))
    }

    fn holding(state: S) -> Self {
        Self(Lock::new(state))
    }
}
