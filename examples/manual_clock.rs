//! Testing your own time-dependent code: the application takes a `StdClock`, the test drives it by hand.
//!
//! `cargo run --example manual_clock`

use std::sync::Arc;
use std::time::Duration;

use ratekeeper::{KeyedLimiter, ManualClock, StdClock, TokenBucket};

/// An application's own type: no clock parameter anywhere.
struct Login {
    attempts: KeyedLimiter<String>,
}

impl Login {
    fn new(clock: StdClock) -> Self {
        let three_then_one_per_minute = TokenBucket::per_minute(1).with_burst(3);
        Self {
            attempts: KeyedLimiter::with_clock(three_then_one_per_minute, clock),
        }
    }

    fn attempt(&self, user: &str) -> Result<&'static str, String> {
        let receipt = self.attempts.check(user).into_result();
        receipt
            .map(|_| "password checked")
            .map_err(|denied| denied.to_string())
    }
}

fn main() {
    let time = Arc::new(ManualClock::new());
    let login = Login::new(time.clone().into()); // in production: `StdClock::new()`
    let mut elapsed = Duration::ZERO;
    let mut wait = |duration: Duration| {
        time.advance(duration);
        elapsed += duration;
        println!("-- the test lets {duration:?} pass: {elapsed:?} since the start");
    };

    for _ in 0..4 {
        println!("alice: {:?}", login.attempt("alice"));
    }
    println!("bob:   {:?}", login.attempt("bob"));

    wait(Duration::from_millis(59_999));
    println!("alice: {:?}", login.attempt("alice"));
    wait(Duration::from_millis(1));
    println!("alice: {:?}", login.attempt("alice"));

    assert!(
        login.attempt("alice").is_err(),
        "one a minute is one a minute"
    );
    wait(Duration::from_secs(365 * 86_400));
    assert!(login.attempt("alice").is_ok(), "a year passes in no time");
    println!("alice: allowed again");
}
