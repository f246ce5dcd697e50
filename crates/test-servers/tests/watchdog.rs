//! Servers end with the process that started them, however that ends.
//!
//! Each test runs itself once more, as the process that ends.

mod common;

use std::env;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{self, Child, Command, Stdio};

use common::{assert_no_process_in, eventually, state};
use ratekeeper_test_servers::{Kind, Options, Server};
use rustix::process::{Pid, Signal, kill_process_group};

const VICTIM: &str = "RATEKEEPER_TEST_SERVERS_VICTIM";

/// Runs a test as the process to end. Its servers are `(pid, folder)`.
fn victim(test: &str, servers: usize) -> (Child, Vec<(u32, PathBuf)>) {
    let mut child = Command::new(env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env(VICTIM, "yes")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap();
    let servers: Vec<_> = BufReader::new(child.stdout.as_mut().unwrap())
        .lines()
        .map_while(Result::ok)
        .filter_map(|line| {
            let (pid, folder) = line.strip_prefix("server ")?.split_once(' ')?;
            Some((pid.parse().unwrap(), PathBuf::from(folder)))
        })
        .take(servers)
        .collect();
    (child, servers)
}

fn is_victim() -> bool {
    env::var_os(VICTIM).is_some()
}

fn report(servers: &[&Server]) {
    for server in servers {
        println!("\nserver {} {}", server.pid(), server.folder().display());
    }
}

#[track_caller]
fn assert_gone(servers: Vec<(u32, PathBuf)>, expected: usize) {
    assert_eq!(servers.len(), expected, "servers did not start");
    for (pid, folder) in servers {
        eventually("the server goes", || state(pid).is_none());
        assert_no_process_in(&folder);
        eventually("its folder goes", || !folder.exists());
    }
}

#[test]
fn none_outlives_an_abort() {
    if is_victim() {
        let redis = Server::redis(Options::new());
        let memcached = Server::memcached(Options::new());
        let mut postgres = Server::postgres(Options::new());
        postgres.pause();
        report(&[&redis, &memcached, &postgres]);
        process::abort();
    }
    let (mut child, servers) = victim("none_outlives_an_abort", 3);
    assert!(!child.wait().unwrap().success());
    assert_gone(servers, 3);
}

#[test]
fn none_outlives_a_kill() {
    if is_victim() {
        // Started by a thread that is no more.
        let mut valkey = std::thread::spawn(|| Server::valkey(Options::new()))
            .join()
            .unwrap();
        let redis = Server::redis(Options::new());
        valkey.pause();
        report(&[&valkey, &redis]);
        let _ = io::stdin().read(&mut [0]);
        return;
    }
    let (mut child, servers) = victim("none_outlives_a_kill", 2);
    for (pid, _) in &servers {
        assert!(state(*pid).is_some(), "a server ends before its time");
    }
    // As a terminal does, and a test runner whose patience is over.
    let group = Pid::from_child(&child);
    kill_process_group(group, Signal::KILL).unwrap();
    child.wait().unwrap();
    assert_gone(servers, 2);
}

#[test]
fn shared_ones_end_with_the_process() {
    if is_victim() {
        let shared = Kind::ALL.map(Server::shared);
        report(&shared);
        return;
    }
    let (mut child, servers) = victim("shared_ones_end_with_the_process", 5);
    assert!(child.wait().unwrap().success());
    assert_gone(servers, 5);
}
