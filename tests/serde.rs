//! Limits in serde formats are the same text as `Display` and `FromStr`.
#![cfg(feature = "serde")]

use ratekeeper::{All, AnyAlgorithm, FixedWindow, Limits, SlidingLog, SlidingWindow, TokenBucket};
use serde::Serialize;
use serde::de::DeserializeOwned;

fn round_trips<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(
    limit: T,
    json: &str,
) {
    assert_eq!(serde_json::to_string(&limit).unwrap(), json);
    assert_eq!(serde_json::from_str::<T>(json).unwrap(), limit);
    // A value that owns its string takes another path through serde.
    assert_eq!(
        serde_json::from_value::<T>(serde_json::to_value(&limit).unwrap()).unwrap(),
        limit
    );
}

#[test]
fn every_limit_is_its_text() {
    round_trips(
        TokenBucket::per_minute(100).with_burst(20),
        r#""100/min burst 20""#,
    );
    round_trips(SlidingWindow::per_minute(60), r#""sliding 60/min""#);
    round_trips(SlidingLog::per_hour(5), r#""log 5/h""#);
    round_trips(
        FixedWindow::per_day(9).anchored(),
        r#""fixed 9/day anchored""#,
    );
    round_trips(
        AnyAlgorithm::from(SlidingWindow::per_second(1)),
        r#""sliding 1/s""#,
    );
    round_trips(TokenBucket::UNLIMITED, r#""unlimited""#);
    round_trips(
        AnyAlgorithm::from(TokenBucket::BLOCKED.with_version(2)),
        r#""blocked v2""#,
    );
    round_trips(
        All([TokenBucket::per_second(10), TokenBucket::per_hour(1_000)]),
        r#""10/s; 1000/h""#,
    );
    round_trips(
        "10/s; sliding 1000/h".parse::<Limits>().unwrap(),
        r#""10/s; sliding 1000/h""#,
    );
}

#[test]
fn errors_show_an_example() {
    let wrong = |json| {
        serde_json::from_str::<TokenBucket>(json)
            .unwrap_err()
            .to_string()
    };
    assert!(wrong(r#""often""#).contains("100/min burst 20"));
    assert!(wrong("7").contains("100/min burst 20"));
    assert!(wrong(r#""0/s""#).contains("tokens must be above 0 (at byte 0)"));
    assert!(wrong(r#""10 per minute""#).contains(r#"expected "/" after the number"#));
    let two = serde_json::from_str::<All<[TokenBucket; 2]>>(r#""10/s""#).unwrap_err();
    assert!(two.to_string().contains("expected 2 limits"));
}
