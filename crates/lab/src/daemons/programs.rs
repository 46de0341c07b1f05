//! Programs on the links' ends of hosts and routers: `kaido p4 attach` between each end and its node.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use model::topology::{Node, Topology};

use crate::daemons::processes::{end, pause, processes_in};
use crate::daemons::spawn::{CONFIG, Started, spawn_command};
use crate::daemons::tenants::{self, CLIENT};
use crate::life::state::{namespace_path, node_directory, programs_namespace};
use crate::node::ends::{judged, users_end};
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
    all.into_iter().try_for_each(|(node, mut started)| wait(node, &mut started, cancel))
}

/// Restarts the programs of a node, after the end of what a killed command has left.
pub(crate) fn start_again(directory: &Path, node: &Node, program: &Path) -> Result<(), Error> {
    let namespace = namespace_path(directory, &programs_namespace(&node.name));
    end(|| processes_in(&namespace))?;
    let mut started = start(directory, node, program)?;
    wait(node, &mut started, &Cancel::default())
}

fn start(directory: &Path, node: &Node, program: &Path) -> Result<Attaching, Error> {
    let files = node_directory(directory, &node.name);
    let mut command = Command::new(program);
    command.args(["p4", "attach", CONFIG]).arg(tenants::config(directory, &node.name));
    command.args(["--name", CLIENT]).env("KAIDO_RUN", &files);
    for (index, interface) in judged(node) {
        command.args(["--to", &format!("{}={}", interface.name, users_end(index))]);
    }
    let log = files.join("programs.log");
    let before = fs::metadata(&log).map_or(0, |log| log.len());
    let namespace = programs_namespace(&node.name);
    let process = spawn_command(directory, &namespace, &log, command, Stdio::null())?;
    let daemon = Started { daemon: format!("the programs of {}", node.name), log, process };
    Ok(Attaching { daemon, before })
}

/// A command that attaches programs.
struct Attaching {
    daemon: Started,
    /// Length of its log before it was started.
    before: u64,
}

impl Attaching {
    /// Returns the number of interfaces that it has connected through programs.
    fn connected(&self) -> usize {
        let read = |mut log: File| {
            log.seek(SeekFrom::Start(self.before))?;
            // Warnings are a few lines for each interface.
            let mut text = Vec::new();
            log.take(1 << 20).read_to_end(&mut text)?;
            Ok::<_, io::Error>(text)
        };
        let text = File::open(&self.daemon.log).and_then(read).unwrap_or_default();
        String::from_utf8_lossy(&text).matches(" are connected through programs\n").count()
    }
}

/// Waits until programs judge the packets of all interfaces.
fn wait(node: &Node, started: &mut Attaching, cancel: &Cancel) -> Result<(), Error> {
    let (since, wanted) = (Instant::now(), judged(node).len());
    while started.connected() < wanted {
        cancel.check()?;
        started.daemon.check()?;
        if since.elapsed() > TIMEOUT {
            return Err(started.daemon.failed("do not judge packets"));
        }
        pause(Duration::from_millis(10));
    }
    Ok(())
}
