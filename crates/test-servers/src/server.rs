//! One server.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use tempfile::TempDir;

use crate::kind::Kind;
use crate::options::Options;
use crate::process::{Farewell, Launch, Process};
use crate::start_error::StartError;
use crate::{memcached, port, postgres, redis, wait};

/// How often another port is tried when somebody else was faster.
const MAX_LOST_RACES: u32 = 10;

/// How much of a log an error shows.
const LOG_LINES: usize = 30;

/// A running server, which ends when dropped.
///
/// Whatever disturbs it takes `&mut self`, so that a [shared](Self::shared) server is never disturbed.
#[derive(Debug)]
pub struct Server {
    kind: Kind,
    options: Options,
    port: u16,
    /// `None` after [`kill`](Self::kill).
    process: Option<Process>,
    pid: u32,
    /// Last, because its files go after the process.
    folder: TempDir,
}

impl Server {
    /// Starts a server and waits until it answers.
    ///
    /// # Panics
    /// If it does not start within 15 seconds, or is not installed: the message says why.
    #[track_caller]
    #[must_use]
    pub fn start(kind: Kind, options: Options) -> Self {
        Self::try_start(kind, options).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Like [`start`](Self::start), for those who do not want a panic.
    ///
    /// # Errors
    /// [`StartError`] if it does not start, or is not installed.
    pub fn try_start(kind: Kind, options: Options) -> Result<Self, StartError> {
        let mut server = Self::prepare(kind, options)?;
        let mut lost_races = 0;
        loop {
            server.port =
                port::free().ok_or_else(|| StartError::new("no free port on 127.0.0.1"))?;
            match server.launch() {
                Err(error) if error.port_taken && lost_races < MAX_LOST_RACES => lost_races += 1,
                result => return result.map(|()| server),
            }
        }
    }

    /// Debian's Redis: [`start`](Self::start) with [`Kind::Redis`].
    ///
    /// # Panics
    /// As `start` does.
    #[track_caller]
    #[must_use]
    pub fn redis(options: Options) -> Self {
        Self::start(Kind::Redis, options)
    }

    /// Redis 6.2: [`start`](Self::start) with [`Kind::Redis62`].
    ///
    /// # Panics
    /// As `start` does.
    #[track_caller]
    #[must_use]
    pub fn redis62(options: Options) -> Self {
        Self::start(Kind::Redis62, options)
    }

    /// Valkey: [`start`](Self::start) with [`Kind::Valkey`].
    ///
    /// # Panics
    /// As `start` does.
    #[track_caller]
    #[must_use]
    pub fn valkey(options: Options) -> Self {
        Self::start(Kind::Valkey, options)
    }

    /// memcached: [`start`](Self::start) with [`Kind::Memcached`].
    ///
    /// # Panics
    /// As `start` does.
    #[track_caller]
    #[must_use]
    pub fn memcached(options: Options) -> Self {
        Self::start(Kind::Memcached, options)
    }

    /// PostgreSQL: [`start`](Self::start) with [`Kind::Postgres`].
    ///
    /// # Panics
    /// As `start` does.
    #[track_caller]
    #[must_use]
    pub fn postgres(options: Options) -> Self {
        Self::start(Kind::Postgres, options)
    }

    /// The one server of this kind that all tests of a process share, with default options. It ends with the
    /// process. Tests that use it must keep to keys, or a [database](Self::create_database), of their own.
    ///
    /// # Panics
    /// As [`start`](Self::start) does, for each caller anew.
    #[track_caller]
    pub fn shared(kind: Kind) -> &'static Self {
        static SHARED: [OnceLock<Server>; Kind::ALL.len()] =
            [const { OnceLock::new() }; Kind::ALL.len()];
        SHARED[kind as usize].get_or_init(|| Self::start(kind, Options::new()))
    }

