//! Throw-away Redis, Valkey, memcached and PostgreSQL servers for tests, benches and examples.
//!
//! `.ci/servers`, in the root of the repository, installs them. Each [`Server`] listens on a port of its own on
//! 127.0.0.1, keeps its files in a temporary folder and ends when it is dropped. It also ends when the process that
//! started it ends in any other way: by a signal, by `abort`, or with the server in a `static`
//! ([`Server::shared`]).
//!
//! A server that does not start is a panic, never a skipped test; the message says why, with the end of the
//! server's log.
//!
//! ```
//! use ratekeeper_test_servers::{Kind, Options, Server};
//!
//! let mut server = Server::start(Kind::Redis, Options::new().args(["--maxmemory", "4mb"]));
//! assert_eq!(server.command(&["SET", "key", "value"]).unwrap(), "OK");
//!
//! server.pause(); // accepts connections and never answers
//! server.resume();
//!
//! server.kill(); // refuses connections
//! server.restart(); // at the same address; nothing was persisted
//! assert_eq!(server.command(&["EXISTS", "key"]).unwrap(), "0");
//! ```
#![allow(
    clippy::disallowed_methods,
    reason = "real servers take real time: waiting for them is this crate's purpose"
)]

mod cluster;
mod kind;
mod memcached;
mod options;
mod port;
mod postgres;
mod process;
mod process_tree;
mod proxy;
mod redis;
mod server;
mod start_error;
mod wait;

pub use cluster::Cluster;
pub use kind::Kind;
pub use options::Options;
pub use proxy::{Proxy, Trouble};
pub use server::Server;
pub use start_error::StartError;
