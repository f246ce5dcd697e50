//! What a PostgreSQL error says about the request.

use std::sync::Arc;

use ratekeeper::store::{ErrorKind, StoreError};
use tokio_postgres::Error;
use tokio_postgres::error::{DbError, Severity, SqlState};

/// What our functions raise for a value that is no state of their limit.
const BAD_STATE: &str = "RK001";

/// The answer did not come in time: the server may still execute the statement.
pub(crate) const fn deadline_passed() -> StoreError {
    StoreError::new(
        ErrorKind::Unknown,
        "no answer from PostgreSQL within the deadline",
    )
}

/// The deadline passed before anything was sent.
pub(crate) const fn no_connection_yet() -> StoreError {
    StoreError::new(
        ErrorKind::NotExecuted,
        "no connection to PostgreSQL within the deadline",
    )
}

/// There is no connection to send anything over.
pub(crate) const fn closed() -> StoreError {
    StoreError::new(
        ErrorKind::NotExecuted,
        "the connection to PostgreSQL is closed",
    )
}

/// The answer is none that our functions give.
pub(crate) const fn strange_reply() -> StoreError {
    StoreError::new(
        ErrorKind::Corrupt,
        "PostgreSQL answered something that the function does not say",
    )
}

/// Before a statement was sent; `None` if connecting took too long.
pub(crate) fn connect_error(error: Option<Arc<Error>>) -> StoreError {
    let Some(error) = error else {
        const MESSAGE: &str = "connecting to PostgreSQL took too long";
        return StoreError::new(ErrorKind::NotExecuted, MESSAGE);
    };
    let (kind, message) = classify_unsent(&error);
    StoreError::new(kind, message).with_source(error)
}

/// A statement could not be prepared, which executes nothing.
pub(crate) fn prepare_error(error: Error) -> StoreError {
    let (kind, message) = classify_unsent(&error);
    StoreError::new(kind, message).with_source(error)
}

/// A statement was sent and failed; `answered` if its row had arrived before.
pub(crate) fn statement_error(error: Error, answered: bool) -> StoreError {
    let (kind, message) = match error.as_db_error() {
        Some(reply) => classify_reply(reply, answered),
        None => (ErrorKind::Unknown, "the connection to PostgreSQL broke"),
    };
    StoreError::new(kind, message).with_source(error)
}

fn classify_unsent(error: &Error) -> (ErrorKind, &'static str) {
    let (kind, message) = match error.as_db_error() {
        Some(reply) => classify(reply.code()),
        None => (ErrorKind::NotExecuted, "no connection to PostgreSQL"),
    };
    match kind {
        ErrorKind::Unknown => (ErrorKind::NotExecuted, message),
        kind => (kind, message),
    }
}

/// An error ends the transaction, and the request is a transaction of its own: it was rolled back. Only a session that is
/// ended by force (`FATAL`) may have committed before, and then the row was sent before the error. What poolers say about
/// their own connections is another matter.
fn classify_reply(reply: &DbError, answered: bool) -> (ErrorKind, &'static str) {
    let is_error = reply.parsed_severity() == Some(Severity::Error);
    if answered && !is_error {
        const MESSAGE: &str = "PostgreSQL ended the session while it committed";
        return (ErrorKind::Unknown, MESSAGE);
    }
    classify(reply.code())
}

/// By code, or by its first two characters: the class.
fn classify(code: &SqlState) -> (ErrorKind, &'static str) {
    use ErrorKind::{Config, Corrupt, NotExecuted, Unknown};

    const CODES: [(&str, ErrorKind, &str); 31] = [
        (
            BAD_STATE,
            Corrupt,
            "the stored value is no state of this limit",
        ),
        (
            "40003",
            Unknown,
            "PostgreSQL does not know what became of the statement",
        ),
        (
            "40",
            NotExecuted,
            "PostgreSQL rolled back in favour of others",
        ),
        ("55P03", NotExecuted, "the key is locked by somebody else"),
        ("57014", NotExecuted, "PostgreSQL cancelled the statement"),
        (
            "25006",
            NotExecuted,
            "this PostgreSQL is a read-only replica",
        ),
        (
            "0A",
            NotExecuted,
            "this PostgreSQL is a replica, where unlogged tables cannot be read",
        ),
        ("55", NotExecuted, "PostgreSQL cannot do that now"),
        ("53300", NotExecuted, "PostgreSQL has no free connection"),
        ("53100", NotExecuted, "PostgreSQL's disk is full"),
        ("53200", NotExecuted, "PostgreSQL is out of memory"),
        ("53", NotExecuted, "PostgreSQL is out of resources"),
        ("54", NotExecuted, "PostgreSQL reached a limit of its own"),
        (
            "57P03",
            NotExecuted,
            "PostgreSQL is starting up or shutting down",
        ),
        ("57P04", Config, "the database was dropped"),
        (
            "57",
            NotExecuted,
            "PostgreSQL is shutting down, or an operator intervened",
        ),
        ("58", NotExecuted, "PostgreSQL has trouble with its files"),
        ("XX", NotExecuted, "PostgreSQL has an internal error"),
        ("08", Unknown, "the connection to PostgreSQL has failed"),
        ("42501", Config, "this role may not use the limiter's table"),
        ("42883", Config, "the limiter's functions are not installed"),
        ("42P01", Config, "the limiter's table is not installed"),
        ("3F000", Config, "the limiter's schema is not installed"),
        ("28", Config, "PostgreSQL refused the credentials"),
        ("3D000", Config, "there is no such database"),
        (
            "26000",
            Config,
            "PostgreSQL has lost a prepared statement, perhaps through a pooler",
        ),
        ("25", Config, "the connection is inside of a transaction"),
        ("42", Config, "PostgreSQL does not accept the statement"),
        ("22", Config, "PostgreSQL does not accept a value"),
        ("23", Config, "the limiter's table was changed"),
        ("P0", Config, "a function was refused"),
    ];
    let known = CODES
        .iter()
        .find(|(prefix, ..)| code.code().starts_with(prefix));
    known.map_or(
        (Config, "PostgreSQL refused the statement"),
        |(_, kind, message)| (*kind, message),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_say_whether_the_request_was_counted() {
        use ErrorKind::{Config, Corrupt, NotExecuted, Unknown};
        for (code, kind) in [
            ("RK001", Corrupt),
            ("40001", NotExecuted), // serialization failure
            ("40P01", NotExecuted), // deadlock
            ("55P03", NotExecuted), // lock not available
            ("57014", NotExecuted), // query cancelled
            ("25006", NotExecuted), // read-only transaction
            ("0A000", NotExecuted), // unlogged table during recovery
            ("53100", NotExecuted), // disk full
            ("53200", NotExecuted), // out of memory
            ("53300", NotExecuted), // too many connections
            ("57P01", NotExecuted), // admin shutdown
            ("57P03", NotExecuted), // cannot connect now
            ("58030", NotExecuted), // input or output error
            ("XX001", NotExecuted), // data corrupted
            ("08006", Unknown),     // connection failure
            ("40003", Unknown),     // statement completion unknown
            ("42501", Config),      // insufficient privilege
            ("42883", Config),      // undefined function
            ("42P01", Config),      // undefined table
            ("3F000", Config),      // no such schema
            ("28P01", Config),      // wrong password
            ("3D000", Config),      // no such database
            ("26000", Config),      // no such prepared statement
            ("22003", Config),      // value out of range
            ("ZZ999", Config),
        ] {
            assert_eq!(classify(&SqlState::from_code(code)).0, kind, "{code}");
        }
    }
}
