//! The functions against the steps in Rust: the same random requests on the same values, the same values to the last byte.
//! Limits change from call to call, clocks are stepped back, keys begin with whatever another limit, another version of this
//! crate or a clock ahead may have left.

mod draws;

use std::time::Duration;

use ratekeeper::store::{ErrorKind, StateBytes, Version, compare_versions, step_stored};
use ratekeeper::{All, FixedWindow, Receipt, Request, SlidingWindow, Timestamp, TokenBucket};
use ratekeeper_postgres::PostgresAlgorithm;
use ratekeeper_postgres::tokio_postgres::Client;
use ratekeeper_postgres::tokio_postgres::types::{ToSql, Type};

use self::draws::{bucket, extreme, first_instant, next_instant, request, window};
use crate::common::{Draw, client, database};

/// Sequences of one key, each with up to 10 requests, on the bare steps.
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
    /// What somebody puts there before.
    put: Option<Vec<u8>>,
    old: Option<Vec<u8>>,
    new: Option<Vec<u8>>,
    keep_ns: Option<u128>,
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
    /// Refused, and written all the same.
    repaired: u32,
    /// Left to this process because versions differ.
    left: u32,
}

/// One kind of limits, and how to draw what belongs to it.
struct Kind<A> {
    name: &'static str,
    /// A file in `src/sql`.
    step: &'static str,
    /// Those that meet on one key.
    limits: fn(&mut Draw) -> Vec<A>,
    /// What a key begins with.
    found: fn(&mut Draw, u64) -> Option<Vec<u8>>,
    /// Whether the function must leave the decision to this process.
    differs: fn(&A, &[u8]) -> bool,
}

