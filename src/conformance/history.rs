//! Random histories of keys, on a store and on the pure machine.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Display;
use core::time::Duration;

use super::client::{Client, Shown, need_of};
use super::draw::Draw;
use super::finding::{Checked, Finding};
use super::kit::{DAY, Kit, START, YEAR, ns};
use super::need::Need;
use super::seen::{Machine, Said, Seen};
use crate::algorithm::Algorithm;
use crate::decision::Outcome;
use crate::request::{Receipt, Request};
use crate::store::{DynStore, ErrorKind, StateBytes};
use crate::time::{Timestamp, duration_ns};

/// Steps of one key.
const STEPS: u32 = 40;

/// The kinds of request that a history contains.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Ask {
    /// All or nothing, at once.
    Takes,
    /// Also in part, with a wait, in arrears, and back.
    Everything,
}

/// Looks at what a request leaves in the backend.
pub(super) trait Watch<A: Algorithm> {
    /// Before each request.
    fn before(&mut self, client: &Client<'_, A>) -> Checked {
        let _ = client;
        Ok(())
    }

    /// After each request that was answered as it should be.
    fn after(&mut self, client: &Client<'_, A>, left: &Left<'_>) -> Checked {
        let _ = (client, left);
        Ok(())
    }
}

/// What a request leaves behind.
pub(super) struct Left<'l> {
    /// What was asked.
    pub(super) case: &'l str,
    /// How long the state must be kept, if it was written.
    pub(super) keep: Option<Duration>,
    /// What should be stored, if it can have one form only.
    pub(super) value: Option<StateBytes>,
}

impl<A: Algorithm> Watch<A> for () {}

/// A number of histories, each of one key in a key space of its own.
pub(super) struct History<'h, A: Algorithm> {
    kit: Kit<'h>,
    need: Need,
    open: &'h dyn Fn(&str) -> Option<DynStore<str, A>>,
    tick: Duration,
    ask: Ask,
    is_forgetful: bool,
    is_judged: bool,
    requests: u32,
}

impl<'h, A: Algorithm + Clone> History<'h, A> {
    pub(super) fn new(
        kit: Kit<'h>,
        need: Need,
        open: &'h dyn Fn(&str) -> Option<DynStore<str, A>>,
    ) -> Self {
        Self {
            kit,
            need,
            open,
            tick: ns(1),
            ask: Ask::Everything,
            is_forgetful: false,
            is_judged: true,
            requests: kit.requests(),
        }
    }

    pub(super) fn of(self, ask: Ask) -> Self {
        Self { ask, ..self }
    }

    /// For algorithms that drop what is over when they write: a new state then says nothing of an old one. A log does not.
    pub(super) fn of_forgetful_states(self) -> Self {
        Self {
            is_forgetful: true,
            ..self
        }
    }

    pub(super) fn with_tick(self, tick: Duration) -> Self {
        Self {
            tick: tick.max(ns(1)),
            ..self
        }
    }

    /// For watchers: fewer requests, and a wrong answer just ends the history, since it is another clause's matter.
    pub(super) fn watched(self) -> Self {
        Self {
            is_judged: false,
            requests: self.requests / 8,
            ..self
        }
    }

    /// Runs them, each under three limits from `limits`.
    pub(super) fn run(
        &self,
        limits: &mut dyn FnMut(&mut Draw) -> [A; 3],
        watch: &mut dyn Watch<A>,
    ) -> Checked {
        let mut draw = Draw::new(26);
        let mut lacking = None;
        for number in 0..(self.requests / STEPS).max(1) {
            self.kit.clock()?.set(START);
            let space = self.kit.space();
            let store = (self.open)(&space).ok_or_else(|| self.kit.lacks(self.need))?;
            let limits = limits(&mut draw);
            let client = Client::new(self.kit, store, space, limits[0].clone());
            let mut key = OneKey {
                history: self,
                client,
                limits,
                limit: 0,
                machine: self.kit.machine(self.tick),
                stored: None,
                floor: Timestamp::ZERO,
                receipts: Vec::new(),
                last: None,
                told: format!("history {number}:"),
            };
            for _ in 0..STEPS {
                if !key.choose_limit_and_time(&mut draw)?
                    || !key.step(&mut draw, watch, &mut lacking)?
                {
                    break;
                }
            }
        }
        lacking.map_or(Ok(()), |need| Err(self.kit.lacks(need)))
    }
}

