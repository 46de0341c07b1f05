//! Daemons of the XDP data planes on a lab's routers: their files, their start and their end.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use bpf::pin::{prepare_pins, unmount_pins};
use model::dataplane::SOCKET;
use model::topology::{Node, Topology};

use crate::daemons::spawn::{Started, spawn};
use crate::error::LookupError;
use crate::life::state::{Lab, node_directory, nodes_directory};
use crate::node::xdp_links::{exit_name, is_shaped};
use crate::pause::pause;
use crate::{Cancel, Error};

/// Timeout for a data plane to start running.
const TIMEOUT: Duration = Duration::from_secs(20);

/// State directory of a node's data plane.
fn state(directory: &Path, node: &str) -> PathBuf {
    node_directory(directory, node).join("dataplane")
}

/// Mount point of its pinned maps and links.
fn pins(directory: &Path, node: &str) -> PathBuf {
    state(directory, node).join("bpf")
}

/// Path of the socket of a node's data plane.
pub(crate) fn socket(directory: &Path, node: &str) -> PathBuf {
    state(directory, node).join(SOCKET)
}

/// The data plane file: the node's links and its service functions. Other SIDs and the routes are
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
    directory: &Path,
    topology: &Topology,
    program: &Path,
    cancel: &Cancel,
) -> Result<(), Error> {
    let mut started = BTreeMap::new();
    for node in topology.nodes.iter().filter(|node| node.runs_xdp()) {
        cancel.check()?;
        let path = node_directory(directory, &node.name).join("dataplane.yaml");
        let state = state(directory, &node.name);
        private::make(&state).map_err(Error::file("create", &state))?;
        private::create(&path, file(node).as_bytes()).map_err(Error::file("write", &path))?;
        // Mount in the global view: `down` finds the mount in the lab's directory, and a restarted
        // daemon finds the ports that its predecessor left running.
        prepare_pins(&pins(directory, &node.name))?;
        let daemon = start(directory, &node.name, program, Some(&path))?;
        started.insert(node.name.as_str(), daemon);
    }
    for (node, daemon) in &mut started {
        wait(&socket(directory, node), daemon, cancel)?;
    }
    Ok(())
}

/// Starts a node's data plane with a file, or with its last applied configuration.
fn start(
    directory: &Path,
    node: &str,
    program: &Path,
    file: Option<&Path>,
) -> Result<Started, Error> {
    let state = state(directory, node);
    let log = node_directory(directory, node).join("dataplane.log");
    let mut arguments = vec!["dataplane".as_ref(), "run".as_ref(), "--state".as_ref()];
    arguments.push(state.as_os_str());
    if let Some(file) = file {
        arguments.extend(["--file".as_ref(), file.as_os_str()]);
    }
    let process = spawn(directory, node, &log, program, &arguments, Stdio::null())?;
    Ok(Started { daemon: format!("the data plane of {node}"), log, process })
}

fn wait(socket: &Path, daemon: &mut Started, cancel: &Cancel) -> Result<(), Error> {
    let since = Instant::now();
    loop {
        cancel.check()?;
        daemon.check()?;
        if api::dataplane_is_running(socket) {
            return Ok(());
        }
        if since.elapsed() > TIMEOUT {
            return Err(daemon.failed("does not respond"));
        }
        pause(Duration::from_millis(10));
    }
}

/// Restarts a node's data plane after it has exited.
pub(crate) fn start_again(directory: &Path, node: &str, program: &Path) -> Result<(), Error> {
    prepare_pins(&pins(directory, node))?;
    let mut daemon = start(directory, node, program, None)?;
    wait(&socket(directory, node), &mut daemon, &Cancel::default())
}

/// The arguments that identify the process of a node's data plane.
pub(crate) fn known_by(directory: &Path, node: &str) -> (&'static str, PathBuf) {
    ("--state", state(directory, node))
}

/// Unmounts the pinned state of a lab's data planes, which detaches them from their ports.
pub(crate) fn unmount_all(directory: &Path) -> Result<(), Error> {
    let Ok(nodes) = fs::read_dir(nodes_directory(directory)) else { return Ok(()) };
    for node in nodes.flatten() {
        let Ok(node) = node.file_name().into_string() else { continue };
        unmount_pins(&pins(directory, &node))?;
    }
    Ok(())
}

impl Lab {
    /// State directory of a node's data plane. It is an error if the node does not have its own.
    pub fn dataplane(&self, node: &str) -> Result<PathBuf, Error> {
        if !self.node(node)?.runs_xdp() {
            let nodes = self.topology.nodes.iter().filter(|node| node.runs_xdp());
            let known = nodes.map(|node| node.name.clone()).collect();
            return Err(Error::Lookup(LookupError::NoDataplane { node: node.into(), known }));
        }
        Ok(state(&self.directory, node))
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
