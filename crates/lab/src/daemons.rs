//! Kaido's own daemons in a lab: a node on every node, one controller. Data planes are in `xdp`.

use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use model::topology::Topology;
use model::{Announcement, Application};
use private::Lock;
use serde::{Deserialize, Serialize};

use crate::announce::announcement;
use crate::emulated;
use crate::enter::enter;
use crate::files::tail;
use crate::patience::{Patience, worked};
use crate::processes::{end, pause, processes};
use crate::state::{INFRASTRUCTURE, Lab, SOCKET, is_lab, lock, node_folder};
use crate::teardown::remove_whatever;
use crate::{Cancel, Error, supervised, xdp};

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
    /// The Unix socket of the emulator of its links, if some have one.
    #[serde(default)]
    pub emulator: Option<PathBuf>,
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

/// Kaido's own daemons, as those above this crate know them.
#[derive(Debug, Clone)]
pub struct Daemons {
    /// The program to run as `kaido node` and `kaido controller`.
    pub program: PathBuf,
    /// Asks the controller on a socket what it still lacks of these nodes and of its applications,
    /// in words; one that lacks nothing is complete.
    pub missing: fn(&Path, &[String]) -> Vec<String>,
    /// Asks the data plane on a socket whether it is at work.
    pub at_work: fn(&Path) -> bool,
}

/// A daemon that was started.
pub(crate) struct Started {
    pub(crate) daemon: String,
    pub(crate) log: PathBuf,
    pub(crate) process: Child,
}

impl Started {
    /// An error if the daemon has ended.
    pub(crate) fn check(&mut self) -> Result<(), Error> {
        match self.process.try_wait() {
            Ok(None) => Ok(()),
            _ => Err(self.failed("has ended")),
        }
    }

    pub(crate) fn failed(&self, what: &str) -> Error {
        let (daemon, what) = (self.daemon.clone(), what.into());
        Error::Daemon { daemon, what, log: tail(&self.log, 5) }
    }
}

/// Starts the controller and a node daemon on every node.
pub(crate) fn start_all(
    folder: &Path,
    topology: &Topology,
    program: &Path,
    cancel: &Cancel,
) -> Result<Vec<Started>, Error> {
    let config = ControllerConfig {
        socket: folder.join(SOCKET),
        store: folder.join("controller.store"),
        applications: topology.applications.clone(),
    };
    write(&controller_config(folder), &config)?;
    let mut controller = start_controller(folder, program)?;
    wait_for_socket(&folder.join(SOCKET), &mut controller, cancel)?;
    let mut started = vec![controller];
    for at in 0..topology.nodes.len() {
        let files = node_folder(folder, &topology.nodes[at].name);
        private::make(&files).map_err(Error::file("make", &files))?;
        let config = NodeConfig {
            controller: folder.join(SOCKET),
            mtu: topology.mtu,
            announcement: announcement(topology, at),
            emulator: has_emulated(topology, at).then(|| emulated::socket(folder)),
        };
        write(&files.join("node.json"), &config)?;
        started.push(start_node(folder, &topology.nodes[at].name, program)?);
    }
    Ok(started)
}

/// Whether a node has an interface to an emulated link.
fn has_emulated(topology: &Topology, node: usize) -> bool {
    let mut emulated = topology.segments.iter().filter(|segment| topology.is_emulated(segment));
    emulated.any(|segment| segment.ends.iter().any(|end| end.node == node))
}

/// Waits until the controller is complete, as long as all daemons live.
pub(crate) fn wait(
    folder: &Path,
    topology: &Topology,
    mut started: Vec<Started>,
    missing: fn(&Path, &[String]) -> Vec<String>,
    cancel: &Cancel,
) -> Result<(), Error> {
    const LIMIT: Duration = Duration::from_secs(20);
    let nodes: Vec<String> = topology.nodes.iter().map(|node| node.name.clone()).collect();
    let socket = folder.join(SOCKET);
    let since = Instant::now();
    loop {
        cancel.check()?;
        started.iter_mut().try_for_each(Started::check)?;
        let missing = missing(&socket, &nodes);
        if missing.is_empty() {
            return Ok(());
        }
        if since.elapsed() > LIMIT {
            return Err(Error::Incomplete { seconds: LIMIT.as_secs(), missing });
        }
        pause(Duration::from_millis(20));
    }
}

impl Lab {
    /// Starts the lab's controller again after it has ended.
    pub fn start_controller(&self, program: &Path) -> Result<(), Error> {
        if !self.topology.controller {
            return Err(Error::NoController(self.name.clone()));
        }
        let _lock = self.lock_to_start()?;
        let socket = self.controller_socket();
        if !self.makes_way(&controller_config(&self.folder), &socket)? {
            return Err(Error::Running("controller".into()));
        }
        let mut controller = start_controller(&self.folder, program)?;
        wait_for_socket(&socket, &mut controller, &Cancel::default())
    }

