//! A store as another crate would write it, from the documentation alone, and the kit's verdict on it.
//!
//! Its server is a map of bytes with times to live that can run code. It is asked by messages of bytes, answers late, and can
//! be made to fail. Time in here is tokio's paused time: nothing sleeps.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use ratekeeper::conformance::{Backend, Fault, Need, Stored, Subject, Work, check_all};
use ratekeeper::store::{
    AsyncStore, Breaker, BreakerState, Deadline, DenyCache, DynStore, ErrorKind, Fallback, Item, Key, Leased, StateBytes,
    StoreError, WithLimit,
};
use ratekeeper::{
    Algorithm, All, Clock, DashStore, Decision, FixedWindow, KeyedLimiter, ManualClock, Receipt, Request, SlidingWindow, Step,
    Timestamp, TokenBucket,
};
use tokio::runtime::Runtime;

/// Each way takes this long.
const LAG: Duration = Duration::from_millis(1);
/// The store answers within this time.
const DEADLINE: Duration = Duration::from_millis(100);

// Messages: fields of bytes, each behind its length.

fn put(message: &mut Vec<u8>, field: &[u8]) {
    message.extend_from_slice(&u32::try_from(field.len()).expect("a field is short").to_le_bytes());
    message.extend_from_slice(field);
}

fn get<'a>(message: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, rest) = message.split_first_chunk()?;
    let (field, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    *message = rest;
    Some(field)
}

fn get_u64(message: &mut &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(get(message)?.try_into().ok()?))
}

/// A limit that can be sent to the server.
trait Remote: Algorithm {
    /// By which name the server knows the code.
    const CODE: u8;

    fn text(&self) -> String;
    fn parse(text: &str) -> Option<Self>
    where
        Self: Sized;
    fn run(&self, now: Timestamp, state: &mut Self::State, asked: &Asked) -> Step {
        self.step(now, state, &asked.request(0))
    }
}

macro_rules! remote {
    ($($limit:ty = $code:literal),*) => {$(
        impl Remote for $limit {
            const CODE: u8 = $code;

            fn text(&self) -> String {
                self.to_string()
            }
            fn parse(text: &str) -> Option<Self> {
                text.parse().ok()
            }
        }
    )*};
}
remote!(TokenBucket = 1, SlidingWindow = 2, FixedWindow = 3);

impl Remote for All<[TokenBucket; 3]> {
    const CODE: u8 = 4;

    fn text(&self) -> String {
        self.0.map(|limit| limit.to_string()).join(";")
    }
    fn parse(text: &str) -> Option<Self> {
        let limits: Result<Vec<_>, _> = text.split(';').map(str::parse).collect();
        Some(Self(limits.ok()?.try_into().ok()?))
    }
    // A receipt of several limits cannot be put together again, so each limit gets its part of it.
    fn run(&self, now: Timestamp, states: &mut [u64; 3], asked: &Asked) -> Step {
        if asked.is_take {
            return self.step(now, states, &asked.request(0));
        }
        let steps = [0, 1, 2].map(|i| self.0[i].step(now, &mut states[i], &asked.request(i)));
        let wrote = steps.iter().any(|step| step.keep.is_some());
        let keep = steps.iter().map(|step| step.decision.reset_after()).max().unwrap_or_default();
        let [Step { decision, .. }, ..] = steps;
        if wrote { Step::write(decision, keep) } else { Step::unchanged(decision) }
    }
}

/// A request in numbers.
struct Asked {
    is_take: bool,
    numbers: [u64; 6],
}

impl Asked {
    fn of(request: &Request) -> Option<Self> {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Some(match request {
            Request::Take { cost, at_least, max_wait, .. } => {
                Self { is_take: true, numbers: [*cost, *at_least, ns(*max_wait), 0, 0, 0] }
            }
            Request::Refund { cost, receipt, .. } => {
                let [a, b, c] = [0, 1, 2].map(|i| receipt.mark_of(i));
                Self { is_take: false, numbers: [*cost, receipt.charged(), receipt.run_at_ns(), a, b, c] }
            }
            _ => return None,
        })
    }

    fn request(&self, index: usize) -> Request {
        let [cost, second, third, ..] = self.numbers;
        if self.is_take {
            return Request::take(cost).at_least(second).or_wait(Duration::from_nanos(third));
        }
        Request::refund(cost, Receipt::new(second, self.numbers[3 + index]).with_run_at_ns(third))
    }
}

// The server.

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
struct Server {
    entries: Mutex<HashMap<Vec<u8>, Entry>>,
    fault: Mutex<Option<Fault>>,
    clock: ManualClock,
}

