//! The store: asks the server by messages, and works the decision out from what the server found.

use std::sync::Arc;
use std::time::Duration;

use ratekeeper::conformance::Fault;
use ratekeeper::store::{AsyncStore, ErrorKind, Item, Key, KeyKind, StoreError, step_stored};
use ratekeeper::{Decision, Request, Timestamp};

use crate::server::{DONE, Server, WRONG};
use crate::wire::{Asked, Remote, get, get_u64, place, put, value};

/// The store answers within this time.
pub(crate) const DEADLINE: Duration = Duration::from_millis(100);

/// Answers within [`DEADLINE`]. Loses states when its server does.
pub(crate) struct CustomStore {
    server: Arc<Server>,
    space: String,
}

impl CustomStore {
    async fn send(&self, message: Vec<u8>) -> Result<Vec<u8>, StoreError> {
        if self.server.fault() == Some(Fault::Refuse) {
            return Err(StoreError::new(
                ErrorKind::NotExecuted,
                "connection refused",
            ));
        }
        // A task of its own: it goes on when the caller is dropped, and all timers are where the runtime's wheels turn.
        let answers = Arc::clone(&self.server).serve(message);
        match tokio::spawn(tokio::time::timeout(DEADLINE, answers)).await {
            Ok(Ok(Some(answers))) => Ok(answers),
            Ok(Err(_)) => Err(StoreError::new(ErrorKind::Unknown, "no answer in time")),
            _ => Err(StoreError::new(ErrorKind::Unknown, "connection lost")),
        }
    }

    fn command<K: Key + ?Sized, A: Remote>(
        &self,
        key: &K,
        limit: &A,
        request: &Request,
    ) -> Result<Vec<u8>, StoreError> {
        let unknown = StoreError::new(
            ErrorKind::Unsupported,
            "a kind of request that the server does not know",
        );
        let asked = Asked::of(request).ok_or(unknown)?;
        let mut command = vec![A::CODE];
        put(&mut command, &place(&self.space, &KeyKind::of(limit), key));
        put(&mut command, limit.text().as_bytes());
        put(&mut command, &[u8::from(asked.is_take)]);
        asked
            .numbers
            .iter()
            .for_each(|number| put(&mut command, &number.to_le_bytes()));
        Ok(command)
    }

    /// The server tells what it found and when; the machine is pure, so the decision follows from that.
    fn decision<A: Remote>(
        mut answer: &[u8],
        limit: &A,
        request: &Request,
    ) -> Result<Decision, StoreError> {
        let corrupt = |message| StoreError::new(ErrorKind::Corrupt, message);
        match answer.split_first() {
            Some((&DONE, rest)) => answer = rest,
            Some((&WRONG, _)) => return Err(corrupt("the value is no state of this algorithm")),
            _ => {
                return Err(StoreError::new(
                    ErrorKind::Unsupported,
                    "the server does not understand",
                ));
            }
        }
        let now = get_u64(&mut answer).ok_or(corrupt("an answer without a time"))?;
        let there = get(&mut answer).ok_or(corrupt("an answer without a state"))? == [1];
        let found = value(get(&mut answer).filter(|_| there))?;
        let now = Timestamp::from_nanos(now);
        let step = step_stored(limit, now, found.as_ref(), request)?;
        let new = step.write.map(|write| write.value);
        if get(&mut answer) != new.as_deref() {
            return Err(corrupt("the server came to another state"));
        }
        Ok(step.decision)
    }
}

impl<K: Key + ?Sized, A: Remote> AsyncStore<K, A> for CustomStore {
    async fn apply_async(
        &self,
        key: &K,
        algorithm: &A,
        request: Request,
    ) -> Result<Decision, StoreError> {
        let mut items = [Item::new(key, algorithm, request)];
        self.apply_batch_async(&mut items).await;
        let [item] = items;
        item.into_result()
    }

    async fn apply_batch_async(&self, items: &mut [Item<'_, K, A>]) {
        let (mut message, mut asked) = (Vec::new(), Vec::new());
        for item in items.iter_mut() {
            let Some(request) = item.take_request() else {
                continue;
            };
            match self.command(item.key(), item.algorithm(), &request) {
                Ok(command) => {
                    put(&mut message, &command);
                    asked.push((item, request));
                }
                Err(error) => item.set_result(Err(error)),
            }
        }
        if asked.is_empty() {
            return;
        }
        let answers = self.send(message).await;
        let mut rest = answers.as_deref().unwrap_or_default();
        for (item, request) in asked {
            item.set_result(match &answers {
                Ok(_) => Self::decision(
                    get(&mut rest).unwrap_or_default(),
                    item.algorithm(),
                    &request,
                ),
                Err(error) => Err(StoreError::new(error.kind(), error.message())),
            });
        }
    }

    async fn forget_async(&self, key: &K, algorithm: &A) -> Result<(), StoreError> {
        let (mut message, mut command) = (Vec::new(), vec![0]);
        put(
            &mut command,
            &place(&self.space, &KeyKind::of(algorithm), key),
        );
        put(&mut message, &command);
        self.send(message).await.map(drop)
    }
}

pub(crate) fn custom_store(server: &Arc<Server>, space: &str) -> CustomStore {
    CustomStore {
        server: Arc::clone(server),
        space: space.to_owned(),
    }
}
