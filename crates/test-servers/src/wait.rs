//! Waiting for another process.

use std::thread;
use std::time::{Duration, Instant};

/// How long anything may take on a busy machine. Only failures wait that long.
pub(crate) const LIMIT: Duration = Duration::from_secs(15);

/// Asks every 5 ms until there is an answer; `None` if there is none within `limit`.
pub(crate) fn until<T>(limit: Duration, mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let start = Instant::now();
    loop {
        let answer = ask();
        if answer.is_some() || start.elapsed() >= limit {
            return answer;
        }
        thread::sleep(Duration::from_millis(5));
    }
}
