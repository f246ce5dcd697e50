//! Tiers: one limiter, the limit chosen per call; and what happens when a key changes its tier.
//!
//! `cargo run --example tiers`

use std::time::Duration;

use ratekeeper::{KeyedLimiter, ManualClock, TokenBucket};

#[derive(Clone, Copy, Debug)]
enum Tier {
    Free,
    Basic,
    Premium,
}

impl Tier {
    /// Ready-made limits: whatever there is to compute is computed at compile time.
    const fn limit(self) -> &'static TokenBucket {
        const FREE: TokenBucket = TokenBucket::per_minute(10).with_burst(2);
        const BASIC: TokenBucket = TokenBucket::per_minute(60).with_burst(10);
        const PREMIUM: TokenBucket = TokenBucket::per_minute(600).with_burst(50);
        match self {
            Self::Free => &FREE,
            Self::Basic => &BASIC,
            Self::Premium => &PREMIUM,
        }
    }
}

fn main() {
    let clock = ManualClock::new();
    let users = KeyedLimiter::<u64, _, _>::with_clock(*Tier::Free.limit(), &clock);
    let burst = |user: u64, tier: Tier| {
        let limit = tier.limit();
        // The verbs of the limiter, under another limit, for one key.
        let key = users.under(limit).for_key(&user);
        let allowed = (0..100).filter(|_| key.check().is_allowed()).count();
        let wait = key.check().retry_after().unwrap_or_default();
        println!("user {user} on {tier:<8?} ({limit}): {allowed:>3} of 100 pass, next in {wait:?}");
    };

    burst(1, Tier::Free);
    burst(2, Tier::Basic);
    burst(3, Tier::Premium);

    println!("user 1 is served under another tier without a change: its debt is paid in time");
    burst(1, Tier::Premium);
    println!("user 1 upgrades: it keeps its tokens, none, and they come at the new rate");
    let report = users.change(&1, Tier::Free.limit(), Tier::Premium.limit());
    println!(
        "{} left, full in {:?}",
        report.remaining(),
        report.reset_after()
    );
    clock.advance(Duration::from_secs(1));
    burst(1, Tier::Premium);
    println!("user 3 downgrades, two seconds after it was drained:");
    clock.advance(Duration::from_secs(1));
    let report = users.change(&3, Tier::Premium.limit(), Tier::Free.limit());
    println!(
        "{} left, full in {:?}",
        report.remaining(),
        report.reset_after()
    );
    burst(3, Tier::Free);
}
