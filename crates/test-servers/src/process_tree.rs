//! A server and the processes it forked, as /proc shows them.
//!
//! PostgreSQL serves each client from a process of its own: stopping only the first would stop nobody's queries.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};

use crate::wait;

pub(crate) fn children(parent: Pid) -> Vec<Pid> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(Pid::from_raw)
        .filter(|&pid| stat(pid).is_some_and(|(_, its_parent)| its_parent == parent.as_raw_pid()))
        .collect()
}

/// Sends a signal to a process that may have ended already.
pub(crate) fn signal(pid: Pid, signal: Signal) {
    let _ = kill_process(pid, signal);
}

/// Waits until each of the processes is stopped or gone; false if one goes on running.
pub(crate) fn wait_until_still(pids: &[Pid]) -> bool {
    wait_until_all(pids, |state| matches!(state, 'T' | 'Z' | 'X'))
}

/// Waits until each of the processes is gone; false if one stays.
pub(crate) fn wait_until_gone(pids: &[Pid]) -> bool {
    wait_until_all(pids, |state| matches!(state, 'Z' | 'X'))
}

fn wait_until_all(pids: &[Pid], is: impl Fn(char) -> bool) -> bool {
    let all = || {
        pids.iter()
            .all(|&pid| stat(pid).is_none_or(|(state, _)| is(state)))
    };
    wait::until(wait::LIMIT, || all().then_some(())).is_some()
}

/// The state's letter and the parent's process id.
fn stat(pid: Pid) -> Option<(char, i32)> {
    let line = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_pid())).ok()?;
    // The name before may contain anything, even parentheses.
    let (_, fields) = line.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}
