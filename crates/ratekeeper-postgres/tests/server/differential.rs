//! The functions against the machines in Rust: the same random requests, the same states to the last bit.

use std::time::Duration;

use ratekeeper::store::StateBytes;
use ratekeeper::{
    Algorithm, All, FixedWindow, Receipt, Request, SlidingWindow, Timestamp, TokenBucket,
};
use ratekeeper_postgres::PostgresAlgorithm;
use ratekeeper_postgres::tokio_postgres::Client;
use ratekeeper_postgres::tokio_postgres::types::{ToSql, Type};

use crate::common::{Draw, client, database};

/// Sequences of one machine, each with up to 10 requests, on the bare steps.
const SEQUENCES: u32 = 20_000;
/// Of those, through the functions that also store.
const STORED_SEQUENCES: u32 = 1_000;
/// In one statement.
const SEQUENCES_AT_ONCE: u32 = 500;

/// What a function is called with, and what must come of it.
#[derive(Debug)]
struct Case {
    key: Vec<u8>,
    now_ns: u64,
    arguments: String,
    old: Option<Vec<u8>>,
    new: Option<Vec<u8>>,
    keep_ns: Option<u128>,
    repaired: bool,
    /// For the message of a failure.
    #[allow(dead_code)]
    seen: String,
}

/// What all cases of a run led to: draws are no use unless they lead everywhere.
#[derive(Debug, Default)]
struct Tally {
    written: u32,
    unwritten: u32,
    looks: u32,
}

/// Runs sequences of requests under random limits through the machine in Rust, and through the one in SQL. `step` is a file
/// in `src/sql`.
async fn agree<A, L>(name: &str, step: &str, limit: L)
where
    A: Algorithm<State: Copy> + PostgresAlgorithm,
    L: Fn(&mut Draw) -> A,
{
    let url = database(name).await;
    let client = client(&url).await;
    let bare = bare_step(step);
    client.batch_execute(&bare).await.unwrap();
    let mut draw = Draw(name.bytes().map(u64::from).sum());
    let mut tally = Tally::default();
    for batch in 0..SEQUENCES / SEQUENCES_AT_ONCE {
        let mut cases = Vec::new();
        let mut function = None;
        for sequence in 0..SEQUENCES_AT_ONCE {
            let key = [batch.to_be_bytes(), sequence.to_be_bytes()].concat();
            run_sequence(
                &mut draw,
                &limit,
                &key,
                &mut function,
                &mut cases,
                &mut tally,
            );
        }
        check_steps(&client, &cases).await;
        if batch < STORED_SEQUENCES / SEQUENCES_AT_ONCE {
            check_stored(&client, function.unwrap(), &cases).await;
        }
    }
    let Tally {
        written,
        unwritten,
        looks,
    } = tally;
    assert!(
        written > 20_000 && unwritten > 10_000 && looks > 500,
        "{tally:?}"
    );
}

/// A function that only steps, made of the same text as the one that also stores.
fn bare_step(step: &str) -> String {
    let step = step.replace("@bucket@", include_str!("../../src/sql/bucket.sql"));
    let step = step.replace("@schema@", "ratekeeper");
    format!(
        "CREATE FUNCTION step(now_ns numeric, old bytea, args numeric[], OUT new bytea, OUT keep_ns numeric, OUT repaired boolean) \
         LANGUAGE plpgsql AS $$ BEGIN {step} END $$"
    )
}

