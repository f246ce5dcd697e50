//! A store that keeps the contract, and can be told to break it in one way.

mod deciding;
mod hearing;

use std::any::Any;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::ThreadId;
use std::time::Duration;

use ratekeeper::conformance::{Backend, Fault, Repairs, Subject};
use ratekeeper::store::{AsyncStore, DynStore, ErrorKind, Item, Key, StateBytes, StoreError};
use ratekeeper::{
    Algorithm, All, Carry, Clock, Decision, FixedWindow, ManualClock, Request, SlidingWindow,
    Timestamp, TokenBucket,
};

use crate::cas::yield_once;
use crate::flaws::Flaw;
use crate::server::Server;

/// What a flawed store remembers where it should not.
#[derive(Default)]
pub(crate) struct Memory {
    limits: HashMap<Vec<u8>, Box<dyn Any + Send>>,
    states: HashMap<Vec<u8>, StateBytes>,
    answers: HashMap<(String, ThreadId), VecDeque<Result<Decision, StoreError>>>,
    reading: Option<(Timestamp, u32)>,
}

/// A connection to the server.
pub(crate) struct Broken {
    server: Arc<Server>,
    memory: Arc<Mutex<Memory>>,
    space: String,
    flaw: Flaw,
    is_in_process: bool,
}

pub(crate) struct BrokenStores {
    server: Arc<Server>,
    memory: Arc<Mutex<Memory>>,
    flaw: Flaw,
    /// Whether states ahead of the clock are debt, as in this process, rather than repaired where they prove it.
    is_in_process: bool,
}

impl BrokenStores {
    pub(crate) fn new(flaw: Flaw) -> Self {
        Self {
            server: Server::on_manual_clock(),
            memory: Arc::default(),
            flaw,
            is_in_process: false,
        }
    }

    pub(crate) fn in_process(flaw: Flaw) -> Self {
        Self {
            is_in_process: true,
            ..Self::new(flaw)
        }
    }

    fn open<K, A>(&self, space: &str) -> DynStore<K, A>
    where
        K: Key + ?Sized + 'static,
        A: Algorithm + Clone + 'static,
    {
        let own = self.flaw == Flaw::HandlesKeepTheirOwnData;
        DynStore::new(Broken {
            server: if own {
                self.server.beside()
            } else {
                Arc::clone(&self.server)
            },
            memory: Arc::clone(&self.memory),
            space: space.to_owned(),
            flaw: self.flaw,
            is_in_process: self.is_in_process,
        })
    }
}

impl Subject for BrokenStores {
    fn buckets(&self, space: &str) -> DynStore<str, TokenBucket> {
        self.open(space)
    }

    fn windows(&self, space: &str) -> Option<DynStore<str, SlidingWindow>> {
        Some(self.open(space))
    }

    fn fixed_windows(&self, space: &str) -> Option<DynStore<str, FixedWindow>> {
        Some(self.open(space))
    }

    fn several(&self, space: &str) -> Option<DynStore<str, All<[TokenBucket; 3]>>> {
        Some(self.open(space))
    }

    fn tuple_keys(&self, space: &str) -> Option<DynStore<(String, String), TokenBucket>> {
        Some(self.open(space))
    }

    fn byte_keys(&self, space: &str) -> Option<DynStore<[u8], TokenBucket>> {
        Some(self.open(space))
    }

    fn clock(&self) -> Option<&ManualClock> {
        self.server.clock.as_deref()
    }

    fn backend(&self) -> Option<&dyn Backend> {
        Some(&*self.server)
    }

    /// As few as for a server: that is enough to find each flaw.
    fn requests_per_clause(&self) -> u32 {
        2_000
    }

    fn repairs(&self) -> Repairs {
        if self.is_in_process {
            Repairs::Nothing
        } else {
            Repairs::Proven
        }
    }

    fn deadline(&self) -> Option<Duration> {
        Some(Duration::from_millis(50))
    }
}