/// Runs sequences of requests under random limits through the step in Rust, and through the one in SQL.
async fn agree<A: PostgresAlgorithm + Clone>(kind: Kind<A>) -> Tally {
    let url = database(kind.name).await;
    let client = client(&url).await;
    client.batch_execute(&bare_step(kind.step)).await.unwrap();
    let mut draw = Draw(kind.name.bytes().map(u64::from).sum());
    let mut tally = Tally::default();
    for batch in 0..SEQUENCES / SEQUENCES_AT_ONCE {
        let mut cases = Vec::new();
        let mut function = None;
        for sequence in 0..SEQUENCES_AT_ONCE {
            let key = [batch.to_be_bytes(), sequence.to_be_bytes()].concat();
            run_sequence(
                &mut draw,
                &kind,
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
    assert!(
        tally.written > 20_000
            && tally.unwritten > 10_000
            && tally.looks > 500
            && tally.repaired > 500,
        "{tally:?}"
    );
    tally
}

/// A function that only steps, made of the same text as the one that also stores.
fn bare_step(step: &str) -> String {
    let step = step.replace("@bucket@", include_str!("../../src/sql/bucket.sql"));
    let step = step.replace("@schema@", "ratekeeper");
    format!(
        "CREATE FUNCTION step(now_ns numeric, old bytea, args numeric[], OUT new bytea, OUT keep_ns numeric) \
         LANGUAGE plpgsql AS $$ BEGIN {step} END $$"
    )
}

async fn check_steps(client: &Client, cases: &[Case]) {
    const SQL: &str = "SELECT r.new, r.keep_ns::text FROM unnest($1, $2, $3) WITH ORDINALITY AS c (now_ns, old, args, turn), \
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
        if let Some(keep_ns) = case.keep_ns {
            let kept: u128 = row.get::<_, &str>(1).parse().unwrap();
            // Beyond what a duration of this process says.
            assert_eq!(kept.min(u64::MAX.into()), keep_ns, "{case:?}");
        }
    }
}

/// One statement, one transaction: each call sees what the ones before it have left.
async fn check_stored(client: &Client, function: &str, cases: &[Case]) {
    let turn = format!(
        "CREATE OR REPLACE FUNCTION turn(key bytea, now_ns numeric, args numeric[], put bytea, OUT r_now numeric, OUT r_old bytea, OUT r_new bytea) \
         LANGUAGE plpgsql AS $$ BEGIN \
           IF put IS NOT NULL THEN \
             INSERT INTO ratekeeper.states_v1 AS s VALUES (turn.key, put, '294000-01-01') \
               ON CONFLICT ON CONSTRAINT states_v1_pkey DO UPDATE SET state = put; \
           END IF; \
           SELECT r.now_ns, r.old, r.new INTO r_now, r_old, r_new FROM ratekeeper.{function}(turn.key, turn.now_ns, 1e15, args) r; \
         END $$"
    );
    client.batch_execute(&turn).await.unwrap();
    const SQL: &str = "SELECT r.r_now::text, r.r_old, r.r_new FROM unnest($1, $2, $3, $4) WITH ORDINALITY AS c (key, now_ns, args, put, turn), \
         LATERAL turn(c.key, c.now_ns::numeric, c.args::numeric[], c.put) AS r ORDER BY c.turn";
    let keys: Vec<_> = cases.iter().map(|case| case.key.as_slice()).collect();
    let nows: Vec<_> = cases.iter().map(|case| case.now_ns.to_string()).collect();
    let arguments: Vec<_> = cases.iter().map(|case| case.arguments.as_str()).collect();
    let puts: Vec<_> = cases.iter().map(|case| case.put.as_deref()).collect();
    let parameters: [(&(dyn ToSql + Sync), Type); 4] = [
        (&keys, Type::BYTEA_ARRAY),
        (&nows, Type::TEXT_ARRAY),
        (&arguments, Type::TEXT_ARRAY),
        (&puts, Type::BYTEA_ARRAY),
    ];
    let rows = client.query_typed(SQL, &parameters).await.unwrap();
    assert_eq!(rows.len(), cases.len());
    for (row, case) in rows.iter().zip(cases) {
        let (old, new): (Option<Vec<u8>>, Option<Vec<u8>>) = (row.get(1), row.get(2));
        assert_eq!(row.get::<_, &str>(0), case.now_ns.to_string(), "{case:?}");
        assert_eq!((&old, &new), (&case.old, &case.new), "{case:?}");
    }
}

fn run_sequence<A: PostgresAlgorithm + Clone>(
    draw: &mut Draw,
    kind: &Kind<A>,
    key: &[u8],
    function: &mut Option<&'static str>,
    cases: &mut Vec<Case>,
    tally: &mut Tally,
) {
    let limits = (kind.limits)(draw);
    let mut algorithm = limits[0].clone();
    let mut now_ns = first_instant(draw);
    let mut put = (kind.found)(draw, now_ns);
    let stored = |bytes: &Vec<u8>| StateBytes::from_stored(bytes).unwrap();
    let mut old = put.as_ref().map(stored);
    let mut receipts: Vec<Receipt> = Vec::new();
    for _ in 0..=draw.below(10) {
        if draw.once_in(3) {
            let index = usize::try_from(draw.below(limits.len() as u64)).unwrap();
            algorithm = limits[index].clone();
        }
        let now = Timestamp::from_nanos(now_ns);
        let capacity = algorithm.step(now, &mut A::State::default(), &Request::PEEK);
        let reset = step_stored(&algorithm, now, old.as_ref(), &Request::PEEK).map_or(
            Duration::ZERO,
            |peek| {
                assert_eq!(peek.write, None, "a look never writes");
                peek.decision.reset_after()
            },
        );
        now_ns = next_instant(draw, now_ns, reset);
        let now = Timestamp::from_nanos(now_ns);
        let request = request(draw, capacity.decision.limit(), &mut receipts, now_ns);
        // Until the function decides.
        let mut limit = algorithm.clone();
        loop {
            let call = limit.call(&request).unwrap();
            if call.function() == "look_v2" {
                tally.looks += 1;
                break;
            }
            assert_eq!(*function.get_or_insert(call.function()), call.function());
            let arguments: Vec<_> = call.arguments().map(|number| number.to_string()).collect();
            let mut case = Case {
                key: key.to_vec(),
                now_ns,
                arguments: format!("{{{}}}", arguments.join(",")),
                put: put.take(),
                old: old.map(|old| old.to_vec()),
                new: None,
                keep_ns: None,
                seen: format!("{limit:?} {request:?}"),
            };
            if let Some(found) = old.filter(|found| (kind.differs)(&limit, found)) {
                tally.left += 1;
                case.new = Some(Vec::new());
                cases.push(case);
                match compare_versions(&limit, now, &found) {
                    Ok(Version::Newer(newer)) => limit = newer,
                    Ok(Version::Older(write)) => {
                        put = Some(write.value.to_vec());
                        old = Some(write.value);
                    }
                    Ok(Version::Same) => panic!("{limit:?} {found:?}"),
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::Config);
                        break;
                    }
                }
                continue;
            }
            let step = step_stored(&limit, now, old.as_ref(), &request).unwrap();
            case.new = step.write.map(|write| write.value.to_vec());
            case.keep_ns = step.write.map(|write| write.keep.as_nanos());
            cases.push(case);
            match step.write {
                Some(write) => {
                    tally.written += 1;
                    tally.repaired += u32::from(!step.decision.is_allowed());
                    old = Some(write.value);
                }
                None => tally.unwritten += 1,
            }
            let receipt = step.decision.into_receipt();
            if receipt.charged() > 0 {
                receipts.push(receipt);
            }
            break;
        }
    }
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(bytes[at..at + 8].try_into().unwrap())
}

