//! The client's process.

use std::ffi::OsString;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use anyhow::{Context, anyhow};
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use xsk_link::VARIABLE;

use crate::failure::Failure;

/// Name of the library that clients preload.
const LIBRARY: &str = "libkaido_xsk.so";
/// Time in which a client has to end after SIGTERM.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Returns the library of this installation.
fn library() -> Result<PathBuf, Failure> {
    let found = private::open_installed(LIBRARY, "../lib/kaido");
    let (path, _) = found.context("the client cannot be started").map_err(Failure::failed)?;
    // ld.so(8) separates the libraries of LD_PRELOAD by spaces and colons.
    if path.as_os_str().as_encoded_bytes().iter().any(|byte| b" :".contains(byte)) {
        let shown = path.display();
        let why = anyhow!(
            "{shown} cannot be preloaded: install `kaido` in a directory without ` ` and `:`"
        );
        return Err(Failure::failed(why));
    }
    Ok(path)
}

/// A running client, which is ended on drop.
pub(in crate::commands) struct Client {
    child: Child,
}

impl Client {
    /// Starts a command with the library and the inherited end of the links.
    pub(super) fn start(command: &[OsString], inherited: OwnedFd) -> Result<Self, Failure> {
        let library = library()?;
        let (program, arguments) =
            command.split_first().ok_or_else(|| Failure::usage(anyhow!("no command")))?;
        let mut preload = library.into_os_string();
        if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|all| !all.is_empty()) {
            preload.push(":");
            preload.push(others);
        }
        let mut command = Command::new(program);
        command.args(arguments).env("LD_PRELOAD", preload);
        Self::spawn(command, inherited)
    }

    /// Starts a command that connects itself with the inherited end of the links.
    pub(in crate::commands) fn spawn(
        mut command: Command,
        inherited: OwnedFd,
    ) -> Result<Self, Failure> {
        command.env(VARIABLE, inherited.as_raw_fd().to_string());
        // A sandbox process that is started in this moment inherits it too, and closes it.
        fcntl(&inherited, FcntlArg::F_SETFD(FdFlag::empty())).map_err(Failure::failed)?;
        let child = command.spawn();
        let cannot = || format!("`{}` cannot be started", command.get_program().display());
        let child = child.with_context(cannot).map_err(Failure::usage)?;
        Ok(Self { child })
    }

    /// Process id.
    pub(super) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Exit status, if the client has exited.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Asks the client to end, and kills it if it does not. Returns its exit status.
    pub(super) async fn end(&mut self) -> Option<ExitStatus> {
        let process = Pid::from_raw(self.child.id().cast_signed());
        // It may have ended.
        let _ = kill(process, Signal::SIGTERM);
        let ended = tokio::time::timeout(TIMEOUT, async {
            loop {
                if let Some(status) = self.child.try_wait().ok().flatten() {
                    return status;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        });
        if let Ok(status) = ended.await {
            return Some(status);
        }
        // It may have ended.
        let _ = self.child.kill();
        None
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
