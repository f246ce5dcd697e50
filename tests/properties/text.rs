//! Limits as text: what is written can be read, and nothing that is read panics.

use std::fmt::{Debug, Display};
use std::str::FromStr;
use std::time::Duration;

use proptest::prelude::*;
use ratekeeper::{
    All, AnyAlgorithm, FixedWindow, InvalidLimit, Limits, SlidingLog, SlidingWindow, TokenBucket,
};

use crate::support::{any_bucket, config, edge, fixed_window, sliding_log, sliding_window};

fn round_trip<L>(limit: &L) -> String
where
    L: Display + FromStr<Err = InvalidLimit> + PartialEq + Debug,
{
    let text = limit.to_string();
    assert_eq!(text.parse::<L>().as_ref(), Ok(limit), "{text}");
    text
}

/// Reads anything; what is understood is a limit that can be written and read again, and an error has a place in the text.
fn read<L>(text: &str)
where
    L: Display + FromStr<Err = InvalidLimit> + PartialEq + Debug,
{
    match text.parse::<L>() {
        Ok(limit) => assert!(!round_trip(&limit).is_empty()),
        Err(error) => {
            let span = error.span().expect("every error of a text has a place");
            assert!(
                text.get(span.clone()).is_some(),
                "{span:?} of {text:?}: {error}"
            );
            let message = error.to_string();
            assert!(
                message.len() > 20 && !message.contains(['\n', '\r']),
                "{message}"
            );
        }
    }
}

fn read_as_each(text: &str) {
    read::<TokenBucket>(text);
    read::<SlidingWindow>(text);
    read::<SlidingLog>(text);
    read::<FixedWindow>(text);
    read::<AnyAlgorithm>(text);
    read::<Limits>(text);
    read::<All<[TokenBucket; 2]>>(text);
    read::<All<[AnyAlgorithm; 3]>>(text);
}

/// Buckets as an operator may name them: with a version, without a number.
fn any_tier() -> impl Strategy<Value = TokenBucket> {
    let bucket = prop_oneof![
        6 => any_bucket(),
        1 => Just(TokenBucket::UNLIMITED),
        1 => Just(TokenBucket::BLOCKED),
    ];
    (bucket, prop_oneof![Just(0), any::<u16>()])
        .prop_map(|(bucket, version)| bucket.with_version(version))
}

fn any_limit() -> impl Strategy<Value = AnyAlgorithm> {
    prop_oneof![
        any_tier().prop_map(AnyAlgorithm::from),
        sliding_window().prop_map(AnyAlgorithm::from),
        fixed_window().prop_map(AnyAlgorithm::from),
    ]
}

/// Words of the grammar, in any order.
fn almost_a_limit() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        prop::sample::select(
            &[
                "10/s",
                "100/min",
                "3/90s",
                "1/d",
                "7/2h:3",
                "sliding",
                "fixed",
                "log",
                "burst",
                "wait",
                "offset",
                "anchored",
                "5",
                "30s",
                "2min",
                "0",
                "0/s",
                "1/0s",
                "/",
                ":",
                "µs",
                "1/µs",
                "-1",
                "+1",
                "18446744073709551615",
                "18446744073709551616/ns",
                "1/18446744073709551615ns",
                "1/213504d",
                "4294967296/s",
                "\u{3000}",
                "１/s",
                "burst 20",
                "v2",
                "unlimited",
                "blocked",
                ";",
                "1_0/w",
                "07",
                "1.5/h",
                "per",
                " ",
                "\n",
            ][..]
        )
        .prop_map(str::to_owned),
        edge().prop_map(|number| number.to_string()),
        (edge(), edge()).prop_map(|(n, p)| format!("{n}/{p}ns")),
    ];
    let glue = prop::sample::select(&[" ", "", "/", ":", "  ", "; "][..]);
    prop::collection::vec((word, glue), 0..7)
        .prop_map(|words| words.into_iter().map(|(word, glue)| word + glue).collect())
}

const UNITS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("day", 86_400_000_000_000),
    ("week", 604_800_000_000_000),
];

/// A part of a limit's text: what it may be, and what it may not be. Every wrong form is wrong as a whole, not only its
/// end.
type Part = (&'static [&'static str], &'static [&'static str]);

const COUNT: Part = (
    &["1", "100", "1_000"],
    &[
        "0",
        "010",
        "1.5",
        "-1",
        "+1",
        "x",
        "1__0",
        "99999999999999999999",
        "٣",
    ],
);
const PERIOD: Part = (
    &["s", "5min", "2week", "1_000ms"],
    &[
        "0s",
        "1.5h",
        "-5s",
        "parsec",
        "mins",
        "9999999999week",
        "s,",
    ],
);
const FACTOR: Part = (&["1", "30"], &["01", "_5", "5__0", "99999999999999999999"]);
const UNIT: Part = (&["s", "ms", "m"], &["e3s", "S", "mi", "h_", "/s"]);
const BURST: Part = (
    &["1", "20", "1_0"],
    &["0", "x", "007", "2.5", "-3", "10_", "burst"],
);
const LENGTH: Part = (&["2s", "90ms"], &["2.5s", "s", "-2s", "9999999999week"]);
const VERSION: Part = (
    &["v1", "v65535"],
    &["v0", "v01", "v65536", "v1.2", "v1x", "v"],
);
const WORD: Part = (&["sliding", "fixed"], &["slides", "Fixed", "log"]);

