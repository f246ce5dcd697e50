//! Ports to listen on.

use std::hash::{BuildHasher, RandomState};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU16, Ordering};

/// Below the ports that systems hand to outgoing connections (Linux: from 32768). One of those would be a trap:
/// while the server is down, a client that keeps trying may be given the very port, and take itself for the server.
const FIRST: u16 = 12_000;
const COUNT: u16 = 10_000;

/// How far above its own port a cluster node's bus listens, unless told otherwise.
const BUS_OFFSET: u16 = 10_000;

/// A port on 127.0.0.1 that nobody listens on, nor on its bus port. Each call in a process gives another one;
/// somebody else may take it before its server does.
pub(crate) fn free() -> Option<u16> {
    static NEXT: LazyLock<AtomicU16> = LazyLock::new(|| {
        let random = RandomState::new().hash_one(std::process::id());
        AtomicU16::new(u16::try_from(random % u64::from(COUNT)).unwrap_or(0))
    });
    (0..COUNT)
        .map(|_| FIRST + NEXT.fetch_add(1, Ordering::Relaxed) % COUNT)
        .find(|&port| is_free(port) && is_free(port + BUS_OFFSET))
}

fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_in_use_is_not_free() {
        let port = free().unwrap();
        assert!((FIRST..FIRST + COUNT).contains(&port));
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
        assert!(!is_free(port));
        drop(taken);
        assert!(is_free(port));
    }

    #[test]
    fn no_port_is_given_twice() {
        let mut ports: Vec<_> = (0..100).map(|_| free().unwrap()).collect();
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), 100);
    }
}
