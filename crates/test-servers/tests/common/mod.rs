//! What the tests ask the system, rather than the crate.
#![allow(dead_code, reason = "each test binary uses some of it")]
#![allow(clippy::disallowed_methods, reason = "real processes take real time")]

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use ratekeeper_test_servers::{Kind, Server};

/// The state's letter of a process; `None` if there is no such process, or only what is left of one.
pub(crate) fn state(pid: u32) -> Option<char> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let state = status
        .lines()
        .find_map(|line| line.strip_prefix("State:"))?;
    state.trim().chars().next().filter(|state| *state != 'Z')
}

/// Processes that work in a folder, removed or not.
pub(crate) fn processes_in(folder: &Path) -> Vec<u32> {
    let folder = folder.display().to_string();
    fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok())
        .filter(|pid| {
            fs::read_link(format!("/proc/{pid}/cwd"))
                .is_ok_and(|path| path.display().to_string().starts_with(&folder))
        })
        .filter(|&pid| state(pid).is_some())
        .collect()
}

/// Waits for the end of the last process in a folder: the watchdog leaves a moment after its server.
#[track_caller]
pub(crate) fn assert_no_process_in(folder: &Path) {
    eventually("no process is left", || processes_in(folder).is_empty());
}

/// Whether connections are refused.
pub(crate) fn refuses(server: &Server) -> bool {
    TcpStream::connect(server.address())
        .is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
}

/// Whether it answers the simplest question of its protocol within `limit`.
pub(crate) fn answers_within(server: &Server, limit: Duration) -> bool {
    let question: &[u8] = match server.kind() {
        Kind::Memcached => b"version\r\n",
        // Is there TLS?
        Kind::Postgres => &[0, 0, 0, 8, 4, 210, 22, 47],
        _ => b"PING\r\n",
    };
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(limit)).unwrap();
    stream.write_all(question).unwrap();
    stream.read(&mut [0]).is_ok_and(|bytes| bytes == 1)
}

pub(crate) fn answers(server: &Server) -> bool {
    answers_within(server, Duration::from_secs(10))
}

/// Waits for what must happen soon.
#[track_caller]
pub(crate) fn eventually(what: &str, mut is: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is() {
        assert!(
            start.elapsed() < Duration::from_secs(20),
            "not within 20 s: {what}"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}
