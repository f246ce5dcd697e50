//! Two processes' worth of callers share one limit, while the server is killed and comes back.
//!
//! ```sh
//! bash .ci/servers && cargo run -p ratekeeper-postgres --example shared_limit
//! ```
#![allow(clippy::disallowed_methods, reason = "plays in real time")]

use std::error::Error;
use std::time::Duration;

use ratekeeper::store::{AsyncStore, Namespace};
use ratekeeper::{Request, TokenBucket};
use ratekeeper_postgres::PostgresStore;
use ratekeeper_test_servers::{Options, Server};

const LIMIT: TokenBucket = TokenBucket::per_second(2).with_burst(5);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut server = Server::postgres(Options::new());
    let url = server.create_database("limits");
    let connect =
        || PostgresStore::connect(&url, Namespace::new("api")?).map_err(Box::<dyn Error>::from);
    let processes = [connect()?, connect()?];
    processes[0].install().await?;

    println!("5 at once, then 2 per second, whoever asks:");
    ask(&processes, 8).await;
    println!("The server is killed:");
    server.kill();
    ask(&processes, 4).await;
    println!("It is back. The table was unlogged, so everybody starts again:");
    server.restart();
    tokio::time::sleep(Duration::from_millis(200)).await;
    ask(&processes, 8).await;
    Ok(())
}

async fn ask(processes: &[PostgresStore; 2], times: usize) {
    for turn in 0..times {
        let process = turn % 2;
        let said = match processes[process]
            .apply_async("alice", &LIMIT, Request::ONE)
            .await
        {
            Ok(decision) => match decision.retry_after() {
                None => format!("allowed, {} left", decision.remaining()),
                Some(wait) => format!("denied for {wait:?}"),
            },
            Err(error) => error.to_string(),
        };
        println!("  process {process}: {said}");
    }
}
