//! Loading, stepping and saving.

use std::any::Any;
use std::time::Duration;

use ratekeeper::conformance::Fault;
use ratekeeper::store::{ErrorKind, StateBytes, StoreError, StoredStep, StoredWrite, step_stored};
use ratekeeper::{
    Algorithm, Carry, Change, Clock, Decision, Receipt, Request, Timestamp, TokenBucket,
};

use super::hearing::with_bucket;
use super::{Broken, unknown};
use crate::cas::yield_once;
use crate::flaws::Flaw;
use crate::server::Data;

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
        let limit = self.limit(&mut data, name, algorithm);
        let found = self.load(&mut data, name, &limit, now)?;
        let step = self.step(&limit, found.as_ref(), request, now)?;
        self.save(&mut data, name, &limit, &step, found.as_ref(), now)?;
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
        let found = self.load(&mut self.server.lock(), name, algorithm, now)?;
        yield_once().await;
        let step = self.step(algorithm, found.as_ref(), request, now)?;
        self.save(
            &mut self.server.lock(),
            name,
            algorithm,
            &step,
            found.as_ref(),
            now,
        )?;
        yield_once().await;
        Ok(step.decision)
    }

    fn step<A: Algorithm + Clone + 'static>(
        &self,
        limit: &A,
        found: Option<&StateBytes>,
        request: &Request,
        now: Timestamp,
    ) -> Result<StoredStep, StoreError> {
        let state = found.map(|found| found.decode(limit)).transpose()?;
        let state = state.unwrap_or_default();
        let other = self.request(limit, request, now, &state);
        let request = other.as_ref().unwrap_or(request);
        let cut = self.cut(limit, &state, now);
        let mut step = match self.flaw {
            Flaw::ClockStepsAreWaitedOut => plain(limit, found, request, now)?,
            Flaw::WindowsAheadAreKept if limit.tag() == 0x13 => plain(limit, found, request, now)?,
            _ if self.is_in_process => plain(limit, cut.as_ref().or(found), request, now)?,
            _ => step_stored(limit, now, found, request)?,
        };
        let is_denied = step.decision.retry_after().is_some();
        match self.flaw {
            Flaw::RepairsAreNotWritten if is_denied => step.write = None,
            Flaw::ClockStepsForgive if is_denied && step.write.is_some() => {
                step = step_stored(limit, now, None, request)?;
            }
            Flaw::RefusalsWriteWhatTheyCut if step.write.is_none() => {
                let keep = step.decision.reset_after();
                step.write = cut.map(|value| StoredWrite { value, keep });
            }
            Flaw::ChargesFillUp if is_charge(request) && step.decision.uncharged() > 0 => {
                if let Some((limit, most_ns)) = top(limit, now) {
                    let value = StateBytes::encode(&limit, &most_ns)?;
                    let keep = Timestamp::from_nanos(most_ns).saturating_since(now);
                    step.write = Some(StoredWrite { value, keep });
                }
            }
            Flaw::DenialsAreCharged if is_denied => {
                let line = with_bucket(limit, |bucket| {
                    bucket.with_max_wait(Duration::from_secs(86_400))
                });
                let charge = Request::take(request.cost()).or_wait(Duration::MAX);
                step.write = plain(&line, found, &charge, now)?.write;
            }
            _ => {}
        }
        if self.flaw == Flaw::ReceiptsAreLost {
            step.decision = step.decision.with_receipt(Receipt::new(0, 0));
        }
        Ok(step)
    }

    /// The state cut to what the asking limit could have left, by the flaws that take what is further ahead for a mistake.
    fn cut<A: Algorithm + Clone + 'static>(
        &self,
        limit: &A,
        state: &A::State,
        now: Timestamp,
    ) -> Option<StateBytes> {
        let cuts = [Flaw::CutsWhatIsAhead, Flaw::RefusalsWriteWhatTheyCut];
        let (limit, most_ns) = top(limit, now).filter(|_| cuts.contains(&self.flaw))?;
        let is_ahead = (state as &dyn Any).downcast_ref::<u64>()? > &most_ns;
        let cut = is_ahead.then(|| StateBytes::encode(&limit, &most_ns).ok());
        cut.flatten()
    }

    /// Moves a key to another limit.
    pub(super) fn change<A: Algorithm + Clone + 'static>(
        &self,
        name: &[u8],
        old: &A,
        new: &A,
        carry: Carry,
    ) -> Result<Decision, StoreError> {
        let (old, new) = match self.flaw {
            Flaw::ChangesRunBackwards => (new, old),
            Flaw::ChangesTakeTheNewLimitForTheOld => (new, new),
            _ => (old, new),
        };
        let carry = match self.flaw {
            Flaw::ChangesAlwaysKeepTokens => Carry::Tokens,
            Flaw::ChangesKeepDebts if carry == Carry::Tokens => Carry::Debt,
            _ => carry,
        };
        let change = Change { old, new, carry };
        let data = &mut self.server.lock();
        let now = self.now(data);
        let runs = 1 + u32::from(self.flaw == Flaw::ChangesRunTwice);
        let mut answer = None;
        for _ in 0..runs {
            let found = self.load(data, name, old, now)?;
            let step = if self.is_in_process {
                plain(&change, found.as_ref(), &Request::PEEK, now)?
            } else {
                step_stored(&change, now, found.as_ref(), &Request::PEEK)?
            };
            if self.flaw != Flaw::ChangesAreNotWritten {
                self.save(data, name, new, &step, found.as_ref(), now)?;
            }
            answer = Some(step.decision);
        }
        answer.ok_or(StoreError::new(ErrorKind::Unknown, "it never ran"))
    }

    fn load<A: Algorithm>(
        &self,
        data: &mut Data,
        name: &[u8],
        limit: &A,
        now: Timestamp,
    ) -> Result<Option<StateBytes>, StoreError> {
        if self.flaw == Flaw::StatesAreCached {
            let cached = self.with_memory(|memory| memory.states.get(name).copied());
            if cached.is_some_and(|bytes| bytes.decode(limit).is_ok()) {
                return Ok(cached);
            }
        }
        let checked = |bytes: StateBytes| bytes.decode(limit).map(|_| Some(bytes));
        let decoded = match data.get(name, now) {
            None => return Ok(None),
            Some(value) => match &value.bytes {
                None => Err(StoreError::new(ErrorKind::Corrupt, "a list is stored here")),
                Some(bytes)
                    if self.flaw == Flaw::OtherKindsAreCorrupt
                        && [0x13, 0x14].contains(&bytes[0])
                        && limit.tag() == 0x21 =>
                {
                    Err(StoreError::new(
                        ErrorKind::Corrupt,
                        "no bucket is stored here",
                    ))
                }
                Some(bytes) if self.flaw == Flaw::TagsAreIgnored => {
                    let mut tagged = bytes.clone();
                    if let Some(tag) = tagged.first_mut() {
                        *tag = limit.tag();
                    }
                    StateBytes::from_stored(&tagged).and_then(checked)
                }
                Some(bytes) => StateBytes::from_stored(bytes).and_then(checked),
            },
        };
        match self.flaw {
            Flaw::ForeignValuesAreAbsent if decoded.is_err() => Ok(None),
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
        step: &StoredStep,
        found: Option<&StateBytes>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let reset = step.decision.reset_after();
        let keep = match (step.write.map(|write| write.keep), self.flaw) {
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
        let fresh = || StateBytes::encode(limit, &A::State::default());
        let mut bytes = match (step.write, found) {
            (Some(write), _) => write.value,
            (None, Some(found)) => *found,
            (None, None) => fresh()?,
        };
        if self.flaw == Flaw::StatesAreCached {
            self.with_memory(|memory| memory.states.insert(name.to_vec(), bytes));
        }
        if self.flaw == Flaw::StatesAreRoundedToMicroseconds && bytes[0] == 0x21 {
            let tat_ns = u64::from_be_bytes(bytes[1..9].try_into().unwrap_or_default());
            let tat = (tat_ns / 1_000 * 1_000).to_be_bytes();
            let rounded = [&[0x21], tat.as_slice(), &bytes[9..]].concat();
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

/// A step where values are states and nothing more: as in this process.
fn plain<A: Algorithm>(
    limit: &A,
    found: Option<&StateBytes>,
    request: &Request,
    now: Timestamp,
) -> Result<StoredStep, StoreError> {
    let state = found.map(|found| found.decode(limit)).transpose()?;
    let mut state = state.unwrap_or_default();
    let step = limit.step(now, &mut state, request);
    let write = step.keep.map(|keep| {
        let value = StateBytes::encode(limit, &state);
        value.map(|value| StoredWrite { value, keep })
    });
    Ok(StoredStep {
        decision: step.decision,
        write: write.transpose()?,
    })
}

/// The furthest ahead that a bucket can be booked, its own limit and waits included.
fn top<A: Algorithm + 'static>(limit: &A, now: Timestamp) -> Option<(TokenBucket, u64)> {
    let limit = *(limit as &dyn Any).downcast_ref::<TokenBucket>()?;
    let capacity_ns = limit.period().as_nanos() * u128::from(limit.burst());
    let capacity_ns = capacity_ns.div_ceil(u128::from(limit.tokens()));
    let capacity = Duration::from_nanos(u64::try_from(capacity_ns).unwrap_or(u64::MAX));
    Some((limit, (now + capacity + limit.max_wait()).as_nanos()))
}

fn is_charge(request: &Request) -> bool {
    matches!(request, Request::Take { at_least: 0, max_wait, .. } if *max_wait == Duration::MAX)
}
