//! The same work on several threads at once.

use std::sync::Barrier;
use std::time::{Duration, Instant};

/// Runs `work(i)` on `threads` threads; the time from the common start to the end of the last.
pub(crate) fn run(threads: usize, work: impl Fn(usize) + Sync) -> Duration {
    let (start, work) = (&Barrier::new(threads), &work);
    let spans: Vec<(Instant, Instant)> = std::thread::scope(|scope| {
        let spawn = |i| {
            scope.spawn(move || {
                start.wait();
                let begun = Instant::now();
                work(i);
                (begun, Instant::now())
            })
        };
        let running: Vec<_> = (0..threads).map(spawn).collect();
        running
            .into_iter()
            .map(|thread| thread.join().expect("no bench panics"))
            .collect()
    });
    let first = spans.iter().map(|(begun, _)| *begun).min();
    let last = spans.iter().map(|(_, ended)| *ended).max();
    last.zip(first)
        .map_or(Duration::ZERO, |(last, first)| last - first)
}
