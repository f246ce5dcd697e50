//! memcached, as an operator has it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::time::Duration;

use ratekeeper::conformance::{Backend, Fault, Stored};
use ratekeeper::store::{KeyKind, Namespace};
use ratekeeper_memcached::MemcachedCas;
use ratekeeper_test_servers::{Proxy, Server, Trouble};

pub(crate) struct Memcached {
    server: Server,
    direct: Mutex<BufReader<TcpStream>>,
    pub(crate) proxy: Proxy,
}

impl Memcached {
    pub(crate) fn new(server: Server) -> Self {
        let stream = TcpStream::connect(server.address()).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        Self {
            direct: Mutex::new(BufReader::new(stream)),
            proxy: Proxy::new(server.address()),
            server,
        }
    }

    fn cas(&self, space: &str) -> MemcachedCas {
        let namespace = Namespace::new(space).unwrap();
        MemcachedCas::connect(self.server.address(), namespace).unwrap()
    }

    /// The answer's words, and the value, if there is one.
    fn ask(&self, request: &[u8]) -> (Vec<String>, Vec<u8>) {
        let mut direct = self.direct.lock().unwrap();
        direct.get_mut().write_all(request).unwrap();
        let mut line = String::new();
        direct.read_line(&mut line).unwrap();
        let words: Vec<_> = line.split_whitespace().map(str::to_owned).collect();
        let mut value = Vec::new();
        if words[0] == "VA" {
            let size = words[1].parse::<usize>().unwrap();
            value.resize(size + 2, 0);
            direct.read_exact(&mut value).unwrap();
            value.truncate(size);
        }
        (words, value)
    }
}

impl Backend for Memcached {
    fn read(&self, space: &str, key: &str, kind: &KeyKind) -> Option<Stored> {
        let name = self.cas(space).name_of_kind(key, kind);
        let request = format!("mg {name} t c v u\r\n");
        let (words, bytes) = self.ask(request.as_bytes());
        let flag = |letter| words[1..].iter().find_map(|word| word.strip_prefix(letter));
        match words[0].as_str() {
            "EN" => None,
            "VA" => Some(Stored {
                bytes,
                // -1 is for ever.
                time_to_live: flag('t').unwrap().parse().ok().map(Duration::from_secs),
                version: Some(flag('c').unwrap().parse().unwrap()),
            }),
            _ => panic!("{words:?}"),
        }
    }

    fn write(&self, space: &str, key: &str, value: &[u8]) -> bool {
        let name = self.cas(space).name_of(key);
        let mut request = format!("ms {name} {} T600\r\n", value.len()).into_bytes();
        request.extend(value);
        request.extend(b"\r\n");
        assert_eq!(self.ask(&request).0, ["HD"]);
        true
    }

    fn lose(&self, _space: &str) -> bool {
        assert_eq!(self.ask(b"flush_all\r\n").0, ["OK"]);
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
        true
    }

    fn heal(&self) {
        self.proxy.set(None);
    }
}
