//! What is sent for a request, and what the reply means.

mod all;
mod any;
mod bucket;
mod fixed_window;
mod limits;
mod sliding_window;

use ratekeeper::store::{ErrorKind, StateBytes, StoreError, step_stored};
use ratekeeper::{Algorithm, Decision, Request, Timestamp};
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use crate::error::strange_reply;
use crate::numeric::Numeric;

/// An algorithm that a server can run: the same machine once more, as a function in PL/pgSQL.
///
/// The function decides and stores; it answers with the instant, the value it found and the value it left. From these the
/// machine in this process works out the whole decision ([`step_stored`]), and checks the function's: if the two disagree
/// about the new value by a single bit, the answer is [`ErrorKind::Corrupt`]. So no arithmetic for waits and remainders is
/// written twice.
///
/// An algorithm of your own needs a function made with [`Schema::function_sql`](crate::Schema::function_sql), and
/// [`call`](Self::call); without a function, use [`CasLoop`](ratekeeper::store::CasLoop) over
/// [`PostgresCas`](crate::PostgresCas).
pub trait PostgresAlgorithm: Algorithm {
    /// The function for `request`, and its arguments.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] if the function cannot run this limit, or this request.
    fn call(&self, request: &Request) -> Result<Call, StoreError>;

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
}

impl<A: PostgresAlgorithm> PostgresAlgorithm for &A {
    fn call(&self, request: &Request) -> Result<Call, StoreError> {
        (**self).call(request)
    }

    fn answer(&self, request: &Request, reply: &Reply) -> Result<Decision, StoreError> {
        (**self).answer(request, reply)
    }
}

/// A function with its arguments.
#[derive(Debug)]
pub struct Call {
    pub(crate) function: &'static str,
    pub(crate) arguments: Vec<Numeric>,
    /// The limit's; 0 for none.
    pub(crate) version: u16,
}

impl Call {
    /// Calls `function` of the store's schema with `arguments` in `args`.
    pub fn new(function: &'static str, arguments: impl IntoIterator<Item = u64>) -> Self {
        Self {
            function,
            arguments: arguments.into_iter().map(Numeric).collect(),
            version: 0,
        }
    }

    /// For a limit of this version. Its function leaves values of others alone, and answers so.
    fn of_version(self, version: u16) -> Self {
        Self { version, ..self }
    }

    /// A look at the state, for peeks.
    pub fn look() -> Self {
        Self::new("look_v2", [])
    }

    /// The function's name, without the schema.
    pub const fn function(&self) -> &'static str {
        self.function
    }

    /// Its arguments.
    pub fn arguments(&self) -> impl Iterator<Item = u64> {
        self.arguments.iter().map(|number| number.0)
    }
}

/// What a function answered.
#[non_exhaustive]
#[derive(Clone, Copy, Debug)]
pub struct Reply {
    /// The instant of the decision, in nanoseconds since the Unix epoch.
    pub now: Timestamp,
    /// The state that was found; `None` if there was none.
    pub old: Option<StateBytes>,
    /// The state that was left; `None` if nothing was written.
    pub new: Option<StateBytes>,
}

/// A function's reply, or why there is none yet.
pub(crate) enum Answer {
    Reply(Reply),
    /// The value found is that of another version of the limit, or this limit has none: nothing was decided.
    OtherVersion {
        now: Timestamp,
        found: StateBytes,
    },
}

impl Answer {
    pub(crate) fn new(row: &Row) -> Result<Self, StoreError> {
        let Numeric(now_ns) = column(row, 0)?;
        let now = Timestamp::from_nanos(now_ns);
        let (old, new): (Option<&[u8]>, Option<&[u8]>) = (column(row, 1)?, column(row, 2)?);
        let old = old.map(StateBytes::from_stored).transpose()?;
        match (new, old) {
            (Some([]), Some(found)) => Ok(Self::OtherVersion { now, found }),
            (new, old) => {
                let new = new.map(StateBytes::from_stored).transpose()?;
                Ok(Self::Reply(Reply { now, old, new }))
            }
        }
    }

    /// For what is the same under every version.
    pub(crate) fn into_reply(self) -> Result<Reply, StoreError> {
        match self {
            Self::Reply(reply) => Ok(reply),
            Self::OtherVersion { .. } => Err(strange_reply()),
        }
    }
}

/// A value of the type that the statement promises.
pub(crate) fn column<'r, T: FromSql<'r>>(row: &'r Row, index: usize) -> Result<T, StoreError> {
    row.try_get(index)
        .map_err(|error| strange_reply().with_source(error))
}

/// Repeats the step on the value that the function found.
fn echoed<A: Algorithm>(
    algorithm: &A,
    request: &Request,
    reply: &Reply,
) -> Result<Decision, StoreError> {
    let step = step_stored(algorithm, reply.now, reply.old.as_ref(), request)?;
    if reply.new != step.write.map(|write| write.value) {
        return Err(disagreement());
    }
    Ok(step.decision)
}

/// One of the two machines is wrong, or the function is another one's.
pub(crate) const fn disagreement() -> StoreError {
    const MESSAGE: &str = "the function and this process disagree about the outcome";
    StoreError::new(ErrorKind::Corrupt, MESSAGE)
}

const fn unsupported(message: &'static str) -> StoreError {
    StoreError::new(ErrorKind::Unsupported, message)
}

/// A kind of request that is newer than this crate.
const fn unknown_request() -> StoreError {
    unsupported("this kind of request is not known to the PostgreSQL store")
}

/// A duration in whole nanoseconds, at most `u64::MAX`.
fn nanos(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
