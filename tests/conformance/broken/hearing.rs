//! What the store makes of keys, limits, requests, readings and answers.

use std::any::Any;
use std::time::Duration;

use ratekeeper::store::{ErrorKind, Key, KeyKind, StoreError};
use ratekeeper::{Algorithm, Clock, Decision, Outcome, Receipt, Request, Timestamp, TokenBucket};

use super::Broken;
use crate::flaws::Flaw;
use crate::server::{Data, Server};

/// The limit with its bucket changed, if it is one.
pub(super) fn with_bucket<A: Clone + 'static>(
    limit: &A,
    change: impl Fn(TokenBucket) -> TokenBucket,
) -> A {
    let bucket = (limit as &dyn Any).downcast_ref::<TokenBucket>();
    let changed = bucket.map(|bucket| change(*bucket));
    let limit_again = changed
        .as_ref()
        .and_then(|bucket| (bucket as &dyn Any).downcast_ref::<A>());
    limit_again.unwrap_or(limit).clone()
}
impl Broken {
    /// Under which name the server keeps the key.
    pub(super) fn name<A: Algorithm>(&self, key: &(impl Key + ?Sized), limit: &A) -> Vec<u8> {
        let mut bytes = Vec::new();
        key.write_alone(&mut |part| match self.flaw {
            Flaw::KeysLoseTheirSeparators if part == [0xFF] => {}
            _ => bytes.extend_from_slice(part),
        });
        let text = || String::from_utf8_lossy(&bytes).into_owned();
        let bytes = match self.flaw {
            Flaw::KeysLoseTheirCase => bytes.to_ascii_lowercase(),
            Flaw::KeysAreCutOff => bytes[..bytes.len().min(1_024)].to_vec(),
            Flaw::KeysAreTrimmed => text().trim().as_bytes().to_vec(),
            Flaw::KeysEndAtZero => bytes
                .split(|byte| *byte == 0)
                .next()
                .unwrap_or_default()
                .to_vec(),
            Flaw::KeysAreMadeText => text().into_bytes(),
            _ => bytes,
        };
        match self.flaw {
            Flaw::SpacesAreIgnored => Server::name_of_kind("", &bytes, &KeyKind::of(limit)),
            Flaw::WindowsShareStates => Server::name(&self.space, &bytes),
            Flaw::SpacesRunIntoKeys => [self.space.as_bytes(), &bytes].concat(),
            _ => Server::name_of_kind(&self.space, &bytes, &KeyKind::of(limit)),
        }
    }

