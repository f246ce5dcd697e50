//! A flood of ten million new keys against stores with room for 65,536, in virtual time: what happens to
//! honest clients, to clients that are being limited, and to memory and latency.
//!
//! `cargo run --release --example flood` takes about a minute; with `-- --quick`, a twentieth of the keys and the time.
//!
//! While the flood runs, 1,000 honest clients keep to half of their limit and 100 others ask for ten times
//! theirs. The limit is 10 per second with a burst of 20. The honest ones should never be refused; the others
//! should get exactly what the limit allows; neither depends on what strangers do, if there is room for all.
#![allow(clippy::disallowed_methods)] // latency is measured in real time; all decisions are on virtual time

mod latency;
mod report;
mod simulation;
mod stores;

use std::process::ExitCode;

use ratekeeper::{Overflow, Ways};

use self::latency::Samples;
use self::simulation::Flood;
use self::stores::{BoundedStore, map, table};

/// Slots of every store.
const CAPACITY: usize = 1 << 16;

static FLOODS: [Flood; 3] = [
    Flood::new("100,000 new keys a second, 1 token each", 100_000, 1),
    Flood::new("1,000,000 new keys a second, 1 token each", 1_000_000, 1),
    Flood::new(
        "1,000,000 new keys a second, a whole burst each",
        1_000_000,
        20,
    ),
];

static WORST: &Flood = &FLOODS[2];

fn main() -> ExitCode {
    let keys = match std::env::args().nth(1).as_deref() {
        None => 10_000_000,
        Some("--quick") => 500_000,
        Some(other) => {
            eprintln!("unknown argument {other:?}; the only one is --quick");
            return ExitCode::FAILURE;
        }
    };
    let mut samples = Samples::with_room_for(keys);
    println!(
        "limit {}; {keys} new keys; {CAPACITY} slots; latency of every {}th new key, in nanoseconds, of which \
         reading the clock takes about {}",
        simulation::LIMIT,
        latency::EVERY,
        latency::clock_overhead_ns(),
    );
    let mut broken = Vec::new();
    for flood in &FLOODS {
        report::print_heading(flood);
        for overflow in [Overflow::Inherit, Overflow::Deny] {
            for ways in [Ways::Four, Ways::Eight] {
                let name = format!("TableStore, {} ways", ways.count());
                let store = table(CAPACITY, ways, overflow);
                broken.extend(run(&name, &store, overflow, flood, keys, &mut samples));
            }
            // Denying a flood takes a map longest and tells least: once will do.
            if overflow == Overflow::Inherit || std::ptr::eq(flood, WORST) {
                let store = map(CAPACITY, overflow);
                broken.extend(run(
                    "DashStore",
                    &store,
                    overflow,
                    flood,
                    keys,
                    &mut samples,
                ));
            }
        }
    }
    // Who finds no room passes, whatever the flood is like.
    let (overflow, flood) = (Overflow::Admit, WORST);
    let (name, store) = ("TableStore, 4 ways", table(CAPACITY, Ways::Four, overflow));
    broken.extend(run(name, &store, overflow, flood, keys, &mut samples));
    let (name, store) = ("DashStore", map(CAPACITY, overflow));
    broken.extend(run(name, &store, overflow, flood, keys, &mut samples));

    for promise in &broken {
        eprintln!("broken: {promise}");
    }
    if broken.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Runs one flood against one store, prints a line, and returns the promises that were broken.
fn run(
    name: &str,
    store: &impl BoundedStore,
    overflow: Overflow,
    flood: &Flood,
    keys: u64,
    samples: &mut Samples,
) -> Vec<String> {
    let outcome = simulation::run(store, flood, keys, samples);
    report::print_line(name, overflow, &outcome, &store.counts(), samples);
    let broken = outcome.broken_promises(overflow);
    broken
        .into_iter()
        .map(|promise| format!("{name}, {overflow:?}, {}: {promise}", flood.name))
        .collect()
}