    /// Starts the lab's emulator again after it has ended, or when nobody reaches it any more: its links are as in
    /// the file and its events.
    pub fn start_emulator(&self, daemons: &Daemons) -> Result<(), Error> {
        if !self.topology.has_emulated() {
            return Err(Error::NoEmulator(self.name.clone()));
        }
        let lock = self.lock_to_start()?;
        let config = emulated::config(&self.folder);
        if !self.makes_way(&config, &emulated::socket(&self.folder))? {
            return Err(Error::Running("emulator".into()));
        }
        self.supervise(daemons)?;
        emulated::run(&self.folder, daemons, &Cancel::default())?;
        // What is due meanwhile may need it.
        drop(lock);
        supervised::wait_until_mended(&self.folder)
    }

    /// Starts the lab's supervisor again after it has ended: it goes on where it was.
    pub fn start_supervisor(&self, daemons: &Daemons) -> Result<(), Error> {
        if !supervised::is_needed(&self.topology) {
            return Err(Error::NoSupervisor(self.name.clone()));
        }
        let _lock = self.lock_to_start()?;
        if !self.supervise(daemons)? {
            return Err(Error::Running("supervisor".into()));
        }
        Ok(())
    }

    /// Starts the supervisor unless it runs. Returns whether it did.
    fn supervise(&self, daemons: &Daemons) -> Result<bool, Error> {
        if !self.makes_way(&supervised::config(&self.folder), &supervised::socket(&self.folder))? {
            return Ok(false);
        }
        supervised::run(&self.folder, daemons, &Cancel::default())?;
        Ok(true)
    }

    /// Starts those of a node's daemons again that have ended.
    pub fn start_node(&self, node: &str, daemons: &Daemons) -> Result<(), Error> {
        let runs_xdp = self.node(node)?.runs_xdp();
        if !self.topology.controller && !runs_xdp {
            return Err(Error::NoController(self.name.clone()));
        }
        let _lock = self.lock_to_start()?;
        let (flag, state) = xdp::known_by(&self.folder, node);
        let dataplane = runs_xdp && !self.runs(flag, &state);
        let config = node_folder(&self.folder, node).join("node.json");
        let agent = self.topology.controller && !self.runs(CONFIG, &config);
        if !dataplane && !agent {
            return Err(Error::Running(node.into()));
        }
        if dataplane {
            xdp::start_again(&self.folder, node, daemons)?;
        }
        if agent {
            start_node(&self.folder, node, &daemons.program)?;
        }
        Ok(())
    }

    /// The lab's lock; whoever else is starting a daemon is soon done.
    pub(crate) fn lock_to_start(&self) -> Result<Lock, Error> {
        const LIMIT: Duration = Duration::from_secs(15);
        let since = Instant::now();
        loop {
            match lock(&self.folder) {
                Some(lock) => return Ok(lock),
                // It may have been `down` that held it.
                None if !is_lab(&self.folder) => {
                    return Err(Error::NoLab { name: self.name.clone(), known: Vec::new() });
                }
                None if since.elapsed() > LIMIT => return Err(Error::Busy(self.name.clone())),
                None => pause(Duration::from_millis(10)),
            }
        }
    }

    /// Whether a daemon with this configuration can be started: none runs, or one whose socket is gone, which nobody
    /// reaches any more. That one is ended.
    fn makes_way(&self, config: &Path, socket: &Path) -> Result<bool, Error> {
        if !self.runs(CONFIG, config) {
            return Ok(true);
        }
        if !is_deaf(socket) {
            return Ok(false);
        }
        end(|| running(&self.folder, CONFIG, config))?;
        // What stands there is nobody's now.
        match remove_whatever(socket) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(Error::file("remove", socket)(error));
            }
            _ => {}
        }
        Ok(!self.runs(CONFIG, config))
    }

    /// Whether a daemon with this argument runs. It may hold a lock on the file as long as it lives,
    /// and is one of the lab's processes before it does: one that has just been started must not
    /// find the lock taken by this look at it.
    fn runs(&self, flag: &str, path: &Path) -> bool {
        // Who has just been killed has no arguments any more, and the lock for a moment longer.
        const DYING: Duration = Duration::from_millis(500);
        let since = Instant::now();
        loop {
            if !running(&self.folder, flag, path).is_empty() {
                return true;
            }
            if !path.is_file() || lock(path).is_some() {
                return false;
            }
            if since.elapsed() > DYING {
                return true;
            }
            pause(Duration::from_millis(10));
        }
    }
}

/// How the controller and the nodes' agents get their configurations.
const CONFIG: &str = "--config";

/// The lab's processes that were started with this flag and path.
fn running(folder: &Path, flag: &str, path: &Path) -> Vec<i32> {
    processes(folder).into_iter().filter(|&pid| has_argument(pid, flag, path)).collect()
}

