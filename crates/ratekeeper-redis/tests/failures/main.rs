//! What happens when Redis does not do as it should: each case with the right answer.

mod eviction;
mod outage;
mod permissions;
mod promotion;
mod support;
mod values;
