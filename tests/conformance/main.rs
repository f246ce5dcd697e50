//! The conformance kit on our stores, and on stores that are broken on purpose.

mod broken;
mod cas;
mod flaws;
mod kit;
mod memory;
mod scripted;
mod server;
