//! One routing daemon.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Instant;

use nix::sched::{CloneFlags, unshare};

use super::{Frr, TIMEOUT, too_late};
use crate::error::StartError;
use crate::files::tail;
use crate::life::state::node_directory;
use crate::node::enter::{FRR_RUN, on_thread};
use crate::pause::pause;
use crate::{Cancel, Error};

/// Namespaces of each daemon.
const OWN: CloneFlags =
    CloneFlags::CLONE_NEWPID.union(CloneFlags::CLONE_NEWIPC).union(CloneFlags::CLONE_NEWUTS);

/// A daemon's log.
pub(super) struct Log {
    path: PathBuf,
    file: File,
}

impl Log {
    /// Opens the log of a daemon on a node.
    pub(super) fn open(directory: &Path, node: &str, daemon: &str) -> Result<Self, Error> {
        let path = node_directory(directory, node).join("log").join(format!("{daemon}.log"));
        let file = private::append(&path).map_err(Error::file("open", &path))?;
        Ok(Self { path, file })
    }
}

/// A routing daemon that was started.
#[derive(Debug)]
pub(super) struct Daemon {
    pub(super) name: &'static str,
    node: String,
    log: PathBuf,
    process: Child,
}

impl Daemon {
    /// Starts a daemon on the node that the calling thread has entered, as the first process of a
    /// PID namespace: it sees no other process, by whose PID it could reach other network
    /// namespaces (IFLA_NET_NS_PID), and its children end with it.
    pub(super) fn start(
        frr: &Frr,
        node: &str,
        name: &'static str,
        log: Log,
    ) -> Result<Self, Error> {
        let Log { path, file } = log;
        let errors = file.try_clone().map_err(Error::file("open", &path))?;
        let mut command = frr.kaido();
        command.arg("routing-daemon").arg(frr.programs.join(name));
        // -P 0: no telnet port; vtysh uses the socket, and loads the configuration.
        command.args(["-P", "0", "-f", "/dev/null", "--log", "stdout"]);
        command.stdin(Stdio::null()).stdout(file).stderr(errors);
        // A thread of its own: a thread can create one PID namespace.
        let spawn = || {
            unshare(OWN)?;
            command.spawn()
        };
        let process = on_thread(spawn)
            .map_err(|source: io::Error| Error::Command { command: name.into(), source })?;
        Ok(Self { name, node: node.into(), log: path, process })
    }

    /// Waits until the daemon answers on its socket, which it opens last.
    pub(super) fn wait(&mut self, cancel: &Cancel) -> Result<(), Error> {
        let socket = Path::new(FRR_RUN).join(format!("{}.vty", self.name));
        let started = Instant::now();
        while !serve::is_served(&socket).unwrap_or_default() {
            cancel.check()?;
            if let Ok(Some(status)) = self.process.try_wait() {
                return Err(self.failed(&format!("did not start ({status})")));
            }
            if started.elapsed() > TIMEOUT {
                return Err(self.failed(&format!("did not start ({})", too_late())));
            }
            pause(std::time::Duration::from_millis(2));
        }
        Ok(())
    }

    /// Returns an error if the daemon has exited.
    pub(super) fn check(&mut self) -> Result<(), Error> {
        match self.process.try_wait() {
            Ok(None) => Ok(()),
            _ => Err(self.failed("exited")),
        }
    }

    /// The last lines of its log.
    pub(super) fn last_lines(&self, lines: usize) -> String {
        tail(&self.log, lines)
    }

    fn failed(&self, what: &str) -> Error {
        Error::Start(StartError::Frr {
            node: self.node.clone(),
            daemon: self.name.into(),
            what: what.into(),
            log: self.last_lines(5),
        })
    }
}