/// Of another version, or of this one and yet another limit.
fn is_of_another_version(limit: &TokenBucket, found: &[u8]) -> bool {
    match found[0] {
        0x11 | 0x21 => limit.version() > 0,
        0x31 => {
            let version = u16::from_be_bytes([found[9], found[10]]);
            let [tokens, period, burst, wait] =
                [11, 19, 27, 35].map(|at| u128::from(word(found, at)));
            let same = tokens * limit.period().as_nanos() == period * u128::from(limit.tokens())
                && burst == u128::from(limit.burst())
                && wait == limit.max_wait().as_nanos();
            version != limit.version() || !same
        }
        _ => false,
    }
}

/// Near now, or anywhere.
fn instant(draw: &mut Draw, now_ns: u64) -> u64 {
    match draw.below(4) {
        0 => draw.next(),
        1 => now_ns.saturating_sub(draw.magnitude(62)),
        _ => now_ns.saturating_add(draw.magnitude(62)),
    }
}

fn found_bucket(draw: &mut Draw, now_ns: u64) -> Option<Vec<u8>> {
    let tat = instant(draw, now_ns).to_be_bytes();
    let reach = draw.magnitude(63).to_be_bytes();
    match draw.below(8) {
        0 => Some([&[0x11], &tat[..]].concat()),
        1 | 2 => Some([&[0x21], &tat[..], &reach].concat()),
        3 => {
            let tag = draw.of(&[0x13, 0x15, 0x14, 0x17]);
            Some([&[tag], &tat[..], &reach].concat())
        }
        _ => None,
    }
}

fn found_window(draw: &mut Draw, now_ns: u64, tag: u8) -> Option<Vec<u8>> {
    let start = instant(draw, now_ns).to_be_bytes();
    let upper = u32::try_from(draw.below(3)).unwrap().to_be_bytes();
    let lower = u32::try_from(draw.below(20)).unwrap().to_be_bytes();
    (!draw.once_in(3)).then(|| [&[tag], &start[..], &upper, &lower].concat())
}

