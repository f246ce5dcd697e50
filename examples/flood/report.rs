//! The table.

use ratekeeper::Overflow;

use super::latency::Samples;
use super::simulation::{Flood, Outcome, Share};
use super::stores::Counts;

pub(crate) fn print_heading(flood: &Flood) {
    println!("\n{}", flood.name);
    println!(
        "{:19} {:8} {:>19} {:>24} {:>8} {:>9} {:>10} {:>10} {:>11} {:>6} {:>6} {:>6} {:>9}",
        "store",
        "policy",
        "honest refused",
        "drained: got/may, exact",
        "ahead by",
        "flood in",
        "replaced",
        "overflowed",
        "RAM, KiB",
        "p50",
        "p99",
        "p99.9",
        "max"
    );
}

pub(crate) fn print_line(
    name: &str,
    overflow: Overflow,
    outcome: &Outcome,
    counts: &Counts,
    samples: &mut Samples,
) {
    let Share {
        part: refused,
        whole: asked,
    } = outcome.honest_refused;
    let Share {
        part: got,
        whole: may,
    } = outcome.drained_admitted;
    let Share {
        part: exact,
        whole: clients,
    } = outcome.drained_exactly;
    let resident = match outcome.resident_kib {
        Some((before, after)) => {
            format!("{before} {:+}", i128::from(after) - i128::from(before))
        }
        None => String::from("-"),
    };
    let [p50, p99, p999, max] = samples.percentiles();
    println!(
        "{name:19} {:8} {:>19} {:>24} {:>8} {:>9} {:>10} {:>10} {resident:>11} {p50:>6} {p99:>6} {p999:>6} {max:>9}",
        format!("{overflow:?}"),
        format!("{refused} = {}", percent(refused, asked)),
        format!("{got}/{may}, {exact} of {clients}"),
        outcome.drained_excess,
        percent(outcome.flood_passed.part, outcome.flood_passed.whole),
        counts.replaced,
        counts.overflowed,
    );
}

fn percent(part: u64, whole: u64) -> String {
    let thousandths = u128::from(part) * 100_000 / u128::from(whole.max(1));
    format!("{}.{:03} %", thousandths / 1_000, thousandths % 1_000)
}

/// How much memory this process has in RAM, where `/proc` tells.
pub(crate) fn resident_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}
