//! Limits as text.

use std::fmt::{Debug, Display};
use std::str::FromStr;

use ratekeeper::{
    All, AnyAlgorithm, FixedWindow, InvalidLimit, Limits, SlidingLog, SlidingWindow, TokenBucket,
};

/// Reads a text as every kind of limit.
pub fn text(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    both_ways::<TokenBucket>(text);
    both_ways::<SlidingWindow>(text);
    both_ways::<SlidingLog>(text);
    both_ways::<FixedWindow>(text);
    both_ways::<AnyAlgorithm>(text);
    both_ways::<Limits>(text);
    both_ways::<All<[TokenBucket; 2]>>(text);
}

/// What is understood is written so that it is understood again; what is not is marked within the text.
fn both_ways<L>(text: &str)
where
    L: FromStr<Err = InvalidLimit> + Display + PartialEq + Debug,
{
    match text.parse::<L>() {
        Ok(limit) => {
            let written = limit.to_string();
            assert_eq!(
                written.parse::<L>().as_ref(),
                Ok(&limit),
                "{text:?} as {written:?}"
            );
            assert_eq!(
                written.parse::<L>().map(|again| again.to_string()),
                Ok(written)
            );
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            if let Some(span) = error.span() {
                assert!(text.get(span.clone()).is_some(), "{span:?} of {text:?}");
            }
        }
    }
}
