//! Stores of fixed size: with room for all they are a plain map; without, they follow their overflow policy and
//! forgive nobody.

mod absent;
mod bound;
mod edges;
mod kinds;
mod limits_that_differ;
mod promises;
mod support;
mod threads;
mod twin;
