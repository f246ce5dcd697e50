//! Every path in detail, one criterion group each. Groups run minutes apart, so compare within a
//! group; the ratios that count are measured side by side by the bench `ratios`.
#![allow(missing_docs)] // made by criterion's macros
#![allow(clippy::disallowed_methods)] // a bench reads the clock

#[path = "../common/mod.rs"]
mod common;

mod clocks;
mod direct;
mod floors;
mod keyed;
mod steps;
mod threads;

use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};

criterion_group! {
    name = limits;
    config = Criterion::default()
        .sample_size(40)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_millis(1_200));
    targets =
        clocks::bench,
        floors::bench,
        steps::bench,
        direct::check_at,
        direct::live,
        direct::check,
        direct::check_denied,
        keyed::check,
        keyed::skewed,
        keyed::insert,
        threads::bench,
}
criterion_main!(limits);
