//! Loading, stepping and saving.

use std::time::Duration;

use ratekeeper::conformance::Fault;
use ratekeeper::store::{ErrorKind, StateBytes, StoreError};
use ratekeeper::{Algorithm, Clock, Decision, Outcome, Receipt, Request, Step, Timestamp};

use super::hearing::with_bucket;
use super::{Broken, unknown};
use crate::cas::yield_once;
use crate::flaws::Flaw;
use crate::server::Data;

/// The first word of a state: a bucket's TAT.
fn tat<A: Algorithm>(limit: &A, state: &A::State) -> Timestamp {
    let bytes = StateBytes::encode(limit, state).ok();
    let word = bytes.and_then(|bytes| bytes.get(1..9)?.try_into().ok());
    Timestamp::from_nanos(u64::from_be_bytes(word.unwrap_or_default()))
}

impl Broken {
    /// Decides in one step, while nobody else can.
    pub(super) fn decide<A: Algorithm + Clone + 'static>(
        &self,
        name: &[u8],
        algorithm: &A,
        request: &Request,
        reading: Option<Timestamp>,
    ) -> Result<Decision, StoreError> {
        let mut data = self.server.lock();
        if data.fault == Some(Fault::Refuse) {
            return Err(StoreError::new(
                ErrorKind::NotExecuted,
                "the server refuses connections",
            ));
        }
        let now = reading.unwrap_or_else(|| self.now(&data));
        let limit = self.limit(name, algorithm);
        let state = self.load(&mut data, name, &limit, now)?;
        let (step, state) = self.step(&limit, state, request, now);
        self.save(&mut data, name, &limit, &state, &step, now)?;
        match data.fault {
            None => Ok(step.decision),
            Some(_) if self.flaw == Flaw::UnknownsAreCalledNotExecuted => Err(StoreError::new(
                ErrorKind::NotExecuted,
                "the connection broke",
            )),
            Some(_) => unknown("the connection broke"),
        }
    }

    /// Decides in two steps, between which others can come in.
    pub(super) async fn decide_in_two_steps<A: Algorithm + Clone + 'static>(
        &self,
        name: &[u8],
        algorithm: &A,
        request: &Request,
    ) -> Result<Decision, StoreError> {
        if let Some(fault) = self.server.lock().fault {
            let kind = if fault == Fault::Refuse {
                ErrorKind::NotExecuted
            } else {
                ErrorKind::Unknown
            };
            return Err(StoreError::new(kind, "the server is broken"));
        }
        let now = self.server.now();
        let state = self.load(&mut self.server.lock(), name, algorithm, now)?;
        yield_once().await;
        let (step, state) = self.step(algorithm, state, request, now);
        self.save(&mut self.server.lock(), name, algorithm, &state, &step, now)?;
        yield_once().await;
        Ok(step.decision)
    }

    fn step<A: Algorithm + Clone + 'static>(
        &self,
        limit: &A,
        mut state: A::State,
        request: &Request,
        now: Timestamp,
    ) -> (Step, A::State) {
        let other = self.request(limit, request, now, &state);
        let before = state.clone();
        let mut step = limit.step(now, &mut state, other.as_ref().unwrap_or(request));
        let is_denied = step.decision.retry_after().is_some();
        match self.flaw {
            Flaw::RepairsAreNotWritten if step.repaired && !step.decision.is_allowed() => {
                step.keep = None;
                state = before;
            }
            Flaw::ClockStepsAreWaitedOut if step.repaired && is_denied => {
                let retry_after = tat(limit, &before).saturating_since(now);
                let outcome = Outcome::Denied { retry_after };
                step = Step::unchanged(Decision::new(
                    outcome,
                    step.decision.limit(),
                    0,
                    retry_after,
                ));
                state = before;
            }
            Flaw::ClockStepsForgive if step.repaired => {
                state = A::State::default();
                step = limit.step(now, &mut state, other.as_ref().unwrap_or(request));
            }
            Flaw::DenialsAreCharged if is_denied => {
                let line = with_bucket(limit, |bucket| {
                    bucket.with_max_wait(Duration::from_secs(86_400))
                });
                let charge = Request::take(request.cost()).or_wait(Duration::MAX);
                step.keep = line.step(now, &mut state, &charge).keep;
            }
            _ => {}
        }
        if self.flaw == Flaw::ReceiptsAreLost {
            step.decision = step.decision.with_receipt(Receipt::new(0, 0));
        }
        (step, state)
    }

    fn load<A: Algorithm>(
        &self,
        data: &mut Data,
        name: &[u8],
        limit: &A,
        now: Timestamp,
    ) -> Result<A::State, StoreError> {
        if self.flaw == Flaw::StatesAreCached {
            let cached = self.with_memory(|memory| memory.states.get(name).copied());
            if let Some(state) = cached.and_then(|bytes| bytes.decode(limit).ok()) {
                return Ok(state);
            }
        }
        let decoded = match data.get(name, now) {
            None => return Ok(A::State::default()),
            Some(value) => match &value.bytes {
                None => Err(StoreError::new(ErrorKind::Corrupt, "a list is stored here")),
                Some(bytes) if self.flaw == Flaw::TagsAreIgnored => {
                    let mut tagged = bytes.clone();
                    if let Some(tag) = tagged.first_mut() {
                        *tag = limit.tag();
                    }
                    StateBytes::from_stored(&tagged).and_then(|bytes| bytes.decode(limit))
                }
                Some(bytes) => StateBytes::from_stored(bytes).and_then(|bytes| bytes.decode(limit)),
            },
        };
        match self.flaw {
            Flaw::ForeignValuesAreAbsent if decoded.is_err() => Ok(A::State::default()),
            Flaw::ForeignValuesAreRemoved if decoded.is_err() => {
                data.values.remove(name);
                decoded
            }
            Flaw::ForeignValuesAreOverwritten if decoded.is_err() => {
                let fresh = StateBytes::encode(limit, &A::State::default())?;
                data.put(name, &fresh, Duration::from_secs(60), now);
                decoded
            }
            _ => decoded,
        }
    }

    fn save<A: Algorithm>(
        &self,
        data: &mut Data,
        name: &[u8],
        limit: &A,
        state: &A::State,
        step: &Step,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let reset = step.decision.reset_after();
        let keep = match (step.keep, self.flaw) {
            (None, Flaw::DenialsAreWritten) if !step.decision.is_allowed() => Some(reset),
            (None, Flaw::PeeksAreWritten) if step.decision.is_allowed() => Some(reset),
            (None, Flaw::DenialsRenewTheExpiry) => {
                if let Some(value) = data.get(name, now) {
                    value.expires = value.expires.map(|_| now + value.keep);
                }
                None
            }
            (None, Flaw::MissingKeysAreCreated) if data.get(name, now).is_none() => {
                Some(Duration::from_secs(1))
            }
            (None, Flaw::DenialsCountAsWrites) => {
                data.touch(name);
                None
            }
            (keep, _) => keep,
        };
        let Some(keep) = keep else { return Ok(()) };
        let ns = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let keep = match self.flaw {
            Flaw::ExpiryIsCutToMilliseconds => Duration::from_millis(ns(keep) / 1_000_000),
            Flaw::ExpiryIsCutToSeconds => Duration::from_secs(keep.as_secs()),
            Flaw::ExpiryIsAHundredthEarly => keep - keep / 100,
            Flaw::WindowsExpireAfterOne if limit.tag() == 0x13 => keep / 2,
            Flaw::ExpiryIsCapped => keep.min(Duration::from_secs(30 * 86_400)),
            Flaw::ExpiryIsAYearLate => keep + Duration::from_secs(365 * 86_400),
            _ => keep,
        };
        let mut bytes = StateBytes::encode(limit, state)?;
        if self.flaw == Flaw::StatesAreCached {
            self.with_memory(|memory| memory.states.insert(name.to_vec(), bytes));
        }
        if self.flaw == Flaw::StatesAreRoundedToMicroseconds && bytes[0] == 0x11 {
            let tat_ns = u64::from_be_bytes(bytes[1..].try_into().unwrap_or_default());
            let rounded = [&[0x11], (tat_ns / 1_000 * 1_000).to_be_bytes().as_slice()].concat();
            bytes = StateBytes::from_stored(&rounded)?;
        }
        data.put(name, &bytes, keep, now);
        if self.flaw == Flaw::NothingExpires {
            if let Some(value) = data.values.get_mut(name) {
                value.expires = None;
            }
        }
        Ok(())
    }
}