/// The parts of a limit with the text before each.
const FORMS: [&[(&str, Part)]; 5] = [
    &[
        ("", COUNT),
        ("/", PERIOD),
        (" burst ", BURST),
        (" wait ", LENGTH),
        (" ", VERSION),
    ],
    &[("", COUNT), ("/", PERIOD), (":", BURST), (" ", VERSION)],
    &[("", WORD), (" ", COUNT), ("/", FACTOR), ("", UNIT)],
    &[
        ("", COUNT),
        ("/s wait ", FACTOR),
        ("", UNIT),
        (" ", VERSION),
    ],
    &[
        ("fixed ", COUNT),
        ("/", (&["h", "1_0day"], &["0h", "hour_"])),
        (" offset ", LENGTH),
    ],
];

proptest! {
    #![proptest_config(config(4_000))]

    #[test]
    fn every_limit_is_read_as_it_is_written(
        bucket in any_tier(),
        sliding in sliding_window(),
        log in sliding_log(),
        fixed in fixed_window(),
    ) {
        for text in [round_trip(&bucket), round_trip(&sliding), round_trip(&fixed)] {
            round_trip(&text.parse::<AnyAlgorithm>().unwrap());
        }
        assert_eq!(bucket.to_string().parse(), Ok(AnyAlgorithm::from(bucket)));
        assert_eq!(sliding.to_string().parse(), Ok(AnyAlgorithm::from(sliding)));
        assert_eq!(fixed.to_string().parse(), Ok(AnyAlgorithm::from(fixed)));
        round_trip(&log);
        assert!(log.to_string().parse::<AnyAlgorithm>().is_err(), "a log has no fixed size");
    }

    #[test]
    fn several_limits_are_read_as_they_are_written(
        limits in prop::collection::vec(any_limit(), 1..=4),
        buckets in [any_tier(), any_tier(), any_tier()],
    ) {
        let together = Limits::new(limits.clone()).unwrap();
        assert_eq!(together.iter().copied().collect::<Vec<_>>(), limits);
        let texts: Vec<String> = limits.iter().map(ToString::to_string).collect();
        assert_eq!(round_trip(&together), texts.join("; "));
        assert_eq!(format!(" {} ", texts.join(";")).parse(), Ok(together));
        let text = round_trip(&All(buckets));
        assert_eq!(text.parse(), Limits::new(buckets));
        assert!(text.parse::<All<[TokenBucket; 2]>>().is_err());
        assert!(text.parse::<All<[TokenBucket; 4]>>().is_err());
    }

    /// Of a text that is right but for one part, that part is found.
    #[test]
    fn the_wrong_part_is_marked(
        form in prop::sample::select(&FORMS[..]),
        broken in any::<prop::sample::Index>(),
        choices in prop::collection::vec(any::<prop::sample::Index>(), 6),
        before in 0_usize..3,
        after in 0_usize..2,
    ) {
        let broken = broken.index(form.len());
        let mut text = "unlimited v3 ;sliding 5/s; ".get(..[0, 14, 27][before]).unwrap().to_owned();
        let mut right = text.clone();
        let mut expected = 0..0;
        for (index, (glue, (good, bad))) in form.iter().enumerate() {
            text.push_str(glue);
            right.push_str(glue);
            let good = choices[index].get(good);
            right.push_str(good);
            let part = if index == broken { choices[5].get(bad) } else { good };
            if index == broken {
                expected = text.len()..text.len() + part.len();
            }
            text.push_str(part);
        }
        let rest = &";blocked"[..after * 8];
        let read = format!("{right}{rest}").parse::<Limits>();
        prop_assume!(read.is_ok()); // a burst may take too long to refill, an offset be too late
        text.push_str(rest);
        let error = text.parse::<Limits>().unwrap_err();
        assert_eq!(error.span(), Some(expected), "{text}: {error}");
    }

    /// A period that is a whole number of units reads the same in each of them.
    #[test]
    fn units_agree(tokens in 1_u64..1_000, days in 1_u64..1_000) {
        let limit = TokenBucket::per(tokens, Duration::from_secs(days * 86_400));
        let units = [("d", 1), ("h", 24), ("minutes", 1_440), ("sec", 86_400), ("ms", 86_400_000)];
        for (unit, factor) in units {
            assert_eq!(format!("{tokens}/{}{unit}", days * factor).parse(), Ok(limit));
        }
        assert_eq!(format!("{tokens}/{days}day:{tokens}").parse(), Ok(limit));
    }

    /// A period is as long as it says, or refused.
    #[test]
    fn no_period_wraps(factor in edge(), unit in prop::sample::select(&UNITS[..])) {
        let (name, unit_ns) = unit;
        let expected = match u64::try_from(u128::from(factor) * u128::from(unit_ns)) {
            Err(_) => Err(InvalidLimit::PeriodTooLong),
            Ok(0) => Err(InvalidLimit::ZeroPeriod),
            Ok(ns) => Ok(Duration::from_nanos(ns)),
        };
        let text = format!("1/{factor}{name}");
        let read = text.parse::<TokenBucket>();
        assert_eq!(read.map(|limit| limit.period()).map_err(InvalidLimit::without_span), expected);
        if let Err(error) = read {
            assert_eq!(error.span(), Some(2..text.len()));
        }
    }

    #[test]
    fn no_text_panics(text in any::<String>(), almost in almost_a_limit()) {
        read_as_each(&text);
        read_as_each(&almost);
    }

    #[test]
    fn no_change_of_one_letter_panics(
        bucket in any_tier(),
        fixed in fixed_window(),
        limits in prop::collection::vec(any_limit(), 1..=4),
        place in any::<prop::sample::Index>(),
        letter in any::<char>(),
    ) {
        let limits = Limits::new(limits).unwrap();
        for text in [bucket.to_string(), fixed.to_string(), limits.to_string()] {
            let mut letters: Vec<char> = text.chars().collect();
            let place = place.index(letters.len());
            letters[place] = letter;
            read_as_each(&letters.iter().collect::<String>());
            letters.truncate(place);
            read_as_each(&letters.iter().collect::<String>());
        }
    }
}
