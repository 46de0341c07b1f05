//! Kaido's own daemons in a lab: an agent on every node, and one controller. Data planes are in
//! `xdp`.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use model::topology::Topology;

use crate::daemons::spawn::{CONFIG, Started, spawn, wait_for_socket, write};
use crate::error::StartError;
use crate::life::state::{self, INFRASTRUCTURE, SOCKET, node_directory};
use crate::node::announce::announcement;
use crate::pause::pause;
use crate::{Cancel, Error};

/// Starts the controller, and the agent of every node.
pub(crate) fn start_all(
    directory: &Path,
    topology: &Topology,
    program: &Path,
    cancel: &Cancel,
) -> Result<Vec<Started>, Error> {
    let config = controller::Config {
        socket: directory.join(SOCKET),
        store: directory.join("controller.store"),
        applications: topology.applications.clone(),
    };
    write(&controller_config(directory), &config)?;
    let mut controller = start_controller(directory, program)?;
    wait_for_socket(&directory.join(SOCKET), &mut controller, cancel)?;
    let mut started = vec![controller];
    let nodes = topology.nodes.iter().enumerate().filter(|(_, node)| !node.is_switch());
    for (at, _) in nodes {
        let files = node_directory(directory, &topology.nodes[at].name);
        private::make(&files).map_err(Error::file("create", &files))?;
        let config = node::Config {
            controller: directory.join(SOCKET),
            mtu: topology.mtu,
            announcement: announcement(topology, at),
            emulator: has_emulated(topology, at).then(|| state::emulator_socket(directory)),
        };
        write(&files.join("node.json"), &config)?;
        started.push(start_node(directory, &topology.nodes[at].name, program)?);
    }
    Ok(started)
}

/// True if a node has an interface to an emulated link.
fn has_emulated(topology: &Topology, node: usize) -> bool {
    let mut emulated = topology.segments.iter().filter(|segment| topology.is_emulated(segment));
    emulated.any(|segment| segment.ends.iter().any(|end| end.node == node))
}

/// Waits until the controller is complete. Fails as soon as a daemon exits.
pub(crate) fn wait(
    directory: &Path,
    topology: &Topology,
    mut started: Vec<Started>,
    cancel: &Cancel,
) -> Result<(), Error> {
    const TIMEOUT: Duration = Duration::from_secs(20);
    let nodes = topology.nodes.iter().filter(|node| !node.is_switch());
    let nodes: Vec<String> = nodes.map(|node| node.name.clone()).collect();
    let socket = directory.join(SOCKET);
    let since = Instant::now();
    loop {
        cancel.check()?;
        started.iter_mut().try_for_each(Started::check)?;
        let missing = api::missing(&socket, &nodes);
        if missing.is_empty() {
            return Ok(());
        }
        if since.elapsed() > TIMEOUT {
            return Err(Error::Start(StartError::Incomplete {
                seconds: TIMEOUT.as_secs(),
                missing,
            }));
        }
        pause(Duration::from_millis(20));
    }
}

pub(crate) fn controller_config(directory: &Path) -> PathBuf {
    directory.join("controller.json")
}

pub(crate) fn start_controller(directory: &Path, program: &Path) -> Result<Started, Error> {
    let (config, log) = (controller_config(directory), directory.join("controller.log"));
    let arguments = ["controller".as_ref(), CONFIG.as_ref(), config.as_os_str()];
    let process = spawn(directory, INFRASTRUCTURE, &log, program, &arguments, Stdio::null())?;
    Ok(Started { daemon: "the controller".into(), log, process })
}

pub(crate) fn start_node(directory: &Path, node: &str, program: &Path) -> Result<Started, Error> {
    let files = node_directory(directory, node);
    let (config, log) = (files.join("node.json"), files.join("node.log"));
    let arguments = ["node".as_ref(), CONFIG.as_ref(), config.as_os_str()];
    let process = spawn(directory, node, &log, program, &arguments, Stdio::null())?;
    Ok(Started { daemon: format!("the daemon of node {node}"), log, process })
}
