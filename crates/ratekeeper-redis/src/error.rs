//! What a Redis error says about the request.

use ratekeeper::store::{ErrorKind, StoreError};
use redis::{ErrorKind as RedisKind, RedisError, ServerErrorKind};

/// The store's error for a command that failed.
pub(crate) fn store_error(error: RedisError) -> StoreError {
    let (kind, message) = classify(&error);
    StoreError::new(kind, message).with_source(error)
}

/// The answer did not come in time: the server may still run the command when it wakes up.
pub(crate) const fn deadline_passed() -> StoreError {
    StoreError::new(
        ErrorKind::Unknown,
        "no answer from Redis within the deadline",
    )
}

/// The answer is none that our scripts give.
pub(crate) const fn strange_reply() -> StoreError {
    StoreError::new(
        ErrorKind::Corrupt,
        "Redis answered something that the script does not say",
    )
}

fn classify(error: &RedisError) -> (ErrorKind, &'static str) {
    use ErrorKind::{Config, NotExecuted, Unknown};

    if error.is_connection_refusal() {
        return (NotExecuted, "Redis refused the connection");
    }
    if error.is_timeout() {
        return (Unknown, "no answer from Redis within the deadline");
    }
    match error.kind() {
        RedisKind::Io => (Unknown, "the connection to Redis broke"),
        RedisKind::ClusterConnectionNotFound => (NotExecuted, "no connection to the key's node"),
        RedisKind::AuthenticationFailed => (Config, "Redis refused the credentials"),
        RedisKind::InvalidClientConfig | RedisKind::Client | RedisKind::RESP3NotSupported => {
            (Config, "the Redis client is set up wrongly")
        }
        RedisKind::Parse | RedisKind::UnexpectedReturnType => {
            (Unknown, "Redis answered something unreadable")
        }
        RedisKind::MasterNameNotFoundBySentinel
        | RedisKind::NoValidReplicasFoundBySentinel
        | RedisKind::EmptySentinelList => (NotExecuted, "the sentinels know no server"),
        RedisKind::Server(kind) => classify_server(kind, error),
        _ => classify_code(error),
    }
}

fn classify_server(kind: ServerErrorKind, error: &RedisError) -> (ErrorKind, &'static str) {
    use ErrorKind::{Config, NotExecuted};

    match kind {
        ServerErrorKind::BusyLoading => (NotExecuted, "Redis is loading its data"),
        ServerErrorKind::ReadOnly => (NotExecuted, "this Redis is a read-only replica"),
        ServerErrorKind::ClusterDown | ServerErrorKind::MasterDown | ServerErrorKind::TryAgain => {
            (NotExecuted, "the key's part of the cluster is down")
        }
        ServerErrorKind::Moved | ServerErrorKind::Ask => {
            (NotExecuted, "the key has moved to another node")
        }
        ServerErrorKind::NoScript => (NotExecuted, "Redis does not know the script"),
        ServerErrorKind::CrossSlot => (Config, "the keys belong to several hash slots"),
        ServerErrorKind::NoPerm => (Config, "this user may not run the limiter's commands"),
        _ => classify_code(error),
    }
}

/// By the error's code; what went wrong inside a script arrives on old servers with the code `ERR` and the real one in its
/// text.
fn classify_code(error: &RedisError) -> (ErrorKind, &'static str) {
    use ErrorKind::{Config, Corrupt, NotExecuted};

    const CODES: [(&str, ErrorKind, &str); 10] = [
        (
            "BADSTATE",
            Corrupt,
            "the stored value is no state of this limit",
        ),
        (
            "WRONGTYPE",
            Corrupt,
            "the stored value has another Redis type",
        ),
        ("OOM", NotExecuted, "Redis is out of memory"),
        ("READONLY", NotExecuted, "this Redis is a read-only replica"),
        (
            "MISCONF",
            NotExecuted,
            "Redis refuses writes because it cannot save them",
        ),
        (
            "NOREPLICAS",
            NotExecuted,
            "Redis refuses writes without enough replicas",
        ),
        ("BUSY", NotExecuted, "Redis is busy with a script"),
        (
            "NOPERM",
            Config,
            "this user may not run the limiter's commands",
        ),
        ("NOAUTH", Config, "Redis wants credentials"),
        ("LOADING", NotExecuted, "Redis is loading its data"),
    ];
    let (code, detail) = (
        error.code().unwrap_or_default(),
        error.detail().unwrap_or_default(),
    );
    let said = |name: &str| {
        code == name
            || detail
                .split(|c: char| !c.is_ascii_alphanumeric())
                .any(|word| word == name)
    };
    let known = CODES.iter().find(|(name, ..)| said(name));
    known.map_or(
        (Config, "Redis refused the command"),
        |(_, kind, message)| (*kind, message),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server_error(line: &str) -> StoreError {
        let value = redis::parse_redis_value(format!("-{line}\r\n").as_bytes());
        let error = value.and_then(redis::Value::extract_error).unwrap_err();
        store_error(error)
    }

    #[test]
    fn servers_errors_say_whether_the_request_was_counted() {
        use ErrorKind::{Config, Corrupt, NotExecuted};
        for (line, kind) in [
            ("BADSTATE not a token bucket", Corrupt),
            (
                "WRONGTYPE Operation against a key holding the wrong kind of value",
                Corrupt,
            ),
            (
                "OOM command not allowed when used memory > 'maxmemory'.",
                NotExecuted,
            ),
            (
                "ERR Error running script (call to f_1): @user_script:40: @user_script: 40: -OOM command not allowed",
                NotExecuted,
            ),
            (
                "READONLY You can't write against a read only replica.",
                NotExecuted,
            ),
            (
                "ERR Error running script (call to f_1): @user_script:40: -READONLY You can't write",
                NotExecuted,
            ),
            (
                "LOADING Redis is loading the dataset in memory",
                NotExecuted,
            ),
            ("CLUSTERDOWN Hash slot not served", NotExecuted),
            (
                "MISCONF Redis is configured to save RDB snapshots",
                NotExecuted,
            ),
            (
                "NOPERM this user has no permissions to run the 'evalsha' command",
                Config,
            ),
            ("NOAUTH Authentication required.", Config),
            (
                "CROSSSLOT Keys in request don't hash to the same slot",
                Config,
            ),
            ("ERR unknown command 'EVALSHA'", Config),
        ] {
            assert_eq!(server_error(line).kind(), kind, "{line}");
        }
    }

    #[test]
    fn broken_connections_leave_the_outcome_open() {
        let io = |kind| store_error(RedisError::from(std::io::Error::from(kind))).kind();
        assert_eq!(
            io(std::io::ErrorKind::ConnectionRefused),
            ErrorKind::NotExecuted
        );
        assert_eq!(io(std::io::ErrorKind::TimedOut), ErrorKind::Unknown);
        assert_eq!(io(std::io::ErrorKind::BrokenPipe), ErrorKind::Unknown);
        assert_eq!(io(std::io::ErrorKind::UnexpectedEof), ErrorKind::Unknown);
    }
}
