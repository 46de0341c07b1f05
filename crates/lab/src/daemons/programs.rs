//! Programs on the links' ends of hosts and routers: `kaido p4 attach` between each end and its node.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use model::topology::{Node, Topology};
use netlink::{Handle, Namespace};

use crate::daemons::processes::end_in;
use crate::daemons::spawn::{CONFIG, Started, spawn_command};
use crate::daemons::tenants::{self, CLIENT};
use crate::life::state::{namespace_path, node_directory, programs_namespace};
use crate::node::ends::{judged, users_end};
use crate::pause::pause;
use crate::{Cancel, Error};

/// Timeout of a start. A large program is compiled for several seconds.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Starts the programs of all hosts and routers, and waits until they judge packets. `file`: path of
/// the topology file, which programs are relative to.
pub(crate) fn start_all(
    directory: &Path,
    topology: &Topology,
    file: &Path,
    program: &Path,
    cancel: &Cancel,
) -> Result<(), Error> {
    let mut all = Vec::new();
    for node in topology.nodes.iter().filter(|node| node.has_programs()) {
        cancel.check()?;
        tenants::write(directory, file, node, &node.tenants)?;
        all.push((node, start(directory, node, program)?));
    }
    all.into_iter().try_for_each(|(node, mut started)| wait(directory, node, &mut started, cancel))
}

/// Restarts the programs of a node, after the end of what a killed command has left.
pub(crate) fn start_again(directory: &Path, node: &Node, program: &Path) -> Result<(), Error> {
    let namespace = namespace_path(directory, &programs_namespace(&node.name));
    end_in(&namespace)?;
    let mut started = start(directory, node, program)?;
    wait(directory, node, &mut started, &Cancel::default())
}

fn start(directory: &Path, node: &Node, program: &Path) -> Result<Started, Error> {
    let files = node_directory(directory, &node.name);
    let mut command = Command::new(program);
    command.args(["p4", "attach", CONFIG]).arg(tenants::config(directory, &node.name));
    command.args(["--name", CLIENT]).env("KAIDO_RUN", &files);
    for (index, interface) in judged(node) {
        command.args(["--to", &format!("{}={}", interface.name, users_end(index))]);
    }
    let log = files.join("programs.log");
    let namespace = programs_namespace(&node.name);
    let process = spawn_command(directory, &namespace, &log, command, Stdio::null())?;
    Ok(Started { daemon: format!("the programs of {}", node.name), log, process })
}

/// Waits until XDP leads the packets of all interfaces to programs.
fn wait(
    directory: &Path,
    node: &Node,
    started: &mut Started,
    cancel: &Cancel,
) -> Result<(), Error> {
    let path = namespace_path(directory, &programs_namespace(&node.name));
    let mut handle = Handle::within(&Namespace::open(path)?)?;
    let since = Instant::now();
    for (index, interface) in judged(node) {
        for name in [interface.name.clone(), users_end(index)] {
            while handle.link(&name)?.xdp.is_empty() {
                cancel.check()?;
                started.check()?;
                if since.elapsed() > TIMEOUT {
                    return Err(started.failed("do not judge packets"));
                }
                pause(Duration::from_millis(10));
            }
        }
    }
    Ok(())
}
