//! The lab's supervisor: a process that runs its timeline of events and monitors its emulator.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use model::Occurrence;
use model::topology::Topology;
use netlink::{Batch, Handle, Namespace};
use serde::{Deserialize, Serialize};

use crate::daemons::emulated;
use crate::daemons::ended::ended as ended_daemons;
use crate::daemons::spawn::{self, runs_deaf, write};
use crate::error::StartError;
use crate::life::journal::{self, Happening};
use crate::life::state::{
    INFRASTRUCTURE, Lab, emulator_config, emulator_socket, namespace_path, read_topology,
};
use crate::pause::pause;
use crate::{Cancel, Error, attached};

/// Configuration of `kaido supervisor`, as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SupervisorConfig {
    /// Lab name.
    pub lab: String,
    /// Directory of the lab.
    pub directory: PathBuf,
}

pub(crate) fn socket(directory: &Path) -> PathBuf {
    directory.join("supervisor.sock")
}

pub(crate) fn config(directory: &Path) -> PathBuf {
    directory.join("supervisor.json")
}

/// Marker file: exists while the emulator's links are down because it has exited.
pub(crate) fn ended(directory: &Path) -> PathBuf {
    directory.join("emulator.ended")
}

/// Writes the configuration, starts the supervisor and waits until it is running.
pub(crate) fn start(
    lab: &str,
    directory: &Path,
    program: &Path,
    cancel: &Cancel,
) -> Result<(), Error> {
    let config = SupervisorConfig { lab: lab.into(), directory: directory.into() };
    write(&self::config(directory), &config)?;
    run(directory, program, cancel)
}

/// Starts the supervisor with the existing configuration.
pub(crate) fn run(directory: &Path, program: &Path, cancel: &Cancel) -> Result<(), Error> {
    spawn::run(directory, "supervisor", program, Stdio::null(), cancel)
}

/// Waits until the supervisor has restored the links of an emulator that was restarted.
pub(crate) fn wait_until_mended(directory: &Path) -> Result<(), Error> {
    const TIMEOUT: Duration = Duration::from_secs(10);
    let since = Instant::now();
    while ended(directory).exists() {
        if since.elapsed() > TIMEOUT {
            let log = crate::files::tail(&directory.join("supervisor.log"), 5);
            let (daemon, what) = ("the supervisor".into(), "does not mend the links".into());
            return Err(Error::Start(StartError::Daemon { daemon, what, log }));
        }
        pause(Duration::from_millis(10));
    }
    Ok(())
}

/// Describes the problems of a lab that was ready; empty if all of it is running.
pub(crate) fn troubles(directory: &Path, topology: &Topology) -> Vec<String> {
    // An unprivileged user cannot connect: assume that the daemon is running.
    let is_there = |socket: &Path| match std::os::unix::net::UnixStream::connect(socket) {
        Ok(_) => true,
        Err(error) => error.kind() == std::io::ErrorKind::PermissionDenied,
    };
    let mut troubles = Vec::new();
    let emulator = emulator_socket(directory);
    let is_needed = is_needed(topology);
    if topology.has_emulated() && runs_deaf(directory, &emulator_config(directory), &emulator) {
        troubles.push(
            "the emulator runs, and its socket is gone, so it cannot be reached: \
             `kaido lab start emulator` replaces it"
                .into(),
        );
    } else if topology.has_emulated() && !is_there(&emulator) {
        let links = if ended(directory).exists() { "down" } else { "dead" };
        troubles.push(format!(
            "the emulator exited and its links are {links}: `kaido lab start emulator`"
        ));
    } else if topology.has_emulated() && !api::emulator_answers(&emulator) {
        let events = if topology.events.is_empty() { "" } else { ", and events wait" };
        troubles
            .push(format!("the emulator does not respond: it is stopped or overloaded{events}"));
    }
    if is_needed && runs_deaf(directory, &config(directory), &socket(directory)) {
        troubles.push(
            "the supervisor runs, and its socket is gone: `kaido lab start supervisor` replaces it"
                .into(),
        );
    } else if is_needed && !is_there(&socket(directory)) {
        let events = if topology.events.is_empty() { "" } else { ", and events wait" };
        troubles.push(format!(
            "the supervisor exited, so an end of the emulator would go \
             unnoticed{events}: `kaido lab start supervisor`"
        ));
    }
    if let Ok(gone) = gone(directory, topology) {
        let word = |Gone { node, interface }: Gone| {
            format!("{node}:{interface} is gone, and its link is down")
        };
        troubles.extend(gone.into_iter().map(word));
    }
    troubles.extend(ended_daemons(directory, topology));
    troubles
}

