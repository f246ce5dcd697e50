//! What is sent for a request, and what the reply means.

mod all;
mod any;
mod bucket;
mod fixed_window;
mod sliding_log;
mod sliding_window;

use std::sync::LazyLock;
use std::time::Duration;

use ratekeeper::store::{ErrorKind, StateBytes, StoreError, Version, step_stored};
use ratekeeper::{Algorithm, Decision, Request, Timestamp, TokenBucket};
use redis::Value;

pub use self::sliding_log::MOST_LOG_ENTRIES;
use crate::error::strange_reply;
use crate::script::Script;

/// An algorithm that a server can run: the same machine once more, as a Lua script.
///
/// The script decides and stores; it answers with the instant, the value it found and the value it left. From these the
/// machine in this process works out the whole decision ([`step_stored`]), and checks the script's: if the two disagree about
/// the new value by a single bit, the answer is [`ErrorKind::Corrupt`]. So no arithmetic for waits and remainders is written
/// twice.
///
/// An algorithm of your own needs `call` only, if its script answers in that form; without a script, use
/// [`CasLoop`](ratekeeper::store::CasLoop) over [`RedisCas`](crate::RedisCas).
pub trait RedisAlgorithm: Algorithm {
    /// The script for `request`, and its arguments. A state that is stored must expire `grace` after it equals a fresh one.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] if the script cannot run this limit, or this request.
    fn call(&self, request: &Request, grace: Duration) -> Result<Call, StoreError>;

    /// The decision that a reply stands for.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] if the reply makes no sense.
    fn answer(&self, request: &Request, reply: &Reply) -> Result<Decision, StoreError>
    where
        Self: Sized,
    {
        echoed(self, request, reply)
    }

    /// How this limit's version compares with that of the value in a reply that decided nothing.
    #[doc(hidden)]
    fn compare(&self, reply: &Reply) -> Result<Version<TokenBucket>, StoreError> {
        let _ = reply;
        Err(strange_reply())
    }
}

impl<A: RedisAlgorithm> RedisAlgorithm for &A {
    fn call(&self, request: &Request, grace: Duration) -> Result<Call, StoreError> {
        (**self).call(request, grace)
    }

    fn answer(&self, request: &Request, reply: &Reply) -> Result<Decision, StoreError> {
        (**self).answer(request, reply)
    }

    fn compare(&self, reply: &Reply) -> Result<Version<TokenBucket>, StoreError> {
        (**self).compare(reply)
    }
}

/// A script with its arguments.
#[derive(Debug)]
pub struct Call {
    pub(crate) script: &'static Script,
    pub(crate) arguments: Vec<Vec<u8>>,
    /// The limit's version; 0 for none.
    pub(crate) version: u16,
}

impl Call {
    /// Runs `script` with `arguments` in `ARGV[2]` and what follows.
    pub const fn new(script: &'static Script, arguments: Vec<Vec<u8>>) -> Self {
        Self {
            script,
            arguments,
            version: 0,
        }
    }

    /// The script.
    pub const fn script(&self) -> &'static Script {
        self.script
    }

    /// `ARGV[2]` and what follows.
    pub fn arguments(&self) -> &[Vec<u8>] {
        &self.arguments
    }

    /// A look at the state, for peeks.
    pub fn look() -> Self {
        static LOAD: LazyLock<Script> =
            LazyLock::new(|| Script::after_prologue(&[include_str!("scripts/load.lua")]));
        Self::new(&LOAD, Vec::new())
    }
}

/// What a script answered: a list that begins with the instant of the decision.
#[derive(Debug)]
pub struct Reply {
    now: Timestamp,
    items: Vec<Value>,
}

impl Reply {
    pub(crate) fn new(value: Value) -> Result<Self, StoreError> {
        let Value::Array(items) = value else {
            return Err(strange_reply());
        };
        let now = match items.first() {
            Some(Value::BulkString(bytes)) => <[u8; 8]>::try_from(bytes.as_slice()).ok(),
            _ => None,
        };
        let now = Timestamp::from_nanos(u64::from_be_bytes(now.ok_or_else(strange_reply)?));
        Ok(Self { now, items })
    }

    /// The instant of the decision, in nanoseconds since the Unix epoch.
    pub const fn now(&self) -> Timestamp {
        self.now
    }

    /// The string at `index`, counted with the instant.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] if there is none.
    pub fn bytes(&self, index: usize) -> Result<&[u8], StoreError> {
        match self.items.get(index) {
            Some(Value::BulkString(bytes)) => Ok(bytes),
            _ => Err(strange_reply()),
        }
    }

    /// The number at `index`, counted with the instant.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] if there is none, or it is negative.
    pub fn number(&self, index: usize) -> Result<u64, StoreError> {
        match self.items.get(index) {
            Some(Value::Int(number)) => u64::try_from(*number).map_err(|_| strange_reply()),
            _ => Err(strange_reply()),
        }
    }

    /// Whether the script left the value alone because another version of the limit has to do with it.
    pub(crate) fn is_of_another_version(&self) -> bool {
        matches!(self.items.get(2), Some(Value::Int(0))) && self.items.len() == 3
    }
}

/// The value with these bytes, if there are any.
pub(crate) fn stored(bytes: &[u8]) -> Result<Option<StateBytes>, StoreError> {
    (!bytes.is_empty())
        .then(|| StateBytes::from_stored(bytes))
        .transpose()
}

/// Repeats the step on the value that the script found.
fn echoed<A: Algorithm>(
    algorithm: &A,
    request: &Request,
    reply: &Reply,
) -> Result<Decision, StoreError> {
    let found = stored(reply.bytes(1)?)?;
    let step = step_stored(algorithm, reply.now(), found.as_ref(), request)?;
    if stored(reply.bytes(2)?)? != step.write.map(|write| write.value) {
        const MESSAGE: &str = "the script and this process disagree about the outcome";
        return Err(StoreError::new(ErrorKind::Corrupt, MESSAGE));
    }
    Ok(step.decision)
}

pub(crate) const fn unsupported(message: &'static str) -> StoreError {
    StoreError::new(ErrorKind::Unsupported, message)
}

/// A kind of request that is newer than this crate.
const fn unknown_request() -> StoreError {
    unsupported("this kind of request is not known to the Redis store")
}
