//! What memcached answers, cut out of a stream of bytes.

use std::fmt;

use ratekeeper::store::StateBytes;

/// One answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// `VA`: a value and its version.
    Value {
        /// `None` if the value has a length that no state has.
        state: Option<StateBytes>,
        /// 0 if the server keeps no versions.
        cas: u64,
        /// The seconds that are left of its life; 0 if that was not asked for, or it has no end.
        left_s: u64,
    },
    /// `EN`: there is no value.
    Miss,
    /// `HD`: stored, or deleted.
    Done,
    /// `NS`: not stored, because there is a value.
    NotStored,
    /// `EX`: not stored, because the value has another version.
    Exists,
    /// `NF`: not stored or deleted, because there is no value.
    NotFound,
    /// `ERROR`, `CLIENT_ERROR` or `SERVER_ERROR`, in the server's words.
    Error(String),
}

impl Reply {
    /// Whether requests and answers may be out of step from here on: the server did not understand the request, and takes
    /// what else belonged to it for another one.
    pub(super) fn is_misunderstanding(&self) -> bool {
        matches!(self, Self::Error(line) if !line.starts_with("SERVER_ERROR"))
    }
}

/// The server does not speak the protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Garbage(String);

impl fmt::Display for Garbage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not an answer of memcached: {:?}", self.0)
    }
}

impl std::error::Error for Garbage {}

/// Bytes that came in, of which whole answers are taken.
pub(super) struct Replies {
    bytes: Box<[u8]>,
    start: usize,
    end: usize,
    /// How much of a value is still to come that nobody wants.
    skip: usize,
}

impl Replies {
    const CAPACITY: usize = 16 * 1024;

    /// No answer without its value is longer.
    const LONGEST_LINE: usize = 2048;

    pub(super) fn new() -> Self {
        Self {
            bytes: vec![0; Self::CAPACITY].into(),
            start: 0,
            end: 0,
            skip: 0,
        }
    }

    /// Where to put more bytes: never empty after [`next`](Self::next) has found nothing more.
    pub(super) fn space(&mut self) -> &mut [u8] {
        self.bytes.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        &mut self.bytes[self.end..]
    }

    /// So many bytes were put there.
    pub(super) fn filled(&mut self, len: usize) {
        self.end = self.bytes.len().min(self.end.saturating_add(len));
    }

    /// The next answer; `None` if it has not come in whole.
    pub(super) fn next(&mut self) -> Result<Option<Reply>, Garbage> {
        let skipped = self.skip.min(self.end - self.start);
        self.start += skipped;
        self.skip -= skipped;
        if self.skip > 0 {
            return Ok(None);
        }
        let bytes = &self.bytes[self.start..self.end];
        let Some(len) = bytes.windows(2).position(|pair| pair == b"\r\n") else {
            return if bytes.len() > Self::LONGEST_LINE {
                Err(garbage(bytes))
            } else {
                Ok(None)
            };
        };
        let line = &bytes[..len];
        let mut words = line.split(|byte| *byte == b' ');
        let code = words.next().unwrap_or_default();
        if code == b"VA" {
            let size = words.next().and_then(number).ok_or_else(|| garbage(line))?;
            let (mut cas, mut left_s) = (0, 0);
            for word in words {
                match word.split_first() {
                    Some((b'c', digits)) => cas = number(digits).unwrap_or(0),
                    // `t-1` is for ever: no value of ours.
                    Some((b't', digits)) => left_s = number(digits).unwrap_or(0),
                    _ => {}
                }
            }
            return self.value(len + 2, size, cas, left_s);
        }
        let reply = match code {
            b"HD" => Reply::Done,
            b"EN" => Reply::Miss,
            b"NS" => Reply::NotStored,
            b"EX" => Reply::Exists,
            b"NF" => Reply::NotFound,
            b"ERROR" | b"CLIENT_ERROR" | b"SERVER_ERROR" => Reply::Error(text(line)),
            _ => return Err(garbage(line)),
        };
        self.start += len + 2;
        Ok(Some(reply))
    }

