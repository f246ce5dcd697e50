//! Against a real server, which most of these tests share; each has a database of its own.
#![allow(clippy::disallowed_methods, reason = "real servers take real time")]

mod batches;
mod clients;
mod common;
mod concurrency;
mod differential;
mod expiry;
mod installation;
mod limits;
mod model;
mod own_algorithm;
mod permissions;
mod upgrade;
mod values;
mod versions;
mod writes;
