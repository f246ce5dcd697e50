//! The example `replay` on the log in `examples/data`, against counts made here in another way.
#![cfg(feature = "dashmap")] // without it, the example is not built

use std::collections::HashMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;

const LOG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/data/access.log");

/// `cargo test` builds examples beside the tests: `deps/this-test` and `examples/replay`.
fn program() -> PathBuf {
    let test = std::env::current_exe().expect("the path of this test");
    let target = test
        .parent()
        .and_then(Path::parent)
        .expect("a test lies in <target>/deps");
    let program = target
        .join("examples")
        .join(format!("replay{}", std::env::consts::EXE_SUFFIX));
    assert!(
        program.exists(),
        "{} is missing: run `cargo build --example replay` first, or `cargo test` without `--test`",
        program.display()
    );
    program
}

fn replay(args: &[&str], stdin: &[u8]) -> Output {
    let mut child = Command::new(program())
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the example starts");
    let mut pipe = child.stdin.take().expect("a pipe");
    thread::scope(|scope| {
        // A thread of its own, lest both sides wait for each other. A run that fails early reads
        // nothing, so the pipe may break.
        scope.spawn(move || pipe.write_all(stdin).is_ok());
        child.wait_with_output().expect("the example ends")
    })
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).expect("UTF-8")
}

fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).expect("UTF-8")
}

/// The numbers of one row.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    requests: u64,
    allowed: u64,
    denied: u64,
    keys: usize,
    limited: usize,
    worst: String,
}

fn row(output: &Output, policy: &str) -> Row {
    let line = stdout(output)
        .lines()
        .find(|line| line.starts_with(&format!("{policy} ")));
    let line = line.unwrap_or_else(|| panic!("no row for {policy}:\n{}", stdout(output)));
    let cells: Vec<_> = line[policy.len()..].split_whitespace().collect();
    let number = |index: usize| cells[index].parse().expect("a number");
    Row {
        requests: number(0),
        allowed: number(1),
        denied: number(2),
        keys: cells[4].parse().expect("a number"),
        limited: cells[5].parse().expect("a number"),
        worst: cells[cells.len() - 2..].join(" "),
    }
}

/// Client and second of each line; the log spans less than a month.
fn requests(log: &str) -> Vec<(&str, u64)> {
    log.lines()
        .map(|line| {
            let mut fields = line.split(' ');
            let client = fields.next().expect("a client");
            let time = fields.nth(2).expect("a time").trim_start_matches('[');
            let numbers: Vec<u64> = time
                .split(['/', ':'])
                .filter_map(|field| field.parse().ok())
                .collect();
            let [day, _year, hour, minute, second] = numbers[..] else {
                panic!("{time}");
            };
            (client, ((day * 24 + hour) * 60 + minute) * 60 + second)
        })
        .collect()
}

/// What a policy should say, given `allow(client, second)`.
fn expected(log: &str, mut allow: impl FnMut(&str, u64) -> bool) -> Row {
    let requests = requests(log);
    let mut denials: HashMap<&str, u64> = requests.iter().map(|&(client, _)| (client, 0)).collect();
    for &(client, second) in &requests {
        if !allow(client, second) {
            *denials.get_mut(client).expect("a client of the log") += 1;
        }
    }
    let denied = denials.values().sum();
    let worst = denials
        .iter()
        .max_by_key(|&(_, &count)| count)
        .expect("a client");
    Row {
        requests: requests.len() as u64,
        allowed: requests.len() as u64 - denied,
        denied,
        keys: denials.len(),
        limited: denials.values().filter(|&&count| count > 0).count(),
        worst: format!("{} ({})", worst.0, worst.1),
    }
}

/// A bucket that counts whole shares of a token: `period` of them each, `tokens` gained a second.
fn bucket(tokens: u64, period: u64, burst: u64) -> impl FnMut(&str, u64) -> bool {
    let mut clients: HashMap<String, (u64, u64)> = HashMap::new();
    move |client, second| {
        let full = burst * period;
        let (shares, at) = clients.entry(client.to_owned()).or_insert((full, second));
        *shares = full.min(*shares + (second - *at) * tokens);
        *at = second;
        let is_allowed = *shares >= period;
        *shares -= if is_allowed { period } else { 0 };
        is_allowed
    }
}

/// Counts every admitted request of the last minute.
fn trailing_minute(limit: usize) -> impl FnMut(&str, u64) -> bool {
    let mut clients: HashMap<String, Vec<u64>> = HashMap::new();
    move |client, second| {
        let admitted = clients.entry(client.to_owned()).or_default();
        let is_allowed = admitted.iter().filter(|&&at| second - at < 60).count() < limit;
        if is_allowed {
            admitted.push(second);
        }
        is_allowed
    }
}

/// Counts the admitted requests of each calendar minute.
fn calendar_minute(limit: u64) -> impl FnMut(&str, u64) -> bool {
    let mut minutes: HashMap<(String, u64), u64> = HashMap::new();
    move |client, second| {
        let admitted = minutes.entry((client.to_owned(), second / 60)).or_default();
        let is_allowed = *admitted < limit;
        *admitted += u64::from(is_allowed);
        is_allowed
    }
}

