//! What stands between a store and its server, and can break.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use ratekeeper::conformance::Fault;

/// Hands bytes on in both directions, as long as it is whole. Its threads end with the process.
pub(crate) struct Proxy {
    address: SocketAddr,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Default)]
struct Shared {
    fault: Option<Fault>,
    streams: Vec<TcpStream>,
}

impl Shared {
    fn hang_up(&mut self) {
        for stream in self.streams.drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Proxy {
    pub(crate) fn before(server: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = Self {
            address: listener.local_addr().unwrap(),
            shared: Arc::default(),
        };
        let shared = Arc::clone(&proxy.shared);
        thread::spawn(move || {
            for client in listener.incoming() {
                let client = client.unwrap();
                let mut now = shared.lock().unwrap();
                if now.fault != Some(Fault::Refuse) {
                    let server = TcpStream::connect(&server).unwrap();
                    now.streams
                        .extend([client.try_clone().unwrap(), server.try_clone().unwrap()]);
                    drop(now);
                    let back = (server.try_clone().unwrap(), client.try_clone().unwrap());
                    thread::spawn(move || hand_on(client, server, || Pass::On));
                    let shared = Arc::clone(&shared);
                    thread::spawn(move || hand_on(back.0, back.1, || answers(&shared)));
                }
            }
        });
        proxy
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Breaks it from now on.
    pub(crate) fn break_with(&self, fault: Fault) {
        let mut shared = self.shared.lock().unwrap();
        shared.fault = Some(fault);
        if fault == Fault::Refuse {
            shared.hang_up();
        }
    }

    /// Makes it whole; what was under way is lost.
    pub(crate) fn heal(&self) {
        let mut shared = self.shared.lock().unwrap();
        shared.fault = None;
        shared.hang_up();
    }
}

/// What becomes of bytes.
enum Pass {
    On,
    Nowhere,
    Broken,
}

fn answers(shared: &Mutex<Shared>) -> Pass {
    match shared.lock().unwrap().fault {
        None => Pass::On,
        Some(Fault::Hang) => Pass::Nowhere,
        Some(_) => Pass::Broken,
    }
}

fn hand_on(mut from: TcpStream, mut to: TcpStream, pass: impl Fn() -> Pass) {
    let mut buffer = [0; 8192];
    while let Ok(len @ 1..) = from.read(&mut buffer) {
        match pass() {
            Pass::On if to.write_all(&buffer[..len]).is_ok() => {}
            Pass::Nowhere => {}
            Pass::On | Pass::Broken => break,
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
