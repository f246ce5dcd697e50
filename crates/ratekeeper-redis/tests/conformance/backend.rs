//! The server, as an operator has it.

use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use ratekeeper::conformance::{Backend, Fault, Stored};
use ratekeeper::store::{KeyKind, Namespace};
use ratekeeper_test_servers::{Proxy, Server, Trouble};
use redis::{Client, Connection, cmd};

pub(crate) struct Redis {
    direct: Mutex<Connection>,
    pub(crate) proxy: Proxy,
    _server: Server,
}

impl Redis {
    pub(crate) fn new(server: Server) -> Self {
        let client = Client::open(format!("redis://{}/", server.address())).unwrap();
        Self {
            direct: Mutex::new(client.get_connection().unwrap()),
            proxy: Proxy::new(server.address()),
            _server: server,
        }
    }

    fn direct(&self) -> MutexGuard<'_, Connection> {
        self.direct
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// How many changes the server has seen, to any key.
    fn changes(&self) -> u64 {
        let info: String = cmd("INFO")
            .arg("persistence")
            .query(&mut *self.direct())
            .unwrap();
        let line = info
            .lines()
            .find_map(|line| line.strip_prefix("rdb_changes_since_last_save:"));
        line.unwrap().trim().parse().unwrap()
    }
}

fn name(space: &str, key: &str) -> Vec<u8> {
    Namespace::new(space).unwrap().key(key)
}

fn name_of_kind(space: &str, key: &str, kind: &KeyKind) -> Vec<u8> {
    Namespace::new(space).unwrap().key_of_kind(key, kind)
}

impl Backend for Redis {
    fn read(&self, space: &str, key: &str, kind: &KeyKind) -> Option<Stored> {
        let name = name_of_kind(space, key, kind);
        let version = self.changes();
        let mut direct = self.direct();
        let kind: String = cmd("TYPE").arg(&name).query(&mut *direct).unwrap();
        let read = if kind == "string" { "GET" } else { "DUMP" };
        let bytes: Option<Vec<u8>> = cmd(read).arg(&name).query(&mut *direct).unwrap();
        let left_ms: i64 = cmd("PTTL").arg(&name).query(&mut *direct).unwrap();
        Some(Stored {
            bytes: bytes?,
            time_to_live: u64::try_from(left_ms).ok().map(Duration::from_millis),
            version: Some(version),
        })
    }

    fn write(&self, space: &str, key: &str, value: &[u8]) -> bool {
        let mut command = cmd("SET");
        command.arg(name(space, key)).arg(value).arg("EX").arg(600);
        command.exec(&mut *self.direct()).unwrap();
        true
    }

    fn write_other_type(&self, space: &str, key: &str) -> bool {
        let mut direct = self.direct();
        let name = name(space, key);
        cmd("DEL").arg(&name).exec(&mut *direct).unwrap();
        cmd("RPUSH").arg(&name).arg("a").exec(&mut *direct).unwrap();
        cmd("EXPIRE")
            .arg(&name)
            .arg(600)
            .exec(&mut *direct)
            .unwrap();
        true
    }

    fn lose(&self, _space: &str) -> bool {
        let mut direct = self.direct();
        cmd("FLUSHALL").exec(&mut *direct).unwrap();
        cmd("SCRIPT").arg("FLUSH").exec(&mut *direct).unwrap();
        true
    }

    fn pass(&self, time: Duration) -> bool {
        std::thread::sleep(time);
        true
    }

    fn break_with(&self, fault: Fault) -> bool {
        let trouble = match fault {
            Fault::Refuse => Trouble::Refuse,
            Fault::LoseAnswer => Trouble::LoseAnswers,
            Fault::Hang => Trouble::Hang,
            _ => return false,
        };
        self.proxy.set(Some(trouble));
        if fault == Fault::Refuse {
            // Until clients have noticed: a request sent into a connection that has just ended is `Unknown`, rightly.
            std::thread::sleep(Duration::from_millis(100));
        }
        true
    }

    fn heal(&self) {
        self.proxy.set(None);
    }
}