/// True if a lab has a supervisor.
pub(crate) fn is_needed(topology: &Topology) -> bool {
    topology.has_emulated() || !topology.events.is_empty()
}

/// An interface of an emulated link that no longer exists.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Gone {
    node: String,
    interface: String,
}

/// The interfaces of emulated links that no longer exist, or that the emulator has lost.
fn gone(directory: &Path, topology: &Topology) -> Result<Vec<Gone>, Error> {
    if !topology.has_emulated() {
        return Ok(Vec::new());
    }
    let mut gone = Vec::new();
    for entry in journal::read(directory) {
        match entry.what {
            // Interfaces that are missing at its start are recorded after this entry.
            Happening::Other(Occurrence::EmulatorStarted) => gone.clear(),
            Happening::Other(Occurrence::InterfaceGone { node, interface }) => {
                gone.push(Gone { node, interface })
            }
            _ => {}
        }
    }
    // The supervisor, which writes the journal, may have exited.
    gone.extend(missing(directory, topology)?);
    gone.sort();
    gone.dedup();
    Ok(gone)
}

fn missing(directory: &Path, topology: &Topology) -> Result<Vec<Gone>, Error> {
    let names = |namespace: Namespace| -> Result<HashSet<String>, Error> {
        let links = Handle::within(&namespace)?.links()?;
        Ok(links.into_iter().map(|link| link.name).collect())
    };
    let there = names(Namespace::open(namespace_path(directory, INFRASTRUCTURE))?)?;
    let own = emulated::devices(topology).into_iter();
    let own = own.filter(|device| !there.contains(&device.name));
    let mut missing: Vec<_> =
        own.map(|device| Gone { node: device.node, interface: device.interface }).collect();
    let attached = attached::interfaces(topology);
    if !attached.is_empty() {
        let there = names(Namespace::open(attached::machine(directory))?)?;
        let attached = attached.into_iter().filter(|one| !there.contains(&one.interface));
        missing.extend(attached.map(|one| Gone { node: one.node, interface: one.interface }));
    }
    Ok(missing)
}

impl Lab {
    /// The lab in a directory, in any state: for the lab's own processes.
    pub fn of_directory(name: &str, directory: &Path) -> Result<Self, Error> {
        let damaged = || Error::Damaged { name: name.into() };
        let topology = read_topology(directory).ok_or_else(damaged)?;
        Ok(Self { name: name.into(), directory: directory.into(), topology, owner: None })
    }

    /// Path of the socket on which the supervisor listens.
    pub fn supervisor_socket(&self) -> PathBuf {
        socket(&self.directory)
    }

    /// The namespace that contains the emulator's devices.
    pub fn infrastructure(&self) -> Result<Namespace, Error> {
        Ok(Namespace::open(namespace_path(&self.directory, INFRASTRUCTURE))?)
    }

    /// The namespace of this machine that contains the attached interfaces.
    pub fn machine(&self) -> Result<Namespace, Error> {
        Ok(Namespace::open(attached::machine(&self.directory))?)
    }

    /// Sets devices of the emulator up or down, which sets the carriers of the nodes' ends.
    pub fn set_devices(&self, indexes: &[u32], up: bool) -> Result<(), Error> {
        let mut batch = Batch::new();
        for index in indexes {
            let request = if up { netlink::set_up(*index) } else { netlink::set_down(*index) };
            // A device that was removed in the meantime counts as down.
            batch.push("a device of the emulator", request.tolerate(netlink::Errno::ENODEV));
        }
        Ok(Handle::within(&self.infrastructure()?)?.commit(batch)?)
    }

    /// Records, for other commands, whether the emulator's links are down because it has exited.
    pub fn mark_ended(&self, ended: bool) -> Result<(), Error> {
        let path = self::ended(&self.directory);
        let done = if ended { private::replace(&path, b"") } else { std::fs::remove_file(&path) };
        match done {
            Err(error) if !ended && error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            done => done.map_err(Error::file("write", path)),
        }
    }

    /// True if the emulator's links are down because it has exited.
    pub fn is_marked_ended(&self) -> bool {
        ended(&self.directory).exists()
    }

    /// Describes the lab's problems; empty if all of it is running.
    pub fn troubles(&self) -> Vec<String> {
        troubles(&self.directory, &self.topology)
    }
}
