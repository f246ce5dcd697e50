//! Readings of the clock that are older than the state they meet.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::OnceLock;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;

use super::super::draw::Draw;
use super::super::pausing::PausingClock;
use super::super::run::{join_all, yield_once};
use super::prelude::*;
use crate::clock::ManualClock;

const CALLERS: u32 = 4;
/// After so many answers, one was asked for after the last leap, so that no leap is left unused.
const ANSWERS_A_LEAP: u32 = CALLERS + 1;

/// While the clock leaps forwards, no caller who read it before the leap takes the others' states for ones that are too far
/// ahead: cutting them would let a second burst through.
pub fn stale_readings_forgive_nothing(subject: &dyn Subject) -> Checked {
    let kit = Kit::begin(subject, "stale_readings_forgive_nothing");
    let clock = kit.clock()?;
    if subject.sends_readings() {
        return Err(kit.lacks(Need::FreshReadings));
    }
    let leaps = kit.requests() / (2 * ANSWERS_A_LEAP);
    Leaps::new(kit, clock, leaps).among_threads()?;
    Leaps::new(kit, clock, leaps).among_tasks()?;
    match subject.pausing_clock() {
        Some(clock) => overtaken(kit, clock),
        None => Ok(()),
    }
}

/// How often a reader is held up.
const PAUSES: u32 = 10;

/// Holds a caller up that has read the clock, until another one, for whom it is later already, has been served; or for a moment,
/// if that one waits for the first.
fn overtaken(kit: Kit<'_>, clock: &PausingClock) -> Checked {
    let client = kit.bucket(TokenBucket::per_second(1));
    let ask = || match client.try_ask(Request::ONE) {
        Ok(decision) => Ok(decision.granted()),
        Err(error) if error.kind() == ErrorKind::Contention => Ok(0),
        Err(error) => Err(kit.broken("a clock that leaps", "a decision", Shown(&error))),
    };
    for _ in 0..PAUSES {
        clock.advance(10 * SECOND);
        client.take("the only token", 1)?.allowed()?;
        let (first, second) = thread::scope(|scope| {
            clock.arm();
            let first = scope.spawn(ask);
            clock.wait_for_reader(|| first.is_finished());
            clock.advance(10 * SECOND);
            let second = scope.spawn(ask);
            let (_never, timer) = mpsc::channel::<()>();
            for _ in 0..10 {
                if second.is_finished()
                    || timer.recv_timeout(ms(1)) != Err(RecvTimeoutError::Timeout)
                {
                    break;
                }
            }
            clock.release();
            (first.join(), second.join())
        });
        let panicked = || kit.broken("a clock that leaps", "no panic", "a panic");
        let first = first.map_err(|_| panicked())??;
        let second = second.map_err(|_| panicked())??;
        let third = ask()?;
        kit.is(
            first + second + third <= 1,
            "one token per second, the bucket empty; one caller reads the clock, which then leaps ahead 10 s, and a second caller \
             overtakes the first; then a third one asks",
            "one of the three is allowed",
            [first, second, third],
        )?;
    }
    Ok(())
}

/// Callers of one key, and a clock that leaps.
struct Leaps<'s> {
    kit: Kit<'s>,
    clock: &'s ManualClock,
    leaps: u32,
    callers: Vec<Client<'s, TokenBucket>>,
    answers: AtomicU32,
    admitted: AtomicU64,
    is_over: AtomicBool,
    broken: OnceLock<Finding>,
}

impl<'s> Leaps<'s> {
    fn new(kit: Kit<'s>, clock: &'s ManualClock, leaps: u32) -> Self {
        let first = kit.bucket(TokenBucket::per_second(1));
        let again = || Client {
            store: kit.subject.buckets(&first.space),
            ..first.clone()
        };
        Self {
            kit,
            clock,
            leaps,
            callers: (0..CALLERS).map(|_| again()).collect(),
            answers: AtomicU32::new(0),
            admitted: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
            broken: OnceLock::new(),
        }
    }

    fn among_threads(self) -> Checked {
        let (kit, leaps) = (self.kit, &self);
        thread::scope(|scope| {
            let asking: Vec<_> = self
                .callers
                .iter()
                .zip(0..)
                .map(|(caller, seed)| scope.spawn(move || kit.run(leaps.ask(seed, caller))))
                .collect();
            for leap in 1..=self.leaps {
                // A caller that panicked ends the scope with its panic.
                while !self.is_used(leap) && !asking.iter().any(|caller| caller.is_finished()) {
                    thread::yield_now();
                }
                self.clock.advance(10 * SECOND);
            }
            self.is_over.store(true, Ordering::Relaxed);
        });
        self.verdict("threads")
    }

    fn among_tasks(self) -> Checked {
        // The clock leaps between the callers' turns, not only before or after all of them.
        let (some, others) = self.callers.split_at(self.callers.len() / 2);
        let turns = some
            .iter()
            .map(Some)
            .chain([None])
            .chain(others.iter().map(Some));
        let leaps = &self;
        self.kit
            .run(join_all(turns.zip(0..).map(|(caller, seed)| async move {
                match caller {
                    Some(caller) => leaps.ask(seed, caller).await,
                    None => leaps.leap().await,
                }
            })));
        self.verdict("tasks")
    }

    async fn ask(&self, seed: u64, caller: &Client<'_, TokenBucket>) {
        let mut draw = Draw::new(seed);
        while !self.is_over.load(Ordering::Relaxed) {
            // Out of step, or all would read the clock at the same time.
            for _ in 0..draw.below(3) {
                yield_once().await;
            }
            let asked = caller
                .store
                .apply_async(&caller.key, &caller.limit, Request::ONE);
            match asked.await {
                Ok(decision) => {
                    self.admitted
                        .fetch_add(decision.granted(), Ordering::Relaxed);
                }
                Err(error) if error.kind() == ErrorKind::Contention => {}
                Err(error) => {
                    let found = self
                        .kit
                        .broken("a clock that leaps", "a decision", Shown(&error));
                    let _ = self.broken.set(found);
                    self.is_over.store(true, Ordering::Relaxed);
                }
            }
            self.answers.fetch_add(1, Ordering::Relaxed);
        }
    }

    async fn leap(&self) {
        for leap in 1..=self.leaps {
            while !self.is_used(leap) && !self.is_over.load(Ordering::Relaxed) {
                yield_once().await;
            }
            self.clock.advance(10 * SECOND);
        }
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// Whether there were enough answers to go on with this leap.
    fn is_used(&self, leap: u32) -> bool {
        self.answers.load(Ordering::Relaxed) >= leap * ANSWERS_A_LEAP
    }

    fn verdict(self, callers: &str) -> Checked {
        if let Some(finding) = self.broken.into_inner() {
            return Err(finding);
        }
        let (leaps, admitted) = (self.leaps, self.admitted.into_inner());
        self.kit.is(
            admitted <= u64::from(leaps) + 1,
            format!("one token per second; the clock leaps 10 s ahead {leaps} times while {CALLERS} {callers} ask"),
            format!("at most {} allowed", leaps + 1),
            admitted,
        )
    }
}
