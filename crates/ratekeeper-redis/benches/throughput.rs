//! Decisions a second through one multiplexed connection, beside `redis-benchmark` running the same script with the same
//! arguments on the same server, in one run.
//!
//! `cargo bench -p ratekeeper-redis --bench throughput`; a number as argument changes the seconds for each row.
//! The server, the client and `redis-benchmark` share the machine's cores, so read ratios.
#![allow(clippy::disallowed_methods, reason = "a bench measures time")]

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ratekeeper::store::{AsyncStore, CasLoop, DenyCache, Leased, Namespace};
use ratekeeper::{Request, TokenBucket};
use ratekeeper_redis::{RedisAlgorithm, RedisCas, RedisStore};
use ratekeeper_test_servers::{Options, Server};

/// Whole nanoseconds a token, and never empty.
const WHOLE: TokenBucket = TokenBucket::per_second(1_000_000).with_burst(1_000_000);
/// Three tokens every ten microseconds: no whole number of nanoseconds.
const FRACTIONAL: TokenBucket = TokenBucket::per_second(300_000).with_burst(1_000_000);
/// Soon empty under the bench's load.
const TIGHT: TokenBucket = TokenBucket::per_second(1_000).with_burst(100);

const KEYS: u64 = 10_000;
const ROUNDS: usize = 3;

