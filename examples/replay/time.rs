//! The time of a line, as text and as an instant.

use ratekeeper::Timestamp;

const FORMAT: &str = "%d/%b/%Y:%H:%M:%S %z";
const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// Reads times such as `10/Oct/2026:13:55:36 +0200`.
///
/// Lines of the same second have the same text, so the text read last is remembered.
#[derive(Debug, Default)]
pub(crate) struct TimeParser {
    last: Option<(Vec<u8>, Timestamp)>,
}

impl TimeParser {
    /// The instant on the scale of Unix time; `None` for other text, and for times before 1970 or after
    /// 2554, which a [`Timestamp`] cannot hold on that scale.
    pub(crate) fn parse(&mut self, text: &[u8]) -> Option<Timestamp> {
        match &self.last {
            Some((last, timestamp)) if last == text => Some(*timestamp),
            _ => {
                let timestamp = parse(text)?;
                self.last = Some((text.to_vec(), timestamp));
                Some(timestamp)
            }
        }
    }
}

fn parse(text: &[u8]) -> Option<Timestamp> {
    let time = jiff::fmt::strtime::parse(FORMAT, text)
        .ok()?
        .to_timestamp()
        .ok()?;
    let seconds = u64::try_from(time.as_second()).ok()?;
    Some(Timestamp::from_nanos(
        seconds.checked_mul(NANOS_PER_SECOND)?,
    ))
}

/// Whole seconds since 1970.
pub(crate) fn unix_seconds(timestamp: Timestamp) -> u64 {
    timestamp.as_nanos() / NANOS_PER_SECOND
}

/// `seconds` since 1970 as text in UTC, by a format of `strftime`.
pub(crate) fn utc(format: &str, seconds: u64) -> String {
    let time = i64::try_from(seconds)
        .ok()
        .and_then(|s| jiff::Timestamp::from_second(s).ok());
    time.map_or_else(|| "?".to_owned(), |time| time.strftime(format).to_string())
}

/// As in `2026-10-10 13:55:36 to 14:02:10 UTC`.
pub(crate) fn span_text((first, newest): (Timestamp, Timestamp)) -> String {
    let [first, newest] = [first, newest].map(unix_seconds);
    let is_one_day = utc("%F", first) == utc("%F", newest);
    let newest = utc(if is_one_day { "%T" } else { "%F %T" }, newest);
    format!("{} to {newest} UTC", utc("%F %T", first))
}

#[cfg(test)]
mod tests {
    use super::{TimeParser, span_text, unix_seconds, utc};

    fn parse(text: &str) -> Option<u64> {
        TimeParser::default()
            .parse(text.as_bytes())
            .map(unix_seconds)
    }

    #[test]
    fn offsets_count() {
        assert_eq!(parse("01/Jan/1970:00:00:00 +0000"), Some(0));
        assert_eq!(parse("10/Oct/2026:13:55:36 +0000"), Some(1_791_640_536));
        assert_eq!(parse("10/Oct/2026:15:55:36 +0200"), Some(1_791_640_536));
        assert_eq!(parse("10/Oct/2026:04:25:36 -0930"), Some(1_791_640_536));
    }

    #[test]
    fn other_text_is_refused() {
        let texts = [
            "",
            "10/Oct/2026:13:55:36", // no offset
            "10/Oct/2026:13:55:36 +0000x",
            "31/Feb/2026:13:55:36 +0000", // no such day
            "10/Okt/2026:13:55:36 +0000",
            "31/Dec/1969:23:59:59 +0000", // before the scale
            "01/Jan/2600:00:00:00 +0000", // after it
        ];
        for text in texts {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_remembered_time_is_not_taken_for_another() {
        let mut times = TimeParser::default();
        let mut parse = |text: &[u8]| times.parse(text).map(unix_seconds);
        assert_eq!(parse(b""), None);
        assert_eq!(parse(b"01/Jan/1970:00:00:07 +0000"), Some(7));
        assert_eq!(parse(b"nonsense"), None);
        assert_eq!(parse(b"01/Jan/1970:00:00:07 +0000"), Some(7));
        assert_eq!(parse(b"01/Jan/1970:00:00:08 +0000"), Some(8));
    }

    #[test]
    fn instants_are_written_in_utc() {
        assert_eq!(utc("%F %T", 1_791_640_536), "2026-10-10 13:55:36");
        let at = |text: &[u8]| TimeParser::default().parse(text).expect("a time");
        let first = at(b"10/Oct/2026:13:55:36 +0000");
        let span = (first, at(b"10/Oct/2026:16:02:10 +0200"));
        assert_eq!(span_text(span), "2026-10-10 13:55:36 to 14:02:10 UTC");
        let span = (first, at(b"11/Oct/2026:00:00:00 +0000"));
        assert_eq!(
            span_text(span),
            "2026-10-10 13:55:36 to 2026-10-11 00:00:00 UTC"
        );
    }
}
