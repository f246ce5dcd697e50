//! The log reader of the example `replay`.
#![allow(dead_code)] // the example uses the rest

use std::io::Cursor;

#[path = "../../examples/replay/line.rs"]
mod line;
#[path = "../../examples/replay/lines.rs"]
mod lines;
#[path = "../../examples/replay/time.rs"]
mod time;

use line::Line;
use lines::{Lines, Text};

/// Reads a whole log.
pub fn log_lines(data: &[u8]) {
    let mut log = Lines::new(Cursor::new(data));
    let mut times = time::TimeParser::default();
    let mut longest = 0;
    while let Ok(Some(text)) = log.next() {
        let (Text::Whole(line) | Text::TooLong(line)) = text;
        longest = longest.max(line.len());
        if let Some(parsed) = Line::parse(line) {
            let inside = |part: &[u8]| {
                part.is_empty()
                    || part == b"-"
                    || line.windows(part.len()).any(|window| window == part)
            };
            assert!(inside(parsed.client) && !parsed.client.is_empty());
            assert!(inside(parsed.time) && inside(parsed.path()));
            let _ = times.parse(parsed.time);
        }
    }
    assert_eq!(log.bytes(), data.len() as u64, "all of it was read");
    // The reader's cap, and the byte by which it knows that there is more.
    assert!(longest <= 64 * 1024 + 1, "in bounded memory");
}
