//! What every clause works with: the subject, unused key spaces, and findings that say what happened.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use core::fmt::{Debug, Display};
use core::hash::BuildHasher as _;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::hash::RandomState;
use std::sync::OnceLock;

use super::backend::Backend;
use super::client::Client;
use super::finding::{Checked, Finding};
use super::need::Need;
use super::seen::Machine;
use super::subject::Subject;
use crate::algorithm::{Algorithm, TokenBucket};
use crate::clock::{Clock as _, ManualClock};
use crate::store::DynStore;
use crate::time::Timestamp;

/// 2026-01-01 00:00:00 UTC: where the clock stands when a clause begins.
pub(super) const START: Timestamp = Timestamp::from_nanos(1_767_225_600_000_000_000);

pub(super) const SECOND: Duration = Duration::from_secs(1);
pub(super) const DAY: Duration = Duration::from_secs(86_400);
pub(super) const YEAR: Duration = Duration::from_secs(365 * 86_400);

pub(super) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(super) const fn ns(nanos: u64) -> Duration {
    Duration::from_nanos(nanos)
}

/// A clause at work on a subject.
#[derive(Clone, Copy)]
pub(super) struct Kit<'s> {
    pub(super) subject: &'s dyn Subject,
    clause: &'static str,
}

impl<'s> Kit<'s> {
    /// Begins the clause of that name: with the clock, if there is one, at [`START`].
    pub(super) fn begin(subject: &'s dyn Subject, clause: &'static str) -> Self {
        if let Some(clock) = subject.clock() {
            clock.set(START);
        }
        Self { subject, clause }
    }

    /// The name of a key space that nobody has used, in no run.
    pub(super) fn space(self) -> String {
        static RUN: OnceLock<u64> = OnceLock::new();
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let run = RUN.get_or_init(|| RandomState::new().hash_one(0_u8));
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        format!("kit-{run:016x}-{number}")
    }

    /// A key under `limit` in a key space of its own.
    pub(super) fn bucket(self, limit: TokenBucket) -> Client<'s, TokenBucket> {
        let space = self.space();
        let store = self.subject.buckets(&space);
        Client::new(self, store, space, limit)
    }

    /// As [`bucket`](Self::bucket), for one of the algorithms that a subject may lack.
    pub(super) fn client<A: Algorithm>(
        self,
        need: Need,
        open: fn(&dyn Subject, &str) -> Option<DynStore<str, A>>,
        limit: A,
    ) -> Result<Client<'s, A>, Finding> {
        let space = self.space();
        let store = open(self.subject, &space).ok_or_else(|| self.lacks(need))?;
        Ok(Client::new(self, store, space, limit))
    }

    pub(super) fn clock(self) -> Result<&'s ManualClock, Finding> {
        self.subject.clock().ok_or_else(|| self.lacks(Need::Clock))
    }

    /// The time, if it can be held.
    pub(super) fn now(self) -> Result<Timestamp, Finding> {
        Ok(self.clock()?.now())
    }

    pub(super) fn advance(self, by: Duration) -> Checked {
        self.clock()?.advance(by);
        Ok(())
    }

    /// Steps the clock back.
    pub(super) fn step_back(self, by: Duration) -> Checked {
        let clock = self.clock()?;
        clock.set(Timestamp::ZERO + clock.now().saturating_since(Timestamp::ZERO + by));
        Ok(())
    }

    pub(super) fn backend(self) -> Result<&'s dyn Backend, Finding> {
        self.subject
            .backend()
            .ok_or_else(|| self.lacks(Need::Backend))
    }

    /// Lets time pass for the backend.
    pub(super) fn pass(self, time: Duration) -> Checked {
        if self.backend()?.pass(time) {
            Ok(())
        } else {
            Err(self.lacks(Need::Passing))
        }
    }

    /// A key never seen in the pure machine, as this subject's stores treat states.
    pub(super) fn machine<A: Algorithm>(self, tick: Duration) -> Machine<A> {
        Machine::new(self.subject.repairs(), tick)
    }

    /// `requests_per_clause`, at least so many that a clause means something.
    pub(super) fn requests(self) -> u32 {
        self.subject.requests_per_clause().max(200)
    }

    /// Runs a future on the subject.
    pub(super) fn run<T>(self, future: impl Future<Output = T>) -> T {
        let mut result = None;
        self.subject
            .block_on(Box::pin(async { result = Some(future.await) }));
        // A subject that does not run what it is given cannot be tested at all.
        result.unwrap_or_else(|| panic!("`Subject::block_on` came back before its future was done"))
    }

    pub(super) fn lacks(self, need: Need) -> Finding {
        Finding::Lacks {
            clause: self.clause,
            need,
        }
    }

    pub(super) fn broken(
        self,
        case: impl Display,
        expected: impl Display,
        actual: impl Display,
    ) -> Finding {
        Finding::Broken {
            clause: self.clause,
            case: format!("{case}"),
            expected: format!("{expected}"),
            actual: format!("{actual}"),
        }
    }

    pub(super) fn equal<T: PartialEq + Debug>(
        self,
        case: impl Display,
        expected: T,
        actual: T,
    ) -> Checked {
        if expected == actual {
            Ok(())
        } else {
            Err(self.broken(case, format!("{expected:?}"), format!("{actual:?}")))
        }
    }

    pub(super) fn is(
        self,
        truth: bool,
        case: impl Display,
        expected: impl Display,
        actual: impl Debug,
    ) -> Checked {
        if truth {
            Ok(())
        } else {
            Err(self.broken(case, expected, format!("{actual:?}")))
        }
    }
}
