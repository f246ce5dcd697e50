//! The server: a map of bytes with times to live that can run code, answers late, and can be made to fail.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use ratekeeper::conformance::{Backend, Fault, Stored};
use ratekeeper::store::{KeyKind, step_stored};
use ratekeeper::{All, Clock, FixedWindow, ManualClock, SlidingWindow, Timestamp, TokenBucket};

use crate::wire::{Asked, Remote, get, get_u64, place, put, value};

/// Each way takes this long.
const LAG: Duration = Duration::from_millis(1);

enum Value {
    Bytes(Vec<u8>),
    List,
}

struct Entry {
    value: Value,
    expires: Timestamp,
    version: u64,
}

#[derive(Default)]
pub(crate) struct Server {
    entries: Mutex<HashMap<Vec<u8>, Entry>>,
    fault: Mutex<Option<Fault>>,
    pub(crate) clock: ManualClock,
}

pub(crate) const DONE: u8 = 0;
pub(crate) const WRONG: u8 = 1;
const MALFORMED: u8 = 2;

impl Server {
    fn entries(&self) -> MutexGuard<'_, HashMap<Vec<u8>, Entry>> {
        self.entries.lock().expect("no thread panics with the lock")
    }

    pub(crate) fn fault(&self) -> Option<Fault> {
        *self.fault.lock().expect("no thread panics with the lock")
    }

    /// Executes a message, one command after the other; `None` if the connection breaks.
    pub(crate) async fn serve(self: Arc<Self>, message: Vec<u8>) -> Option<Vec<u8>> {
        tokio::time::sleep(LAG).await;
        let (mut commands, mut answers) = (&message[..], Vec::new());
        while let Some(command) = get(&mut commands) {
            put(
                &mut answers,
                &self.execute(command).unwrap_or_else(|| vec![MALFORMED]),
            );
            tokio::task::yield_now().await;
        }
        tokio::time::sleep(LAG).await;
        match self.fault() {
            None => Some(answers),
            Some(Fault::Hang) => std::future::pending().await,
            Some(_) => None,
        }
    }

    fn execute(&self, command: &[u8]) -> Option<Vec<u8>> {
        let (code, mut fields) = command.split_first()?;
        let key = get(&mut fields)?;
        match *code {
            0 => {
                self.entries().remove(key);
                Some(vec![DONE])
            }
            TokenBucket::CODE => self.run::<TokenBucket>(key, fields),
            SlidingWindow::CODE => self.run::<SlidingWindow>(key, fields),
            FixedWindow::CODE => self.run::<FixedWindow>(key, fields),
            4 => self.run::<All<[TokenBucket; 3]>>(key, fields),
            _ => None,
        }
    }

    fn run<A: Remote>(&self, key: &[u8], mut fields: &[u8]) -> Option<Vec<u8>> {
        let limit = A::parse(std::str::from_utf8(get(&mut fields)?).ok()?)?;
        let is_take = get(&mut fields)? == [1];
        let mut numbers = [0; 9];
        for number in &mut numbers {
            *number = get_u64(&mut fields)?;
        }
        let mut entries = self.entries();
        let now = self.clock.now(); // under the lock: never older than the state
        let found = entries.get(key).filter(|entry| now < entry.expires);
        let old = match found.map(|entry| &entry.value) {
            None => None,
            Some(Value::Bytes(bytes)) => Some(bytes.clone()),
            Some(Value::List) => return Some(vec![WRONG]),
        };
        let request = Asked { is_take, numbers }.request();
        let step = value(old.as_deref())
            .and_then(|found| step_stored(&limit, now, found.as_ref(), &request));
        let Ok(step) = step else {
            return Some(vec![WRONG]);
        };
        let mut answer = vec![DONE];
        put(&mut answer, &now.as_nanos().to_le_bytes());
        put(&mut answer, &[u8::from(old.is_some())]);
        put(&mut answer, old.as_deref().unwrap_or_default());
        if let Some(write) = step.write {
            put(&mut answer, &write.value);
            let left = found.map_or(now, |entry| entry.expires);
            let version = entries.get(key).map_or(0, |entry| entry.version) + 1;
            let (value, expires) = (
                Value::Bytes(write.value.to_vec()),
                left.max(now + write.keep), // never earlier than before
            );
            entries.insert(
                key.to_vec(),
                Entry {
                    value,
                    expires,
                    version,
                },
            );
        }
        Some(answer)
    }
}

impl Server {
    fn store(&self, space: &str, key: &str, value: Value) -> bool {
        let expires = self.clock.now() + Duration::from_secs(60);
        self.entries().insert(
            place(space, &KeyKind::of(&TokenBucket::per_second(1)), key),
            Entry {
                value,
                expires,
                version: 0,
            },
        );
        true
    }

    fn set_fault(&self, fault: Option<Fault>) {
        *self.fault.lock().expect("no thread panics with the lock") = fault;
    }
}

impl Backend for Server {
    fn read(&self, space: &str, key: &str, kind: &KeyKind) -> Option<Stored> {
        let now = self.clock.now();
        let entries = self.entries();
        let entry = entries
            .get(&place(space, kind, key))
            .filter(|entry| now < entry.expires)?;
        let bytes = if let Value::Bytes(bytes) = &entry.value {
            bytes.clone()
        } else {
            Vec::new()
        };
        let time_to_live = Some(entry.expires.saturating_since(now));
        Some(Stored {
            bytes,
            time_to_live,
            version: Some(entry.version),
        })
    }
    fn write(&self, space: &str, key: &str, value: &[u8]) -> bool {
        self.store(space, key, Value::Bytes(value.to_vec()))
    }
    fn write_other_type(&self, space: &str, key: &str) -> bool {
        self.store(space, key, Value::List)
    }
    fn lose(&self, space: &str) -> bool {
        let space = format!("{space}:");
        self.entries()
            .retain(|key, _| !key.starts_with(space.as_bytes()));
        true
    }
    fn pass(&self, time: Duration) -> bool {
        self.clock.advance(time);
        true
    }
    fn break_with(&self, fault: Fault) -> bool {
        self.set_fault(Some(fault));
        true
    }
    fn heal(&self) {
        self.set_fault(None);
    }
}
