//! The speed this crate aims at: each path against its yardstick, side by side.
//!
//! Both sides of a row run in turns, a few milliseconds each, so that what the machine does meanwhile
//! hits both. The verdict compares the fastest round of each side, the one least disturbed; the
//! median of the ratios of neighbouring rounds stands beside it, and where the two disagree, run
//! again on a quieter machine.
//!
//! `cargo bench --bench ratios [part of a row's name…]`. With `--test`, everything runs once and
//! nothing is judged.
#![allow(clippy::disallowed_methods)] // a bench reads the clock

#[path = "../common/mod.rs"]
mod common;

mod memory;
mod rows;
mod table;

/// Counts the bytes in use; what it adds to an allocation, it adds on both sides.
#[global_allocator]
static ALLOCATOR: cap::Cap<std::alloc::System> = cap::Cap::new(std::alloc::System, usize::MAX);

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |flag: &str| arguments.iter().any(|argument| argument == flag);
    if has("--list") {
        return;
    }
    // `cargo test --benches` passes no `--bench`.
    let effort = if has("--test") || !has("--bench") {
        table::Effort::Once
    } else {
        table::Effort::Full
    };
    let names = arguments
        .iter()
        .filter(|argument| !argument.starts_with('-'));
    let mut table = table::Table::new(effort, names.cloned().collect());
    rows::direct(&mut table);
    rows::keyed(&mut table);
    rows::threads(&mut table);
    rows::memory(&mut table);
    table.finish();
}
