//! What the fuzz targets do: one function each, from bytes to a panic if something is wrong.
//!
//! | target | is tried | against |
//! |---|---|---|
//! | [`machines`] | one limit, any requests, readings both ways | a bucket in exact fractions, a list of instants, a count per window |
//! | [`changing_limits`] | one key under limits that differ | the bounds of each and of all together, counted |
//! | [`stores`] | `DashStore` and `TableStore` with evictions | a map of machines |
//! | [`values`] | stored values and keys, arbitrary bytes | what was written comes back; nothing else is taken for a state |
//! | [`text`] | limits as text | what is written comes back; errors mark a part of the text |
//! | [`log_lines`] | the log reader of the example `replay` | parts lie in the line |
//! | [`headers`] | header values | the grammar of structured fields |
#![forbid(unsafe_code)]

mod bucket;
mod changing_limits;
mod headers;
mod input;
mod log_lines;
mod machines;
mod stores;
mod text;
mod values;

pub use crate::bucket::{Expected, expected};
pub use crate::changing_limits::changing_limits;
pub use crate::headers::headers;
pub use crate::log_lines::log_lines;
pub use crate::machines::machines;
pub use crate::stores::stores;
pub use crate::text::text;
pub use crate::values::values;

/// A target and its name.
pub type Target = (&'static str, fn(&[u8]));

/// All of them.
pub const TARGETS: [Target; 7] = [
    ("machines", machines),
    ("changing_limits", changing_limits),
    ("stores", stores),
    ("values", values),
    ("text", text),
    ("log_lines", log_lines),
    ("headers", headers),
];
