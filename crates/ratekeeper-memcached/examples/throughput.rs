//! Decisions per second: against the memcached server given as `host:port`, or one that is started for it.
#![allow(clippy::disallowed_methods, reason = "it measures time")]

use std::env;
use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ratekeeper::store::{ErrorKind, Namespace};
use ratekeeper::{KeyedLimiter, TokenBucket};
use ratekeeper_memcached::{MemcachedCas, MemcachedLimiter, MemcachedStore};
use ratekeeper_test_servers::{Options, Server};

const RUN: Duration = Duration::from_millis(500);

/// The fastest is shown: others use the machine, too.
const RUNS: usize = 5;

/// What one run counted.
#[derive(Default)]
struct Counted {
    decisions: u64,
    contention: u64,
    latencies_us: Vec<u64>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let server = env::args().len() < 2;
    let server = server.then(|| Server::memcached(Options::new().args(["-m", "256"])));
    let address = env::args().nth(1);
    let address =
        address.unwrap_or_else(|| server.as_ref().map(Server::address).unwrap_or_default());

    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    println!(
        "limit     keys   connections  tasks  decisions/s  contention/s  p50 us  p99 us   max us"
    );
    // Nearly every request is allowed, and writes; or nearly every one is refused, and does not.
    let allowing = TokenBucket::per_second(1_000_000_000).with_burst(1_000_000_000);
    for (name, limit) in [("allows", allowing), ("refuses", TokenBucket::per_hour(1))] {
        for (keys, connections, tasks) in [
            (1, 1, 1),
            (1, 1, 64),
            (1, 8, 64),
            (10_000, 1, 1),
            (10_000, 1, 64),
            (10_000, 8, 64),
        ] {
            let limiters = (0..connections)
                .map(|_| Ok(Arc::new(limiter(&address, name, limit)?)))
                .collect::<Result<Vec<_>, Box<dyn Error>>>()?;
            let mut counted = Counted::default();
            for _ in 0..RUNS {
                let one = runtime.block_on(run(&limiters, tasks, keys))?;
                if one.decisions > counted.decisions {
                    counted = one;
                }
            }
            let per_second = |count: u64| count as f64 / RUN.as_secs_f64();
            let mut latencies = counted.latencies_us;
            latencies.sort_unstable();
            let at = |percent: usize| {
                latencies
                    .get(latencies.len() * percent / 100)
                    .copied()
                    .unwrap_or(0)
            };
            println!(
                "{name:8} {keys:>6} {connections:>12} {tasks:>6} {:>12.0} {:>13.0} {:>7} {:>7} {:>8}",
                per_second(counted.decisions),
                per_second(counted.contention),
                at(50),
                at(99),
                latencies.last().copied().unwrap_or(0),
            );
        }
    }
    Ok(())
}

fn limiter(
    address: &str,
    name: &str,
    limit: TokenBucket,
) -> Result<MemcachedLimiter, Box<dyn Error>> {
    let server = MemcachedCas::connect(address, Namespace::new(name)?)?;
    // A busy machine is slow, not down.
    let server = server.with_deadline(4 * RUN);
    Ok(KeyedLimiter::with_store(limit, MemcachedStore::new(server)))
}

async fn run(
    limiters: &[Arc<MemcachedLimiter>],
    tasks: usize,
    keys: u64,
) -> Result<Counted, Box<dyn Error>> {
    let end = Instant::now() + RUN;
    let mut running = Vec::new();
    for task in 0..tasks {
        let limiter = Arc::clone(&limiters[task % limiters.len()]);
        running.push(tokio::spawn(async move {
            let mut counted = Counted::default();
            // Any odd factor visits all keys of a power of two, and most of others.
            let mut number = task as u64;
            while Instant::now() < end {
                number = number
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                let key = (number >> 33) % keys;
                let start = Instant::now();
                match limiter.check_async(key.to_string().as_str()).await {
                    Ok(_) => counted.decisions += 1,
                    Err(error) if error.kind() == ErrorKind::Contention => counted.contention += 1,
                    Err(error) => return Err(error),
                }
                counted
                    .latencies_us
                    .push(u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX));
            }
            Ok(counted)
        }));
    }
    let mut all = Counted::default();
    for task in running {
        let counted = task.await??;
        all.decisions += counted.decisions;
        all.contention += counted.contention;
        all.latencies_us.extend(counted.latencies_us);
    }
    Ok(all)
}
