//! Replays an access log against rate limits: who would have been limited, and when?
//!
//! ```text
//! cargo run --release --example replay -- examples/data/access.log \
//!     --limit '10/s burst 20' --limit 100/min --limit 'sliding 60/min' --svg replay.svg
//! ```
//!
//! The log's own time drives the limiters, so a day is replayed in seconds and twice the same log gives
//! twice the same answers. The log is streamed; memory grows with the number of distinct keys only.
//! `examples/data/record.sh` recorded the log above.
//!
//! A log gives the second in which a request *ended*. So all requests of one second meet the limiters at
//! the same instant, and limits on less than a few seconds look a little stricter or laxer than they are.
#![allow(clippy::disallowed_methods)] // progress and decisions/s are told in wall time

mod args;
mod axes;
mod batch;
mod chart;
mod line;
mod lines;
mod policy;
mod progress;
mod replay;
mod table;
mod text;
mod time;
mod timeline;

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, ErrorKind, Write as _};
use std::path::Path;
use std::process::ExitCode;

use crate::args::{Command, Options};
use crate::replay::Contents;

/// Why there is no result; each a sentence for the user.
#[derive(Debug)]
enum Failure {
    Usage(String),
    Run(String),
}

fn main() -> ExitCode {
    let (sentence, code) = match run() {
        Ok(()) => return ExitCode::SUCCESS,
        Err(Failure::Usage(sentence)) => (sentence, 2),
        Err(Failure::Run(sentence)) => (sentence, 1),
    };
    let sentence = text::printable(&sentence, usize::MAX);
    let _ = writeln!(io::stderr(), "replay: {sentence}"); // a closed stderr is no reason to panic
    ExitCode::from(code)
}

fn run() -> Result<(), Failure> {
    match args::parse(std::env::args_os().skip(1)).map_err(Failure::Usage)? {
        Command::Help => print(|out| out.write_all(args::USAGE.as_bytes())),
        Command::Replay(options) => replay_log(options),
    }
}

fn replay_log(options: Options) -> Result<(), Failure> {
    let Options {
        log,
        mut policies,
        key,
        svg,
    } = options;
    let name = log
        .as_deref()
        .map_or("standard input".into(), Path::to_string_lossy);
    let cannot_read = |error| Failure::Run(format!("cannot read {name}: {error}"));

    let (input, size) = open(log.as_deref()).map_err(cannot_read)?;
    let contents = replay::replay(input, size, key, &mut policies).map_err(cannot_read)?;
    let Some(span) = contents.span else {
        let Contents {
            lines, malformed, ..
        } = contents;
        let sentence = format!("no request in {name} (lines: {lines}, malformed: {malformed})");
        return Err(Failure::Run(sentence));
    };
    print(|out| table::write(out, &contents, &policies))?;
    if let Some(path) = svg {
        let cannot_draw =
            |error: String| Failure::Run(format!("cannot draw {}: {error}", path.display()));
        let drawing = chart::draw(span, &policies).map_err(cannot_draw)?;
        fs::write(&path, drawing).map_err(|error| cannot_draw(error.to_string()))?;
    }
    Ok(())
}

/// The log, and its size in bytes where that can be known.
fn open(log: Option<&Path>) -> io::Result<(Box<dyn BufRead>, Option<u64>)> {
    let Some(path) = log else {
        return Ok((Box::new(io::stdin().lock()), None));
    };
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    let size = metadata.is_file().then_some(metadata.len());
    Ok((Box::new(BufReader::with_capacity(1 << 16, file)), size))
}

/// Writes to stdout. A reader that has seen enough, such as `head`, closes the pipe; that is its right.
fn print(
    write: impl FnOnce(&mut io::StdoutLock<'static>) -> io::Result<()>,
) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match write(&mut out).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::Run(format!("cannot write the result: {error}")))
        }
        _ => Ok(()),
    }
}