    /// What it is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The port on 127.0.0.1, the same for its whole life.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// `127.0.0.1:PORT`.
    #[must_use]
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The process id; after [`kill`](Self::kill), what it was.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The folder of its files, which goes with it.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// All that it said.
    #[must_use]
    pub fn log(&self) -> String {
        let bytes = fs::read(self.log_path()).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Stops it by SIGSTOP. It keeps its connections, the system accepts new ones, and nobody is answered.
    pub fn pause(&mut self) {
        if let Some(process) = &mut self.process {
            process.pause();
        }
    }

    /// Lets it go on after [`pause`](Self::pause): first with what was asked meanwhile.
    pub fn resume(&mut self) {
        if let Some(process) = &mut self.process {
            process.resume();
        }
    }

    /// Ends it by SIGKILL, paused or not. Connections are reset and new ones refused; its files stay.
    pub fn kill(&mut self) {
        if let Some(process) = self.process.take() {
            process.kill();
            if self.kind == Kind::Postgres {
                postgres::remove_shared_memory(self.folder.path());
            }
        }
    }

    /// Starts it again at the same address with the same files, after a [`kill`](Self::kill) if it still runs.
    ///
    /// # Panics
    /// As [`start`](Self::start) does.
    #[track_caller]
    pub fn restart(&mut self) {
        self.kill();
        // Somebody may have taken the port; nobody keeps one for long.
        let result = wait::until(wait::LIMIT, || match self.launch() {
            Err(error) if error.port_taken => None,
            result => Some(result),
        });
        match result {
            Some(Ok(())) => {}
            Some(Err(error)) => panic!("{error}"),
            None => panic!("somebody else listens on port {}", self.port),
        }
    }

    /// Returns when it answers: at once, unless it was [resumed](Self::resume) or is loading data.
    ///
    /// # Panics
    /// If it does not answer within 15 seconds.
    #[track_caller]
    pub fn wait_until_ready(&self) {
        if wait::until(wait::LIMIT, || self.answers().then_some(())).is_none() {
            panic!("{}", self.failure("does not answer"));
        }
    }

    /// Sends a Redis command, over a connection of its own, and returns the reply as text: an array as one line
    /// for each element, nil as `(nil)`.
    ///
    /// # Errors
    /// What the server calls an error, as the message; and failures of the connection, or no answer within a second.
    pub fn command<A: AsRef<[u8]>>(&self, parts: &[A]) -> io::Result<String> {
        redis::command(self.port, parts)
    }

    /// Returns when a section of Redis's `INFO` has this line, such as `master_link_status:up` in `replication`.
    ///
    /// # Panics
    /// If it does not within 15 seconds.
    #[track_caller]
    pub fn wait_for_info(&self, section: &str, line: &str) {
        let shows = || {
            let info = self.command(&["INFO", section]).unwrap_or_default();
            info.lines().any(|one| one == line).then_some(())
        };
        if wait::until(wait::LIMIT, shows).is_none() {
            panic!(
                "{}",
                self.failure(&format!("does not show {line} in INFO {section}"))
            );
        }
    }

    /// Makes a new database in PostgreSQL and returns its address, `postgres://postgres@127.0.0.1:PORT/NAME`.
    ///
    /// # Panics
    /// If PostgreSQL does not agree: for example, because the database exists.
    #[track_caller]
    #[must_use]
    pub fn create_database(&self, name: &str) -> String {
        postgres::create_database(self.port, name).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Runs SQL in a PostgreSQL database (`postgres` is always there) and returns the rows: one a line, columns
    /// parted by `|`.
    ///
    /// # Errors
    /// What PostgreSQL's client says.
    pub fn sql(&self, database: &str, statements: &str) -> io::Result<String> {
        postgres::query(self.port, database, statements)
    }

    /// All but a port and a process.
    fn prepare(kind: Kind, options: Options) -> Result<Self, StartError> {
        kind.program()?;
        let folder = tempfile::Builder::new()
            .prefix("ratekeeper-server-")
            .tempdir()
            .map_err(|error| StartError::new(format!("no temporary folder: {error}")))?;
        if kind == Kind::Postgres {
            postgres::initialize(folder.path())?;
        }
        Ok(Self {
            kind,
            options,
            port: 0,
            process: None,
            pid: 0,
            folder,
        })
    }

    /// One try on `self.port`.
    fn launch(&mut self) -> Result<(), StartError> {
        let said_before = self.log().len();
        let process = Process::spawn(&self.plan()?, self.folder.path(), &self.log_path()).map_err(
            |error| StartError::new(format!("{} cannot be started: {error}", self.kind)),
        )?;
        self.pid = process.id();
        self.process = Some(process);
        let exited_or_ready = wait::until(wait::LIMIT, || {
            let exited = self.process.as_mut().and_then(Process::exit_status);
            if exited.is_some() {
                exited.map(Some)
            } else {
                self.answers().then_some(None)
            }
        });
        let what = match exited_or_ready {
            Some(None) => return Ok(()),
            Some(Some(status)) => format!("ended with {status} instead of serving"),
            None => "does not answer".to_owned(),
        };
        let mut error = StartError::new(self.failure(&what));
        error.port_taken = self
            .log()
            .get(said_before..)
            .is_some_and(|said| said.contains("Address already in use"));
        self.end();
        Err(error)
    }

    fn plan(&self) -> Result<Launch, StartError> {
        let (folder, options) = (self.folder.path(), &self.options);
        let (arguments, account, farewell) = match self.kind {
            Kind::Redis | Kind::Redis62 | Kind::Valkey => (
                redis::arguments(self.port, folder, options),
                None,
                Farewell::Kill,
            ),
            Kind::Memcached => (
                memcached::arguments(self.port, options),
                None,
                Farewell::Kill,
            ),
            Kind::Postgres => {
                let arguments = postgres::arguments(self.port, folder, options);
                (arguments, postgres::account()?, Farewell::Quit)
            }
        };
        Ok(Launch {
            program: self.kind.program()?,
            arguments,
            account,
            farewell,
        })
    }

    fn answers(&self) -> bool {
        match self.kind {
            Kind::Redis | Kind::Redis62 | Kind::Valkey => redis::answers(self.port, self.pid),
            Kind::Memcached => memcached::answers(self.port, self.pid),
            Kind::Postgres => postgres::answers(self.port, self.pid, self.folder.path()),
        }
    }

    fn log_path(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    /// What happened, followed by the end of the log.
    fn failure(&self, what: &str) -> String {
        let log = self.log();
        let lines: Vec<_> = log.lines().collect();
        let end = &lines[lines.len().saturating_sub(LOG_LINES)..];
        format!(
            "{} on port {} {what}; its log ends with:\n{}",
            self.kind,
            self.port,
            end.join("\n")
        )
    }

    fn end(&mut self) {
        if let Some(process) = self.process.take() {
            process.end();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

/// Connects to a server on this machine that may be hung.
pub(crate) fn connect(port: u16) -> io::Result<TcpStream> {
    const LIMIT: Duration = Duration::from_secs(1);
    let stream = TcpStream::connect_timeout(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)), LIMIT)?;
    stream.set_read_timeout(Some(LIMIT))?;
    stream.set_write_timeout(Some(LIMIT))?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever else listens on the port, even a server of the same kind, is not mistaken for the new server.
    #[test]
    fn a_lost_race_for_the_port_is_noticed() {
        for kind in Kind::ALL {
            let winner = Server::start(kind, Options::new());
            let mut loser = Server::prepare(kind, Options::new()).unwrap();
            loser.port = winner.port;
            let error = loser.launch().unwrap_err();
            assert!(error.port_taken, "{error}");
            assert!(loser.process.is_none());
        }
    }
}
