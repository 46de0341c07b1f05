//! Emulated links: their devices beside the bridges, and the daemon that moves packets between them.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use model::topology::{Segment, Topology};
use netlink::Namespace;
use serde::{Deserialize, Serialize};

use crate::attached::{self, Queues};
use crate::daemons::{self, Daemons, write};
use crate::state::Lab;
use crate::{Cancel, Error};

/// The configuration of `kaido emulator`, as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EmulatorConfig {
    /// The Unix socket that it listens on.
    pub socket: PathBuf,
    /// The lab's topology file.
    pub topology: PathBuf,
    /// Copies of the files that its links name, by these names: what becomes of the files themselves is
    /// nothing to a running lab.
    #[serde(default)]
    pub files: BTreeMap<String, PathBuf>,
    /// The first netfilter queue of each attached interface that has some. They are written down before
    /// there are rules, so that whoever removes the lab finds these.
    #[serde(default)]
    pub queues: Queues,
}

/// The device of a segment's end where the emulator runs, both by their numbers.
pub fn device(segment: usize, end: usize) -> String {
    format!("e{segment}-{end}")
}

/// A device of the emulator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// Its name.
    pub name: String,
    /// The number of its link.
    pub segment: usize,
    /// The node at its other end.
    pub node: String,
    /// The interface there.
    pub interface: String,
}

/// All devices of a network's emulator.
pub fn devices(topology: &Topology) -> Vec<Device> {
    let segments = topology.segments.iter().enumerate();
    let emulated = segments.filter(|(_, segment)| topology.is_emulated(segment));
    let of_one = |(number, segment): (usize, &Segment)| {
        let ends: Vec<Device> = segment
            .ends
            .iter()
            .enumerate()
            // What has no namespace has no device: it is the emulator's own, or another one's.
            .filter(|(_, end)| topology.nodes[end.node].has_namespace())
            .map(|(at, end)| {
                let node = &topology.nodes[end.node];
                Device {
                    name: device(number, at),
                    segment: number,
                    node: node.name.clone(),
                    interface: node.interfaces[end.interface].name.clone(),
                }
            })
            .collect();
        ends
    };
    emulated.flat_map(of_one).collect()
}

/// What the socket of a lab's emulator is called in the lab's folder.
pub const SOCKET: &str = "emulator.sock";

/// The socket of a lab's emulator.
pub(crate) fn socket(folder: &Path) -> PathBuf {
    folder.join(SOCKET)
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

/// Keeps what was read of files beside the lab's own, each under a number: their names are ways to anywhere.
fn keep(
    folder: &Path,
    files: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, PathBuf>, Error> {
    let folder = folder.join("files");
    private::make(&folder).map_err(Error::file("make", &folder))?;
    let copy = |(number, (name, text)): (usize, (&String, &String))| {
        let path = folder.join(number.to_string());
        private::create(&path, text.as_bytes()).map_err(Error::file("write", &path))?;
        Ok((name.clone(), path))
    };
    files.iter().enumerate().map(copy).collect()
}

/// Writes the configuration, starts the emulator, and waits until it is at work. `files`: what the files
/// hold that links name.
pub(crate) fn start(
    folder: &Path,
    files: &BTreeMap<String, String>,
    (topology, queues): (&Topology, Queues),
    daemons: &Daemons,
    cancel: &Cancel,
) -> Result<(), Error> {
    let (path, socket) = (config(folder), socket(folder));
    let files = keep(folder, files)?;
    let config = EmulatorConfig { socket, topology: folder.join("lab.yaml"), files, queues };
    write(&path, &config)?;
    if !config.queues.is_empty() {
        attached::open(topology, &config.queues)?;
    }
    run(folder, daemons, cancel)
}

/// Starts the emulator with the configuration that is there.
pub(crate) fn run(folder: &Path, daemons: &Daemons, cancel: &Cancel) -> Result<(), Error> {
    // It enters the namespace of bridges, and attached interfaces are in the one of `up`.
    let machine = attached::machine(folder);
    let machine =
        if machine.exists() { machine } else { PathBuf::from("/proc/thread-self/ns/net") };
    let machine = File::open(&machine).map_err(Error::file("open", &machine))?;
    daemons::run(folder, "emulator", daemons, machine.into(), cancel)
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

    /// Whether a node sends on a link; if not, an error that names those that do.
    pub fn check_sender(&self, link: &str, node: &str) -> Result<(), Error> {
        let ends = &self.segment(link)?.ends;
        let names = || ends.iter().map(|end| self.topology.nodes[end.node].name.as_str());
        if names().any(|name| name == node) {
            return Ok(());
        }
        let ends = names().map(str::to_owned).collect();
        Err(Error::NotOnLink { node: node.into(), link: link.into(), ends })
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