const DONE: u8 = 0;
const WRONG: u8 = 1;
const MALFORMED: u8 = 2;

impl Server {
    fn entries(&self) -> MutexGuard<'_, HashMap<Vec<u8>, Entry>> {
        self.entries.lock().expect("no thread panics with the lock")
    }

    fn fault(&self) -> Option<Fault> {
        *self.fault.lock().expect("no thread panics with the lock")
    }

    /// Executes a message, one command after the other; `None` if the connection breaks.
    async fn serve(self: Arc<Self>, message: Vec<u8>) -> Option<Vec<u8>> {
        tokio::time::sleep(LAG).await;
        let (mut commands, mut answers) = (&message[..], Vec::new());
        while let Some(command) = get(&mut commands) {
            put(&mut answers, &self.execute(command).unwrap_or_else(|| vec![MALFORMED]));
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
        let limit = A::parse(str::from_utf8(get(&mut fields)?).ok()?)?;
        let is_take = get(&mut fields)? == [1];
        let mut numbers = [0; 6];
        for number in &mut numbers {
            *number = get_u64(&mut fields)?;
        }
        let mut entries = self.entries();
        let now = self.clock.now(); // under the lock: never older than the state
        let old = match entries.get(key).filter(|entry| now < entry.expires) {
            None => Vec::new(),
            Some(Entry { value: Value::Bytes(bytes), .. }) => bytes.clone(),
            Some(Entry { value: Value::List, .. }) => return Some(vec![WRONG]),
        };
        let Ok(mut state) = state(&limit, &old) else { return Some(vec![WRONG]) };
        let step = limit.run(now, &mut state, &Asked { is_take, numbers });
        let mut answer = vec![DONE];
        put(&mut answer, &now.as_nanos().to_le_bytes());
        put(&mut answer, &old);
        if let Some(keep) = step.keep {
            let new = StateBytes::encode(&limit, &state).ok()?;
            put(&mut answer, &new);
            let version = entries.get(key).map_or(0, |entry| entry.version) + 1;
            entries.insert(key.to_vec(), Entry { value: Value::Bytes(new.to_vec()), expires: now + keep, version });
        }
        Some(answer)
    }
}

fn state<A: Algorithm>(limit: &A, stored: &[u8]) -> Result<A::State, StoreError> {
    if stored.is_empty() { Ok(A::State::default()) } else { StateBytes::from_stored(stored)?.decode(limit) }
}

// The store.

/// Answers within [`DEADLINE`]. Loses states when its server does.
struct CustomStore {
    server: Arc<Server>,
    space: String,
}

/// The bytes of a key in a space; no space has a colon in its name.
fn place<K: Key + ?Sized>(space: &str, key: &K) -> Vec<u8> {
    let mut bytes = format!("{space}:").into_bytes();
    key.write_alone(&mut |part| bytes.extend_from_slice(part));
    bytes
}

impl CustomStore {
    async fn send(&self, message: Vec<u8>) -> Result<Vec<u8>, StoreError> {
        if self.server.fault() == Some(Fault::Refuse) {
            return Err(StoreError::new(ErrorKind::NotExecuted, "connection refused"));
        }
        // A task of its own: the server goes on when nobody waits for its answer any more.
        let answer = tokio::spawn(Arc::clone(&self.server).serve(message));
        match tokio::time::timeout(DEADLINE, answer).await {
            Ok(Ok(Some(answers))) => Ok(answers),
            Ok(_) => Err(StoreError::new(ErrorKind::Unknown, "connection lost")),
            Err(elapsed) => Err(StoreError::new(ErrorKind::Unknown, "no answer in time").with_source(elapsed)),
        }
    }

    fn command<K: Key + ?Sized, A: Remote>(&self, key: &K, limit: &A, request: &Request) -> Result<Vec<u8>, StoreError> {
        let unknown = StoreError::new(ErrorKind::Unsupported, "a kind of request that the server does not know");
        let asked = Asked::of(request).ok_or(unknown)?;
        let mut command = vec![A::CODE];
        put(&mut command, &place(&self.space, key));
        put(&mut command, limit.text().as_bytes());
        put(&mut command, &[u8::from(asked.is_take)]);
        asked.numbers.iter().for_each(|number| put(&mut command, &number.to_le_bytes()));
        Ok(command)
    }

