//! What happens when Redis does not do as it should: each case with the right answer.
#![allow(clippy::disallowed_methods, reason = "servers fail in real time")]

mod batches;
mod eviction;
mod outage;
mod permissions;
mod promotion;
mod support;
mod values;