async fn check_steps(client: &Client, cases: &[Case]) {
    const SQL: &str = "SELECT r.new, r.keep_ns::text, r.repaired FROM unnest($1, $2, $3) WITH ORDINALITY AS c (now_ns, old, args, turn), \
        LATERAL step(c.now_ns::numeric, c.old, c.args::numeric[]) AS r ORDER BY c.turn";
    let nows: Vec<_> = cases.iter().map(|case| case.now_ns.to_string()).collect();
    let olds: Vec<_> = cases.iter().map(|case| case.old.as_deref()).collect();
    let arguments: Vec<_> = cases.iter().map(|case| case.arguments.as_str()).collect();
    let parameters: [(&(dyn ToSql + Sync), Type); 3] = [
        (&nows, Type::TEXT_ARRAY),
        (&olds, Type::BYTEA_ARRAY),
        (&arguments, Type::TEXT_ARRAY),
    ];
    let rows = client.query_typed(SQL, &parameters).await.unwrap();
    assert_eq!(rows.len(), cases.len());
    for (row, case) in rows.iter().zip(cases) {
        assert_eq!(row.get::<_, Option<Vec<u8>>>(0), case.new, "{case:?}");
        assert_eq!(
            row.get::<_, Option<bool>>(2) == Some(true),
            case.repaired,
            "{case:?}"
        );
        if let Some(keep_ns) = case.keep_ns {
            let kept: u128 = row.get::<_, &str>(1).parse().unwrap();
            // A bucket's state may lie a nanosecond after the lattice point that counts.
            let kept = kept.min(u64::MAX.into());
            assert!((keep_ns..=keep_ns + 1).contains(&kept), "{kept}: {case:?}");
        }
    }
}

async fn check_stored(client: &Client, function: &str, cases: &[Case]) {
    let sql = format!(
        "SELECT r.now_ns::text, r.old, r.new FROM unnest($1, $2, $3, $4) WITH ORDINALITY AS c (key, now_ns, old, args, turn), \
         LATERAL ratekeeper.{function}(c.key, c.now_ns::numeric, c.old, 1e15, c.args::numeric[]) AS r ORDER BY c.turn"
    );
    let keys: Vec<_> = cases.iter().map(|case| case.key.as_slice()).collect();
    let nows: Vec<_> = cases.iter().map(|case| case.now_ns.to_string()).collect();
    let arguments: Vec<_> = cases.iter().map(|case| case.arguments.as_str()).collect();
    // The instant counts as read after the state, so that repairs are written at once.
    let olds: Vec<_> = cases.iter().map(|case| case.old.as_deref()).collect();
    let parameters: [(&(dyn ToSql + Sync), Type); 4] = [
        (&keys, Type::BYTEA_ARRAY),
        (&nows, Type::TEXT_ARRAY),
        (&olds, Type::BYTEA_ARRAY),
        (&arguments, Type::TEXT_ARRAY),
    ];
    let rows = client.query_typed(&sql, &parameters).await.unwrap();
    assert_eq!(rows.len(), cases.len());
    for (row, case) in rows.iter().zip(cases) {
        let (old, new): (Option<Vec<u8>>, Option<Vec<u8>>) = (row.get(1), row.get(2));
        assert_eq!(row.get::<_, &str>(0), case.now_ns.to_string(), "{case:?}");
        assert_eq!((&old, &new), (&case.old, &case.new), "{case:?}");
    }
}