/// Whether a daemon with this configuration runs though nobody listens on its socket.
pub(crate) fn runs_deaf(folder: &Path, config: &Path, socket: &Path) -> bool {
    is_deaf(socket) && !running(folder, CONFIG, config).is_empty()
}

/// Whether nobody listens on a socket, or it is gone.
pub fn is_deaf(socket: &Path) -> bool {
    let found = std::os::unix::net::UnixStream::connect(socket).map_err(|error| error.kind());
    matches!(found, Err(ErrorKind::NotFound | ErrorKind::ConnectionRefused))
}

/// Whether a process was started with this flag and path.
fn has_argument(pid: i32, flag: &str, path: &Path) -> bool {
    let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let arguments: Vec<&[u8]> = arguments.split(|byte| *byte == 0).collect();
    arguments.windows(2).any(|pair| pair == [flag.as_bytes(), path.as_os_str().as_bytes()])
}

pub(crate) fn controller_config(folder: &Path) -> PathBuf {
    folder.join("controller.json")
}

fn start_controller(folder: &Path, program: &Path) -> Result<Started, Error> {
    let (config, log) = (controller_config(folder), folder.join("controller.log"));
    let arguments = ["controller".as_ref(), CONFIG.as_ref(), config.as_os_str()];
    let process = spawn(folder, INFRASTRUCTURE, &log, program, &arguments, Stdio::null())?;
    Ok(Started { daemon: "the controller".into(), log, process })
}

fn start_node(folder: &Path, node: &str, program: &Path) -> Result<Started, Error> {
    let files = node_folder(folder, node);
    let (config, log) = (files.join("node.json"), files.join("node.log"));
    let arguments = ["node".as_ref(), CONFIG.as_ref(), config.as_os_str()];
    let process = spawn(folder, node, &log, program, &arguments, Stdio::null())?;
    Ok(Started { daemon: format!("the daemon of node {node}"), log, process })
}

/// Starts a daemon of the whole lab, which has its configuration, its log and its socket in the lab's folder, under
/// its own name; waits until it answers. `input`: its standard input.
pub(crate) fn run(
    folder: &Path,
    name: &str,
    daemons: &Daemons,
    input: Stdio,
    cancel: &Cancel,
) -> Result<(), Error> {
    let file = |end: &str| folder.join(format!("{name}.{end}"));
    let (config, log, socket) = (file("json"), file("log"), file("sock"));
    let arguments = [name.as_ref(), CONFIG.as_ref(), config.as_os_str()];
    let process = spawn(folder, INFRASTRUCTURE, &log, &daemons.program, &arguments, input)?;
    let mut started = Started { daemon: format!("the {name}"), log, process };
    wait_for_socket(&socket, &mut started, cancel)
}

/// Starts a daemon where it belongs. Its parent's thread is there already when it is born, so
/// that it is found there at every moment; it ignores what happens to the terminal. `input`: its standard
/// input.
pub(crate) fn spawn(
    folder: &Path,
    node: &str,
    log: &Path,
    program: &Path,
    arguments: &[&OsStr],
    input: Stdio,
) -> Result<Child, Error> {
    use std::os::unix::process::CommandExt;
    let output = private::append(log).map_err(Error::file("open", log))?;
    let errors = output.try_clone().map_err(Error::file("open", log))?;
    let mut command = Command::new(program);
    command.args(arguments);
    command.stdin(input).stdout(output).stderr(errors).process_group(0).current_dir("/");
    std::thread::scope(|scope| {
        let work = || {
            enter(folder, node, false)?;
            let name = format!("{} {}", program.display(), arguments[0].display());
            command.spawn().map_err(|source| Error::Command { command: name, source })
        };
        scope.spawn(work).join().expect("starting a daemon does not panic")
    })
}

/// Waits until a daemon that was started answers on its socket, as long as it is at work.
pub(crate) fn wait_for_socket(
    socket: &Path,
    started: &mut Started,
    cancel: &Cancel,
) -> Result<(), Error> {
    let (since, mut patience) = (Instant::now(), Patience::default());
    while std::os::unix::net::UnixStream::connect(socket).is_err() {
        cancel.check()?;
        started.check()?;
        if patience.has_ended(since.elapsed(), worked(started.process.id())) {
            return Err(started.failed("does not answer"));
        }
        pause(Duration::from_millis(10));
    }
    Ok(())
}

/// Writes a daemon's configuration.
pub(crate) fn write(path: &Path, config: &impl Serialize) -> Result<(), Error> {
    let json = serde_json::to_vec_pretty(config)
        .expect("no odd keys, and `up` refuses paths that are not UTF-8");
    private::replace(path, &json).map_err(Error::file("write", path))
}
