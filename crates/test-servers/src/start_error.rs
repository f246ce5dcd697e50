//! Why a server did not start.

use std::fmt;

/// Why a server did not start, for a person to read: what is missing and how to get it, or the end of the log.
pub struct StartError {
    message: String,
    /// Another socket holds the port; one more try, with another port, may succeed.
    pub(crate) port_taken: bool,
}

impl StartError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            port_taken: false,
        }
    }

    /// What a missing program reports.
    pub(crate) fn missing(what: impl fmt::Display) -> Self {
        Self::new(format!(
            "{what} is missing: run .ci/servers, which installs it"
        ))
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

// `unwrap` and `expect` print this; the escapes of a derived `Debug` would make the log unreadable.
impl fmt::Debug for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for StartError {}