/// Weighs the minute before by the share of it that the last sixty seconds still cover. A client's
/// minutes begin at its first request, and anew after one without requests.
fn weighted_minutes(limit: u64) -> impl FnMut(&str, u64) -> bool {
    const MINUTE: u64 = 60;
    let mut clients: HashMap<String, (u64, u64, u64)> = HashMap::new();
    move |client, second| {
        let (start, previous, current) = clients.entry(client.to_owned()).or_insert((second, 0, 0));
        if second >= *start + MINUTE {
            let is_next = second < *start + 2 * MINUTE && *current > 0;
            (*start, *previous) = if is_next {
                (*start + MINUTE, *current)
            } else {
                (second, 0)
            };
            *current = 0;
        }
        let covered = *start + MINUTE - second;
        let is_allowed = *previous * covered + (*current + 1) * MINUTE <= limit * MINUTE;
        *current += u64::from(is_allowed);
        is_allowed
    }
}

#[test]
fn the_table_agrees_with_an_independent_count() {
    let log = fs::read_to_string(LOG).expect("the log of the repository");
    let policies = [
        "10/s burst 20",
        "100/min",
        "sliding 60/min",
        "log 60/min",
        "fixed 60/min",
    ];
    let args = policies.iter().flat_map(|policy| ["--limit", policy]);
    let args: Vec<_> = [LOG].into_iter().chain(args).collect();
    let output = replay(&args, b"");
    assert!(output.status.success(), "{}", stderr(&output));

    assert_eq!(row(&output, policies[0]), expected(&log, bucket(10, 1, 20)));
    assert_eq!(
        row(&output, policies[1]),
        expected(&log, bucket(100, 60, 100))
    );
    assert_eq!(
        row(&output, policies[2]),
        expected(&log, weighted_minutes(60))
    );
    assert_eq!(
        row(&output, policies[3]),
        expected(&log, trailing_minute(60))
    );
    assert_eq!(
        row(&output, policies[4]),
        expected(&log, calendar_minute(60))
    );

    // From standard input, the same.
    let args: Vec<_> = ["-"].into_iter().chain(args.into_iter().skip(1)).collect();
    let piped = replay(&args, log.as_bytes());
    for policy in policies {
        assert_eq!(row(&piped, policy), row(&output, policy));
    }
}

#[test]
fn the_log_provokes_every_policy() {
    let log = fs::read_to_string(LOG).expect("the log of the repository");
    let row = expected(&log, bucket(10, 1, 20));
    assert!(row.requests > 4000 && row.keys > 40, "{row:?}");
    assert!(
        row.denied > 100 && row.limited >= 2 && row.limited < row.keys / 2,
        "{row:?}"
    );
    assert!(
        log.lines().all(|line| line.starts_with("127.0.")),
        "only loopback addresses"
    );
}

#[test]
fn mistakes_on_the_command_line_take_one_line() {
    let mistakes: [&[&str]; 5] = [
        &["--limit", "abc"],
        &["--limit", "a\nb"],
        &["--limit", "1/s", "--frobnicate"],
        &["--limit", "1/s", "--key", "foo"],
        &[],
    ];
    for args in mistakes {
        let output = replay(args, b"");
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert_eq!(
            stderr(&output).lines().count(),
            1,
            "{args:?}: {}",
            stderr(&output)
        );
        assert_eq!(stdout(&output), "", "{args:?}");
    }
    let output = replay(&["--limit", "1/s", "/nonexistent/access.log"], b"");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(stderr(&output).lines().count(), 1);
}

#[test]
fn malformed_lines_are_counted_and_the_first_three_shown() {
    let good = "::1 - - [10/Oct/2026:13:55:36 +0000] \"GET / HTTP/1.1\" 200 1\n".as_bytes();
    let log = [b"one\n", good, b"two\xff\x1b[2J\n", good, b"three\nfour\n"].concat();
    let output = replay(&["--limit", "1/min"], &log);
    assert!(output.status.success());
    assert!(stdout(&output).contains("lines: 6, malformed: 4, out of order: 0"));
    let shown: Vec<_> = stderr(&output).lines().collect();
    assert_eq!(
        shown,
        [
            "line 1: malformed: one",
            "line 3: malformed: two\u{fffd}\\u{1b}[2J",
            "line 5: malformed: three",
        ]
    );
    let Row {
        requests,
        allowed,
        denied,
        ..
    } = row(&output, "1/min");
    assert_eq!((requests, allowed, denied), (2, 1, 1));
}

#[test]
fn a_log_without_requests_is_an_error_in_one_line() {
    for log in [&b""[..], b"\n"] {
        let output = replay(&["--limit", "1/s"], log);
        assert_eq!(output.status.code(), Some(1));
        assert!(
            stderr(&output).contains("no request in standard input"),
            "{}",
            stderr(&output)
        );
    }
}
