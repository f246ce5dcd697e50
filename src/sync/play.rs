//! Plays a loom model and says how large it was.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};
use std::println;
use std::time::Instant;

/// Plays every execution of `scene`, or with `Some(n)` those of `n` preemptions at most, and prints how many there
/// were. The environment (`LOOM_MAX_PREEMPTIONS`) may ask for fewer.
#[allow(clippy::disallowed_methods)] // how long a model takes
pub(crate) fn play(
    name: &str,
    most_preemptions: Option<usize>,
    scene: impl Fn() + Send + Sync + 'static,
) {
    let mut model = loom::model::Builder::new();
    if let Some(most) = most_preemptions {
        let asked = model.preemption_bound.unwrap_or(most);
        model.preemption_bound = Some(most.min(asked));
    }
    let executions = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&executions);
    let start = Instant::now();
    model.check(move || {
        count.fetch_add(1, Ordering::Relaxed);
        scene();
    });
    println!(
        "{name:<60} {:>9} executions {:>6.1} s",
        executions.load(Ordering::Relaxed),
        start.elapsed().as_secs_f64()
    );
}
