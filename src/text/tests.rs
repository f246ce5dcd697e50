use alloc::string::{String, ToString as _};
use core::fmt::Debug;

use super::*;
use crate::algorithm::{All, Limits};

/// A wrong text with the wrong part in brackets, a part that would be right in its place, and the reason.
type Wrong = (&'static str, &'static str, &'static str);

fn check<L: FromStr<Err = InvalidLimit> + Debug>(table: &[Wrong]) {
    for (marked, right, reason) in table {
        let start = marked.find('[').expect("a part in brackets");
        let end = marked.find(']').expect("a part in brackets") - 1;
        let text: String = marked.chars().filter(|c| !matches!(c, '[' | ']')).collect();
        let error = text.parse::<L>().expect_err(&text);
        let place = if end > start + 1 {
            alloc::format!("(bytes {start} to {end})")
        } else {
            alloc::format!("(at byte {start})")
        };
        assert_eq!(error.span(), Some(start..end), "{text}: {error}");
        assert_eq!(
            error.to_string(),
            alloc::format!("not a limit: {reason} {place}"),
            "{text}"
        );
        let corrected = alloc::format!("{}{right}{}", &text[..start], &text[end..]);
        assert!(
            corrected.parse::<L>().is_ok(),
            "{text} corrected to {corrected}"
        );
    }
}

#[test]
fn token_buckets_both_ways() {
    let minute = TokenBucket::per_minute(100);
    for (text, limit, canonical) in [
        ("10/s", TokenBucket::per_second(10), "10/s"),
        (
            "100/min burst 20",
            minute.with_burst(20),
            "100/min burst 20",
        ),
        ("100/min:20", minute.with_burst(20), "100/min burst 20"),
        (" 100/minute   burst 100 ", minute, "100/min"),
        ("60/60s", TokenBucket::per_minute(60), "60/min"),
        (
            "3/90s wait 2min",
            TokenBucket::per(3, Duration::from_secs(90)).with_max_wait(Duration::from_secs(120)),
            "3/90s wait 2min",
        ),
        (
            "1/250ms burst 4",
            TokenBucket::per(1, Duration::from_millis(250)).with_burst(4),
            "1/250ms burst 4",
        ),
        (
            "1/166666667ns burst 5",
            TokenBucket::at_most(10, Duration::from_secs(1), 5),
            "1/166666667ns burst 5",
        ),
        (
            "5/7days",
            TokenBucket::per(5, Duration::from_secs(7 * 86_400)),
            "5/week",
        ),
        (
            "5/2wk wait 1w",
            TokenBucket::per(5, Duration::from_secs(14 * 86_400))
                .with_max_wait(Duration::from_secs(7 * 86_400)),
            "5/2week wait 1week",
        ),
        (
            "20/5m",
            TokenBucket::per(20, Duration::from_secs(300)),
            "20/5min",
        ),
        (
            "20/5ms",
            TokenBucket::per(20, Duration::from_millis(5)),
            "20/5ms",
        ),
        (
            "1_000/1_000ms burst 1_0_0",
            TokenBucket::per_second(1_000).with_burst(100),
            "1000/s burst 100",
        ),
        (
            "100/min v65535 wait 2s burst 20",
            minute
                .with_version(u16::MAX)
                .with_burst(20)
                .with_max_wait(Duration::from_secs(2)),
            "100/min burst 20 wait 2s v65535",
        ),
        ("unlimited", TokenBucket::UNLIMITED, "unlimited"),
        (" blocked ", TokenBucket::BLOCKED, "blocked"),
        (
            "blocked v2",
            TokenBucket::BLOCKED.with_version(2),
            "blocked v2",
        ),
    ] {
        assert_eq!(text.parse(), Ok(limit), "{text}");
        assert_eq!(limit.to_string(), canonical);
        assert_eq!(canonical.parse(), Ok(limit));
        assert_eq!(canonical.parse(), Ok(AnyAlgorithm::from(limit)));
    }
}

#[test]
fn windows_both_ways() {
    assert_eq!("sliding 60/min".parse(), Ok(SlidingWindow::per_minute(60)));
    assert_eq!("60/min".parse(), Ok(SlidingWindow::per_minute(60)));
    assert_eq!(SlidingWindow::per_minute(60).to_string(), "sliding 60/min");
    assert_eq!("log 60/min".parse(), Ok(SlidingLog::per_minute(60)));
    assert_eq!(SlidingLog::per_minute(60).to_string(), "log 60/min");
    let day = FixedWindow::per_day(9);
    let from_ten_pm = day.with_offset(Duration::from_secs(22 * 3_600));
    let week = FixedWindow::per(9, Duration::from_secs(604_800));
    for (text, limit) in [
        ("fixed 9/day", day),
        ("fixed 9/day anchored", day.anchored()),
        ("fixed 9/day offset 22h", from_ten_pm),
        ("fixed 9/week", week),
        (
            "fixed 9/5min",
            FixedWindow::per(9, Duration::from_secs(300)),
        ),
    ] {
        assert_eq!(text.parse(), Ok(limit));
        assert_eq!(limit.to_string(), text);
        assert_eq!(text.parse(), Ok(AnyAlgorithm::from(limit)));
        assert_eq!(AnyAlgorithm::from(limit).to_string(), text);
    }
    assert_eq!(
        "10/s".parse(),
        Ok(AnyAlgorithm::from(TokenBucket::per_second(10)))
    );
}

/// A number out of range is the error that the constructor gives, and has a place.
#[test]
fn numbers_out_of_range_are_named() {
    fn error<L: FromStr<Err = InvalidLimit> + Debug>(text: &str) -> (InvalidLimit, &str) {
        let error = text.parse::<L>().unwrap_err();
        (error.without_span(), &text[error.span().unwrap()])
    }
    let bucket = error::<TokenBucket>;
    assert_eq!(bucket("0/s"), (InvalidLimit::ZeroTokens, "0"));
    assert_eq!(bucket("0/s:0"), (InvalidLimit::ZeroTokens, "0"));
    assert_eq!(bucket("5/0s"), (InvalidLimit::ZeroPeriod, "0s"));
    assert_eq!(bucket("5/s burst 0 v2"), (InvalidLimit::ZeroBurst, "0"));
    assert_eq!(bucket("5/s:0"), (InvalidLimit::ZeroBurst, "0"));
    assert_eq!(
        bucket("5/999999day"),
        (InvalidLimit::PeriodTooLong, "999999day")
    );
    assert_eq!(
        bucket("5/99999999999999week"),
        (InvalidLimit::PeriodTooLong, "99999999999999week")
    );
    assert_eq!(
        bucket("1/day burst 999999"),
        (InvalidLimit::BurstTooLong, "999999")
    );
    let any = error::<AnyAlgorithm>;
    assert_eq!(any("sliding 0/s"), (InvalidLimit::ZeroLimit, "0"));
    assert_eq!(any("fixed 5/0s"), (InvalidLimit::ZeroWindow, "0s"));
    assert_eq!(
        any("fixed 5/999999d"),
        (InvalidLimit::WindowTooLong, "999999d")
    );
    assert_eq!(
        error::<SlidingLog>("log 4294967296/s"),
        (InvalidLimit::LimitTooLarge, "4294967296")
    );
}

const LIMIT: &str =
    r#"expected a limit such as "10/s", "100/min burst 20", "sliding 60/min" or "fixed 1000/day""#;
const SLASH: &str = r#"expected "/" after the number, as in "10/min""#;
const SPACES: &str = r#"expected no space around "/", as in "10/min""#;
const NUMBER: &str = r#"expected a whole number of decimal digits, as in "10/min burst 20""#;
const FRACTION: &str =
    r#"expected a whole number: write a half as in "1/2s", one and a half as in "3/2s" or "90min""#;
const ZERO: &str = r#"a number does not begin with 0: write "10", not "010""#;
const UNDERSCORE: &str = r#""_" stands between two digits, as in "1_000""#;
const TOO_LARGE: &str = "numbers go up to 18446744073709551615";
const NO_UNIT: &str =
    r#"expected a unit of time (ns, us, ms, s, min, h, day, week), as in "10/min" or "10/5min""#;
const UNIT: &str = "this is no unit of time: write ns, us, ms, s, min (or m), h, day or week";
const UNIT_SPACE: &str = r#"expected the unit right after the number, as in "2min""#;
const BURST: &str = r#"expected a number of tokens, as in "100/min burst 20""#;
const VERSION: &str = r#"expected a version from 1 to 65535, as in "100/min burst 20 v2""#;
const UNKNOWN: &str = r#"after the rate, expected "burst 20", "wait 2s", "offset 22h", "anchored" or a version as in "v2""#;
const TWICE: &str = "this was said before";
const SECOND: &str =
    r#"one limit is expected here; several, as in "10/s; 1000/h", are read as `Limits` or `All`"#;
const ONLY_FIXED: &str =
    r#"only fixed windows have "offset" and "anchored", as in "fixed 1000/day offset 22h""#;
const ONLY_BUCKETS: &str =
    r#"only token buckets have "burst" and "wait", as in "100/min burst 20""#;
const EITHER: &str = r#"a window is either "anchored", so that it begins at a key's first request, or has an "offset""#;
const OFFSET: &str = r#"expected a duration, as in "fixed 1000/day offset 22h""#;
const TOO_LATE: &str =
    r#"the offset must be shorter than the window, as in "fixed 1000/day offset 22h""#;
const NO_SIZE: &str = r#"a log's state has no fixed size, so it is read as `SlidingLog` only; expected "sliding" here"#;
const VERSIONS: &str = r#"only token buckets have versions, as in "100/min burst 20 v2""#;
const NOT_A_WINDOW: &str =
    r#""unlimited" and "blocked" are token buckets; a window has a rate, as in "sliding 60/min""#;

/// Texts that are as wrong for a token bucket as for any limit.
#[rustfmt::skip]
const WRONG: &[Wrong] = &[
    ("[]", "10/s", LIMIT),
    ("[  ]", "10/s", LIMIT),
    ("[abc]", "10/s", LIMIT),
    ("[slow] 5/s", "", LIMIT),
    ("[-1]", "1/s", LIMIT),
    ("100[]", "/s", SLASH),
    ("10[ per ]minute", "/", SLASH),
    ("10[ per]", "/s", SLASH),
    ("10[ a ]day", "/", SLASH),
    ("  10[ ]min burst 5", "/", SLASH),
    ("10[ ]5min", "/", SLASH),
    ("10[]min", "/", SLASH),
    ("10[x]", "/s", SLASH),
    ("10[ times]", "/s", SLASH),
    ("10[ burst] ", "/s", SLASH),
    ("100[ /]s", "/", SPACES),
    ("100[ / ]s", "/", SPACES),
    ("100[/ ]s burst 5", "/", SPACES),
    ("[]/s", "100", r#"expected a number before "/", as in "10/min""#),
    ("100/[]", "s", NO_UNIT),
    ("100/[] burst 5", "s", NO_UNIT),
    ("100/[]:5", "s", NO_UNIT),
    ("100/5[]", "s", NO_UNIT),
    ("100/5[ ]min", "", UNIT_SPACE),
    ("100/[parsec]", "s", UNIT),
    ("100/[S]", "s", UNIT),
    ("100/5[/s]", "s", UNIT),
    ("10/[s,] burst 5", "s", UNIT),
    ("[-1]/s", "1", NUMBER),
    ("[+1]/s", "1", NUMBER),
    ("[１]/s", "1", NUMBER),
    ("[x5]/s", "5", NUMBER),
    ("[1e3]/s", "1000", NUMBER),
    ("[1.5]/s", "1", FRACTION),
    ("[1.5]", "1/s", FRACTION),
    ("100/[1.5h]", "90min", FRACTION),
    ("100/[-5s]", "5s", NUMBER),
    ("[010]/s", "10", ZERO),
    ("[00]/s", "1", ZERO),
    ("[0_1]/s", "1", ZERO),
    ("10/[05]s", "5", ZERO),
    ("10/s burst [07]", "7", ZERO),
    ("[_1]/s", "1", UNDERSCORE),
    ("[1_]/s", "1", UNDERSCORE),
    ("[1__0]/s", "1_0", UNDERSCORE),
    ("1/[_5]s", "5", UNDERSCORE),
    ("[99999999999999999999]/s", "99999", TOO_LARGE),
    ("[18446744073709551616]/ns", "18446744073709551615", TOO_LARGE),
    ("5/[99999999999999999999]s", "5", TOO_LARGE),
    ("100/s burst[]", " 5", BURST),
    ("100/s burst [x]", "5", NUMBER),
    ("100/s burst [-1]", "5", NUMBER),
    ("100/s:[]", "5", BURST),
    ("100/s:[5s]", "5", NUMBER),
    ("100/s burst 1 [burst 2]", "", TWICE),
    ("100/s:5 [burst 5]", "", TWICE),
    ("100/s wait 5[]", "s", NO_UNIT),
    ("100/s wait 2[ ]min", "", UNIT_SPACE),
    ("100/s wait[] ", " 2s", r#"expected a duration, as in "100/min wait 2s""#),
    ("100/s wait [s]", "2s", NUMBER),
    ("100/s wait [999999day]", "9day", "durations go up to u64::MAX nanoseconds (584 years)"),
    ("100/s wait 1s [wait 1s]", "", TWICE),
    ("100/s [burst20]", "burst 20", UNKNOWN),
    ("100/s [each]", "", UNKNOWN),
    ("100/s [2]", "", UNKNOWN),
    ("100/s [v]", "v1", VERSION),
    ("100/s [v0]", "v1", VERSION),
    ("100/s [v02]", "v2", VERSION),
    ("100/s [v65536]", "v65535", VERSION),
    ("100/s v1 [v1]", "", TWICE),
    ("100/s [v1.2]", "v1", VERSION),
    ("5/s [5/s]", "", SECOND),
    ("5/s [unlimited]", "", SECOND),
    ("5/s [sliding 5/s]", "", SECOND),
    ("5/s[; 5/h] ", "", SECOND),
    ("5/s[;]", "", SECOND),
    ("100/s [anchored]", "", ONLY_FIXED),
    ("100/s [offset 1s]", "", ONLY_FIXED),
    ("unlimited [burst 5]", "", r#"after "unlimited" and "blocked", expected nothing but a version, as in "blocked v2""#),
    ("blocked [wait 5s] v2", "", r#"after "unlimited" and "blocked", expected nothing but a version, as in "blocked v2""#),
    ("unlimited [5/s]", "", SECOND),
    ("unlimited [blocked]", "", SECOND),
];

#[test]
fn wrong_texts_name_the_part() {
    check::<TokenBucket>(WRONG);
    // Where any limit may stand, a wrong bucket is the same error.
    for (marked, ..) in WRONG {
        let text: String = marked.chars().filter(|c| !matches!(c, '[' | ']')).collect();
        assert_eq!(
            text.parse::<AnyAlgorithm>().unwrap_err(),
            text.parse::<TokenBucket>().unwrap_err()
        );
    }
    let bucket =
        r#"a token bucket is expected here, and nothing before its rate, as in "100/min burst 20""#;
    let kinds = r#"expected a rate here: one word stands before it, as in "sliding 60/min""#;
    let no_rate = r#"expected a rate after the word, as in "sliding 60/min""#;
    check::<TokenBucket>(&[
        ("[sliding] 5/s", "", bucket),
        ("[log] 5/s", "", bucket),
        ("[log] unlimited", "", bucket),
    ]);
    check::<AnyAlgorithm>(&[
        ("sliding[]", " 5/s", no_rate),
        ("sliding[] ", " 5/s", no_rate),
        ("fixed [log] 5/s", "", kinds),
        ("sliding [sliding] 5/s", "", kinds),
        ("sliding [abc]", "5/s", LIMIT),
        ("sliding 5/s [burst 2]", "", ONLY_BUCKETS),
        ("sliding 5/s[:2]", "", ONLY_BUCKETS),
        ("fixed 5/s [wait 2s]", "", ONLY_BUCKETS),
        ("sliding 5/s [v2]", "", VERSIONS),
        ("fixed 5/s [v2] anchored", "", VERSIONS),
        ("sliding 5/s [offset 1ms]", "", ONLY_FIXED),
        ("sliding 5/s [anchored]", "", ONLY_FIXED),
        ("fixed 5/s offset 1ms [anchored]", "", EITHER),
        ("fixed 5/s anchored [offset 1ms]", "", EITHER),
        ("fixed 5/s offset[]", " 1ms", OFFSET),
        ("fixed 5/s offset [3s]", "999ms", TOO_LATE),
        ("fixed 5/s offset [1s]", "0s", TOO_LATE),
        ("fixed 5/day offset [25h]", "23h", TOO_LATE),
        ("[sliding unlimited]", "unlimited", NOT_A_WINDOW),
        ("[fixed blocked] v2", "blocked", NOT_A_WINDOW),
        ("[log] 5/s", "sliding", NO_SIZE),
    ]);
    check::<SlidingWindow>(&[
        (
            "[fixed] 5/s",
            "sliding",
            r#"a sliding window is expected here, as in "sliding 60/min""#,
        ),
        ("[unlimited]", "5/s", NOT_A_WINDOW),
        ("5/s [v2]", "", VERSIONS),
    ]);
    check::<FixedWindow>(&[
        (
            "[log] 5/s",
            "fixed",
            r#"a fixed window is expected here, as in "fixed 1000/day""#,
        ),
        ("[fixed blocked]", "5/s", NOT_A_WINDOW),
        ("5/s offset [3s]", "0s", TOO_LATE),
    ]);
    check::<SlidingLog>(&[
        (
            "[sliding] 5/s",
            "log",
            r#"a log is expected here, as in "log 60/min""#,
        ),
        ("log 5/s [wait 1s]", "", ONLY_BUCKETS),
        ("[log unlimited]", "5/s", NOT_A_WINDOW),
    ]);
}

const SIDES: &str = r#"expected a limit on either side of ";", as in "10/s burst 20; 1000/h""#;
const AT_MOST_FOUR: &str = "at most 4 limits are expected here";

#[test]
fn several_limits_both_ways() {
    let (second, hour) = (
        TokenBucket::per_second(10).with_burst(20),
        TokenBucket::per_hour(1_000),
    );
    let pair = All([second, hour]);
    assert_eq!("10/s burst 20; 1000/h".parse(), Ok(pair));
    assert_eq!(" 10/s:20;1_000/h ".parse(), Ok(pair));
    assert_eq!(pair.to_string(), "10/s burst 20; 1000/h");
    assert_eq!(All([hour]).to_string(), "1000/h");
    assert_eq!("1000/h".parse(), Ok(All([hour])));
    let windows = All([SlidingWindow::per_second(1), SlidingWindow::per_day(9)]);
    assert_eq!(windows.to_string(), "sliding 1/s; sliding 9/day");
    assert_eq!("1/s; sliding 9/day".parse(), Ok(windows));

    let limits: Limits = "10/s burst 20; fixed 9/week anchored;blocked v3;sliding 1/s"
        .parse()
        .unwrap();
    assert_eq!(limits.len(), 4);
    assert_eq!(
        limits.to_string(),
        "10/s burst 20; fixed 9/week anchored; blocked v3; sliding 1/s"
    );
    assert_eq!(limits.to_string().parse(), Ok(limits));
    let one: Limits = "1000/h".parse().unwrap();
    assert_eq!((one.len(), one.iter().next()), (1, Some(&hour.into())));
    assert_ne!(Ok(one), "1000/h; 1000/h".parse());
    assert_eq!(Limits::new(limits.iter().copied()), Ok(limits));
    let five = [AnyAlgorithm::from(hour); 5];
    assert_eq!(Limits::try_from(&five[..]), Err(InvalidLimit::NotOneToFour));
    assert_eq!(
        Limits::try_from(&five[..0]),
        Err(InvalidLimit::NotOneToFour)
    );
    assert_eq!(
        Limits::try_from(&five[1..]).map(|limits| limits.len()),
        Ok(4)
    );
}

#[test]
fn of_several_limits_the_wrong_one_is_marked() {
    check::<Limits>(&[
        ("[]", "10/s", LIMIT),
        ("10/s[;]", "", SIDES),
        ("10/s[;] ", "", SIDES),
        ("[;]10/s", "", SIDES),
        (" [;] 10/s", "", SIDES),
        ("10/s;[;] 5/h", "", SIDES),
        ("10/s; 1000[ per ]hour; 5/day", "/", SLASH),
        ("10/s; 1000/h [brust]", "burst 5", UNKNOWN),
        ("10/s;5/s [5/h]", ";5/h", SECOND),
        ("10/s; [log] 5/h", "sliding", NO_SIZE),
        ("10/s; sliding 5/h [v2]", "", VERSIONS),
        ("1/s; 2/s; 3/s; 4/s[; 5/s]", "", AT_MOST_FOUR),
        ("1/s; 2/s; 3/s; 4/s[; 5/s; x;]", "", AT_MOST_FOUR),
        ("1/s; 2/s; 3/s; 4/s[;]", "", AT_MOST_FOUR),
    ]);
    check::<All<[TokenBucket; 2]>>(&[
        (
            "10/s[]",
            ";5/h",
            r#"expected 2 limits with ";" between them, found 1"#,
        ),
        (
            "10/s[] ",
            "; 5/h",
            r#"expected 2 limits with ";" between them, found 1"#,
        ),
        (
            "10/s; 5/h[; 5/day]",
            "",
            r#"expected 2 limits with ";" between them, found 3"#,
        ),
        (
            "10/s; [sliding] 5/h",
            "",
            r#"a token bucket is expected here, and nothing before its rate, as in "100/min burst 20""#,
        ),
    ]);
    check::<All<[SlidingLog; 1]>>(&[("5/s[; 5/h]", "", "expected 1 limit, found 2")]);
    let zero = "10/s; 0/h".parse::<Limits>().unwrap_err();
    assert_eq!(
        (zero.span(), zero.without_span()),
        (Some(6..7), InvalidLimit::ZeroTokens)
    );
    assert_eq!(zero.to_string(), "tokens must be above 0 (at byte 6)");
}
