//! Two processes, one Redis, one limit: together they admit exactly the quota. Then Redis dies, and each failure policy shows
//! what it makes of that.
//!
//! ```sh
//! bash .ci/servers && cargo run -p ratekeeper-redis --example shared_limit
//! ```
//!
//! It starts a Redis of its own, and itself twice more as the two processes.

use std::error::Error;
use std::io::{BufRead, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use ratekeeper::store::{
    AsyncStore, Breaker, FailClosed, FailOpen, Fallback, Namespace, WithLimit,
};
use ratekeeper::{DashStore, KeyedLimiter, TokenBucket};
use ratekeeper_redis::RedisStore;
use ratekeeper_test_servers::{Options, Server};

/// A day's quota that may be used at once, so that hardly anything refills while the example runs.
const QUOTA: u64 = 1_000;
const LIMIT: TokenBucket = TokenBucket::per_day(QUOTA);

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    match (arguments.next().as_deref(), arguments.next()) {
        (None, None) => conduct(),
        (Some("process"), Some(url)) => tokio::runtime::Runtime::new()?.block_on(serve(&url)),
        _ => Err("usage: shared_limit".into()),
    }
}

/// The parent: gives both processes the same orders and adds up what they report.
fn conduct() -> Result<()> {
    let mut redis = Server::redis(Options::new());
    let url = format!("redis://{}/", redis.address());
    let mut processes = [Process::start(&url)?, Process::start(&url)?];

    println!("Two processes ask 800 times each for alice, whose quota is {QUOTA} a day:");
    let reports = order(&mut processes, "spend 800")?;
    let admitted: Vec<u64> = reports
        .iter()
        .map(|report| report[0].parse())
        .collect::<std::result::Result<_, _>>()?;
    let total: u64 = admitted.iter().sum();
    println!(
        "  process 1 admitted {}, process 2 admitted {}: together {total}",
        admitted[0], admitted[1]
    );
    if total != QUOTA {
        return Err(format!("together they admitted {total}, not {QUOTA}").into());
    }

    println!("\nRedis is killed. Each process asks ten more times under each policy:");
    redis.kill();
    for (number, report) in order(&mut processes, "policies")?.iter().enumerate() {
        println!("  process {}", number + 1);
        for line in report {
            println!("    {line}");
        }
    }

    println!("\nRedis is back, and had saved nothing:");
    redis.restart();
    let reports = order(&mut processes, "spend 10")?;
    println!(
        "  process 1 admitted {} of 10, process 2 admitted {} of 10",
        reports[0][0], reports[1][0]
    );
    println!("\nA lost state is a key never seen: alice was forgiven at most one burst.");
    Ok(())
}

/// One of the two processes, as seen by the parent.
struct Process {
    child: Child,
    orders: ChildStdin,
    reports: BufReader<ChildStdout>,
}

impl Process {
    fn start(url: &str) -> Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["process", url])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let orders = child.stdin.take().ok_or("no stdin")?;
        let reports = BufReader::new(child.stdout.take().ok_or("no stdout")?);
        Ok(Self {
            child,
            orders,
            reports,
        })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Gives both the order at the same time; a report ends with an empty line.
fn order(processes: &mut [Process; 2], order: &str) -> Result<[Vec<String>; 2]> {
    for process in processes.iter_mut() {
        writeln!(process.orders, "{order}")?;
    }
    let mut reports = [Vec::new(), Vec::new()];
    for (process, report) in processes.iter_mut().zip(&mut reports) {
        for line in (&mut process.reports).lines() {
            let line = line?;
            if line.is_empty() {
                break;
            }
            report.push(line);
        }
        if report.is_empty() {
            return Err("a process ended early; see above".into());
        }
    }
    Ok(reports)
}

/// One of the two processes.
async fn serve(url: &str) -> Result<()> {
    let redis = RedisStore::connect(url, Namespace::new("example")?)?;
    // After three failures in a row, ask Redis once every 200 ms only.
    let store = Arc::new(Breaker::new(redis, 3, Duration::from_millis(200)));
    for line in std::io::stdin().lines() {
        match line?.split_once(' ') {
            Some(("spend", times)) => println!("{}\n", spend(&store, times.parse()?).await?),
            _ => println!("{}\n", policies(&store).await?.join("\n")),
        }
    }
    Ok(())
}

/// How many of `times` requests pass. Right after an outage, asks until Redis answers.
async fn spend(store: &Arc<impl AsyncStore<str, TokenBucket>>, times: u64) -> Result<u64> {
    let limiter = KeyedLimiter::<str, _, _>::with_store(LIMIT, store);
    let (mut admitted, mut outages) = (0, 0);
    let mut left = times;
    while left > 0 {
        match limiter.check_async("alice").await {
            Ok(decision) => {
                admitted += u64::from(decision.is_allowed());
                left -= 1;
            }
            Err(error) if error.kind().is_outage() && outages < 100 => {
                outages += 1;
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(admitted)
}

async fn policies<S: AsyncStore<str, TokenBucket>>(redis: &Arc<S>) -> Result<Vec<String>> {
    // While Redis is away each of the two processes enforces half of the limit on its own.
    let half = TokenBucket::per_day(QUOTA / 2).with_burst(5);
    let local = WithLimit::new(DashStore::<String>::new(), half);
    Ok(vec![
        ten("no policy", redis).await,
        ten("fail open", FailOpen::new(redis)).await,
        ten("fail closed", FailClosed::new(redis)).await,
        ten(
            "fall back to a local limit of 5",
            Fallback::new(redis, local),
        )
        .await,
    ])
}

/// Ten requests, summed up.
async fn ten(policy: &str, store: impl AsyncStore<str, TokenBucket>) -> String {
    let limiter = KeyedLimiter::<str, _, _>::with_store(LIMIT, store);
    let (mut allowed, mut denied, mut degraded, mut errors) = (0, 0, 0, 0);
    let mut last_error = String::new();
    for _ in 0..10 {
        match limiter.check_async("alice").await {
            Ok(decision) => {
                degraded += u32::from(decision.is_degraded());
                if decision.is_allowed() {
                    allowed += 1;
                } else {
                    denied += 1;
                }
            }
            Err(error) => {
                errors += 1;
                last_error = format!(" ({:?})", error.kind());
            }
        }
    }
    format!(
        "{policy:<32} {allowed:>2} allowed, {denied:>2} denied, {errors:>2} errors{last_error}; {degraded:>2} marked as degraded"
    )
}
