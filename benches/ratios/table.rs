//! Measuring two things in turns, and printing how they compare.

use std::time::{Duration, Instant};

/// How long a row may take.
const ROW_TIME: Duration = Duration::from_secs(2);
/// Long against the timer's own cost, short against what else the machine does.
const ROUND_TIME: Duration = Duration::from_millis(1);
const MIN_ROUNDS: usize = 9;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effort {
    /// Everything once, nothing judged.
    Once,
    Full,
}

/// Something to measure: runs so many times, and says how long they took.
pub(crate) type Side<'a> = &'a mut dyn FnMut(u64) -> Duration;

/// What a ratio must be.
#[derive(Clone, Copy)]
pub(crate) enum Target {
    AtMost(f64),
    Below(f64),
    AtLeast(f64),
    /// Nothing is promised; the number is there to explain others.
    None,
}

pub(crate) struct Table {
    effort: Effort,
    names: Vec<String>,
}

impl Table {
    pub(crate) fn new(effort: Effort, names: Vec<String>) -> Self {
        if effort == Effort::Full {
            println!(
                "\n{:<50} {:>9} {:>9} {:>7} {:>8}  target",
                "ratio of the fastest rounds", "ns", "against", "ratio", "(median)"
            );
        }
        Self { effort, names }
    }

    pub(crate) fn finish(&self) {
        if self.effort == Effort::Once {
            println!("every row ran once; nothing was measured");
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.effort == Effort::Full
    }

    /// Whether a row was asked for; rows with an expensive set-up ask first.
    pub(crate) fn wants(&self, name: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|part| name.contains(part.as_str()))
    }

    /// Measures `ours / yardstick` per call.
    pub(crate) fn row(&mut self, name: &str, target: Target, ours: Side<'_>, yardstick: Side<'_>) {
        self.row_of(name, target, None, ours, yardstick);
    }

    /// The same with rounds of a given number of calls: passes over a data set.
    pub(crate) fn row_of(
        &mut self,
        name: &str,
        target: Target,
        calls: Option<u64>,
        ours: Side<'_>,
        yardstick: Side<'_>,
    ) {
        if !self.wants(name) {
            return;
        }
        if self.effort == Effort::Once {
            ours(10);
            yardstick(10);
            return;
        }
        let calls = calls.unwrap_or_else(|| calibrated(ours));
        let mut rounds: Vec<(f64, f64)> = Vec::new();
        let begun = Instant::now();
        while rounds.len() < MIN_ROUNDS || begun.elapsed() < ROW_TIME {
            // Who goes first alternates, too.
            let (a, b) = if rounds.len() % 2 == 0 {
                let a = per_call(ours, calls);
                (a, per_call(yardstick, calls))
            } else {
                let b = per_call(yardstick, calls);
                (per_call(ours, calls), b)
            };
            rounds.push((a, b));
        }
        let fastest =
            |side: fn(&(f64, f64)) -> f64| rounds.iter().map(side).fold(f64::INFINITY, f64::min);
        let (a, b) = (fastest(|round| round.0), fastest(|round| round.1));
        let median = median(rounds.iter().map(|(a, b)| a / b).collect());
        self.print(name, target, (a, b), a / b, Some(median));
    }

    /// A row measured elsewhere.
    pub(crate) fn print(
        &mut self,
        name: &str,
        target: Target,
        (ours, yardstick): (f64, f64),
        ratio: f64,
        median: Option<f64>,
    ) {
        if self.effort == Effort::Once {
            return;
        }
        let median = median.map_or(String::new(), |median| format!("({median:.2})"));
        let ratio = (ratio * 100.0).round() / 100.0; // what is judged is what is printed
        let verdict = match target {
            Target::AtMost(most) => verdict(ratio <= most, format!("≤ {most:.2}")),
            Target::Below(most) => verdict(ratio < most, format!("< {most:.2}")),
            Target::AtLeast(least) => verdict(ratio >= least, format!("≥ {least:.2}")),
            Target::None => "–".into(),
        };
        println!("{name:<50} {ours:>9.2} {yardstick:>9.2} {ratio:>7.2} {median:>8}  {verdict}");
    }
}

fn verdict(met: bool, target: String) -> String {
    format!("{target}  {}", if met { "met" } else { "NOT met" })
}

#[allow(clippy::cast_precision_loss)] // a few seconds of nanoseconds, a few million calls
fn per_call(side: Side<'_>, calls: u64) -> f64 {
    side(calls).as_nanos() as f64 / calls as f64
}

/// How many calls take about a round's time.
fn calibrated(side: Side<'_>) -> u64 {
    let mut calls = 64;
    while side(calls) < ROUND_TIME {
        calls *= 2;
    }
    calls
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
