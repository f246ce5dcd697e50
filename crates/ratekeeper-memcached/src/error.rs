//! What memcached's errors and a broken connection say about a request.

use ratekeeper::store::{ErrorKind, StoreError};

use crate::connection::Failure;

/// What was asked: decides what it means that the answer is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// To read: nothing can have been counted.
    Load,
    /// To write, or to delete.
    Change,
}

impl Asked {
    const fn unanswered(self) -> ErrorKind {
        match self {
            Self::Load => ErrorKind::NotExecuted,
            Self::Change => ErrorKind::Unknown,
        }
    }

    /// No answer came in time: the server may still do what was asked when it wakes up.
    pub(crate) const fn deadline_passed(self) -> StoreError {
        StoreError::new(
            self.unanswered(),
            "no answer from memcached within the deadline",
        )
    }

    /// The connection failed.
    pub(crate) fn failed(self, failure: Failure) -> StoreError {
        match failure {
            Failure::Unreachable(error) => {
                StoreError::new(ErrorKind::NotExecuted, "memcached cannot be reached")
                    .with_source(error)
            }
            Failure::NotSent | Failure::OtherConnection => StoreError::new(
                ErrorKind::NotExecuted,
                "the connection to memcached broke before the request",
            ),
            Failure::Broken(error) => {
                StoreError::new(self.unanswered(), "the connection to memcached broke")
                    .with_source(error)
            }
        }
    }

    /// memcached said that it made an error, or that we did.
    pub(crate) fn refused(self, line: String) -> StoreError {
        let (kind, message) = self.classify(&line);
        StoreError::new(kind, message).with_source(line)
    }

    /// An answer to another question.
    pub(crate) const fn strange_reply(self) -> StoreError {
        StoreError::new(
            self.unanswered(),
            "memcached answered something else than was asked",
        )
    }

    fn classify(self, line: &str) -> (ErrorKind, &'static str) {
        use ErrorKind::{Config, NotExecuted};

        match line.split_once(' ').unwrap_or((line, "")) {
            ("SERVER_ERROR", said) if said.starts_with("out of memory") => {
                (NotExecuted, "memcached is out of memory")
            }
            ("SERVER_ERROR", said) if said.starts_with("object too large") => (
                Config,
                "memcached is set up for values smaller than a state",
            ),
            // A proxy's, perhaps, which knows no more about the server than that it did not answer.
            ("SERVER_ERROR", _) => (self.unanswered(), "memcached failed"),
            ("CLIENT_ERROR", "unauthenticated") => (Config, "memcached wants credentials"),
            ("CLIENT_ERROR", _) => (Config, "memcached refused the request"),
            ("ERROR", "") => (
                Config,
                "memcached does not know the command; it takes version 1.6 or later",
            ),
            _ => (NotExecuted, "memcached refused the connection"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;

    use super::*;

    #[test]
    fn errors_say_whether_the_request_was_counted() {
        use ErrorKind::{Config, NotExecuted, Unknown};
        for (line, load, change) in [
            (
                "SERVER_ERROR out of memory storing object",
                NotExecuted,
                NotExecuted,
            ),
            ("SERVER_ERROR object too large for cache", Config, Config),
            ("SERVER_ERROR backend timeout", NotExecuted, Unknown),
            ("SERVER_ERROR", NotExecuted, Unknown),
            ("CLIENT_ERROR bad command line format", Config, Config),
            ("CLIENT_ERROR unauthenticated", Config, Config),
            ("ERROR", Config, Config),
            ("ERROR Too many open connections", NotExecuted, NotExecuted),
        ] {
            assert_eq!(Asked::Load.refused(line.into()).kind(), load, "{line}");
            assert_eq!(Asked::Change.refused(line.into()).kind(), change, "{line}");
        }
    }

    #[test]
    fn only_what_was_sent_may_have_been_counted() {
        use ErrorKind::{NotExecuted, Unknown};
        let error = || Arc::new(io::Error::from(io::ErrorKind::ConnectionReset));
        for (failure, change) in [
            (Failure::Unreachable(error()), NotExecuted),
            (Failure::NotSent, NotExecuted),
            (Failure::OtherConnection, NotExecuted),
            (Failure::Broken(error()), Unknown),
        ] {
            assert_eq!(
                Asked::Change.failed(failure.clone()).kind(),
                change,
                "{failure:?}"
            );
            assert_eq!(Asked::Load.failed(failure).kind(), NotExecuted);
        }
        assert_eq!(Asked::Load.deadline_passed().kind(), NotExecuted);
        assert_eq!(Asked::Change.deadline_passed().kind(), Unknown);
    }
}
