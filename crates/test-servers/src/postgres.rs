//! PostgreSQL: how it is started, whether it answers, and databases in it.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::options::Options;
use crate::process::Account;
use crate::server;
use crate::start_error::StartError;

/// The user of the operating system, and PostgreSQL's own, who owns everything.
const USER: &str = "postgres";

/// Debian keeps each major version's programs in a folder of its own, outside of the PATH: the newest.
pub(crate) fn program(name: &str) -> Result<PathBuf, StartError> {
    fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .filter_map(|version| version.ok()?.file_name().to_str()?.parse::<u32>().ok())
        .map(|version| (version, format!("/usr/lib/postgresql/{version}/bin/{name}")))
        .filter(|(_, program)| Path::new(program).is_file())
        .max()
        .map(|(_, program)| program.into())
        .ok_or_else(|| StartError::missing(format_args!("PostgreSQL's {name}")))
}

/// Whom to run it as: it refuses to be root.
pub(crate) fn account() -> Result<Option<Account>, StartError> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let accounts = fs::read_to_string("/etc/passwd").unwrap_or_default();
    accounts
        .lines()
        .map(|line| line.split(':').collect::<Vec<_>>())
        .find(|fields| fields.first() == Some(&USER))
        .and_then(|fields| {
            Some(Account {
                uid: fields.get(2)?.parse().ok()?,
                gid: fields.get(3)?.parse().ok()?,
            })
        })
        .map(Some)
        .ok_or_else(|| StartError::missing(format_args!("PostgreSQL's user {USER}")))
}

/// Makes the data folder, about a second's work.
pub(crate) fn initialize(folder: &Path) -> Result<(), StartError> {
    let mut command = Command::new(program("initdb")?);
    command
        .arg("--pgdata")
        .arg(data(folder))
        .args(["--username", USER, "--auth", "trust", "--no-sync"])
        .args(["--encoding", "UTF8", "--locale", "C"])
        .current_dir(folder);
    if let Some(account) = account()? {
        chown(folder, Some(account.uid), Some(account.gid))
            .map_err(|error| StartError::new(format!("giving {folder:?} to {USER}: {error}")))?;
        account.apply(&mut command);
    }
    run(&mut command)
        .map(drop)
        .map_err(|error| StartError::new(format!("PostgreSQL's initdb: {error}")))
}

pub(crate) fn arguments(port: u16, folder: &Path, options: &Options) -> Vec<String> {
    let mut arguments = vec!["-D".into(), data(folder).display().to_string()];
    arguments.extend(["-h".into(), "127.0.0.1".into()]);
    arguments.extend(["-p".into(), port.to_string()]);
    arguments.extend(["-k".into(), folder.display().to_string()]);
    // No fsync. And no files in /dev/shm, which a killed server would leave there.
    arguments.extend(["-F", "-c", "dynamic_shared_memory_type=mmap"].map(Into::into));
    arguments.extend_from_slice(options.arguments());
    arguments
}

/// Whether the process `pid`, and not somebody else, answers on the port.
pub(crate) fn answers(port: u16, pid: u32, folder: &Path) -> bool {
    let status = fs::read_to_string(data(folder).join("postmaster.pid")).unwrap_or_default();
    let mut lines = status.lines();
    lines.next() == Some(&pid.to_string())
        && lines.any(|line| line.trim_end() == "ready")
        && asked_for_encryption(port).is_ok()
}

/// The one question that needs no user: is there TLS? `S` and `N` both say that the server listens.
fn asked_for_encryption(port: u16) -> io::Result<()> {
    let mut stream = server::connect(port)?;
    stream.write_all(&[0, 0, 0, 8, 4, 210, 22, 47])?;
    stream.read_exact(&mut [0])
}

/// Removes the System V shared memory of a server that was killed, which the system would keep for ever.
pub(crate) fn remove_shared_memory(folder: &Path) {
    let status = fs::read_to_string(data(folder).join("postmaster.pid")).unwrap_or_default();
    // Its key and its id.
    if let Some(id) = status
        .lines()
        .nth(6)
        .and_then(|line| line.split_whitespace().nth(1))
    {
        let _ = run(Command::new("ipcrm").args(["-m", id]));
    }
}

/// Makes a database and returns its address.
pub(crate) fn create_database(port: u16, name: &str) -> io::Result<String> {
    // `template0` has no visitors, which would make the copy fail.
    let mut command = client("createdb", port)?;
    run(command.args(["--template", "template0", "--"]).arg(name))?;
    Ok(format!("postgres://{USER}@127.0.0.1:{port}/{name}"))
}

/// Runs statements and returns the rows: one a line, columns parted by `|`.
pub(crate) fn query(port: u16, database: &str, statements: &str) -> io::Result<String> {
    let mut command = client("psql", port)?;
    command.args(["--no-psqlrc", "--quiet", "--no-align", "--tuples-only"]);
    command.args([
        "--set",
        "ON_ERROR_STOP=1",
        "--dbname",
        database,
        "--command",
        statements,
    ]);
    Ok(run(&mut command)?.trim_end().to_owned())
}

fn client(name: &str, port: u16) -> io::Result<Command> {
    let mut command = Command::new(program(name).map_err(io::Error::other)?);
    command.args([
        "--host",
        "127.0.0.1",
        "--port",
        &port.to_string(),
        "--username",
        USER,
    ]);
    command.env("PGCONNECT_TIMEOUT", "10");
    Ok(command)
}

/// Runs a command to its end and returns what it printed.
fn run(command: &mut Command) -> io::Result<String> {
    let output = command.env_remove("PGOPTIONS").output()?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    let name = Path::new(command.get_program())
        .file_name()
        .unwrap_or(OsStr::new("?"));
    Err(io::Error::other(format!(
        "{}: {}: {}",
        name.display(),
        output.status,
        complaint.trim_end()
    )))
}

fn data(folder: &Path) -> PathBuf {
    folder.join("data")
}
