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
    // Pruning goes by the limiter's own limit: give it the one that remembers longest.
    let users = KeyedLimiter::<u64, _, _>::with_clock(*Tier::Free.limit(), &clock);
    let burst = |user: u64, tier: Tier| {
        let limit = tier.limit();
        let allowed = (0..100)
            .filter(|_| users.check_with(&user, limit).is_allowed())
            .count();
        let wait = users
            .check_with(&user, limit)
            .retry_after()
            .unwrap_or_default();
        println!("user {user} on {tier:<8?} ({limit}): {allowed:>3} of 100 pass, next in {wait:?}");
    };

    burst(1, Tier::Free);
    burst(2, Tier::Basic);
    burst(3, Tier::Premium);

    println!("user 3 downgrades at once: the time its bucket still needs carries over");
    burst(3, Tier::Free);
    println!("user 1 upgrades, ten seconds later:");
    clock.advance(Duration::from_secs(10));
    burst(1, Tier::Premium);
}
