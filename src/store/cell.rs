//! Cells: shared homes of a single state, in which a step is atomic.
//!
//! # Why relaxed orderings suffice
//! A state is self-contained: all of it is in one word, and nothing else in memory is published through
//! it. Exactness needs only that the words of one cell form one order (coherence) and that a
//! compare-exchange acts on the newest (atomicity); every ordering gives both.

use core::fmt::{self, Debug};
use core::marker::PhantomData;

use crate::algorithm::{Algorithm, Step};
use crate::clock::Clock;
use crate::request::Request;
use crate::state::State;
use crate::sync::{AtomicU64, AtomicU128, Lock, Ordering, Shareable};

/// A shared home for one state.
pub trait Cell<S>: Debug + Send + Shareable {
    /// A cell that holds the state of a key never seen.
    const FRESH: Self;

    /// Whether the clock must be read inside the cell, under its lock. Otherwise a reading from shortly before does.
    const LOCKS: bool = false;

    /// Runs one step, at a time read from `clock` once, and again before a repair is stored.
    fn apply<A>(&self, algorithm: &A, request: &Request, clock: &impl Clock) -> Step
    where
        A: Algorithm<State = S>;

    /// Forgets everything.
    fn reset(&self);

    /// The state, if its kind is [ordered](State::IS_ORDERED); 0 otherwise.
    fn word(&self) -> u64 {
        0
    }

    /// A cell that holds `word`, if states of its kind are ordered; otherwise a fresh one.
    fn with_word(word: u64) -> Self
    where
        Self: Sized,
    {
        let _ = word;
        Self::FRESH
    }
}

/// The lock-free step: load, decide, exchange; again if somebody else was faster.
#[inline(always)]
fn exchange_loop<S: Copy, A: Algorithm<State = S>>(
    algorithm: &A,
    request: &Request,
    clock: &impl Clock,
    mut word: S,
    exchange: impl Fn(S, S) -> Result<S, S>,
) -> Step {
    let mut now = clock.now();
    let mut read_after_load = false;
    loop {
        let mut state = word;
        let step = algorithm.step(now, &mut state, request);
        if step.keep.is_none() {
            return step;
        }
        if step.repaired && !read_after_load {
            // The state looks too far ahead, but this reading may be older than the state: a caller
            // delayed between its clock and its load would forgive the delay. Only a reading taken
            // after the load can tell the two apart.
            now = clock.now();
            read_after_load = true;
            continue;
        }
        match exchange(word, state) {
            Ok(_) => return step,
            Err(newer) => word = newer,
        }
        read_after_load = false;
    }
}

/// 64 bits.
#[derive(Debug)]
pub struct WordCell(AtomicU64);

impl Cell<u64> for WordCell {
    #[allow(clippy::declare_interior_mutable_const)] // a fresh cell each time is the point
    const FRESH: Self = Self(AtomicU64::new(0));

    #[inline(always)] // or the step is copied through memory: 74 against 63 ns for a keyed check
    fn apply<A>(&self, algorithm: &A, request: &Request, clock: &impl Clock) -> Step
    where
        A: Algorithm<State = u64>,
    {
        let word = self.0.load(Ordering::Relaxed);
        exchange_loop(algorithm, request, clock, word, |old, new| {
            self.0
                .compare_exchange_weak(old, new, Ordering::Relaxed, Ordering::Relaxed)
        })
    }

    fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    fn word(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn with_word(word: u64) -> Self {
        Self(AtomicU64::new(word))
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
    fn apply<A>(&self, algorithm: &A, request: &Request, clock: &impl Clock) -> Step
    where
        A: Algorithm<State = S>,
    {
        let word = S::from_word(self.0.load(Ordering::Relaxed));
        exchange_loop(algorithm, request, clock, word, |old, new| {
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
}

/// Wider states, and the exact log's ring, under a lock.
#[derive(Debug)]
pub struct LockCell<S>(Lock<S>);

impl<S: State> Cell<S> for LockCell<S> {
    #[allow(clippy::declare_interior_mutable_const)] // a fresh cell each time is the point
    const FRESH: Self = Self(Lock::new(S::FRESH));

    // Readings in the order of the states they meet need no second one before a repair.
    const LOCKS: bool = true;

    fn apply<A>(&self, algorithm: &A, request: &Request, clock: &impl Clock) -> Step
    where
        A: Algorithm<State = S>,
    {
        self.0
            .with(|state| algorithm.step(clock.now(), state, request))
    }

    fn reset(&self) {
        self.0.with(|state| *state = S::FRESH);
    }
}