    /// The server tells what it found and when; the machine is pure, so the decision follows from that.
    fn decision<A: Remote>(mut answer: &[u8], limit: &A, request: &Request) -> Result<Decision, StoreError> {
        let corrupt = |message| StoreError::new(ErrorKind::Corrupt, message);
        match answer.split_off_first() {
            Some(&DONE) => {}
            Some(&WRONG) => return Err(corrupt("the value is no state of this algorithm")),
            _ => return Err(StoreError::new(ErrorKind::Unsupported, "the server does not understand")),
        }
        let now = get_u64(&mut answer).ok_or(corrupt("an answer without a time"))?;
        let mut state = state(limit, get(&mut answer).ok_or(corrupt("an answer without a state"))?)?;
        let step = limit.step(Timestamp::from_nanos(now), &mut state, request);
        let new = step.keep.map(|_| StateBytes::encode(limit, &state)).transpose()?;
        if get(&mut answer) != new.as_deref() {
            return Err(corrupt("the server came to another state"));
        }
        Ok(step.decision)
    }
}

impl<K: Key + ?Sized, A: Remote> AsyncStore<K, A> for CustomStore {
    async fn apply_async(&self, key: &K, algorithm: &A, request: Request) -> Result<Decision, StoreError> {
        let mut items = [Item::new(key, algorithm, request)];
        self.apply_batch_async(&mut items).await;
        let [item] = items;
        item.into_result()
    }

    async fn apply_batch_async(&self, items: &mut [Item<'_, K, A>]) {
        let (mut message, mut asked) = (Vec::new(), Vec::new());
        for item in items.iter_mut() {
            let Some(request) = item.take_request() else { continue };
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
                Ok(_) => Self::decision(get(&mut rest).unwrap_or_default(), item.algorithm(), &request),
                Err(error) => Err(StoreError::new(error.kind(), error.message())),
            });
        }
    }

    async fn forget_async(&self, key: &K, _: &A) -> Result<(), StoreError> {
        let (mut message, mut command) = (Vec::new(), vec![0]);
        put(&mut command, &place(&self.space, key));
        put(&mut message, &command);
        self.send(message).await.map(drop)
    }
}

// The kit.

struct CustomStores {
    server: Arc<Server>,
    runtime: Runtime,
    wrapped: bool,
}

impl CustomStores {
    fn new(wrapped: bool) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        Self { server: Arc::default(), runtime: runtime.expect("a runtime needs no permission"), wrapped }
    }

    fn open<K: Key + ?Sized + 'static, A: Remote + 'static>(&self, space: &str) -> DynStore<K, A> {
        let store = CustomStore { server: Arc::clone(&self.server), space: space.to_owned() };
        if !self.wrapped {
            return DynStore::new(store);
        }
        let store = Deadline::new(store, 2 * DEADLINE, tokio::time::sleep);
        DynStore::new(Breaker::new(store, u32::MAX, Duration::from_secs(1)))
    }
}

impl Subject for CustomStores {
    fn buckets(&self, space: &str) -> DynStore<str, TokenBucket> {
        self.open(space)
    }
    fn clock(&self) -> Option<&ManualClock> {
        Some(&self.server.clock)
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
    fn backend(&self) -> Option<&dyn Backend> {
        Some(&*self.server)
    }
    fn block_on(&self, work: Work<'_>) {
        self.runtime.block_on(work);
    }
    fn requests_per_clause(&self) -> u32 {
        1_000
    }
    fn deadline(&self) -> Option<Duration> {
        Some(DEADLINE)
    }
}

impl Server {
    fn store(&self, space: &str, key: &str, value: Value) -> bool {
        let expires = self.clock.now() + Duration::from_secs(60);
        self.entries().insert(place(space, key), Entry { value, expires, version: 0 });
        true
    }

    fn set_fault(&self, fault: Option<Fault>) {
        *self.fault.lock().expect("no thread panics with the lock") = fault;
    }
}

impl Backend for Server {
    fn read(&self, space: &str, key: &str) -> Option<Stored> {
        let now = self.clock.now();
        let entries = self.entries();
        let entry = entries.get(&place(space, key)).filter(|entry| now < entry.expires)?;
        let bytes = if let Value::Bytes(bytes) = &entry.value { bytes.clone() } else { Vec::new() };
        let time_to_live = Some(entry.expires.saturating_since(now));
        Some(Stored { bytes, time_to_live, version: Some(entry.version) })
    }
    fn write(&self, space: &str, key: &str, value: &[u8]) -> bool {
        self.store(space, key, Value::Bytes(value.to_vec()))
    }
    fn write_other_type(&self, space: &str, key: &str) -> bool {
        self.store(space, key, Value::List)
    }
    fn lose(&self, space: &str) -> bool {
        self.entries().retain(|key, _| !key.starts_with(&place(space, "")));
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

#[test]
fn a_custom_store_keeps_the_contract() {
    check_all(&CustomStores::new(false), &[Need::Logs]);
}
