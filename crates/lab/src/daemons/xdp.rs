//! XDP data planes on a lab's routers: preparation of their links, their files, their daemons.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use bpf::attach::{prepare_pins, unmount_pins};
use model::dataplane::SOCKET;
use model::topology::{Backend, Interface, Node, Topology};
use netlink::{Handle, Namespace, Offload, VethEnd, set_offload};

use crate::daemons::processes::pause;
use crate::daemons::spawn::{Started, spawn};
use crate::error::LookupError;
use crate::life::state::{Lab, node_folder, nodes_folder};
use crate::node::index::interface_index;
use crate::{Cancel, Error};

/// Timeout for a data plane to start running.
const LIMIT: Duration = Duration::from_secs(20);

/// State folder of a node's data plane.
fn state(folder: &Path, node: &str) -> PathBuf {
    node_folder(folder, node).join("dataplane")
}

/// Path of the socket of a node's data plane.
pub(crate) fn socket(folder: &Path, node: &str) -> PathBuf {
    state(folder, node).join(SOCKET)
}

/// Prepares an interface whose peer runs XDP. Checksum offload is disabled, because XDP loses the
/// packet metadata that requests the checksum. GRO is enabled, because a veth accepts frames from
/// XDP only with NAPI, which GRO activates.
pub(crate) fn prepare_far_end(namespace: &Namespace, interface: &str) -> Result<(), Error> {
    Ok(namespace.run(|| {
        set_offload(interface, Offload::TxChecksum, false)?;
        set_offload(interface, Offload::Gro, true)
    })??)
}

/// Prepares an interface whose peer is an AF_XDP port: frames of AF_XDP sockets have no metadata
/// that requests a checksum.
pub(crate) fn complete_checksums(namespace: &Namespace, interface: &str) -> Result<(), Error> {
    Ok(namespace.run(|| set_offload(interface, Offload::TxChecksum, false))??)
}

/// Creates the exits for the interfaces of a node that runs XDP. XDP bypasses queueing disciplines,
/// so a rate would have no effect. For an interface with a rate, XDP sends into one end of a veth
/// pair instead; packets that arrive at the other end are queued on the interface like the kernel's
/// own packets. Drops, backlog and rate are then visible in the same place as on other nodes.
pub(crate) fn make_exits(node: &Node, namespace: &Namespace) -> Result<(), Error> {
    let shaped = |(_, interface): &(usize, &Interface)| is_shaped(interface);
    for (at, interface) in node.interfaces.iter().enumerate().filter(shaped) {
        let port = interface_index(at);
        let mut handle = Handle::within(namespace)?;
        let names = [exit_name(at), format!("queue-{port}")];
        let [exit, feed] = names.each_ref().map(|name| VethEnd {
            name,
            namespace,
            mtu: u32::from(interface.mtu),
            mac: None,
            index: None,
        });
        let label = format!("exit of {} on {}", interface.name, node.name);
        handle.request(&label, netlink::add_veth(&exit, &feed))?;
        let queue = handle.link(&names[1])?.index;
        namespace.run(|| {
            // Packets that the kernel originates on every interface, such as neighbor discovery,
            // would leave through the port.
            for name in &names {
                netlink::sysctl::write(&format!("ipv6/conf/{name}/disable_ipv6"), "1")?;
            }
            set_offload(&names[1], Offload::Gro, true)?;
            bpf::lead_to_queue(queue, port)?;
            Ok::<(), Error>(())
        })??;
        for name in &names {
            let index = handle.link(name)?.index;
            handle.request(&label, netlink::set_up(index))?;
        }
    }
    Ok(())
}

/// True if the kernel's own queue enforces an interface's rate; otherwise the emulator does.
fn is_shaped(interface: &Interface) -> bool {
    interface.rate.is_some() && interface.backend != Backend::Emulator
}

/// Name of the exit device for a node's interface. It cannot collide with a node's: those have no
/// hyphen.
fn exit_name(interface: usize) -> String {
    format!("xdp-{}", interface_index(interface))
}

/// The data plane's file: the node's links and its service functions. Other SIDs and the routes are
/// imported from the kernel.
fn file(node: &Node) -> String {
    let mut text = format!(
        "# The ports of {}; the rest is what its kernel has (docs/dataplane.md).\n\
         mode: native\nports:\n",
        node.name
    );
    for (at, interface) in node.interfaces.iter().enumerate() {
        let exit =
            if is_shaped(interface) { format!("exit: {}", exit_name(at)) } else { String::new() };
        // Quoted, since a node may be called `no`. Writing to a string cannot fail.
        let _ = writeln!(text, "  \"{}\": {{{exit}}}", interface.name);
    }
    if let Some(locator) = node.locator.filter(|_| !node.functions.is_empty()) {
        let _ = writeln!(text, "locators: [\"{locator}\"]\nsids:");
    }
    for function in &node.functions {
        let health = function.health.as_ref().map(|health| {
            // JSON is a subset of YAML.
            let health = serde_json::to_string(health).expect("it is text and numbers");
            format!(", health: {health}")
        });
        let health = health.unwrap_or_default();
        let sid = function.prefix;
        let _ = writeln!(text, "  \"{sid}\": {{behavior: End.AN.NF{health}}}");
    }
    text
}

