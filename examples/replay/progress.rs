//! What stderr shows while a long log is read.

use std::io::{IsTerminal as _, Write as _, stderr};
use std::time::{Duration, Instant};

use crate::text::percent;

/// Silent for the first second; then a line that is redrawn on a terminal, or now and then a new one.
#[derive(Debug)]
pub(crate) struct Progress {
    /// Bytes to read, if known.
    total: Option<u64>,
    interval: Duration,
    next: Instant,
    is_terminal: bool,
    is_drawn: bool,
}

impl Progress {
    pub(crate) fn new(total: Option<u64>) -> Self {
        let is_terminal = stderr().is_terminal();
        Self {
            total: total.filter(|&total| total > 0),
            interval: if is_terminal {
                Duration::from_millis(200)
            } else {
                Duration::from_secs(5)
            },
            next: Instant::now() + Duration::from_secs(1),
            is_terminal,
            is_drawn: false,
        }
    }

    /// Tells how far the reading has come, if it is time to.
    pub(crate) fn update(&mut self, bytes: u64, lines: u64) {
        let now = Instant::now();
        if now < self.next {
            return;
        }
        self.next = now + self.interval;
        let share = self.total.map_or_else(String::new, |total| {
            // The file may have grown since its size was read.
            format!(" ({})", percent(bytes.min(total), total))
        });
        let text = format!("{} MiB, {lines} lines{share}", bytes >> 20);
        if self.is_terminal {
            let _ = write!(stderr(), "\r\x1b[K{text}");
            self.is_drawn = true;
        } else {
            let _ = writeln!(stderr(), "{text}");
        }
    }

    /// Writes a line of its own. That stderr is closed is no reason to stop.
    pub(crate) fn message(&mut self, text: &str) {
        self.clear();
        let _ = writeln!(stderr(), "{text}");
    }

    fn clear(&mut self) {
        if self.is_drawn {
            let _ = write!(stderr(), "\r\x1b[K");
            self.is_drawn = false;
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}
