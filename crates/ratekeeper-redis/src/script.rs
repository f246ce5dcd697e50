//! Lua scripts and how they are called.

use redis::Cmd;

/// A Lua script with one key, known to servers by its hash.
///
/// A downstream algorithm brings its own, made with [`Script::after_prologue`] and kept in a `LazyLock`.
#[derive(Debug)]
pub struct Script {
    code: String,
    hash: String,
}

/// What every script begins with: the instant of the decision, and arithmetic on instants.
const PROLOGUE: &str = include_str!("scripts/prologue.lua");

impl Script {
    /// The prologue and then `parts`. The prologue defines
    ///
    /// * `call`, `pack`, `read`: `redis.call`, `struct.pack`, `struct.unpack`;
    /// * `now`: the instant of the decision, eight bytes; `now_high`, `now_low`: its halves of 32 bits;
    /// * `plus(high, low, span)`: the instant `span` nanoseconds later, as two halves.
    ///
    /// The script gets the key in `KEYS[1]` and the call's arguments in `ARGV[2]`.
    pub fn after_prologue(parts: &[&str]) -> Self {
        let code = [&[PROLOGUE], parts].concat().concat();
        let hash = redis::Script::new(&code).get_hash().to_owned();
        Self { code, hash }
    }

    /// The SHA-1 of the text, in hexadecimal digits: what `EVALSHA` takes.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// The text.
    pub fn code(&self) -> &str {
        &self.code
    }

    /// The call by hash, which a server that has lost its script cache answers with `NOSCRIPT`.
    pub(crate) fn by_hash(&self, key: &[u8], now: &[u8], arguments: &[Vec<u8>]) -> Cmd {
        Self::command("EVALSHA", &self.hash, key, now, arguments)
    }

    /// The call with the whole text, which the server then knows.
    pub(crate) fn by_text(&self, key: &[u8], now: &[u8], arguments: &[Vec<u8>]) -> Cmd {
        Self::command("EVAL", &self.code, key, now, arguments)
    }

    fn command(name: &str, script: &str, key: &[u8], now: &[u8], arguments: &[Vec<u8>]) -> Cmd {
        let mut command = redis::cmd(name);
        command.arg(script).arg(1).arg(key).arg(now);
        for argument in arguments {
            command.arg(argument.as_slice());
        }
        command
    }
}