/// Starts the data planes, and waits until all are running.
pub(crate) fn start_all(
    folder: &Path,
    topology: &Topology,
    program: &Path,
    cancel: &Cancel,
) -> Result<(), Error> {
    let mut started = BTreeMap::new();
    for node in topology.nodes.iter().filter(|node| node.runs_xdp()) {
        cancel.check()?;
        let path = node_folder(folder, &node.name).join("dataplane.yaml");
        let state = state(folder, &node.name);
        private::make(&state).map_err(Error::file("create", &state))?;
        private::create(&path, file(node).as_bytes()).map_err(Error::file("write", &path))?;
        // Mount in the global view: `down` finds the mount in the lab's folder, and a restarted
        // daemon finds the ports that its predecessor left running.
        prepare_pins(&state.join("bpf"))?;
        let daemon = start(folder, &node.name, program, Some(&path))?;
        started.insert(node.name.as_str(), daemon);
    }
    for (node, daemon) in &mut started {
        wait(&socket(folder, node), daemon, cancel)?;
    }
    Ok(())
}

/// Starts a node's data plane with a file, or with its last applied configuration.
fn start(folder: &Path, node: &str, program: &Path, file: Option<&Path>) -> Result<Started, Error> {
    let state = state(folder, node);
    let log = node_folder(folder, node).join("dataplane.log");
    let mut arguments = vec!["dataplane".as_ref(), "run".as_ref(), "--state".as_ref()];
    arguments.push(state.as_os_str());
    if let Some(file) = file {
        arguments.extend(["--file".as_ref(), file.as_os_str()]);
    }
    let process = spawn(folder, node, &log, program, &arguments, Stdio::null())?;
    Ok(Started { daemon: format!("the data plane of {node}"), log, process })
}

fn wait(socket: &Path, daemon: &mut Started, cancel: &Cancel) -> Result<(), Error> {
    let since = Instant::now();
    loop {
        cancel.check()?;
        daemon.check()?;
        if api::dataplane_is_at_work(socket) {
            return Ok(());
        }
        if since.elapsed() > LIMIT {
            return Err(daemon.failed("does not respond"));
        }
        pause(Duration::from_millis(10));
    }
}

/// Restarts a node's data plane after it has exited.
pub(crate) fn start_again(folder: &Path, node: &str, program: &Path) -> Result<(), Error> {
    prepare_pins(&state(folder, node).join("bpf"))?;
    let mut daemon = start(folder, node, program, None)?;
    wait(&socket(folder, node), &mut daemon, &Cancel::default())
}

/// The arguments that identify the process of a node's data plane.
pub(crate) fn known_by(folder: &Path, node: &str) -> (&'static str, PathBuf) {
    ("--state", state(folder, node))
}

/// Unmounts the pinned state of a lab's data planes, which detaches them from their ports.
pub(crate) fn unmount_all(folder: &Path) -> Result<(), Error> {
    let Ok(nodes) = fs::read_dir(nodes_folder(folder)) else { return Ok(()) };
    for node in nodes.flatten() {
        unmount_pins(&node.path().join("dataplane").join("bpf"))?;
    }
    Ok(())
}

impl Lab {
    /// State folder of a node's data plane. It is an error if the node does not have its own.
    pub fn dataplane(&self, node: &str) -> Result<PathBuf, Error> {
        if !self.node(node)?.runs_xdp() {
            let nodes = self.topology.nodes.iter().filter(|node| node.runs_xdp());
            let known = nodes.map(|node| node.name.clone()).collect();
            return Err(Error::Lookup(LookupError::NoDataplane { node: node.into(), known }));
        }
        Ok(state(&self.folder, node))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nodes_file_is_one_that_a_data_plane_takes() {
        let text = "name: x\ndataplane: xdp\nnodes:\n  \"no\": {}\n  r1: {router: linux}\n  \
             r2: {router: linux}\nlinks: [no-r1, r1-r2: {rate: 5mbit}]\n";
        let topology = topology_file::parse("lab.yaml", text).unwrap();
        let text = file(topology.node("r1").unwrap());
        let read = dataplane_file::parse("dataplane.yaml", &text)
            .unwrap_or_else(|problems| panic!("{problems}"));
        let exits: Vec<_> =
            read.ports.iter().map(|(name, port)| (&**name, port.exit.as_deref())).collect();
        assert_eq!(exits, [("no", None), ("r2", Some("xdp-11"))]);
        assert!(read.import);
    }
}
