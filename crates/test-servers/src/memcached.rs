//! memcached: how it is started, and whether it answers.

use std::io::{BufRead, BufReader, Write};

use crate::options::Options;
use crate::server;

pub(crate) fn arguments(port: u16, options: &Options) -> Vec<String> {
    let mut arguments: Vec<String> = ["-l", "127.0.0.1", "-U", "0", "-p"]
        .into_iter()
        .map(Into::into)
        .collect();
    arguments.push(port.to_string());
    if rustix::process::geteuid().is_root() {
        // It refuses to run as root unless told as whom.
        arguments.extend(["-u".into(), "nobody".into()]);
    }
    arguments.extend_from_slice(options.arguments());
    arguments
}

/// Whether the process `pid`, and not somebody else, answers on the port.
pub(crate) fn answers(port: u16, pid: u32) -> bool {
    let Ok(mut stream) = server::connect(port) else {
        return false;
    };
    stream.write_all(b"stats\r\n").is_ok()
        && BufReader::new(stream)
            .lines()
            .map_while(Result::ok)
            .take_while(|line| line != "END")
            .any(|line| line == format!("STAT pid {pid}"))
}
