//! Header values.

use std::time::Duration;

use arbitrary::{Result, Unstructured};
use ratekeeper::{Decision, Outcome, headers};

/// Writes headers of arbitrary decisions under arbitrary names.
pub fn headers(data: &[u8]) {
    let mut u = Unstructured::new(data);
    let _ = run(&mut u);
}

fn run(u: &mut Unstructured<'_>) -> Result<()> {
    let wait: Duration = u.arbitrary()?;
    let outcome = match u.int_in_range(0..=3)? {
        0 => Outcome::Allowed,
        1 => Outcome::TooLarge,
        2 => Outcome::Unsupported,
        _ => Outcome::Denied { retry_after: wait },
    };
    let (limit, remaining): (u64, u64) = u.arbitrary()?;
    let decision = Decision::new(outcome, limit, remaining, u.arbitrary()?);
    let is_denied = matches!(outcome, Outcome::Denied { .. });
    match headers::retry_after(&decision) {
        Some(seconds) => {
            assert!(is_denied && seconds >= 1);
            let wait_ns = decision.retry_after().unwrap_or_default().as_nanos();
            assert!(
                u128::from(seconds) * 1_000_000_000 >= wait_ns,
                "never too early"
            );
            assert!(
                u128::from(seconds - 1) * 1_000_000_000 <= wait_ns,
                "rounded up by less than a second"
            );
        }
        None => assert!(!is_denied),
    }
    let name: &str = u.arbitrary()?;
    string_and_numbers(&headers::RateLimit(name, &decision).to_string());
    Ok(())
}

/// `"…";r=N;t=N`: a string of visible ASCII with only quotes and backslashes escaped, and two integers (RFC 9651, 3.3).
fn string_and_numbers(value: &str) {
    let mut rest = value.strip_prefix('"').expect("a string").chars();
    loop {
        match rest.next().expect("an end of the string") {
            '"' => break,
            '\\' => assert!(matches!(rest.next(), Some('"' | '\\'))),
            character => assert!((' '..='~').contains(&character), "{value:?}"),
        }
    }
    let numbers = rest.as_str().strip_prefix(";r=").expect("what remains");
    let (remaining, seconds) = numbers.split_once(";t=").expect("when");
    for number in [remaining, seconds] {
        assert!(
            !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()),
            "{value:?}"
        );
    }
}
