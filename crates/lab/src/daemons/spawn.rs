//! Starts daemons in the namespaces of a lab, and finds those that run.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::daemons::patience::{Patience, worked};
use crate::daemons::processes::{arguments_of_root, processes};
use crate::error::StartError;
use crate::files::tail;
use crate::life::state::INFRASTRUCTURE;
use crate::node::enter::{enter, on_thread};
use crate::pause::pause;
use crate::{Cancel, Error};

/// A daemon that was started.
pub(crate) struct Started {
    pub(crate) daemon: String,
    pub(crate) log: PathBuf,
    pub(crate) process: Child,
}

impl Started {
    /// Returns an error if the daemon has exited.
    pub(crate) fn check(&mut self) -> Result<(), Error> {
        match self.process.try_wait() {
            Ok(None) => Ok(()),
            _ => Err(self.failed("exited")),
        }
    }

    pub(crate) fn failed(&self, what: &str) -> Error {
        let (daemon, what) = (self.daemon.clone(), what.into());
        Error::Start(StartError::Daemon { daemon, what, log: tail(&self.log, 5) })
    }
}

/// The flag that passes the controller and the nodes' agents their configurations.
pub(crate) const CONFIG: &str = "--config";

/// PIDs of the lab's processes that were started with this flag and path.
pub(crate) fn running(directory: &Path, flag: &str, path: &Path) -> Vec<i32> {
    processes(directory).into_iter().filter(|&pid| has_argument(pid, flag, path)).collect()
}

/// True if a daemon with this configuration is running, but does not listen on its socket.
pub(crate) fn runs_deaf(directory: &Path, config: &Path, socket: &Path) -> bool {
    is_deaf(socket) && !running(directory, CONFIG, config).is_empty()
}

/// PIDs of the lab's processes that were started with this argument.
pub(crate) fn with_argument(directory: &Path, argument: &OsStr) -> Vec<i32> {
    let has = |pid: &i32| {
        let arguments = arguments_of(*pid);
        arguments.split(|byte| *byte == 0).any(|one| one == argument.as_bytes())
    };
    processes(directory).into_iter().filter(has).collect()
}

/// True if no process listens on a socket, or it does not exist.
pub fn is_deaf(socket: &Path) -> bool {
    let found = std::os::unix::net::UnixStream::connect(socket).map_err(|error| error.kind());
    matches!(found, Err(ErrorKind::NotFound | ErrorKind::ConnectionRefused))
}

fn arguments_of(pid: i32) -> Vec<u8> {
    arguments_of_root(Path::new(&format!("/proc/{pid}"))).unwrap_or_default()
}

/// True if a process was started with this flag and path.
fn has_argument(pid: i32, flag: &str, path: &Path) -> bool {
    let arguments = arguments_of(pid);
    let arguments: Vec<&[u8]> = arguments.split(|byte| *byte == 0).collect();
    arguments.windows(2).any(|pair| pair == [flag.as_bytes(), path.as_os_str().as_bytes()])
}

/// Starts a daemon that serves the whole lab, and waits until it answers. Its configuration, log
/// and socket are in the lab's directory and named after the daemon. `input`: its standard input.
pub(crate) fn run(
    directory: &Path,
    name: &str,
    program: &Path,
    input: Stdio,
    cancel: &Cancel,
) -> Result<(), Error> {
    let file = |end: &str| directory.join(format!("{name}.{end}"));
    let (config, log, socket) = (file("json"), file("log"), file("sock"));
    let arguments = [name.as_ref(), CONFIG.as_ref(), config.as_os_str()];
    let process = spawn(directory, INFRASTRUCTURE, &log, program, &arguments, input)?;
    let mut started = Started { daemon: format!("the {name}"), log, process };
    wait_for_socket(&socket, &mut started, cancel)
}

/// Starts a daemon in its namespace. The forking thread has entered the namespace already, so the
/// child is found there from its first moment on. The daemon ignores the terminal's signals.
/// `input`: its standard input.
pub(crate) fn spawn(
    directory: &Path,
    node: &str,
    log: &Path,
    program: &Path,
    arguments: &[&OsStr],
    input: Stdio,
) -> Result<Child, Error> {
    let mut command = Command::new(program);
    command.args(arguments);
    spawn_command(directory, node, log, command, input)
}

/// Starts a daemon like [`spawn`], with a command's environment.
pub(crate) fn spawn_command(
    directory: &Path,
    node: &str,
    log: &Path,
    mut command: Command,
    input: Stdio,
) -> Result<Child, Error> {
    use std::os::unix::process::CommandExt;
    let output = private::append(log).map_err(Error::file("open", log))?;
    let errors = output.try_clone().map_err(Error::file("open", log))?;
    command.stdin(input).stdout(output).stderr(errors).process_group(0).current_dir("/");
    on_thread(|| {
        enter(directory, node, false)?;
        let first = command.get_args().next().unwrap_or_default();
        let name = format!("{} {}", command.get_program().display(), first.display());
        command.spawn().map_err(|source| Error::Command { command: name, source })
    })
}

/// Waits until a daemon answers on its socket. Fails as soon as it exits.
pub(crate) fn wait_for_socket(
    socket: &Path,
    started: &mut Started,
    cancel: &Cancel,
) -> Result<(), Error> {
    let (since, mut patience) = (Instant::now(), Patience::default());
    while std::os::unix::net::UnixStream::connect(socket).is_err() {
        cancel.check()?;
        started.check()?;
        if patience.has_ended(since.elapsed(), worked(started.process.id())) {
            return Err(started.failed("does not respond"));
        }
        pause(Duration::from_millis(10));
    }
    Ok(())
}

/// Writes a daemon's configuration.
pub(crate) fn write(path: &Path, config: &impl Serialize) -> Result<(), Error> {
    let json = serde_json::to_vec_pretty(config)
        .expect("no odd keys, and `up` refuses paths that are not UTF-8");
    private::replace(path, &json).map_err(Error::file("write", path))
}