fn found_buckets<const N: usize>(draw: &mut Draw, now_ns: u64) -> Option<Vec<u8>> {
    let mut value = vec![0x24];
    for _ in 0..N {
        value.extend_from_slice(&instant(draw, now_ns).to_be_bytes());
        value.extend_from_slice(&draw.magnitude(63).to_be_bytes());
    }
    (!draw.once_in(3)).then_some(value)
}

#[tokio::test]
async fn token_buckets() {
    agree(Kind {
        name: "token_buckets",
        step: include_str!("../../src/sql/token_bucket.sql"),
        limits: |draw| vec![bucket(draw), bucket(draw), bucket(draw)],
        found: found_bucket,
        differs: is_of_another_version,
    })
    .await;
}

/// Three versions, one of them in other words, and now and then two limits that are told apart by nothing.
#[tokio::test]
async fn token_buckets_with_versions() {
    let tally = agree(Kind {
        name: "versions",
        step: include_str!("../../src/sql/token_bucket.sql"),
        limits: |draw| {
            let [zero, one, two] = [0, 1, 2].map(|version| bucket(draw).with_version(version));
            let twice = one.tokens().checked_mul(2).zip(one.period().checked_mul(2));
            let in_other_words = twice.and_then(|(tokens, period)| {
                let limit = TokenBucket::new(tokens, period, one.burst()).ok()?;
                Some(limit.with_max_wait(one.max_wait()).with_version(1))
            });
            let mut limits = vec![zero, one, two, in_other_words.unwrap_or(one)];
            if draw.once_in(4) {
                limits.push(bucket(draw).with_version(2));
            }
            limits
        },
        found: found_bucket,
        differs: is_of_another_version,
    })
    .await;
    assert!(tally.left > 10_000, "{tally:?}");
}

#[tokio::test]
async fn sliding_windows() {
    agree(Kind {
        name: "sliding_windows",
        step: include_str!("../../src/sql/sliding_window.sql"),
        limits: |draw| {
            let (limit, span) = window(draw);
            let other = limit.saturating_add(3);
            vec![
                SlidingWindow::per(limit, span),
                SlidingWindow::per(other, span),
            ]
        },
        found: |draw, now_ns| found_window(draw, now_ns, 0x13),
        differs: |_, _| false,
    })
    .await;
}

#[tokio::test]
async fn fixed_windows() {
    agree(Kind {
        name: "fixed_windows",
        step: include_str!("../../src/sql/fixed_window.sql"),
        limits: |draw| {
            let (limit, span) = window(draw);
            let edges = draw.below(3);
            let offset = Duration::from_nanos(draw.magnitude(64));
            let alike = |limit| match edges {
                0 => FixedWindow::per(limit, span).anchored(),
                1 => FixedWindow::per(limit, span).with_offset(offset),
                _ => FixedWindow::per(limit, span),
            };
            vec![alike(limit), alike(limit.saturating_add(3))]
        },
        found: |draw, now_ns| found_window(draw, now_ns, 0x15),
        differs: |_, _| false,
    })
    .await;
}

#[tokio::test]
async fn two_buckets() {
    agree(Kind {
        name: "two_buckets",
        step: include_str!("../../src/sql/all_buckets.sql"),
        limits: |draw| {
            let mut pair = || All([extreme(draw), bucket(draw)]);
            vec![pair(), pair()]
        },
        found: found_buckets::<2>,
        differs: |_, _| false,
    })
    .await;
}

#[tokio::test]
async fn four_buckets() {
    agree(Kind {
        name: "four_buckets",
        step: include_str!("../../src/sql/all_buckets.sql"),
        limits: |draw| {
            // Alike enough that all of them matter.
            let one = bucket(draw);
            let like = |draw: &mut Draw| match draw.below(3) {
                0 => bucket(draw),
                1 => one,
                _ => one.with_burst(one.burst().saturating_add(draw.below(3))),
            };
            let mut four = || All([one, like(draw), like(draw), like(draw)]);
            vec![four(), four()]
        },
        found: found_buckets::<4>,
        differs: |_, _| false,
    })
    .await;
}
