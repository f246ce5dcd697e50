//! A server in this process: bytes under keys, each with an expiry by the test's clock and a version.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ratekeeper::conformance::{Backend, Fault, Stored};
use ratekeeper::store::KeyKind;
use ratekeeper::{Clock, ManualClock, Timestamp, UnixClock};

pub(crate) struct Server {
    /// `None` is real time.
    pub(crate) clock: Option<Arc<ManualClock>>,
    data: Mutex<Data>,
}

#[derive(Default)]
pub(crate) struct Data {
    pub(crate) values: HashMap<Vec<u8>, Value>,
    pub(crate) fault: Option<Fault>,
    versions: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Value {
    /// `None` is a list.
    pub(crate) bytes: Option<Vec<u8>>,
    /// `None` is never.
    pub(crate) expires: Option<Timestamp>,
    pub(crate) version: u64,
    /// How long it was to be kept when it was written.
    pub(crate) keep: Duration,
}

impl Server {
    /// A server whose clock the test holds.
    pub(crate) fn on_manual_clock() -> Arc<Self> {
        Self::on(Some(Arc::default()))
    }

    pub(crate) fn on_real_clock() -> Arc<Self> {
        Self::on(None)
    }

    fn on(clock: Option<Arc<ManualClock>>) -> Arc<Self> {
        Arc::new(Self {
            clock,
            data: Mutex::default(),
        })
    }

    /// Another server on the same clock.
    pub(crate) fn beside(&self) -> Arc<Self> {
        Self::on(self.clock.clone())
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Data> {
        self.data.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The full name of a key of limits of that kind; a bucket's is the plain one.
    pub(crate) fn name_of_kind(space: &str, key: &[u8], kind: &KeyKind) -> Vec<u8> {
        if kind.is_empty() {
            return Self::name(space, key);
        }
        let space = format!("{space}:{}", kind.as_str());
        Self::name(&space, key)
    }

    /// The full name of a key in a space.
    pub(crate) fn name(space: &str, key: &[u8]) -> Vec<u8> {
        [b"rl:", space.as_bytes(), b":", key].concat()
    }
}

impl Clock for Server {
    fn now(&self) -> Timestamp {
        match &self.clock {
            Some(clock) => clock.now(),
            None => UnixClock.now(),
        }
    }
}

impl Data {
    /// What is there and has not expired.
    pub(crate) fn get(&mut self, name: &[u8], now: Timestamp) -> Option<&mut Value> {
        let expired = |value: &Value| value.expires.is_some_and(|expires| expires <= now);
        if self.values.get(name).is_some_and(expired) {
            self.values.remove(name);
        }
        self.values.get_mut(name)
    }

    /// Stores a value, to be kept for `keep`, or as long as there was left if that is longer.
    pub(crate) fn put(&mut self, name: &[u8], bytes: &[u8], keep: Duration, now: Timestamp) {
        self.versions += 1;
        let left = self.get(name, now).and_then(|value| value.expires);
        let left = left.map(|expires| expires.saturating_since(now));
        let keep = left.map_or(keep, |left| left.max(keep));
        let value = Value {
            bytes: Some(bytes.to_vec()),
            expires: Some(now + keep),
            version: self.versions,
            keep,
        };
        self.values.insert(name.to_vec(), value);
    }

    /// Counts a write that changes nothing.
    pub(crate) fn touch(&mut self, name: &[u8]) {
        self.versions += 1;
        if let Some(value) = self.values.get_mut(name) {
            value.version = self.versions;
        }
    }
}

impl Backend for Server {
    fn read(&self, space: &str, key: &str, kind: &KeyKind) -> Option<Stored> {
        let now = self.now();
        let mut data = self.lock();
        let value = data.get(&Self::name_of_kind(space, key.as_bytes(), kind), now)?;
        Some(Stored {
            bytes: value.bytes.clone().unwrap_or_default(),
            time_to_live: value.expires.map(|expires| expires.saturating_since(now)),
            version: Some(value.version),
        })
    }

    fn write(&self, space: &str, key: &str, bytes: &[u8]) -> bool {
        let name = Self::name(space, key.as_bytes());
        let hour = Duration::from_secs(3_600);
        self.lock().put(&name, bytes, hour, self.now());
        true
    }

    fn write_other_type(&self, space: &str, key: &str) -> bool {
        self.write(space, key, b"");
        let name = Self::name(space, key.as_bytes());
        if let Some(value) = self.lock().values.get_mut(&name) {
            value.bytes = None;
        }
        true
    }

    fn lose(&self, _space: &str) -> bool {
        self.lock().values.clear();
        true
    }

    fn pass(&self, time: Duration) -> bool {
        match &self.clock {
            Some(clock) => clock.advance(time),
            #[allow(clippy::disallowed_methods)] // there is no other way for real time to pass
            None => std::thread::sleep(time),
        }
        true
    }

    fn break_with(&self, fault: Fault) -> bool {
        self.lock().fault = Some(fault);
        true
    }

    fn heal(&self) {
        self.lock().fault = None;
    }
}