/// The last write of a state.
struct Written {
    /// The store may drop it from here on.
    until: Timestamp,
    /// The limit it was written under.
    limit: usize,
    /// That time has come, so that it may be gone.
    is_over: bool,
}

struct OneKey<'h, A: Algorithm> {
    history: &'h History<'h, A>,
    client: Client<'h, A>,
    limits: [A; 3],
    /// Which of the limits holds.
    limit: usize,
    machine: Machine<A>,
    stored: Option<Written>,
    /// When the last state that may be gone was over. Before that it was there.
    floor: Timestamp,
    /// The store's and the machine's, of the same charges.
    receipts: Vec<(Receipt, Receipt)>,
    last: Option<Seen>,
    /// What has happened, for messages.
    told: String,
}

impl<A: Algorithm + Clone> OneKey<'_, A> {
    /// Moves to the next request's limit and time. Returns `false` if two stores may now rightly differ: if one dropped what
    /// is over, and the other did not.
    fn choose_limit_and_time(&mut self, draw: &mut Draw) -> Result<bool, Finding> {
        let may_be_gone = match &self.stored {
            Some(written) if self.history.is_forgetful => written.is_over,
            _ => self.floor > Timestamp::ZERO,
        };
        // Under another limit it may still count.
        if !may_be_gone && draw.once_in(8) {
            self.limit = draw.of(&[0, 1, 2]);
            self.client.limit = self.limits[self.limit].clone();
        }
        let clock = self.history.kit.clock()?;
        let now = self.history.kit.now()?;
        let new = self.moved(now, draw);
        if new < self.floor || new > START + 50 * YEAR {
            return Ok(true);
        }
        clock.set(new);
        if let Some(written) = &mut self.stored {
            if new >= written.until && !written.is_over {
                if written.limit != self.limit {
                    return Ok(false);
                }
                written.is_over = true;
                self.floor = written.until;
                self.machine.forget();
            }
        }
        Ok(true)
    }

    /// A time at which something is about to happen, or any other, in whole ticks.
    fn moved(&self, now: Timestamp, draw: &mut Draw) -> Timestamp {
        let (now_ns, tick_ns) = (now.as_nanos(), duration_ns(self.history.tick));
        let last = self.last.as_ref();
        let reset_ns = last.map_or(0, |seen| duration_ns(seen.reset_after));
        let retry_ns = match last.map(|seen| seen.outcome) {
            Some(Outcome::Denied { retry_after }) => duration_ns(retry_after),
            _ => last.map_or(0, |seen| duration_ns(seen.wait)),
        };
        let forwards = |by_ns: u64| now_ns.saturating_add(by_ns);
        let new_ns = match draw.below(16) {
            0..4 => now_ns,
            4 => forwards(draw.below(4) * tick_ns),
            5 | 6 => forwards(retry_ns),
            7 => forwards(retry_ns).saturating_sub(tick_ns).max(now_ns),
            8 => forwards(reset_ns),
            9 => forwards(reset_ns).saturating_sub(tick_ns).max(now_ns),
            10..13 => forwards(draw.below(reset_ns.saturating_add(2))),
            13 => forwards(draw.below(reset_ns.saturating_mul(2).saturating_add(2))),
            14 => now_ns.saturating_sub(draw.below(reset_ns.saturating_add(2))),
            _ => {
                let far = draw.of(&[Duration::from_secs(10), DAY, YEAR]);
                if draw.once_in(2) {
                    forwards(duration_ns(far))
                } else {
                    now_ns.saturating_sub(duration_ns(far))
                }
            }
        };
        Timestamp::from_nanos(new_ns / tick_ns * tick_ns)
    }

    /// Asks both. Returns `false` if the history ends here.
    fn step(
        &mut self,
        draw: &mut Draw,
        watch: &mut dyn Watch<A>,
        lacking: &mut Option<Need>,
    ) -> Result<bool, Finding> {
        let kit = self.history.kit;
        let now = kit.now()?;
        let (asked, expected) = self.request(draw);
        let need = need_of(&asked).filter(|_| self.history.ask == Ask::Everything);
        let (told, limit) = (&self.told, self.limit);
        let case = format!("{told}\n      {:?}, limit {limit}: {asked:?}", Since(now));
        let before = self.machine.clone();
        let said = self.machine.step(&self.client.limit, now, &expected);
        watch.before(&self.client)?;
        let broken = |actual: &dyn Display| {
            let case = format!("{case}\n      limits: {:?}", self.limits);
            Err(kit.broken(case, format!("{:?}", said.seen), actual))
        };
        let decision = match self.client.try_ask(asked) {
            Ok(decision) => decision,
            Err(error) if error.kind() == ErrorKind::Unsupported && need.is_some() => {
                self.machine = before;
                *lacking = need;
                return Ok(true);
            }
            Err(_) if !self.history.is_judged => return Ok(false),
            Err(error) => return broken(&Shown(&error)),
        };
        let seen = Seen::from(&decision);
        if seen != said.seen {
            return if self.history.is_judged {
                broken(&format!("{seen:?}"))
            } else {
                Ok(false)
            };
        }
        self.told = format!("{case}\n        {seen:?}");
        // An expired state may or may not be there to be written again.
        let may_be_gone = self.stored.as_ref().is_some_and(|written| written.is_over);
        if !may_be_gone || said.keep.is_some() {
            let is_certain = self.floor == Timestamp::ZERO && self.history.tick == ns(1);
            let value = self.machine.stored(&self.client.limit);
            let left = Left {
                case: &self.told,
                keep: said.keep,
                value: value.filter(|_| is_certain),
            };
            watch.after(&self.client, &left)?;
        }
        self.remember(now, said, decision.into_receipt());
        Ok(true)
    }

    fn remember(&mut self, now: Timestamp, said: Said, receipt: Receipt) {
        self.last = Some(said.seen);
        if said.seen.granted > 0 {
            self.receipts.push((receipt, said.receipt));
        }
        let Some(keep) = said.keep else {
            return;
        };
        let is_over = keep.is_zero();
        if is_over {
            self.floor = now;
            self.machine.forget();
        }
        self.stored = Some(Written {
            until: now + keep,
            limit: self.limit,
            is_over,
        });
    }

    /// The next request, once for the store and once for the machine.
    fn request(&mut self, draw: &mut Draw) -> (Request, Request) {
        let twice = |request: &dyn Fn() -> Request| (request(), request());
        let cost = self.cost(draw);
        let kind = match self.history.ask {
            Ask::Takes => 0,
            Ask::Everything => draw.below(12),
        };
        match kind {
            6 | 7 => {
                let at_least = draw.below(4);
                twice(&|| Request::up_to(cost).at_least(at_least))
            }
            8 => {
                let patience = self.patience(draw);
                twice(&|| Request::take(cost).or_wait(patience))
            }
            9 => twice(&|| Request::up_to(cost).at_least(0).or_wait(Duration::MAX)),
            10 | 11 if !self.receipts.is_empty() => {
                let which = draw.below(self.receipts.len() as u64);
                let which = usize::try_from(which).unwrap_or(0);
                let (ours, theirs) = self.receipts.swap_remove(which);
                (Request::refund(cost, ours), Request::refund(cost, theirs))
            }
            _ => twice(&|| Request::take(cost)),
        }
    }

    fn cost(&self, draw: &mut Draw) -> u64 {
        let (limit, remaining) = self
            .last
            .map_or((5, 5), |seen| (seen.limit, seen.remaining));
        match draw.below(16) {
            0 => 0,
            1..7 => 1,
            7 | 8 => draw.below(4),
            9 | 10 => remaining,
            11 => remaining.saturating_add(1),
            12 => limit,
            13 => limit.saturating_add(1),
            14 => draw.below(limit.saturating_add(1)),
            _ => draw.of(&[u64::from(u32::MAX), 1 << 53, u64::MAX]),
        }
    }

    fn patience(&self, draw: &mut Draw) -> Duration {
        let reset = self.last.map_or(Duration::ZERO, |seen| seen.reset_after);
        match draw.below(4) {
            0 => Duration::MAX,
            1 => reset,
            _ => ns(draw.below(duration_ns(reset).saturating_add(2))),
        }
    }
}

/// A time as messages show it.
struct Since(Timestamp);

impl core::fmt::Debug for Since {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        if self.0 < START {
            write!(f, "{:?} before the start", START.saturating_since(self.0))
        } else {
            write!(f, "{:?} after the start", self.0.saturating_since(START))
        }
    }
}
