//! A running server process, and the watchdog that ends it when this process is no more.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal};

use crate::{process_tree, wait};

/// What to run, as whom.
#[derive(Debug)]
pub(crate) struct Launch {
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<String>,
    pub(crate) account: Option<Account>,
    pub(crate) farewell: Farewell,
}

/// A user other than the one who runs the tests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Account {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

impl Account {
    pub(crate) fn apply(self, command: &mut Command) {
        command.uid(self.uid).gid(self.gid);
    }
}

/// How a server is told to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Farewell {
    /// At once.
    Kill,
    /// By SIGQUIT, on which PostgreSQL ends at once, but gives back its System V shared memory.
    Quit,
}

#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    /// Closing it rouses the watchdog.
    watchdog: ChildStdin,
    farewell: Farewell,
}

impl Process {
    /// Starts the server in `folder`, and appends what it says to `log`.
    pub(crate) fn spawn(launch: &Launch, folder: &Path, log: &Path) -> io::Result<Self> {
        let log = OpenOptions::new().create(true).append(true).open(log)?;
        // A file, for the sake of whoever lists processes.
        let script = folder.join("watchdog.sh");
        if !script.exists() {
            fs::write(&script, include_str!("watchdog.sh"))?;
        }
        let mut command = Command::new("sh");
        command
            .arg(script)
            .arg(match launch.farewell {
                Farewell::Kill => "KILL",
                Farewell::Quit => "QUIT",
            })
            .arg(folder)
            .arg(&launch.program)
            .args(&launch.arguments)
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(log.try_clone()?)
            .stderr(log)
            // Ctrl-C in a terminal is meant for the tests; the watchdog must survive it.
            .process_group(0);
        if let Some(account) = launch.account {
            account.apply(&mut command);
        }
        let mut child = command.spawn()?;
        // Out of the child, whose `wait` would close it.
        let watchdog = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(Self {
            child,
            watchdog,
            farewell: launch.farewell,
        })
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, if it did.
    pub(crate) fn exit_status(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Stops it and its children, and returns when all of them stand still.
    pub(crate) fn pause(&mut self) {
        let Some(pid) = self.pid() else { return };
        let children = halt(pid);
        for &child in &children {
            process_tree::signal(child, Signal::STOP);
        }
        assert!(
            process_tree::wait_until_still(&children),
            "{children:?} do not stop"
        );
    }

    pub(crate) fn resume(&mut self) {
        let Some(pid) = self.pid() else { return };
        for child in process_tree::children(pid) {
            process_tree::signal(child, Signal::CONT);
        }
        process_tree::signal(pid, Signal::CONT);
    }

    /// Ends it and its children by SIGKILL, and returns when all of them are gone.
    pub(crate) fn kill(mut self) {
        if let Some(pid) = self.pid() {
            let children = halt(pid);
            process_tree::signal(pid, Signal::KILL);
            for &child in &children {
                process_tree::signal(child, Signal::KILL);
            }
            process_tree::wait_until_gone(&children);
        }
        self.forget();
    }

    /// Ends it in the way that leaves nothing behind.
    pub(crate) fn end(mut self) {
        if self.farewell == Farewell::Quit
            && let Some(pid) = self.pid()
        {
            self.resume();
            process_tree::signal(pid, Signal::QUIT);
            wait::until(wait::LIMIT, || self.exit_status());
        }
        self.kill();
    }

    /// Its process id, unless it has been waited for: then the number may belong to somebody else.
    fn pid(&mut self) -> Option<Pid> {
        if self.exit_status().is_some() {
            return None;
        }
        Pid::from_raw(self.child.id().try_into().ok()?)
    }

    fn forget(mut self) {
        let _ = self.child.wait();
        let _ = self.watchdog.write_all(b"waited\n");
    }
}

/// Stops one process and tells its children, which are all of them: it cannot fork any more.
fn halt(pid: Pid) -> Vec<Pid> {
    process_tree::signal(pid, Signal::STOP);
    process_tree::wait_until_still(&[pid]);
    process_tree::children(pid)
}
