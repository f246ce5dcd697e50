//! Whether to ask, in two words.

use core::time::Duration;

use crate::algorithm::Algorithm;
use crate::clock::Clock;
use crate::store::batch::Item;
use crate::store::error::{ErrorKind, StoreError};
use crate::sync::{AtomicU64, Ordering};
use crate::time::{Timestamp, duration_ns};

/// In place of the next probe's time, which is never 0: it lies at least a nanosecond after an instant.
const CLOSED: u64 = 0;

#[derive(Debug)]
pub(super) struct Circuit<C> {
    clock: C,
    threshold: u64,
    open_ns: u64,
    /// In a row, while closed.
    outages: AtomicU64,
    /// When the next probe is due, or `CLOSED`.
    probe_at_ns: AtomicU64,
    times_opened: AtomicU64,
    calls_refused: AtomicU64,
}

impl<C> Circuit<C> {
    pub(super) const fn new(outages: u32, open_for: Duration, clock: C) -> Self {
        let open_ns = duration_ns(open_for);
        Self {
            clock,
            threshold: if outages == 0 { 1 } else { outages as u64 },
            open_ns: if open_ns == 0 { 1 } else { open_ns },
            outages: AtomicU64::new(0),
            probe_at_ns: AtomicU64::new(CLOSED),
            times_opened: AtomicU64::new(0),
            calls_refused: AtomicU64::new(0),
        }
    }

    pub(super) fn times_opened(&self) -> u64 {
        self.times_opened.load(Ordering::Relaxed)
    }

    pub(super) fn calls_refused(&self) -> u64 {
        self.calls_refused.load(Ordering::Relaxed)
    }
}

impl<C: Clock> Circuit<C> {
    /// Until the next probe if it is open; zero if the next call is it.
    pub(super) fn probe_in(&self) -> Option<Duration> {
        // Relaxed: for the reader's eyes only.
        match self.probe_at_ns.load(Ordering::Relaxed) {
            CLOSED => None,
            probe_at_ns => Some(self.until(probe_at_ns, self.clock.now())),
        }
    }

    /// Whether all calls go through.
    pub(super) fn is_closed(&self) -> bool {
        // Relaxed: who finds it closed just before it opens is one more call that was under way.
        self.probe_at_ns.load(Ordering::Relaxed) == CLOSED
    }

    /// Lets the call through, or not.
    pub(super) fn enter(&self) -> Result<(), StoreError> {
        // Acquire, paired with the Release in `succeeded`: who finds it closed also finds the outages forgotten.
        let mut probe_at_ns = self.probe_at_ns.load(Ordering::Acquire);
        while probe_at_ns != CLOSED {
            let now = self.clock.now();
            if !self.until(probe_at_ns, now).is_zero() {
                break;
            }
            // Whoever moves the next probe ahead is this one. Nothing more needs to be said about it, so a probe that is
            // never heard of again keeps nobody waiting for longer than that.
            match self.probe_at_ns.compare_exchange(
                probe_at_ns,
                self.next_probe(now),
                Ordering::Acquire,
                Ordering::Acquire,
            ) {
                Ok(_) => return Ok(()),
                Err(newer) => probe_at_ns = newer,
            }
        }
        if probe_at_ns == CLOSED {
            return Ok(());
        }
        self.calls_refused.fetch_add(1, Ordering::Relaxed);
        Err(StoreError::new(
            ErrorKind::NotExecuted,
            "the breaker is open",
        ))
    }

    /// Until the probe; zero also if the clock cannot have set this time, because it was stepped back since.
    fn until(&self, probe_at_ns: u64, now: Timestamp) -> Duration {
        match probe_at_ns.saturating_sub(now.as_nanos()) {
            left_ns if left_ns > self.open_ns => Duration::ZERO,
            left_ns => Duration::from_nanos(left_ns),
        }
    }

    fn next_probe(&self, now: Timestamp) -> u64 {
        now.as_nanos().saturating_add(self.open_ns)
    }

    pub(super) fn heard<T>(&self, result: &Result<T, StoreError>) {
        match Word::of(result.as_ref().err().map(StoreError::kind)) {
            Word::Outage => self.failed(),
            Word::Alive => self.succeeded(),
            Word::Nothing => {}
        }
    }

    fn succeeded(&self) {
        // Reads first: while all is well, no cache line changes hands.
        if self.outages.load(Ordering::Relaxed) != 0 {
            self.outages.store(0, Ordering::Relaxed);
        }
        if self.probe_at_ns.load(Ordering::Relaxed) != CLOSED {
            // Release: see `enter`.
            self.probe_at_ns.store(CLOSED, Ordering::Release);
        }
    }

    fn failed(&self) {
        let outages = self.outages.fetch_add(1, Ordering::Relaxed);
        if outages.saturating_add(1) < self.threshold {
            return;
        }
        let probe_at_ns = self.next_probe(self.clock.now());
        // Relaxed: says nothing about other memory. If it is open already, it stays as it is.
        let opened = self.probe_at_ns.compare_exchange(
            CLOSED,
            probe_at_ns,
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
        if opened.is_ok() {
            self.times_opened.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// What has been answered so far.
    fn tally<K: ?Sized, A: Algorithm>(items: &[Item<'_, K, A>]) -> Tally {
        let mut tally = Tally::default();
        for item in items {
            match Word::of(item.error_kind()) {
                _ if item.is_open() => {}
                Word::Outage => tally.outages += 1,
                Word::Alive => tally.answers += 1,
                Word::Nothing => {}
            }
        }
        tally
    }

    /// Lets a batch through, or answers it. Items that were answered before do not count.
    pub(super) fn enter_batch<K: ?Sized, A: Algorithm>(
        &self,
        items: &mut [Item<'_, K, A>],
    ) -> Option<Tally> {
        if !items.iter().any(Item::is_open) {
            return None;
        }
        let Err(error) = self.enter() else {
            return Some(Self::tally(items));
        };
        for item in items.iter_mut().filter(|item| item.is_open()) {
            item.answer(Err(StoreError::new(error.kind(), error.message())));
        }
        None
    }

    pub(super) fn heard_batch<K: ?Sized, A: Algorithm>(
        &self,
        before: Tally,
        items: &[Item<'_, K, A>],
    ) {
        let after = Self::tally(items);
        if after.answers > before.answers {
            self.succeeded();
        } else if after.outages > before.outages {
            self.failed();
        }
    }
}

/// What an answer says about the store.
enum Word {
    Alive,
    Outage,
    /// What a store cannot do, it refuses without asking anybody.
    Nothing,
}

impl Word {
    /// Of an error of this kind, or of a decision.
    const fn of(error: Option<ErrorKind>) -> Self {
        match error {
            Some(ErrorKind::Unsupported) => Self::Nothing,
            Some(kind) if kind.is_outage() => Self::Outage,
            _ => Self::Alive,
        }
    }
}

/// Items of a batch by what they say about the store.
#[derive(Clone, Copy, Default)]
pub(super) struct Tally {
    answers: usize,
    outages: usize,
}
