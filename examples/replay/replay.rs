//! From the lines of a log to the answers of the policies.

use std::collections::HashSet;
use std::io::{self, BufRead};

use ratekeeper::Timestamp;

use crate::args::Key;
use crate::batch::Batch;
use crate::line::Line;
use crate::lines::{Lines, Text};
use crate::policy::Policy;
use crate::progress::Progress;
use crate::text::printable;
use crate::time::TimeParser;

const MALFORMED_LINES_SHOWN: u64 = 3;
const MALFORMED_CHARACTERS_SHOWN: usize = 100;
const LINES_BETWEEN_UPDATES: u64 = 4096;

/// What the log contained.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    pub(crate) lines: u64,
    pub(crate) malformed: u64,
    /// Requests earlier than one before them.
    pub(crate) out_of_order: u64,
    pub(crate) keys: HashSet<Box<str>>,
    /// Of the first and of the newest request.
    pub(crate) span: Option<(Timestamp, Timestamp)>,
}

impl Contents {
    pub(crate) fn requests(&self) -> u64 {
        self.lines - self.malformed
    }

    /// The time at which a request of time `at` is decided.
    ///
    /// Servers log a request when it ends, several of them at once, so a log is only nearly sorted. The
    /// readings that reach one key must not run backwards: a reading older than the key's newest one may
    /// hand out tokens twice. So time stands still until the log has caught up, for all keys alike, as
    /// it would have for a limiter that sees requests in the order of the log. (A time far in the future
    /// therefore holds all that follow it; the count of lines out of order tells.)
    fn advance(&mut self, at: Timestamp) -> Timestamp {
        let (first, newest) = self.span.unwrap_or((at, at));
        self.out_of_order += u64::from(at < newest);
        let newest = newest.max(at);
        self.span = Some((first, newest));
        newest
    }
}

/// Puts every request of `log` to every policy. `size` is the log's, in bytes, if known.
pub(crate) fn replay(
    log: impl BufRead,
    size: Option<u64>,
    key: Key,
    policies: &mut [Policy],
) -> io::Result<Contents> {
    let mut lines = Lines::new(log);
    let mut times = TimeParser::default();
    let mut contents = Contents::default();
    let mut batch = Batch::default();
    let mut progress = Progress::new(size);

    while let Some(text) = lines.next()? {
        contents.lines += 1;
        let request = match text {
            Text::Whole(text) => parse(text, &mut times).ok_or(("malformed", text)),
            Text::TooLong(text) => Err(("too long", text)),
        };
        match request {
            Ok((line, at)) => batch.push(key, &line, contents.advance(at)),
            Err((fault, text)) => {
                contents.malformed += 1;
                if contents.malformed <= MALFORMED_LINES_SHOWN {
                    let text = String::from_utf8_lossy(text);
                    let text = printable(&text, MALFORMED_CHARACTERS_SHOWN);
                    progress.message(&format!("line {}: {fault}: {text}", contents.lines));
                }
            }
        }
        if batch.is_full() {
            decide(&mut batch, &mut contents, policies);
        }
        if contents.lines % LINES_BETWEEN_UPDATES == 0 {
            progress.update(lines.bytes(), contents.lines);
        }
    }
    decide(&mut batch, &mut contents, policies);
    Ok(contents)
}

fn parse<'a>(text: &'a [u8], times: &mut TimeParser) -> Option<(Line<'a>, Timestamp)> {
    let line = Line::parse(text)?;
    let at = times.parse(line.time)?;
    Some((line, at))
}

fn decide(batch: &mut Batch, contents: &mut Contents, policies: &mut [Policy]) {
    for (key, _) in batch.iter() {
        if !contents.keys.contains(key) {
            contents.keys.insert(key.into());
        }
    }
    for policy in policies {
        policy.decide(batch);
    }
    batch.clear();
}

#[cfg(test)]
mod tests {
    use super::replay;
    use crate::args::Key;
    use crate::policy::Policy;

    fn line(client: &str, time: &str) -> String {
        format!("{client} - - [10/Oct/2026:{time}] \"GET / HTTP/1.1\" 200 1\n")
    }

    #[test]
    fn an_earlier_line_is_decided_at_the_newest_time() {
        let log = [
            line("a", "10:00:00 +0000"),
            line("a", "10:01:00 +0000"), // the bucket is full again, and emptied
            line("a", "10:00:00 +0000"), // an earlier time, at which no token is there either
            line("b", "10:00:59 +0000"), // another key is held back as well
            line("a", "12:01:01 +0200"), // in order, by its offset
        ];
        let mut policies: [Policy; 1] = ["1/min".parse().unwrap()];
        let contents = replay(log.concat().as_bytes(), None, Key::Ip, &mut policies).unwrap();
        assert_eq!(
            (
                contents.requests(),
                contents.out_of_order,
                contents.keys.len()
            ),
            (5, 2, 2)
        );
        let tally = policies[0].tally();
        assert_eq!(
            (tally.allowed, tally.denied, tally.worst()),
            (3, 2, Some(("a", 2)))
        );
        assert_eq!(tally.longest_wait.as_secs(), 60);
    }

    #[test]
    fn malformed_lines_are_counted_and_skipped() {
        let log = [
            &line("a", "10:00:00 +0000")[..],
            "\n",
            "what?\n",
            &line("a", "nonsense"),
        ];
        let mut policies: [Policy; 1] = ["1/min".parse().unwrap()];
        let contents = replay(log.concat().as_bytes(), None, Key::Ip, &mut policies).unwrap();
        assert_eq!(
            (contents.lines, contents.malformed, contents.requests()),
            (4, 3, 1)
        );
    }
}
