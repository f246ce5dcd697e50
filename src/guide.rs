//! Pages that are not about one type.

/// Which store? [`DashStore`](crate::DashStore) and [`TableStore`](crate::TableStore) answer the same calls through
/// [`KeyedLimiter`](crate::KeyedLimiter); what differs is what they cost and what they remember.
///
#[doc = include_str!("guide/stores.md")]
pub mod stores {}