    /// A value of `size` bytes behind a line of `line` bytes.
    fn value(
        &mut self,
        line: usize,
        size: u64,
        cas: u64,
        left_s: u64,
    ) -> Result<Option<Reply>, Garbage> {
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        if size > StateBytes::CAPACITY {
            // Not ours, and perhaps larger than the buffer.
            self.start += line;
            self.skip = size.saturating_add(2);
            return Ok(Some(Reply::Value {
                state: None,
                cas,
                left_s,
            }));
        }
        let rest = &self.bytes[self.start + line..self.end];
        let (Some(value), Some(end)) = (rest.get(..size), rest.get(size..size + 2)) else {
            return Ok(None);
        };
        if end != b"\r\n" {
            return Err(garbage(rest));
        }
        let state = StateBytes::from_stored(value).ok();
        self.start += line + size + 2;
        Ok(Some(Reply::Value { state, cas, left_s }))
    }
}

fn number(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

fn text(line: &[u8]) -> String {
    String::from_utf8_lossy(line).into_owned()
}

fn garbage(bytes: &[u8]) -> Garbage {
    Garbage(text(&bytes[..bytes.len().min(80)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What comes out of `stream`, which comes in `step` bytes at a time.
    fn replies(stream: &[u8], step: usize) -> Result<Vec<Reply>, Garbage> {
        let mut replies = Replies::new();
        let mut found = Vec::new();
        let mut rest = stream;
        while !rest.is_empty() {
            let space = replies.space();
            let len = step.min(rest.len()).min(space.len());
            assert!(len > 0, "no space");
            space[..len].copy_from_slice(&rest[..len]);
            replies.filled(len);
            rest = &rest[len..];
            while let Some(reply) = replies.next()? {
                found.push(reply);
            }
        }
        Ok(found)
    }

    fn state(bytes: &[u8]) -> Option<StateBytes> {
        Some(StateBytes::from_stored(bytes).unwrap())
    }

    #[test]
    fn answers_are_found_however_they_are_cut() {
        let mut stream = b"VA 9 c1234567890123456789 t4294967295\r\n\x11\r\n345678\r\nEN\r\nHD\r\nHD c5\r\nNS\r\nEX\r\nNF\r\n".to_vec();
        stream.extend(b"VA 74 t-1 c3 s70\r\n");
        stream.extend([7; 74]);
        stream.extend(b"\r\nVA 75 c4\r\n");
        stream.extend([b'\n'; 75]);
        stream.extend(b"\r\nVA 100000 c5\r\n");
        stream.extend([b'H'; 100_000]);
        stream.extend(b"\r\nVA 0 c6\r\n\r\nVA 1\r\n7\r\nSERVER_ERROR out of memory storing object\r\nERROR\r\n");
        let expected = [
            Reply::Value {
                state: state(b"\x11\r\n345678"),
                cas: 1_234_567_890_123_456_789,
                left_s: 4_294_967_295,
            },
            Reply::Miss,
            Reply::Done,
            Reply::Done,
            Reply::NotStored,
            Reply::Exists,
            Reply::NotFound,
            Reply::Value {
                state: state(&[7; 74]),
                cas: 3,
                left_s: 0,
            },
            Reply::Value {
                state: None,
                cas: 4,
                left_s: 0,
            },
            Reply::Value {
                state: None,
                cas: 5,
                left_s: 0,
            },
            Reply::Value {
                state: None,
                cas: 6,
                left_s: 0,
            },
            Reply::Value {
                state: state(b"7"),
                cas: 0,
                left_s: 0,
            },
            Reply::Error("SERVER_ERROR out of memory storing object".into()),
            Reply::Error("ERROR".into()),
        ];
        for step in (1..200).chain([1_000, 10_000, usize::MAX]) {
            assert_eq!(
                replies(&stream, step).unwrap(),
                expected,
                "{step} bytes at a time"
            );
        }
    }

    #[test]
    fn other_protocols_are_refused() {
        for stream in [
            b"-ERR unknown command\r\n".as_slice(),
            b"HTTP/1.1 400 Bad Request\r\n",
            b"VA\r\n",
            b"VA nine c1\r\n",
            b"VA -1 c1\r\n",
            b"VA 2 c1\r\nabcdef\r\n",
            b"\r\n",
            &[b'x'; 5_000],
        ] {
            assert!(replies(stream, 1_000).is_err(), "{:?}", text(stream));
        }
    }

    #[test]
    fn only_the_servers_own_errors_keep_the_connection_in_step() {
        let out_of_step = |line: &str| Reply::Error(line.into()).is_misunderstanding();
        assert!(out_of_step("ERROR") && out_of_step("CLIENT_ERROR bad data chunk"));
        assert!(!out_of_step("SERVER_ERROR out of memory storing object"));
    }
}