impl<K: Key + ?Sized, A: Algorithm + Clone + 'static> AsyncStore<K, A> for Broken {
    async fn apply_async(
        &self,
        key: &K,
        algorithm: &A,
        request: Request,
    ) -> Result<Decision, StoreError> {
        let name = self.name(key, algorithm);
        let stale = self.server.now();
        yield_once().await;
        if self.flaw == Flaw::WaitsForEver && self.server.lock().fault == Some(Fault::Hang) {
            std::future::pending::<()>().await;
        }
        let reading = (self.flaw == Flaw::ReadsTheClockTooEarly).then_some(stale);
        if self.flaw == Flaw::AnswersInOrderOfArrival {
            let place = (self.space.clone(), std::thread::current().id());
            let answer = self.decide(&name, algorithm, &request, reading);
            self.with_memory(|memory| {
                memory
                    .answers
                    .entry(place.clone())
                    .or_default()
                    .push_back(answer);
            });
            yield_once().await;
            let answers = |memory: &mut Memory| memory.answers.get_mut(&place)?.pop_front();
            return self
                .with_memory(answers)
                .unwrap_or_else(|| unknown("no answer"));
        }
        if self.flaw == Flaw::ForgetsAtomicity {
            return self.decide_in_two_steps(&name, algorithm, &request).await;
        }
        let mut result = self.decide(&name, algorithm, &request, reading);
        if self.flaw == Flaw::RetriesWhatMayHaveBeenExecuted && result.is_err() {
            result = self.decide(&name, algorithm, &request, reading);
        }
        if self.flaw == Flaw::CountsDroppedRequestsTwice {
            // Sent again when nobody seems to listen, and taken back when somebody does.
            let mut again = Resend {
                store: self,
                name: &name,
                algorithm,
                armed: true,
            };
            yield_once().await;
            again.armed = false;
        }
        yield_once().await;
        self.translated(algorithm, result)
    }

    async fn apply_batch_async(&self, items: &mut [Item<'_, K, A>]) {
        if self.flaw == Flaw::BatchesFailAsOne {
            let mut failed = false;
            for item in items.iter_mut() {
                let Some(request) = item.take_request() else {
                    continue;
                };
                let result = self
                    .apply_async(item.key(), item.algorithm(), request)
                    .await;
                failed |= result.is_err();
                item.set_result(if failed {
                    unknown("the batch failed")
                } else {
                    result
                });
            }
            return;
        }
        if self.flaw == Flaw::BatchesRunBackwards {
            items.reverse();
        }
        for (place, item) in items.iter_mut().enumerate() {
            let Some(request) = item.take_request() else {
                if self.flaw == Flaw::BatchesSpoilAnsweredItems {
                    item.set_result(unknown("no request"));
                }
                continue;
            };
            if self.flaw == Flaw::BatchesEndAfterAHundred && place >= 100 {
                continue;
            }
            if self.flaw == Flaw::BatchesRunTwice {
                let name = self.name(item.key(), item.algorithm());
                let _ = self.decide(&name, item.algorithm(), &request, None);
            }
            let result = self
                .apply_async(item.key(), item.algorithm(), request)
                .await;
            item.set_result(result);
        }
        if self.flaw == Flaw::BatchesRunBackwards {
            items.reverse();
        }
    }

    async fn change_async(
        &self,
        key: &K,
        old: &A,
        new: &A,
        carry: Carry,
    ) -> Result<Decision, StoreError> {
        yield_once().await;
        self.change(&self.name(key, old), old, new, carry)
    }

    async fn forget_async(&self, key: &K, algorithm: &A) -> Result<(), StoreError> {
        let name = self.name(key, algorithm);
        let values = &mut self.server.lock().values;
        match self.flaw {
            Flaw::ForgettingDoesNothing => {}
            Flaw::ForgettingTakesPrefixes => values.retain(|other, _| !other.starts_with(&name)),
            Flaw::ForgettingMissingKeysFails if !values.contains_key(&name) => {
                return Err(StoreError::new(ErrorKind::NotExecuted, "no such key"));
            }
            Flaw::ForgettingLeavesATrace => {
                if let Some(value) = values.get_mut(&name) {
                    // A bucket that was full long ago.
                    value.bytes = Some([&[0x11], [0; 8].as_slice()].concat());
                }
            }
            _ => drop(values.remove(&name)),
        }
        Ok(())
    }
}

/// Counts a request once more when its future is dropped.
struct Resend<'r, A: Algorithm + Clone + 'static> {
    store: &'r Broken,
    name: &'r [u8],
    algorithm: &'r A,
    armed: bool,
}

impl<A: Algorithm + Clone + 'static> Drop for Resend<'_, A> {
    fn drop(&mut self) {
        if self.armed {
            for _ in 0..9 {
                let _ = self
                    .store
                    .decide(self.name, self.algorithm, &Request::ONE, None);
            }
        }
    }
}

fn unknown(message: &'static str) -> Result<Decision, StoreError> {
    Err(StoreError::new(ErrorKind::Unknown, message))
}

impl Broken {
    fn with_memory<T>(&self, look: impl FnOnce(&mut Memory) -> T) -> T {
        look(&mut self.memory.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