    /// The limit as the flaw sees it.
    pub(super) fn limit<A: Algorithm + Clone + 'static>(
        &self,
        data: &mut Data,
        name: &[u8],
        algorithm: &A,
    ) -> A {
        match self.flaw {
            Flaw::LimitsAreKeptFromTheFirstCall => self.with_memory(|memory| {
                let first = memory.limits.entry(name.to_vec());
                let first = first.or_insert_with(|| Box::new(algorithm.clone()));
                first.downcast_ref::<A>().unwrap_or(algorithm).clone()
            }),
            Flaw::LimitsThatDifferForgive => {
                let (text, space) = (format!("{algorithm:?}"), name.to_vec());
                let last =
                    self.with_memory(|memory| memory.limits.insert(space, Box::new(text.clone())));
                let last = last.and_then(|last| last.downcast::<String>().ok());
                if last.is_some_and(|last| *last != text) {
                    data.values.remove(name);
                }
                algorithm.clone()
            }
            Flaw::IntervalsAreTruncated => with_bucket(algorithm, |bucket| {
                let token_ns = bucket.period().as_nanos() / u128::from(bucket.tokens());
                let token = Duration::from_nanos(u64::try_from(token_ns).unwrap().max(1));
                TokenBucket::per(1, token)
                    .with_burst(bucket.burst())
                    .with_max_wait(bucket.max_wait())
            }),
            Flaw::WaitsAreIgnored => {
                with_bucket(algorithm, |bucket| bucket.with_max_wait(Duration::ZERO))
            }
            _ => algorithm.clone(),
        }
    }

    /// The request as the flaw sees it, if it sees another one.
    pub(super) fn request<A: Algorithm>(
        &self,
        algorithm: &A,
        request: &Request,
        now: Timestamp,
        state: &A::State,
    ) -> Option<Request> {
        match (self.flaw, request) {
            (Flaw::CostsAreOne, Request::Take { cost: 1.., .. }) => Some(Request::ONE),
            (Flaw::PeeksTakeOne, Request::Take { cost: 0, .. }) => {
                Some(Request::up_to(1).at_least(0))
            }
            (Flaw::GrantsAreAllOrNothing, Request::Take { cost, max_wait, .. }) => {
                Some(Request::take(*cost).or_wait(*max_wait))
            }
            (
                Flaw::CostsAre32Bits,
                Request::Take {
                    cost,
                    at_least,
                    max_wait,
                    ..
                },
            ) => {
                let low = |number: u64| number & u64::from(u32::MAX);
                Some(
                    Request::up_to(low(*cost))
                        .at_least(low(*at_least))
                        .or_wait(*max_wait),
                )
            }
            (Flaw::RefundsAreLost, Request::Refund { .. }) => Some(Request::PEEK),
            (Flaw::RefundsNeedNoReceipt, Request::Refund { cost, .. }) => {
                // As if all had been charged by the newest request.
                let peek = algorithm
                    .step(now, &mut state.clone(), &Request::PEEK)
                    .decision;
                let mark = now + peek.reset_after();
                Some(Request::refund(*cost, Receipt::new(*cost, mark.as_nanos())))
            }
            _ => None,
        }
    }

    /// What the clock says.
    pub(super) fn now(&self, data: &Data) -> Timestamp {
        let now = self.server.now();
        if self.flaw != Flaw::ReadingsAreReused || data.fault.is_some() {
            return now;
        }
        self.with_memory(|memory| match &mut memory.reading {
            Some((reading, uses)) if *uses > 0 => {
                *uses -= 1;
                *reading
            }
            reading => reading.insert((now, 2)).0,
        })
    }

    /// What the caller is told.
    pub(super) fn translated<A: Algorithm>(
        &self,
        algorithm: &A,
        result: Result<Decision, StoreError>,
    ) -> Result<Decision, StoreError> {
        match (self.flaw, result) {
            (Flaw::DenialsAreErrors, Ok(decision)) if !decision.is_allowed() => {
                Err(StoreError::new(ErrorKind::NotExecuted, "rate limited"))
            }
            (Flaw::ErrorsAreDenials, Err(_)) => {
                let retry_after = Duration::from_secs(1);
                let outcome = Outcome::Denied { retry_after };
                Ok(Decision::new(outcome, 1, 0, retry_after))
            }
            (Flaw::ErrorsAllow, Err(_)) => {
                let step =
                    algorithm.step(self.server.now(), &mut A::State::default(), &Request::PEEK);
                Ok(step.decision)
            }
            (Flaw::LargeCostsAreDenied, Ok(decision))
                if decision.outcome() == Outcome::TooLarge =>
            {
                let retry_after = decision.reset_after().max(Duration::from_nanos(1));
                let outcome = Outcome::Denied { retry_after };
                Ok(Decision::new(
                    outcome,
                    decision.limit(),
                    decision.remaining(),
                    decision.reset_after(),
                ))
            }
            (Flaw::WaitsAreRoundedDown, Ok(decision)) => match decision.outcome() {
                Outcome::Denied { retry_after } => {
                    let millis = u64::try_from(retry_after.as_millis()).unwrap_or(u64::MAX);
                    let retry_after = Duration::from_millis(millis);
                    let outcome = Outcome::Denied { retry_after };
                    Ok(Decision::new(
                        outcome,
                        decision.limit(),
                        decision.remaining(),
                        decision.reset_after(),
                    )
                    .with_index(decision.index()))
                }
                _ => Ok(decision),
            },
            (_, result) => result,
        }
    }
}
