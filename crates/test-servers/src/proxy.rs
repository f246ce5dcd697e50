//! What stands between a client and its server, and can break.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::port;

/// Passes bytes on between clients and a server, until told otherwise: for troubles that the server itself knows nothing of.
///
/// ```
/// use ratekeeper_test_servers::{Options, Proxy, Server, Trouble};
///
/// let server = Server::redis(Options::new());
/// let proxy = Proxy::new(server.address());
/// // Clients connect to `proxy.address()`.
/// proxy.set(Some(Trouble::LoseAnswers));
/// proxy.set(None);
/// ```
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Connections end, and nobody listens for new ones.
    Refuse,
    /// Requests reach the server, and connections end before its answers arrive.
    LoseAnswers,
    /// Requests reach the server, and its answers never arrive.
    Hang,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    trouble: Option<Trouble>,
    is_listening: bool,
    open: Vec<TcpStream>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns when the state is as wanted.
    fn wait_until(&self, wanted: impl Fn(&State) -> bool) -> MutexGuard<'_, State> {
        let waited = self
            .changed
            .wait_while(self.state(), |state| !wanted(state));
        waited.unwrap_or_else(PoisonError::into_inner)
    }
}

impl Proxy {
    /// A proxy before the server at this address. Its threads end with the process.
    ///
    /// # Panics
    /// If there is no port for it.
    #[must_use]
    pub fn new(server: String) -> Self {
        // Not a port that the system gives to clients: while nobody listens, one that connects again and again could be given
        // that very port, connect to itself, and keep it.
        let listener = (0..100)
            .filter_map(|_| TcpListener::bind(("127.0.0.1", port::free()?)).ok())
            .next()
            .expect("no port on 127.0.0.1");
        let address = listener
            .local_addr()
            .expect("a bound socket has an address");
        let shared = Arc::<Shared>::default();
        shared.state().is_listening = true;
        let accepting = Arc::clone(&shared);
        thread::spawn(move || accept(&accepting, listener, address, &server));
        Self { address, shared }
    }

    /// Where clients connect, `127.0.0.1:PORT`.
    #[must_use]
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// Breaks connections from now on, or makes them whole again. Those that there are end, unless they are to break later.
    pub fn set(&self, trouble: Option<Trouble>) {
        self.shared.state().trouble = trouble;
        self.shared.changed.notify_all();
        let refuses = trouble == Some(Trouble::Refuse);
        if refuses {
            // Wakes the listener, which then goes away: before the connections end, so that they cannot be made anew.
            drop(TcpStream::connect(self.address));
        }
        let mut state = self
            .shared
            .wait_until(|state| state.is_listening != refuses);
        if refuses || trouble.is_none() {
            for stream in state.open.drain(..) {
                let _ = stream.shutdown(Shutdown::Both);
            }
        }
    }
}

fn accept(shared: &Arc<Shared>, listener: TcpListener, address: SocketAddr, server: &str) {
    let mut listener = Some(listener);
    loop {
        let client = listener.as_ref().map(TcpListener::accept);
        if shared.state().trouble == Some(Trouble::Refuse) {
            // All at once: also connections that wait to be accepted, and the one that just was.
            drop(client);
            listener = None;
            shared.state().is_listening = false;
            shared.changed.notify_all();
            drop(shared.wait_until(|state| state.trouble != Some(Trouble::Refuse)));
            while listener.is_none() {
                listener = TcpListener::bind(address).ok();
                thread::sleep(Duration::from_millis(1));
            }
            shared.state().is_listening = true;
            shared.changed.notify_all();
        } else if let (Some(Ok((client, _))), Ok(server)) = (client, TcpStream::connect(server)) {
            // A connection that cannot be doubled is dropped, and so closed.
            let _ = join(shared, &client, &server);
        }
    }
}

fn join(shared: &Arc<Shared>, client: &TcpStream, server: &TcpStream) -> std::io::Result<()> {
    // Small requests must not wait for the acknowledgement of others.
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (from_client, to_server) = (client.try_clone()?, server.try_clone()?);
    let (from_server, to_client) = (server.try_clone()?, client.try_clone()?);
    shared
        .state()
        .open
        .extend([client.try_clone()?, server.try_clone()?]);
    thread::spawn(move || pass_on(from_client, to_server, || Pass::On));
    let shared = Arc::clone(shared);
    thread::spawn(move || {
        pass_on(from_server, to_client, || match shared.state().trouble {
            None => Pass::On,
            Some(Trouble::Hang) => Pass::Nothing,
            Some(Trouble::Refuse | Trouble::LoseAnswers) => Pass::End,
        });
    });
    Ok(())
}

/// What to do with bytes that have arrived.
enum Pass {
    On,
    Nothing,
    End,
}

fn pass_on(mut from: TcpStream, mut to: TcpStream, what: impl Fn() -> Pass) {
    let mut buffer = [0; 16 * 1024];
    while let Ok(len @ 1..) = from.read(&mut buffer) {
        match what() {
            Pass::On if to.write_all(&buffer[..len]).is_ok() => {}
            Pass::Nothing => {}
            _ => break,
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
