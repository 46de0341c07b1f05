//! Emulated links: their devices next to the bridges, and the daemon that forwards packets between
//! them.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use model::topology::{Segment, Topology};
use netlink::Namespace;

use crate::attached::{self, Queues};
use crate::daemons::spawn::{self, write};
use crate::error::LookupError;
use crate::life::state::{self, Lab};
use crate::{Cancel, Error};

/// A device of the emulator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// Device name.
    pub name: String,
    /// Index of its segment.
    pub segment: usize,
    /// Node at the other end.
    pub node: String,
    /// The node's interface.
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
            // A node without a namespace has no device: the emulator or another machine implements
            // it.
            .filter(|(_, end)| topology.nodes[end.node].has_namespace())
            .map(|(at, end)| {
                let node = &topology.nodes[end.node];
                Device {
                    name: emulator_daemon::device_name(number, at),
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

/// Disables IPv6 on the emulator's devices, so that neighbor discovery of this machine does not enter
/// the emulated network.
pub(crate) fn disable_ipv6(infrastructure: &Namespace, devices: &[String]) -> Result<(), Error> {
    infrastructure.run(|| {
        for device in devices {
            netlink::sysctl::write(&format!("ipv6/conf/{device}/disable_ipv6"), "1")?;
        }
        Ok::<(), Error>(())
    })?
}

/// Copies files into the lab's directory. Each copy is named by a number, since the original names
/// are paths to anywhere.
fn copy_files(
    directory: &Path,
    files: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, PathBuf>, Error> {
    let directory = directory.join("files");
    private::make(&directory).map_err(Error::file("create", &directory))?;
    let copy = |(number, (name, text)): (usize, (&String, &String))| {
        let path = directory.join(number.to_string());
        private::create(&path, text.as_bytes()).map_err(Error::file("write", &path))?;
        Ok((name.clone(), path))
    };
    files.iter().enumerate().map(copy).collect()
}

/// Writes the configuration, starts the emulator and waits until it is running. `files`: contents
/// of the files that links refer to.
pub(crate) fn start(
    directory: &Path,
    files: &BTreeMap<String, String>,
    (topology, queues): (&Topology, Queues),
    program: &Path,
    cancel: &Cancel,
) -> Result<(), Error> {
    let (path, socket) = (state::emulator_config(directory), state::emulator_socket(directory));
    let files = copy_files(directory, files)?;
    let config =
        emulator_daemon::Config { socket, topology: directory.join("lab.yaml"), files, queues };
    write(&path, &config)?;
    if !config.queues.is_empty() {
        attached::open(topology, &config.queues)?;
    }
    run(directory, program, cancel)
}

/// Starts the emulator with the existing configuration.
pub(crate) fn run(directory: &Path, program: &Path, cancel: &Cancel) -> Result<(), Error> {
    // The emulator enters the namespace of bridges; attached interfaces are in that of `up`.
    let mut path = attached::machine(directory);
    if !path.exists() {
        path = PathBuf::from("/proc/thread-self/ns/net");
    }
    let machine = File::open(&path).map_err(Error::file("open", &path))?;
    spawn::run(directory, "emulator", program, machine.into(), cancel)
}

impl Lab {
    /// Path of the emulator's socket.
    pub fn emulator_socket(&self) -> Result<PathBuf, Error> {
        if !self.topology.has_emulated() {
            return Err(Error::Lookup(LookupError::NoEmulator(self.name.clone())));
        }
        Ok(state::emulator_socket(&self.directory))
    }

    /// Path of the emulator's socket, and the full name of a link, which must be emulated.
    pub fn emulator(&self, link: &str) -> Result<(PathBuf, String), Error> {
        let segment = self.segment(link)?;
        let link = segment.name.clone();
        if !self.topology.is_emulated(segment) {
            return Err(Error::Lookup(LookupError::NotEmulated { link }));
        }
        Ok((state::emulator_socket(&self.directory), link))
    }

    /// Checks that a node sends on a link. The error lists the nodes that do.
    pub fn check_sender(&self, link: &str, node: &str) -> Result<(), Error> {
        let ends = &self.segment(link)?.ends;
        let names = || ends.iter().map(|end| self.topology.nodes[end.node].name.as_str());
        if names().any(|name| name == node) {
            return Ok(());
        }
        let ends = names().map(str::to_owned).collect();
        Err(Error::Lookup(LookupError::NotOnLink { node: node.into(), link: link.into(), ends }))
    }

    /// Finds a link or a LAN of the topology. The error lists the existing ones.
    pub fn segment(&self, name: &str) -> Result<&Segment, Error> {
        let known = |topology: &Topology| {
            topology.segments.iter().map(|segment| segment.name.clone()).collect()
        };
        let missing = || {
            Error::Lookup(LookupError::NoLink { name: name.into(), known: known(&self.topology) })
        };
        self.topology.segment(name).ok_or_else(missing)
    }
}
