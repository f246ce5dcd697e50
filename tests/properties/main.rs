//! Properties that hold for every limit, every instant and every order of requests, checked against
//! models that are slow and obvious: a bucket in exact fractions, lists of admitted instants, a brute
//! count over every window. None of them uses a formula of the crate.
//!
//! The random number generator is seeded, so a run is repeatable; `PROPTEST_RNG_SEED` explores further.
#![cfg(feature = "alloc")]

mod all;
mod any;
mod at_most;
mod bucket_clock;
mod bucket_exact;
mod bucket_long_run;
mod bucket_windows;
mod change;
mod charges;
mod clocks_apart;
mod exact;
mod fixed_window;
mod laws;
mod limits_that_differ;
mod refunds;
mod reservations;
mod sliding_log;
mod sliding_window;
mod support;
mod text;
