//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use lexopt::{Arg, Parser, ValueExt as _};

use crate::policy::Policy;

pub(crate) const USAGE: &str = "\
Puts the requests of an access log to rate limits, at the times the log gives.

usage: replay [LOG] --limit LIMIT [--limit LIMIT]... [--key KEY] [--svg FILE]

  LOG            access log of nginx or Apache in the Common or Combined format;
                 standard input if it is `-` or left out
  --limit LIMIT  a limit on every key, to be given once or more often:
                   '10/s burst 20'    token bucket
                   100/min            token bucket with a burst of 100
                   'sliding 60/min'   sliding window of two counters
                   'log 60/min'       sliding window, exact
                   'fixed 1000/day'   fixed window
  --key KEY      what has a limit of its own: ip (default), path (without the
                 query) or ip+path
  --svg FILE     draw what was allowed and denied over time
  --help         print this
";

/// What has a limit of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Ip,
    Path,
    IpAndPath,
}

#[derive(Debug)]
pub(crate) enum Command {
    Help,
    Replay(Options),
}

#[derive(Debug)]
pub(crate) struct Options {
    /// `None` for standard input.
    pub(crate) log: Option<PathBuf>,
    pub(crate) policies: Vec<Policy>,
    pub(crate) key: Key,
    pub(crate) svg: Option<PathBuf>,
}

/// Reads the arguments after the program's name. The error is a sentence for the user.
pub(crate) fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Command, String> {
    let mut log = None;
    let mut policies = Vec::new();
    let mut key = Key::Ip;
    let mut svg = None;

    let mut parser = Parser::from_args(args);
    while let Some(arg) = parser.next().map_err(|error| error.to_string())? {
        match arg {
            Arg::Long("help") | Arg::Short('h') => return Ok(Command::Help),
            Arg::Long("limit") => {
                let text = value(&mut parser)?;
                let policy = text
                    .parse()
                    .map_err(|error| format!("--limit '{text}': {error}"))?;
                policies.push(policy);
            }
            Arg::Long("key") => key = parse_key(&value(&mut parser)?)?,
            Arg::Long("svg") => {
                svg = Some(parser.value().map_err(|error| error.to_string())?.into());
            }
            Arg::Value(path) if log.is_none() => log = Some(PathBuf::from(path)),
            _ => return Err(arg.unexpected().to_string()),
        }
    }
    if policies.is_empty() {
        return Err("at least one limit is needed, for example --limit '10/s burst 20'".to_owned());
    }
    let log = log.filter(|path| path.as_os_str() != "-");
    Ok(Command::Replay(Options {
        log,
        policies,
        key,
        svg,
    }))
}

fn value(parser: &mut Parser) -> Result<String, String> {
    parser
        .value()
        .and_then(|value| value.string())
        .map_err(|error| error.to_string())
}

fn parse_key(text: &str) -> Result<Key, String> {
    match text {
        "ip" => Ok(Key::Ip),
        "path" => Ok(Key::Path),
        "ip+path" => Ok(Key::IpAndPath),
        _ => Err(format!("--key '{text}': write ip, path or ip+path")),
    }
}

#[cfg(test)]
mod tests {
    use super::{Command, Key, Options, parse};

    fn options(args: &[&str]) -> Options {
        match parse(args.iter().map(Into::into)) {
            Ok(Command::Replay(options)) => options,
            other => panic!("{other:?}"),
        }
    }

    fn error(args: &[&str]) -> String {
        parse(args.iter().map(Into::into)).expect_err("a wrong command line")
    }

    #[test]
    fn limits_keep_their_order() {
        let options = options(&[
            "--limit",
            "log 60/min",
            "a.log",
            "--limit=10/s",
            "--key=ip+path",
        ]);
        let policies: Vec<_> = options.policies.iter().map(ToString::to_string).collect();
        assert_eq!(policies, ["log 60/min", "10/s"]);
        assert_eq!(
            (options.log, options.key),
            (Some("a.log".into()), Key::IpAndPath)
        );
    }

    #[test]
    fn a_dash_or_nothing_is_standard_input() {
        assert_eq!(options(&["--limit", "1/s", "-"]).log, None);
        assert_eq!(options(&["--limit", "1/s"]).log, None);
    }

    #[test]
    fn errors_name_what_is_wrong() {
        assert!(error(&[]).contains("at least one limit"));
        assert!(error(&["--limit", "abc"]).starts_with("--limit 'abc': not a limit"));
        assert!(error(&["--limit", "0/s"]).contains("tokens"));
        assert!(error(&["--key", "foo"]).contains("'foo'"));
        assert!(error(&["--frobnicate"]).contains("--frobnicate"));
        assert!(error(&["--limit"]).contains("--limit"));
        assert!(error(&["a", "b"]).contains('b'));
    }
}
