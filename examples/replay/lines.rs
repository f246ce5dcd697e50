//! Reads a log line by line in bounded memory, whatever it contains.

use std::io::{self, BufRead, Read as _};

/// No line of nginx or Apache is as long: both refuse a request line above 8 KiB by default, and escapes
/// make at most four bytes of one.
const MAX_LINE: usize = 64 * 1024;

/// Lines without their line ends.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    input: R,
    line: Vec<u8>,
    bytes: u64,
}

/// One line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Text<'a> {
    Whole(&'a [u8]),
    /// The beginning of a line above the cap; the rest was skipped.
    TooLong(&'a [u8]),
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(input: R) -> Self {
        Self {
            input,
            line: Vec::new(),
            bytes: 0,
        }
    }

    /// Bytes read so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The next line, or `None` at the end.
    pub(crate) fn next(&mut self) -> io::Result<Option<Text<'_>>> {
        self.line.clear();
        // One more than the cap tells a line that fills it from one that exceeds it.
        let mut capped = (&mut self.input).take(MAX_LINE as u64 + 1);
        let read = capped.read_until(b'\n', &mut self.line)?;
        self.bytes += read as u64;
        if read == 0 {
            return Ok(None);
        }
        if let Some(line) = self.line.strip_suffix(b"\n") {
            return Ok(Some(Text::Whole(line.strip_suffix(b"\r").unwrap_or(line))));
        }
        if read <= MAX_LINE {
            return Ok(Some(Text::Whole(&self.line))); // the last line, without a line end
        }
        self.bytes += self.input.skip_until(b'\n')? as u64;
        Ok(Some(Text::TooLong(&self.line)))
    }
}

#[cfg(test)]
mod tests {
    use super::{Lines, MAX_LINE, Text};

    #[test]
    fn line_ends_are_taken_off() {
        let mut lines = Lines::new(&b"a\nb\r\n\n\xff"[..]);
        for expected in [&b"a"[..], b"b", b"", b"\xff"] {
            assert_eq!(lines.next().unwrap(), Some(Text::Whole(expected)));
        }
        assert_eq!(lines.next().unwrap(), None);
        assert_eq!(lines.bytes(), 7);
    }

    #[test]
    fn a_line_above_the_cap_is_cut_and_its_rest_skipped() {
        let fits = vec![b'x'; MAX_LINE - 1]; // with its line end, exactly the cap
        let too_long = vec![b'y'; 3 * MAX_LINE];
        let log = [&fits[..], b"\n", &too_long, b"\nafter\n"].concat();
        let mut lines = Lines::new(&log[..]);
        assert_eq!(lines.next().unwrap(), Some(Text::Whole(&fits)));
        assert_eq!(
            lines.next().unwrap(),
            Some(Text::TooLong(&too_long[..=MAX_LINE]))
        );
        assert_eq!(lines.next().unwrap(), Some(Text::Whole(b"after")));
        assert_eq!(lines.next().unwrap(), None);
        assert_eq!(lines.bytes(), log.len() as u64);
    }
}
