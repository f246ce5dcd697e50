//! Why a store could not decide.

#[cfg(feature = "alloc")]
use alloc::boxed::Box;
use core::error::Error;
use core::fmt;

/// No decision was made: the store could not be asked, or what it said made no sense.
///
/// It never means "limited": a refusal is a [`Decision`](crate::Decision). What to do instead is the caller's choice, or
/// that of a wrapper such as [`FailOpen`](crate::store::FailOpen).
///
/// ```
/// use ratekeeper::store::{ErrorKind, StoreError};
///
/// let error = StoreError::new(ErrorKind::NotExecuted, "connection refused");
/// assert_eq!(error.kind(), ErrorKind::NotExecuted);
/// assert!(error.kind().is_outage());
/// assert_eq!(error.to_string(), "rate-limit store: connection refused; the request was not counted");
/// ```
#[derive(Debug)]
pub struct StoreError {
    kind: ErrorKind,
    message: &'static str,
    #[cfg(feature = "alloc")]
    source: Option<Box<dyn Error + Send + Sync>>,
}

/// What an error says about the request, and so what can be done.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The request was certainly not counted: connection refused, server read-only or out of memory, breaker open. It may
    /// be repeated.
    NotExecuted,
    /// The request may have been counted once: a deadline passed, or the connection broke while the answer was under way.
    /// Repeating it may count it twice.
    Unknown,
    /// Other callers changed the key in every attempt. Nothing was counted.
    Contention,
    /// The stored value is not a state of this algorithm, or the server and this process disagree about the outcome.
    /// Nothing was overwritten.
    Corrupt,
    /// The server refuses the operation as such: missing permission, wrong kind of server, several hash slots. Nothing was
    /// counted, and repeating it will not help.
    Config,
    /// This store cannot do what was asked, for this limit or at all. Nothing was counted.
    Unsupported,
}

impl ErrorKind {
    /// Whether the store was out of reach: [`NotExecuted`](Self::NotExecuted) or [`Unknown`](Self::Unknown). Breakers
    /// count these. [`Unsupported`](Self::Unsupported) says nothing of the store's health, and the other kinds that it is
    /// alive.
    pub const fn is_outage(self) -> bool {
        matches!(self, Self::NotExecuted | Self::Unknown)
    }

    const fn meaning(self) -> &'static str {
        match self {
            Self::NotExecuted => "the request was not counted",
            Self::Unknown => "the request may have been counted",
            Self::Contention => "too many callers changed the key, the request was not counted",
            Self::Corrupt => "the stored value makes no sense here and was left alone",
            Self::Config => "the server is not set up for this, the request was not counted",
            Self::Unsupported => "the store cannot do this, the request was not counted",
        }
    }
}

impl StoreError {
    /// An error of the given kind; `message` says what happened, in the store's words.
    pub const fn new(kind: ErrorKind, message: &'static str) -> Self {
        Self {
            kind,
            message,
            #[cfg(feature = "alloc")]
            source: None,
        }
    }

    /// Attaches the backend's own error, as [`source`](Error::source).
    #[cfg(feature = "alloc")]
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// What the error says about the request.
    pub const fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// What happened, in the store's words.
    pub const fn message(&self) -> &'static str {
        self.message
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (message, meaning) = (self.message, self.kind.meaning());
        write!(f, "rate-limit store: {message}; {meaning}")
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        #[cfg(feature = "alloc")]
        {
            self.source
                .as_deref()
                .map(|source| source as &(dyn Error + 'static))
        }
        #[cfg(not(feature = "alloc"))]
        None
    }
}
