//! Kaido's own daemons in a lab: an agent on every node, and one controller. Data planes are in
//! `xdp`.

use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use model::topology::Topology;
use private::Lock;
use serde::Serialize;

use crate::announce::announcement;
use crate::emulated;
use crate::enter::enter;
use crate::files::tail;
use crate::patience::{Patience, worked};
use crate::processes::{end, pause, processes};
use crate::state::{INFRASTRUCTURE, Lab, SOCKET, is_lab, lock, node_folder};
use crate::teardown::remove_whatever;
use crate::{Cancel, Error, supervised, xdp};

/// A daemon that was started.
pub(crate) struct Started {
    pub(crate) daemon: String,
    pub(crate) log: PathBuf,
    pub(crate) process: Child,
}

impl Started {
    /// Returns an error if the daemon has exited.
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

/// Starts the controller, and the agent of every node.
pub(crate) fn start_all(
    folder: &Path,
    topology: &Topology,
    program: &Path,
    cancel: &Cancel,
) -> Result<Vec<Started>, Error> {
    let config = controller::Config {
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
        let config = node::Config {
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

/// True if a node has an interface to an emulated link.
fn has_emulated(topology: &Topology, node: usize) -> bool {
    let mut emulated = topology.segments.iter().filter(|segment| topology.is_emulated(segment));
    emulated.any(|segment| segment.ends.iter().any(|end| end.node == node))
}

/// Waits until the controller is complete. Fails as soon as a daemon exits.
pub(crate) fn wait(
    folder: &Path,
    topology: &Topology,
    mut started: Vec<Started>,
    cancel: &Cancel,
) -> Result<(), Error> {
    const LIMIT: Duration = Duration::from_secs(20);
    let nodes: Vec<String> = topology.nodes.iter().map(|node| node.name.clone()).collect();
    let socket = folder.join(SOCKET);
    let since = Instant::now();
    loop {
        cancel.check()?;
        started.iter_mut().try_for_each(Started::check)?;
        let missing = api::missing(&socket, &nodes);
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
    /// Restarts the lab's controller after it has exited.
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

    /// Restarts the lab's emulator after it has exited or become unreachable. Its links are
    /// restored from the file and the file's events.
    pub fn start_emulator(&self, program: &Path) -> Result<(), Error> {
        if !self.topology.has_emulated() {
            return Err(Error::NoEmulator(self.name.clone()));
        }
        let lock = self.lock_to_start()?;
        let config = emulated::config(&self.folder);
        if !self.makes_way(&config, &emulated::socket(&self.folder))? {
            return Err(Error::Running("emulator".into()));
        }
        self.supervise(program)?;
        emulated::run(&self.folder, program, &Cancel::default())?;
        // Steps of the timeline that are due in the meantime may need the lock.
        drop(lock);
        supervised::wait_until_mended(&self.folder)
    }

    /// Restarts the lab's supervisor after it has exited; it resumes the timeline.
    pub fn start_supervisor(&self, program: &Path) -> Result<(), Error> {
        if !supervised::is_needed(&self.topology) {
            return Err(Error::NoSupervisor(self.name.clone()));
        }
        let _lock = self.lock_to_start()?;
        if !self.supervise(program)? {
            return Err(Error::Running("supervisor".into()));
        }
        Ok(())
    }

    /// Starts the supervisor unless it is running. Returns true if it was started.
    fn supervise(&self, program: &Path) -> Result<bool, Error> {
        if !self.makes_way(&supervised::config(&self.folder), &supervised::socket(&self.folder))? {
            return Ok(false);
        }
        supervised::run(&self.folder, program, &Cancel::default())?;
        Ok(true)
    }

    /// Restarts those of a node's daemons that have exited.
    pub fn start_node(&self, node: &str, program: &Path) -> Result<(), Error> {
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
            xdp::start_again(&self.folder, node, program)?;
        }
        if agent {
            start_node(&self.folder, node, program)?;
        }
        Ok(())
    }

    /// Takes the lab's lock. Another command that is starting a daemon soon releases it.
    pub(crate) fn lock_to_start(&self) -> Result<Lock, Error> {
        const LIMIT: Duration = Duration::from_secs(15);
        let since = Instant::now();
        loop {
            match lock(&self.folder) {
                Some(lock) => return Ok(lock),
                // The holder may have been `down`, which has removed the lab.
                None if !is_lab(&self.folder) => {
                    return Err(Error::NoLab { name: self.name.clone(), known: Vec::new() });
                }
                None if since.elapsed() > LIMIT => return Err(Error::Busy(self.name.clone())),
                None => pause(Duration::from_millis(10)),
            }
        }
    }

    /// Returns true if a daemon with this configuration can be started: none is running, or the
    /// running one is unreachable because its socket is gone. The latter is killed.
    fn makes_way(&self, config: &Path, socket: &Path) -> Result<bool, Error> {
        if !self.runs(CONFIG, config) {
            return Ok(true);
        }
        if !is_deaf(socket) {
            return Ok(false);
        }
        end(|| running(&self.folder, CONFIG, config))?;
        // The socket's path is unused now.
        match remove_whatever(socket) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(Error::file("remove", socket)(error));
            }
            _ => {}
        }
        Ok(!self.runs(CONFIG, config))
    }

    /// Returns true if a daemon with this argument is running. It may hold a lock on the file for
    /// its lifetime, and is one of the lab's processes before it takes that lock. Look for the
    /// process first, so that a daemon which has just started does not find the lock taken by this
    /// check.
    fn runs(&self, flag: &str, path: &Path) -> bool {
        // A process that was just killed has an empty cmdline but may hold its lock briefly.
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

/// The flag that passes the controller and the nodes' agents their configurations.
const CONFIG: &str = "--config";

/// PIDs of the lab's processes that were started with this flag and path.
fn running(folder: &Path, flag: &str, path: &Path) -> Vec<i32> {
    processes(folder).into_iter().filter(|&pid| has_argument(pid, flag, path)).collect()
}

/// True if a daemon with this configuration is running, but does not listen on its socket.
pub(crate) fn runs_deaf(folder: &Path, config: &Path, socket: &Path) -> bool {
    is_deaf(socket) && !running(folder, CONFIG, config).is_empty()
}

/// True if no process listens on a socket, or it does not exist.
pub fn is_deaf(socket: &Path) -> bool {
    let found = std::os::unix::net::UnixStream::connect(socket).map_err(|error| error.kind());
    matches!(found, Err(ErrorKind::NotFound | ErrorKind::ConnectionRefused))
}

/// True if a process was started with this flag and path.
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

/// Starts a daemon that serves the whole lab, and waits until it answers. Its configuration, log
/// and socket are in the lab's folder and named after the daemon. `input`: its standard input.
pub(crate) fn run(
    folder: &Path,
    name: &str,
    program: &Path,
    input: Stdio,
    cancel: &Cancel,
) -> Result<(), Error> {
    let file = |end: &str| folder.join(format!("{name}.{end}"));
    let (config, log, socket) = (file("json"), file("log"), file("sock"));
    let arguments = [name.as_ref(), CONFIG.as_ref(), config.as_os_str()];
    let process = spawn(folder, INFRASTRUCTURE, &log, program, &arguments, input)?;
    let mut started = Started { daemon: format!("the {name}"), log, process };
    wait_for_socket(&socket, &mut started, cancel)
}

/// Starts a daemon in its namespace. The forking thread has entered the namespace already, so the
/// child is found there from its first moment on. The daemon ignores the terminal's signals.
/// `input`: its standard input.
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

/// Waits until a daemon answers on its socket. Fails as soon as it exits.
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
