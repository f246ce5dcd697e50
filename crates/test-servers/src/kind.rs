//! The kinds of servers.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::start_error::StartError;

/// Which server to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Debian's Redis: 7.0 in Debian 12.
    Redis,
    /// Redis 6.2, the oldest with what the stores need.
    Redis62,
    /// Valkey 9.
    Valkey,
    /// memcached.
    Memcached,
    /// PostgreSQL.
    Postgres,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 5] = [
        Self::Redis,
        Self::Redis62,
        Self::Valkey,
        Self::Memcached,
        Self::Postgres,
    ];

    /// The kinds that speak Redis's protocol.
    pub const REDIS_LIKE: [Self; 3] = [Self::Redis, Self::Redis62, Self::Valkey];

    /// Whether it speaks Redis's protocol.
    #[must_use]
    pub fn is_redis_like(self) -> bool {
        Self::REDIS_LIKE.contains(&self)
    }

    /// The server's program.
    pub(crate) fn program(self) -> Result<PathBuf, StartError> {
        match self {
            Self::Redis => on_path("redis-server"),
            Self::Redis62 => unpacked("redis62-server"),
            Self::Valkey => unpacked("valkey-server"),
            Self::Memcached => on_path("memcached"),
            Self::Postgres => crate::postgres::program("postgres"),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Redis => "Redis",
            Self::Redis62 => "Redis 6.2",
            Self::Valkey => "Valkey",
            Self::Memcached => "memcached",
            Self::Postgres => "PostgreSQL",
        })
    }
}

fn on_path(name: &str) -> Result<PathBuf, StartError> {
    std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
        .map(|folder| folder.join(name))
        .find(|program| program.is_file())
        .ok_or_else(|| StartError::missing(name))
}

/// What `.ci/servers` unpacks: in the repository, whatever target folder cargo was told to use.
fn unpacked(name: &str) -> Result<PathBuf, StartError> {
    let servers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/servers");
    let program = servers.join(name);
    if program.is_file() {
        Ok(program)
    } else {
        Err(StartError::missing(program.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_says_how_to_get_it() {
        for error in [on_path("no-such-server"), unpacked("no-such-server")] {
            let message = error.unwrap_err().to_string();
            assert!(
                message.contains("no-such-server is missing: run .ci/servers"),
                "{message}"
            );
        }
    }
}