fn main() {
    // `cargo test --benches` passes no `--bench`: everything once, briefly.
    let is_bench = std::env::args().any(|argument| argument == "--bench");
    let seconds = std::env::args()
        .find_map(|argument| argument.parse().ok())
        .unwrap_or(2.0);
    let span = Duration::from_secs_f64(if is_bench { seconds } else { 0.05 });
    let rounds = if is_bench { ROUNDS } else { 1 };

    let server = Server::redis(Options::new());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let store = {
        let _guard = runtime.enter();
        let url = format!("redis://{}/", server.address());
        let namespace = Namespace::new("bench").expect("a name");
        RedisStore::connect(url, namespace)
            .expect("an address")
            .with_deadline(Duration::from_secs(30))
    };
    let space = |name: &str| {
        store
            .clone()
            .with_namespace(Namespace::new(name).expect("a name"))
    };
    let ours = |tasks, keys, limit, name: &str| {
        let store = Arc::new(space(name));
        runtime.block_on(decisions_per_second(store, limit, tasks, keys, span))
    };
    // The script must be known to the server before redis-benchmark calls it by its hash.
    ours(1, KEYS, WHOLE, "warm");
    ours(1, KEYS, FRACTIONAL, "warm-fractional");

    let mut rows: Vec<(&str, Vec<f64>)> = Vec::new();
    let mut add = |name, value| match rows.iter_mut().find(|(row, _)| *row == name) {
        Some((_, values)) => values.push(value),
        None => rows.push((name, vec![value])),
    };
    for _ in 0..rounds {
        let bench = |limit, arguments: &[&str]| redis_benchmark(&server, limit, span, arguments);
        add(
            "redis-benchmark -c 64 -P 16, whole",
            bench(&WHOLE, &["-c", "64", "-P", "16"]),
        );
        add(
            "redis-benchmark -c 64 -P 16, fractional",
            bench(&FRACTIONAL, &["-c", "64", "-P", "16"]),
        );
        add("redis-benchmark -c 64, whole", bench(&WHOLE, &["-c", "64"]));
        add("redis-benchmark -c 1, whole", bench(&WHOLE, &["-c", "1"]));
        add(
            "RedisStore, 64 tasks, whole",
            ours(64, KEYS, WHOLE, "whole"),
        );
        add(
            "RedisStore, 64 tasks, fractional",
            ours(64, KEYS, FRACTIONAL, "fractional"),
        );
        add(
            "RedisStore, 64 tasks, one hot key",
            ours(64, 1, WHOLE, "hot"),
        );
        add("RedisStore, 1 task, whole", ours(1, KEYS, WHOLE, "one"));

        let tight = Arc::new(space("tight"));
        add(
            "limit far exceeded, 64 tasks, one key",
            runtime.block_on(decisions_per_second(tight, TIGHT, 64, 1, span)),
        );
        let cached = Arc::new(DenyCache::new(space("cached")));
        add(
            "the same with DenyCache",
            runtime.block_on(decisions_per_second(cached, TIGHT, 64, 1, span)),
        );
        for (name, batch) in [
            ("Leased, batch 10, 64 tasks, one key", 10),
            ("Leased, batch 100, 64 tasks, one key", 100),
        ] {
            let leased = Arc::new(Leased::new(space(&format!("leased-{batch}")), batch));
            add(
                name,
                runtime.block_on(decisions_per_second(leased, WHOLE, 64, 1, span)),
            );
        }
        let cas = Arc::new(CasLoop::new(RedisCas(space("cas")), tokio::time::sleep));
        add(
            "CasLoop<RedisCas>, 64 tasks, 10,000 keys",
            runtime.block_on(decisions_per_second(cas, WHOLE, 64, KEYS, span)),
        );
    }

    println!("\n{:<44} {:>12}", "median of the rounds", "decisions/s");
    for (name, values) in &mut rows {
        println!("{name:<44} {:>12.0}", median(values));
    }
    let mut of = |name: &str| {
        rows.iter_mut()
            .find(|(row, _)| *row == name)
            .map_or(0.0, |(_, values)| median(values))
    };
    for kind in ["whole", "fractional"] {
        let peer = of(&format!("redis-benchmark -c 64 -P 16, {kind}"));
        let ours = of(&format!("RedisStore, 64 tasks, {kind}"));
        println!(
            "{kind}: {:.2} x redis-benchmark -c 64 -P 16; wanted: 0.75",
            ours / peer
        );
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

async fn decisions_per_second<S>(
    store: Arc<S>,
    limit: TokenBucket,
    tasks: u64,
    keys: u64,
    span: Duration,
) -> f64
where
    S: AsyncStore<u64, TokenBucket> + 'static,
{
    let total = Arc::new(AtomicU64::new(0));
    let start = Instant::now();
    let running: Vec<_> = (0..tasks)
        .map(|task| {
            let (store, total) = (Arc::clone(&store), Arc::clone(&total));
            tokio::spawn(async move {
                let mut random = task.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
                let mut done = 0_u64;
                while start.elapsed() < span {
                    // Stores that answer without waiting must let others in.
                    for _ in 0..64 {
                        random ^= random << 13;
                        random ^= random >> 7;
                        random ^= random << 17;
                        match store
                            .apply_async(&(random % keys), &limit, Request::ONE)
                            .await
                        {
                            Ok(decision) => drop(decision),
                            Err(error)
                                if error.kind() == ratekeeper::store::ErrorKind::Contention => {}
                            Err(error) => panic!("{error}"),
                        }
                        done += 1;
                    }
                    tokio::task::yield_now().await;
                }
                total.fetch_add(done, Ordering::Relaxed);
            })
        })
        .collect();
    for task in running {
        task.await.expect("a task failed");
    }
    #[allow(clippy::cast_precision_loss)]
    let decisions = total.load(Ordering::Relaxed) as f64;
    decisions / start.elapsed().as_secs_f64()
}

/// What the server's own load generator reaches with this limit's script, on random keys.
///
/// It cannot send arguments with zero bytes, so the same script is loaded once more with its arguments written into it.
fn redis_benchmark(
    server: &Server,
    limit: &TokenBucket,
    span: Duration,
    arguments: &[&str],
) -> f64 {
    let call = limit
        .call(&Request::ONE, Duration::from_millis(2))
        .expect("the limit fits");
    let literal: String = call.arguments()[0]
        .iter()
        .map(|byte| format!("\\{byte:03}"))
        .collect();
    let script = format!("local ARGV = {{'', '{literal}'}}\n{}", call.script().code());
    let hash = server
        .command(&["SCRIPT", "LOAD", &script])
        .expect("the script is loaded");
    let per_second = if arguments.contains(&"-P") {
        120_000.0
    } else {
        20_000.0
    };
    let requests = (per_second * span.as_secs_f64()).max(1_000.0);
    let output = Command::new("redis-benchmark")
        .args([
            "-p",
            &server.port().to_string(),
            "-n",
            &format!("{requests:.0}"),
            "-r",
            "10000",
            "--csv",
        ])
        .args(arguments)
        .args(["evalsha", &hash, "1", "rl:peer:__rand_int__"])
        .output()
        .expect("redis-benchmark is not installed: run .ci/servers");
    let text = String::from_utf8_lossy(&output.stdout);
    // "evalsha …","12345.67",…
    let rate = text
        .lines()
        .last()
        .and_then(|line| line.split("\",\"").nth(1)?.parse().ok());
    rate.unwrap_or_else(|| panic!("redis-benchmark said: {text}"))
}
