//! The calls most programs need: one limit for everybody, one per client, and the answer to a client.
//!
//! `cargo run --example quickstart`

use std::net::IpAddr;

use ratekeeper::{Decision, KeyedLimiter, Limiter, TokenBucket, headers};

/// The whole service: 50 a second at most, whoever asks.
static SERVICE: Limiter = Limiter::new(TokenBucket::per_second(50));

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Each client: 3 at once, then one every 20 seconds.
    let per_client = KeyedLimiter::<IpAddr>::new(TokenBucket::per_minute(3));

    let clients: [IpAddr; 2] = ["192.0.2.7".parse()?, "2001:db8::1".parse()?];
    for request in 1..=5 {
        for client in &clients[..if request == 2 { 2 } else { 1 }] {
            let decision = per_client.check(client);
            // Ask the shared limit only for those who may pass: a refusal there costs the client a
            // token, a refusal here costs nobody anything.
            let decision = if decision.is_allowed() {
                SERVICE.check()
            } else {
                decision
            };
            println!(
                "request {request} from {client:<12} {}",
                response(&decision)
            );
        }
    }
    println!(
        "clients remembered: {}, of which as good as new: {}",
        per_client.len(),
        per_client.prune()
    );
    Ok(())
}

/// The status line and headers an HTTP server would send.
fn response(decision: &Decision) -> String {
    match headers::retry_after(decision) {
        None => "200 OK".to_owned(),
        Some(seconds) => format!(
            "429 Too Many Requests  Retry-After: {seconds}  RateLimit: {}",
            headers::RateLimit("client", decision)
        ),
    }
}
