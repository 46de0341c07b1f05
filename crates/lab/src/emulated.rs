//! Emulated links: their devices beside the bridges, and the daemon that moves packets between them.

use std::fs::File;
use std::path::{Path, PathBuf};

use model::topology::{Segment, Topology};
use netlink::Namespace;
use serde::{Deserialize, Serialize};

use crate::attached::{self, Queues};
use crate::daemons::{Daemons, Started, spawn, wait_for_socket, write};
use crate::state::{INFRASTRUCTURE, Lab};
use crate::{Cancel, Error};

/// The configuration of `kaido emulator`, as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EmulatorConfig {
    /// The Unix socket that it listens on.
    pub socket: PathBuf,
    /// The lab's topology file.
    pub topology: PathBuf,
    /// The folder that the files are in which the topology names.
    pub base: PathBuf,
    /// The first netfilter queue of each attached interface that has some. They are written down before
    /// there are rules, so that whoever removes the lab finds these.
    #[serde(default)]
    pub queues: Queues,
}

/// The device of a segment's end where the emulator runs, both by their numbers.
pub fn device(segment: usize, end: usize) -> String {
    format!("e{segment}-{end}")
}

/// The socket of a lab's emulator.
pub(crate) fn socket(folder: &Path) -> PathBuf {
    folder.join("emulator.sock")
}

/// Prepares the emulator's devices, before they are up: what the kernel says of itself on an interface
/// would go into the network.
pub(crate) fn prepare(infrastructure: &Namespace, devices: &[String]) -> Result<(), Error> {
    infrastructure.run(|| {
        for device in devices {
            netlink::sysctl::write(&format!("ipv6/conf/{device}/disable_ipv6"), "1")?;
        }
        Ok::<(), Error>(())
    })?
}

/// The emulator's configuration.
pub(crate) fn config(folder: &Path) -> PathBuf {
    folder.join("emulator.json")
}

/// Writes the configuration, starts the emulator, and waits until it is at work. `file`: the lab's file, as
/// its user named it.
pub(crate) fn start(
    folder: &Path,
    file: &Path,
    (topology, queues): (&Topology, Queues),
    daemons: &Daemons,
    cancel: &Cancel,
) -> Result<(), Error> {
    let (path, socket) = (config(folder), socket(folder));
    let base = file.parent().map_or_else(|| PathBuf::from("/"), Path::to_path_buf);
    let config = EmulatorConfig { socket, topology: folder.join("lab.yaml"), base, queues };
    write(&path, &config)?;
    if !config.queues.is_empty() {
        attached::open(topology, &config.queues)?;
    }
    run(folder, daemons, cancel)
}

/// Starts the emulator with the configuration that is there.
pub(crate) fn run(folder: &Path, daemons: &Daemons, cancel: &Cancel) -> Result<(), Error> {
    let (path, log, socket) = (config(folder), folder.join("emulator.log"), socket(folder));
    let arguments = ["emulator".as_ref(), "--config".as_ref(), path.as_os_str()];
    // It enters the namespace of bridges, and attached interfaces are in this one.
    let machine = File::open("/proc/thread-self/ns/net").map_err(Error::file("open", "ns/net"))?;
    let (program, input) = (&daemons.program, machine.into());
    let process = spawn(folder, INFRASTRUCTURE, &log, program, &arguments, input)?;
    let mut started = Started { daemon: "the emulator".into(), log, process };
    wait_for_socket(&socket, &mut started, cancel)
}

impl Lab {
    /// The socket of the lab's emulator.
    pub fn emulator_socket(&self) -> Result<PathBuf, Error> {
        if !self.topology.has_emulated() {
            return Err(Error::NoEmulator(self.name.clone()));
        }
        Ok(socket(&self.folder))
    }

    /// The socket of the lab's emulator, and the name of a link of its own, which must be emulated.
    pub fn emulator(&self, link: &str) -> Result<(PathBuf, String), Error> {
        let segment = self.segment(link)?;
        let link = segment.name.clone();
        if !self.topology.is_emulated(segment) {
            return Err(Error::NotEmulated { link });
        }
        Ok((socket(&self.folder), link))
    }

    /// A link or a LAN of the topology, or an error that names those there are.
    pub fn segment(&self, name: &str) -> Result<&Segment, Error> {
        let known = |topology: &Topology| {
            topology.segments.iter().map(|segment| segment.name.clone()).collect()
        };
        let missing = || Error::NoLink { name: name.into(), known: known(&self.topology) };
        self.topology.segment(name).ok_or_else(missing)
    }
}
