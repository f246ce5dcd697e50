//! The store against real servers.
#![allow(
    clippy::disallowed_methods,
    reason = "servers and deadlines live in real time"
)]

mod batches;
mod changes;
mod decisions;
mod dropped_futures;
mod eviction;
mod expiry;
mod keys;
mod misunderstandings;
mod outages;
mod skew;
mod support;
mod turns;
mod values;
mod versions;
