//! Redis and its kin: how they are started, and their protocol, as far as tests need it.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;

use crate::options::Options;
use crate::server;

pub(crate) fn arguments(port: u16, folder: &Path, options: &Options) -> Vec<String> {
    let mut arguments: Vec<String> = ["--bind", "127.0.0.1", "--protected-mode", "no"]
        .into_iter()
        // Nothing on disk unless asked for.
        .chain(["--save", "", "--appendonly", "no"])
        // A replica need not wait for others that might come too: 5 seconds in Redis 7.
        .chain(["--repl-diskless-sync-delay", "0"])
        .map(Into::into)
        .collect();
    arguments.extend(["--port".into(), port.to_string()]);
    arguments.extend(["--dir".into(), folder.display().to_string()]);
    arguments.extend_from_slice(options.arguments());
    arguments
}

/// Whether the process `pid`, and not somebody else, answers on the port.
pub(crate) fn answers(port: u16, pid: u32) -> bool {
    match command(port, &["INFO", "server"]) {
        Ok(info) => info.lines().any(|line| line == format!("process_id:{pid}")),
        // A password is set, which is all that can be learnt without it.
        Err(error) => error.to_string().starts_with("NOAUTH"),
    }
}

/// Sends one command over a connection of its own and returns the reply as text: an array as one line for each
/// element, nil as `(nil)`.
pub(crate) fn command<A: AsRef<[u8]>>(port: u16, parts: &[A]) -> io::Result<String> {
    let mut request = format!("*{}\r\n", parts.len()).into_bytes();
    for part in parts.iter().map(AsRef::as_ref) {
        write!(request, "${}\r\n", part.len())?;
        request.extend_from_slice(part);
        request.extend_from_slice(b"\r\n");
    }
    let mut stream = server::connect(port)?;
    stream.write_all(&request)?;
    let mut text = Vec::new();
    read_reply(&mut BufReader::new(stream), &mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn read_reply(stream: &mut impl BufRead, text: &mut Vec<u8>) -> io::Result<()> {
    let mut line = String::new();
    stream.read_line(&mut line)?;
    let line = line
        .strip_suffix("\r\n")
        .ok_or(io::ErrorKind::UnexpectedEof)?;
    let (kind, rest) = line.split_at_checked(1).ok_or(io::ErrorKind::InvalidData)?;
    let length = || rest.parse::<i64>().map_err(io::Error::other);
    match kind {
        "+" | ":" => text.extend_from_slice(rest.as_bytes()),
        "-" => return Err(io::Error::other(rest.to_owned())),
        "$" | "*" if length()? < 0 => text.extend_from_slice(b"(nil)"),
        "$" => {
            let start = text.len();
            let bytes = length()?.unsigned_abs();
            stream.take(bytes).read_to_end(text)?;
            let mut end = [0; 2];
            stream.read_exact(&mut end)?;
            if text.len().abs_diff(start) as u64 != bytes || end != *b"\r\n" {
                return Err(io::ErrorKind::InvalidData.into());
            }
        }
        "*" => {
            for index in 0..length()? {
                if index > 0 {
                    text.push(b'\n');
                }
                read_reply(stream, text)?;
            }
        }
        _ => return Err(io::ErrorKind::InvalidData.into()),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(bytes: &[u8]) -> io::Result<String> {
        let mut text = Vec::new();
        read_reply(&mut &bytes[..], &mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    #[test]
    fn replies_become_text() {
        assert_eq!(reply(b"+OK\r\n").unwrap(), "OK");
        assert_eq!(reply(b":-3\r\n").unwrap(), "-3");
        assert_eq!(reply(b"$4\r\na\r\nb\r\n").unwrap(), "a\r\nb");
        assert_eq!(reply(b"$0\r\n\r\n").unwrap(), "");
        assert_eq!(reply(b"$-1\r\n").unwrap(), "(nil)");
        assert_eq!(
            reply(b"*3\r\n:1\r\n*1\r\n+x\r\n$-1\r\n").unwrap(),
            "1\nx\n(nil)"
        );
        assert_eq!(reply(b"-ERR no\r\n").unwrap_err().to_string(), "ERR no");
    }

    #[test]
    fn half_a_reply_is_an_error() {
        for bytes in [
            &b""[..],
            b"+OK",
            b"+OK\r",
            b"$4\r\nab",
            b"$2\r\nabc\r\n",
            b"*2\r\n:1\r\n",
            b"?\r\n",
        ] {
            assert!(reply(bytes).is_err(), "{bytes:?}");
        }
    }
}
