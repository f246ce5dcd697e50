//! Text from outside, made fit for one line of a terminal; and numbers for people.

use std::time::Duration;

use jiff::{RoundMode, SignedDuration, SignedDurationRound, Unit};

/// `text` on one line, at most `max` characters of it, with everything escaped that could move the
/// cursor or hide other text. Quotes and backslashes stay as they are.
pub(crate) fn printable(text: &str, max: usize) -> String {
    let mut printable = String::new();
    for (index, character) in text.chars().enumerate() {
        if index == max {
            printable.push('…');
            break;
        }
        match character {
            '"' | '\'' | '\\' => printable.push(character),
            _ => printable.extend(character.escape_debug()),
        }
    }
    printable
}

/// To the next millisecond, as in `41s 400ms` or `23h 12m`.
pub(crate) fn duration(duration: Duration) -> String {
    if duration.is_zero() {
        return "0s".to_owned();
    }
    let round = SignedDurationRound::new()
        .smallest(Unit::Millisecond)
        .mode(RoundMode::Ceil);
    // Beyond 292 years of seconds nobody misses the milliseconds.
    let rounded = SignedDuration::try_from(duration).and_then(|exact| exact.round(round));
    rounded.map_or_else(
        |_| format!("{duration:?}"),
        |rounded| format!("{rounded:#}"),
    )
}

/// To three digits, as in `8.21M`.
pub(crate) fn per_second(count: u64, time: Duration) -> String {
    let nanos = time.as_nanos().max(1);
    let rate = u128::from(count) * 1_000_000_000 / nanos;
    let (unit, suffix) = match rate {
        1_000_000.. => (1_000_000, "M"),
        1_000.. => (1_000, "k"),
        _ => (1, ""),
    };
    let hundredths = rate * 100 / unit;
    let (whole, fraction) = (hundredths / 100, hundredths % 100);
    match whole {
        _ if unit == 1 => format!("{whole}"),
        0..10 => format!("{whole}.{fraction:02}{suffix}"),
        10..100 => format!("{whole}.{}{suffix}", fraction / 10),
        _ => format!("{whole}{suffix}"),
    }
}

/// As in `12.3%`; `0.0%` of nothing.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    let tenths = (u128::from(part) * 1000 + u128::from(whole) / 2) / u128::from(whole.max(1));
    format!("{}.{}%", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{duration, per_second, percent, printable};

    #[test]
    fn text_cannot_leave_its_line() {
        assert_eq!(
            printable("a\x1b[2Jb\r\nc\t\u{202e}", 80),
            r"a\u{1b}[2Jb\r\nc\t\u{202e}"
        );
        assert_eq!(printable(r#"GET "\x22" été"#, 80), r#"GET "\x22" été"#);
        assert_eq!(printable("abcdef", 3), "abc…");
        assert_eq!(printable("abc", 3), "abc");
    }

    #[test]
    fn durations_are_rounded_up() {
        assert_eq!(duration(Duration::ZERO), "0s");
        assert_eq!(duration(Duration::from_nanos(1)), "1ms");
        assert_eq!(duration(Duration::from_millis(41_400)), "41s 400ms");
        assert_eq!(duration(Duration::from_secs(86_399)), "23h 59m 59s");
    }

    #[test]
    fn rates_and_shares() {
        let second = Duration::from_secs(1);
        assert_eq!(per_second(0, Duration::ZERO), "0");
        assert_eq!(per_second(999, second), "999");
        assert_eq!(per_second(8_214_000, second), "8.21M");
        assert_eq!(per_second(82_140, second), "82.1k");
        assert_eq!(per_second(821_400, second), "821k");
        assert_eq!(percent(1, 3), "33.3%");
        assert_eq!(percent(0, 0), "0.0%");
    }
}
