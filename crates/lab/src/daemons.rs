//! Kaido's own daemons in a lab: a node on every node, one controller.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use model::topology::Topology;
use model::{Announcement, Application};
use serde::{Deserialize, Serialize};

use crate::announce::announcement;
use crate::enter::enter;
use crate::frr::tail;
use crate::processes::pause;
use crate::state::{INFRASTRUCTURE, Lab, lock, node_folder};
use crate::{Cancel, Error};

/// The configuration of `kaido node`, as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeConfig {
    /// The controller's Unix socket.
    pub controller: PathBuf,
    /// The largest inner packet: what the routes of steered applications carry.
    pub mtu: u16,
    /// What the node says of itself.
    pub announcement: Announcement,
}

/// The configuration of `kaido controller`, as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControllerConfig {
    /// The Unix socket that it listens on.
    pub socket: PathBuf,
    /// The file that it keeps its applications in.
    pub store: PathBuf,
    /// Applications that it has from the start.
    #[serde(default)]
    pub applications: Vec<Application>,
}

/// Starts the controller and a node daemon on every node.
pub(crate) fn start_all(
    folder: &Path,
    topology: &Topology,
    program: &Path,
    cancel: &Cancel,
) -> Result<(), Error> {
    let config = ControllerConfig {
        socket: folder.join("controller.sock"),
        store: folder.join("controller.store"),
        applications: topology.applications.clone(),
    };
    write(&folder.join("controller.json"), &config)?;
    let controller = start_controller(folder, program)?;
    wait_for_socket(folder, controller, cancel)?;
    for at in 0..topology.nodes.len() {
        let files = node_folder(folder, &topology.nodes[at].name);
        fs::create_dir_all(&files).map_err(Error::file("make", &files))?;
        let config = NodeConfig {
            controller: folder.join("controller.sock"),
            mtu: topology.mtu,
            announcement: announcement(topology, at),
        };
        write(&files.join("node.json"), &config)?;
        start_node(folder, &topology.nodes[at].name, program)?;
    }
    Ok(())
}

impl Lab {
    /// Starts the lab's controller again after it has ended.
    pub fn start_controller(&self, program: &Path) -> Result<(), Error> {
        self.check_not_running("controller", &self.folder.join("controller.json"))?;
        let child = start_controller(&self.folder, program)?;
        wait_for_socket(&self.folder, child, &Cancel::default())
    }

    /// Starts a node's daemon again after it has ended.
    pub fn start_node(&self, node: &str, program: &Path) -> Result<(), Error> {
        self.node(node)?;
        self.check_not_running(node, &node_folder(&self.folder, node).join("node.json"))?;
        start_node(&self.folder, node, program).map(drop)
    }

    /// A daemon holds a lock on its configuration as long as it lives.
    fn check_not_running(&self, daemon: &str, config: &Path) -> Result<(), Error> {
        if !self.topology.controller {
            return Err(Error::NoController(self.name.clone()));
        }
        lock(config).map(drop).ok_or_else(|| Error::Running(daemon.into()))
    }
}

fn start_controller(folder: &Path, program: &Path) -> Result<Child, Error> {
    let config = folder.join("controller.json");
    spawn(folder, INFRASTRUCTURE, &folder.join("controller.log"), program, "controller", &config)
}

fn start_node(folder: &Path, node: &str, program: &Path) -> Result<Child, Error> {
    let files = node_folder(folder, node);
    spawn(folder, node, &files.join("node.log"), program, "node", &files.join("node.json"))
}

/// Starts a daemon where it belongs. Its parent's thread is there already when it is born, so
/// that it is found there at every moment; it ignores what happens to the terminal.
fn spawn(
    folder: &Path,
    node: &str,
    log: &Path,
    program: &Path,
    subcommand: &str,
    config: &Path,
) -> Result<Child, Error> {
    use std::os::unix::process::CommandExt;
    let output =
        File::options().create(true).append(true).open(log).map_err(Error::file("open", log))?;
    let errors = output.try_clone().map_err(Error::file("open", log))?;
    let mut command = Command::new(program);
    command.arg(subcommand).arg("--config").arg(config);
    command.stdin(Stdio::null()).stdout(output).stderr(errors).process_group(0).current_dir("/");
    std::thread::scope(|scope| {
        let work = || {
            enter(folder, node, false)?;
            let name = format!("{} {subcommand}", program.display());
            command.spawn().map_err(|source| Error::Command { command: name, source })
        };
        scope.spawn(work).join().expect("starting a daemon does not panic")
    })
}

fn wait_for_socket(folder: &Path, mut controller: Child, cancel: &Cancel) -> Result<(), Error> {
    const LIMIT: Duration = Duration::from_secs(10);
    let socket = folder.join("controller.sock");
    let started = Instant::now();
    let failed = |what: &str| Error::Daemon {
        daemon: "the controller".into(),
        what: what.into(),
        log: tail(&folder.join("controller.log"), 5),
    };
    while std::os::unix::net::UnixStream::connect(&socket).is_err() {
        cancel.check()?;
        if !matches!(controller.try_wait(), Ok(None)) {
            return Err(failed("has ended"));
        }
        if started.elapsed() > LIMIT {
            return Err(failed("does not answer"));
        }
        pause(Duration::from_millis(10));
    }
    Ok(())
}

fn write(path: &Path, config: &impl Serialize) -> Result<(), Error> {
    let json = serde_json::to_vec_pretty(config).expect("a configuration has no odd keys");
    fs::write(path, json).map_err(Error::file("write", path))
}