fn run_sequence<A, L>(
    draw: &mut Draw,
    limit: &L,
    key: &[u8],
    function: &mut Option<&'static str>,
    cases: &mut Vec<Case>,
    tally: &mut Tally,
) where
    A: Algorithm<State: Copy> + PostgresAlgorithm,
    L: Fn(&mut Draw) -> A,
{
    let mut algorithm = limit(draw);
    let mut now_ns = first_instant(draw);
    let mut state = A::State::default();
    let mut old: Option<Vec<u8>> = None;
    let mut receipts: Vec<Receipt> = Vec::new();
    for _ in 0..=draw.below(10) {
        if draw.once_in(10) {
            algorithm = limit(draw);
        }
        let fresh = algorithm.step(
            Timestamp::from_nanos(now_ns),
            &mut state.clone(),
            &Request::PEEK,
        );
        now_ns = next_instant(draw, now_ns, fresh.decision.reset_after());
        let request = request(draw, fresh.decision.limit(), &mut receipts, now_ns);
        let call = algorithm.call(&request).unwrap();
        let before = state;
        let step = algorithm.step(Timestamp::from_nanos(now_ns), &mut state, &request);
        let new = step
            .keep
            .map(|_| StateBytes::encode(&algorithm, &state).unwrap().to_vec());
        if call.function() == "look_v1" {
            // A look never writes.
            assert_eq!(new, None);
            tally.looks += 1;
            continue;
        }
        assert_eq!(*function.get_or_insert(call.function()), call.function());
        let arguments: Vec<_> = call.arguments().map(|number| number.to_string()).collect();
        cases.push(Case {
            key: key.to_vec(),
            now_ns,
            arguments: format!("{{{}}}", arguments.join(",")),
            old: old.clone(),
            new: new.clone(),
            keep_ns: step.keep.map(|keep| keep.as_nanos()),
            repaired: step.repaired,
            seen: format!("{algorithm:?} {request:?} on {before:?}"),
        });
        if new.is_some() {
            tally.written += 1;
            old = new;
        } else {
            tally.unwritten += 1;
        }
        let receipt = step.decision.into_receipt();
        if receipt.charged() > 0 {
            receipts.push(receipt);
        }
    }
}

fn first_instant(draw: &mut Draw) -> u64 {
    match draw.below(10) {
        0 => 0,
        1 => draw.magnitude(63),
        2 => u64::MAX - draw.magnitude(63),
        _ => 1_700_000_000_000_000_000 + draw.below(1_000_000_000_000_000),
    }
}

/// Mostly forwards, often to an edge: of the state, of a nanosecond.
fn next_instant(draw: &mut Draw, now_ns: u64, reset: Duration) -> u64 {
    let reset_ns = u64::try_from(reset.as_nanos()).unwrap_or(u64::MAX);
    let forward = now_ns.saturating_add(match draw.below(8) {
        0 => reset_ns,
        1 => reset_ns / 2,
        2 => reset_ns.saturating_sub(1),
        3 => draw.below(reset_ns.saturating_add(1)),
        4 => draw.magnitude(40),
        5 => draw.below(3),
        _ => 0,
    });
    match draw.below(16) {
        0 => forward.saturating_sub(draw.magnitude(62)),
        1 => now_ns.saturating_sub(draw.below(reset_ns.saturating_add(2))),
        2 => now_ns.saturating_sub(1),
        _ => forward,
    }
}

/// All kinds of requests, with costs around the limit; refunds of receipts that were handed out, sometimes wrong ones.
fn request(draw: &mut Draw, limit: u64, receipts: &mut Vec<Receipt>, now_ns: u64) -> Request {
    let cost = match draw.below(12) {
        0 => 0,
        1 => limit,
        2 => limit.saturating_add(1),
        3 => draw.next(),
        4 => draw.magnitude(64),
        5..=7 => 1,
        _ => 1 + draw.below(limit),
    };
    let wait = match draw.below(5) {
        0 => Duration::MAX,
        1 | 2 => Duration::from_nanos(draw.magnitude(60)),
        _ => Duration::ZERO,
    };
    match draw.below(10) {
        0 | 1 if !receipts.is_empty() => {
            let index = usize::try_from(draw.below(receipts.len() as u64)).unwrap();
            let receipt = receipts.swap_remove(index);
            let part = match draw.below(4) {
                0 => draw.below(receipt.charged().saturating_add(2)),
                _ => receipt.charged(),
            };
            Request::refund(part, receipt)
        }
        2 if draw.once_in(4) => {
            let mark = draw.of(&[0, now_ns, now_ns.saturating_add(1), u64::MAX, draw.0]);
            let receipt = Receipt::new(draw.magnitude(64), mark);
            let receipt = receipt.with_run_at_ns(draw.of(&[0, now_ns.saturating_add(1), u64::MAX]));
            Request::refund(cost, receipt)
        }
        3 => Request::up_to(cost).at_least(0).or_wait(Duration::MAX), // a charge
        4 | 5 => Request::up_to(cost)
            .at_least(draw.below(cost.saturating_add(1)))
            .or_wait(wait),
        6 => Request::up_to(cost).at_least(draw.below(2)).or_wait(wait),
        _ => Request::take(cost).or_wait(wait),
    }
}

