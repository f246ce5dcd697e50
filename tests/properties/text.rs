//! Limits as text: what is written can be read, and nothing that is read panics.

use std::fmt::{Debug, Display};
use std::str::FromStr;
use std::time::Duration;

use proptest::prelude::*;
use ratekeeper::{AnyAlgorithm, FixedWindow, InvalidLimit, SlidingLog, SlidingWindow, TokenBucket};

use crate::support::{any_bucket, config, edge, fixed_window, sliding_log, sliding_window};

fn round_trip<L>(limit: &L) -> String
where
    L: Display + FromStr<Err = InvalidLimit> + PartialEq + Debug,
{
    let text = limit.to_string();
    assert_eq!(text.parse::<L>().as_ref(), Ok(limit), "{text}");
    text
}

/// Reads anything; what is understood is a limit that can be written and read again.
fn read<L>(text: &str)
where
    L: Display + FromStr<Err = InvalidLimit> + PartialEq + Debug,
{
    match text.parse::<L>() {
        Ok(limit) => assert!(!round_trip(&limit).is_empty()),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn read_as_each(text: &str) {
    read::<TokenBucket>(text);
    read::<SlidingWindow>(text);
    read::<SlidingLog>(text);
    read::<FixedWindow>(text);
    read::<AnyAlgorithm>(text);
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
                " ",
                "\n",
            ][..]
        )
        .prop_map(str::to_owned),
        edge().prop_map(|number| number.to_string()),
        (edge(), edge()).prop_map(|(n, p)| format!("{n}/{p}ns")),
    ];
    let glue = prop::sample::select(&[" ", "", "/", ":", "  "][..]);
    prop::collection::vec((word, glue), 0..7)
        .prop_map(|words| words.into_iter().map(|(word, glue)| word + glue).collect())
}

const UNITS: [(&str, u64); 7] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("day", 86_400_000_000_000),
];

proptest! {
    #![proptest_config(config(4_000))]

    #[test]
    fn every_limit_is_read_as_it_is_written(
        bucket in any_bucket(),
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
        let read = format!("1/{factor}{name}").parse::<TokenBucket>();
        assert_eq!(read.map(|limit| limit.period()), expected);
    }

    #[test]
    fn no_text_panics(text in any::<String>(), almost in almost_a_limit()) {
        read_as_each(&text);
        read_as_each(&almost);
    }

    #[test]
    fn no_change_of_one_letter_panics(
        bucket in any_bucket(),
        fixed in fixed_window(),
        place in any::<prop::sample::Index>(),
        letter in any::<char>(),
    ) {
        for text in [bucket.to_string(), fixed.to_string()] {
            let mut letters: Vec<char> = text.chars().collect();
            let place = place.index(letters.len());
            letters[place] = letter;
            read_as_each(&letters.iter().collect::<String>());
            letters.truncate(place);
            read_as_each(&letters.iter().collect::<String>());
        }
    }
}
