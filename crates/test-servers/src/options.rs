//! What a server is told besides the defaults.

/// More arguments for a server's command line. They stand after the defaults, so that they win.
///
/// ```
/// use ratekeeper_test_servers::Options;
///
/// let small = Options::new().args(["--maxmemory", "4mb", "--maxmemory-policy", "allkeys-lru"]);
/// let durable = Options::new().args(["--appendonly", "yes", "--appendfsync", "always"]);
/// # let _ = (small, durable);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    arguments: Vec<String>,
}

impl Options {
    /// Nothing but the defaults: no persistence, no password, 127.0.0.1 only.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds arguments, in the server's own words.
    #[must_use]
    pub fn args<A: Into<String>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    pub(crate) fn arguments(&self) -> &[String] {
        &self.arguments
    }
}