/// Whole, fractional and dense ones of all sizes, now and then at the end of the range.
fn bucket(draw: &mut Draw) -> TokenBucket {
    let (tokens, period_ns) = match draw.below(8) {
        0 => (1, draw.magnitude(64)),
        1 => (1 + draw.below(20), 1 + draw.below(20)),
        2 => (draw.magnitude(64), draw.magnitude(64)),
        3 => (draw.magnitude(40), draw.magnitude(20)),
        4 => (1 + draw.below(1_000), 1_000_000_000),
        5 => (1 + draw.below(100), 3_600_000_000_000),
        6 => (3, 1_000_000_000),
        _ => (1 + draw.below(10), 60_000_000_000),
    };
    let burst = match draw.below(6) {
        0 => draw.magnitude(64),
        1 => 1,
        2 => tokens,
        _ => 1 + draw.below(20),
    };
    let max_wait = match draw.below(6) {
        0 => Duration::from_nanos(draw.magnitude(64)),
        1 => Duration::from_nanos(draw.below(3)),
        2 => Duration::from_nanos(period_ns),
        _ => Duration::ZERO,
    };
    TokenBucket::per(tokens, Duration::from_nanos(period_ns))
        .with_burst(burst)
        .with_max_wait(max_wait)
}

fn window(draw: &mut Draw) -> (u32, Duration) {
    let limit = match draw.below(5) {
        0 => u32::try_from(draw.magnitude(32)).unwrap_or(u32::MAX),
        1 => 1,
        _ => u32::try_from(1 + draw.below(20)).unwrap(),
    };
    let span_ns = match draw.below(6) {
        0 => draw.magnitude(64),
        1 => 1 + draw.below(20),
        2 => draw.magnitude(50),
        _ => draw.of(&[1, 60, 3_600]) * 1_000_000_000,
    };
    (limit, Duration::from_nanos(span_ns))
}

#[tokio::test]
async fn token_buckets() {
    agree(
        "token_buckets",
        include_str!("../../src/sql/token_bucket.sql"),
        bucket,
    )
    .await;
}

#[tokio::test]
async fn sliding_windows() {
    agree(
        "sliding_windows",
        include_str!("../../src/sql/sliding_window.sql"),
        |draw| {
            let (limit, span) = window(draw);
            SlidingWindow::per(limit, span)
        },
    )
    .await;
}

#[tokio::test]
async fn fixed_windows() {
    agree(
        "fixed_windows",
        include_str!("../../src/sql/fixed_window.sql"),
        |draw| {
            let (limit, span) = window(draw);
            let window = FixedWindow::per(limit, span);
            match draw.below(3) {
                0 => window.anchored(),
                1 => window.with_offset(Duration::from_nanos(draw.magnitude(64))),
                _ => window,
            }
        },
    )
    .await;
}

#[tokio::test]
async fn two_buckets() {
    agree(
        "two_buckets",
        include_str!("../../src/sql/all_buckets.sql"),
        |draw| All([bucket(draw), bucket(draw)]),
    )
    .await;
}

#[tokio::test]
async fn four_buckets() {
    let limit = |draw: &mut Draw| {
        // Alike enough that all of them matter.
        let one = bucket(draw);
        let like = |draw: &mut Draw| match draw.below(3) {
            0 => bucket(draw),
            1 => one,
            _ => one.with_burst(one.burst().saturating_add(draw.below(3))),
        };
        All([one, like(draw), like(draw), like(draw)])
    };
    agree(
        "four_buckets",
        include_str!("../../src/sql/all_buckets.sql"),
        limit,
    )
    .await;
}
