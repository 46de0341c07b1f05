//! Switches of a lab: Open vSwitch with a database of its own, under `kaido xsk run`.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use model::topology::{BRIDGE, Node, Topology};
use openvswitch::{Installation, Instance};

use crate::daemons::processes::end;
use crate::daemons::spawn::{CONFIG, Started, running, spawn_command, with_argument};
use crate::daemons::tenants::{self, CLIENT};
use crate::error::{MachineError, StartError};
use crate::life::state::{Lab, node_directory};
use crate::pause::pause;
use crate::{Cancel, Error};

/// Timeout of each step of a start.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The database of a switch. Its path is in the arguments of the database's server.
pub(crate) fn database(directory: &Path, node: &str) -> PathBuf {
    Instance::database_file(&node_directory(directory, node))
}

/// Returns Open vSwitch if a node of the topology is a switch.
pub(crate) fn find(topology: &Topology) -> Result<Option<Installation>, Error> {
    let is_needed = topology.nodes.iter().any(Node::is_switch);
    let find = || Installation::find().map_err(|why| Error::Machine(MachineError::NoSwitch(why)));
    is_needed.then(find).transpose()
}

/// Starts the switches, and waits until their ports are up. `file`: path of the topology file,
/// which programs are relative to.
pub(crate) fn start_all(
    directory: &Path,
    topology: &Topology,
    file: &Path,
    (installation, program): (&Installation, &Path),
    cancel: &Cancel,
) -> Result<(), Error> {
    let mut all = Vec::new();
    for (at, node) in topology.nodes.iter().enumerate() {
        if !node.is_switch() {
            continue;
        }
        cancel.check()?;
        tenants::write(directory, file, node, &node.tenants)?;
        let instance = Instance::new(installation.clone(), node_directory(directory, &node.name));
        succeed(&mut instance.create_database(), &node.name)?;
        let running = Running::start(directory, &node.name, instance, program, cancel)?;
        running.add_ports(&topology.interface_names(at))?;
        all.push((running, topology.interface_names(at)));
    }
    all.iter_mut().try_for_each(|(running, ports)| running.await_ports(ports, cancel))
}

/// The daemons of a switch that were started.
struct Running {
    instance: Instance,
    node: String,
    daemons: Vec<Started>,
}

impl Running {
    /// Starts the database and the switch, unless they run. Waits until both answer.
    fn start(
        directory: &Path,
        node: &str,
        instance: Instance,
        program: &Path,
        cancel: &Cancel,
    ) -> Result<Self, Error> {
        let files = node_directory(directory, node);
        let start = |daemon: String, log: &str, command: Command| {
            let log = files.join(log);
            let process = spawn_command(directory, node, &log, command, Stdio::null())?;
            Ok::<_, Error>(Started { daemon, log, process })
        };
        let mut daemons = Vec::new();
        if done(&mut instance.init()).is_err() {
            let daemon = format!("the database of {node}");
            daemons.push(start(daemon, "database.log", instance.database())?);
            until(&mut daemons, cancel, || done(&mut instance.init()))?;
        }
        let config = tenants::config(directory, node);
        if !running(directory, CONFIG, &config).is_empty() {
            return Ok(Self { instance, node: node.to_owned(), daemons });
        }
        let words = [program.as_os_str(), "xsk".as_ref(), "run".as_ref(), CONFIG.as_ref()];
        let mut wrapper: Vec<_> = words.into_iter().map(ToOwned::to_owned).collect();
        wrapper.extend([config.into(), "--name".into(), CLIENT.into(), "--".into()]);
        let mut command = instance.switch(&wrapper);
        command.env("KAIDO_RUN", &files);
        daemons.push(start(format!("the switch {node}"), "switch.log", command)?);
        until(&mut daemons, cancel, || done(instance.appctl().arg("version")))?;
        Ok(Self { instance, node: node.to_owned(), daemons })
    }

    /// Adds the bridge with its ports to the database, in one transaction.
    fn add_ports(&self, ports: &[&str]) -> Result<(), Error> {
        let mut command = self.instance.vsctl();
        command.arg("--no-wait").args(Instance::add_bridge(BRIDGE));
        for port in ports {
            command.arg("--").args(Instance::add_port(BRIDGE, port, &[]));
        }
        succeed(&mut command, &self.node)
    }

    fn await_ports(&mut self, ports: &[&str], cancel: &Cancel) -> Result<(), Error> {
        let Self { instance, daemons, .. } = self;
        until(daemons, cancel, || done(&mut instance.applied(BRIDGE)))?;
        for port in ports {
            let is_up = || {
                let shown = done(&mut instance.show_port(port))?;
                if openvswitch::is_up(&shown) { Ok(shown) } else { Err(format!("{port}: {shown}")) }
            };
            until(daemons, cancel, is_up)?;
        }
        Ok(())
    }
}

/// Waits until `ready` succeeds. Fails as soon as a daemon exits. If the time is over, reports the
/// last daemon with the error of `ready`.
fn until(
    daemons: &mut [Started],
    cancel: &Cancel,
    ready: impl Fn() -> Result<String, String>,
) -> Result<(), Error> {
    let since = Instant::now();
    while let Err(why) = ready() {
        cancel.check()?;
        daemons.iter_mut().try_for_each(Started::check)?;
        if let Some(last) = daemons.last().filter(|_| since.elapsed() > TIMEOUT) {
            return Err(last.failed(&format!("is not ready: {why}")));
        }
        pause(Duration::from_millis(20));
    }
    Ok(())
}

/// Runs one of Open vSwitch's tools. Returns its output, or its error.
fn done(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|why| why.to_string())?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

/// Runs one of Open vSwitch's tools, which must succeed.
fn succeed(command: &mut Command, node: &str) -> Result<(), Error> {
    done(command).map(drop).map_err(|log| {
        let name = command.get_program().display();
        let (daemon, what) = (format!("{name} for the switch {node}"), "has failed".into());
        Error::Start(StartError::Daemon { daemon, what, log })
    })
}

/// Restarts the daemons of a switch that have exited, with its database.
pub(crate) fn start_again(
    directory: &Path,
    topology: &Topology,
    at: usize,
    program: &Path,
) -> Result<(), Error> {
    let Some(installation) = find(topology)? else { return Ok(()) };
    let (node, cancel) = (topology.nodes[at].name.as_str(), Cancel::default());
    let instance = Instance::new(installation, node_directory(directory, node));
    if running(directory, CONFIG, &tenants::config(directory, node)).is_empty() {
        remove_remains(directory, &instance)?;
    }
    let mut running = Running::start(directory, node, instance, program, &cancel)?;
    running.await_ports(&topology.interface_names(at), &cancel)
}

/// Ends a switch whose wrapper was killed, which continues without programs. Removes the files by
/// which a new switch is recognized.
fn remove_remains(directory: &Path, instance: &Instance) -> Result<(), Error> {
    let option = instance.pid_option();
    end(|| with_argument(directory, &option))?;
    for file in [instance.pid_file(), instance.control()] {
        match fs::remove_file(&file) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(Error::file("remove", file)(error));
            }
            _ => {}
        }
    }
    Ok(())
}

impl Lab {
    /// The environment in which Open vSwitch's commands use the switch of a node; empty for other
    /// nodes.
    pub fn environment(&self, node: &str) -> Result<Vec<(&'static str, PathBuf)>, Error> {
        if !self.node(node)?.is_switch() {
            return Ok(Vec::new());
        }
        let instance = |found| Instance::new(found, node_directory(&self.directory, node));
        Ok(find(&self.topology)?.map_or_else(Vec::new, |found| instance(found).environment()))
    }
}
