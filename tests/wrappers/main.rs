//! Stores around stores: each passes on what is not its own business, keeps to its bound, and says when it made an answer up.

mod batches;
mod breaker;
mod changes;
mod corrupt;
mod deadline;
mod deny_cache;
mod deny_cache_ends;
mod deny_cache_twin;
mod fail;
mod fallback;
mod forwarding;
#[cfg(feature = "remote")]
mod hashed_keys;
mod leased;
mod leased_bound;
mod leased_under_way;
mod nesting;
mod sharded;
mod support;
mod threads;
mod two_limits;
mod void_receipts;
