//! Pages that are not about one type.

/// Which store? [`DashStore`](crate::DashStore) and [`TableStore`](crate::TableStore) answer the same calls through
/// [`KeyedLimiter`](crate::KeyedLimiter); what differs is what they cost and what they remember.
///
#[doc = include_str!("guide/stores.md")]
pub mod stores {}

/// Limits shared between servers: which backend, what to wrap around it, and what that costs.
///
#[cfg(feature = "alloc")]
#[doc = include_str!("guide/shared.md")]
pub mod shared {}

/// Limits that change while keys owe: at run time, with a deploy, or for one customer; which way to use when, and what each costs.
///
#[doc = include_str!("guide/changing_limits.md")]
pub mod changing_limits {}
