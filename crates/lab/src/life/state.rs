//! The directories under `/run/kaido`: the existing labs, and their states.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use model::topology::{self, Topology};
use private::Lock;
use serde::{Deserialize, Serialize};

use crate::error::LookupError;
use crate::life::holder::Holder;
use crate::pause::pause;
use crate::{Error, files};

/// State of a lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Coming up.
    Starting,
    /// Up and converged.
    Ready,
    /// Up, but a process that it needs has exited.
    Degraded,
    /// Being removed.
    Stopping,
    /// Left by a command that was killed; `gc` removes it.
    Broken,
}

impl Phase {
    /// The name of the state.
    pub fn word(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Degraded => "degraded",
            Self::Stopping => "stopping",
            Self::Broken => "broken",
        }
    }
}

/// Persistent state of a lab, besides its topology.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct State {
    pub(crate) phase: Phase,
    pub(crate) file: PathBuf,
    pub(crate) started: u64,
    /// Time at which it became ready, in nanoseconds since the machine booted.
    #[serde(default)]
    pub(crate) ready_ns: Option<u64>,
    /// The process that starts or removes the lab, or owns it.
    #[serde(default)]
    pub(crate) holder: Option<Holder>,
}

/// All labs of this machine.
#[derive(Debug, Clone)]
pub struct Labs {
    root: PathBuf,
    /// True if the directory is Kaido's own, which is removed when it is empty, and not the user's.
    owned: bool,
}

/// A lab.
#[derive(Debug)]
pub struct Lab {
    pub(crate) name: String,
    pub(crate) directory: PathBuf,
    pub(crate) topology: Topology,
    /// Held by the process that owns the lab, if any.
    pub(crate) owner: Option<Lock>,
}

/// The directory for runtime state that the environment names, if any.
fn named_directory() -> Result<Option<PathBuf>, Error> {
    match std::env::var_os("KAIDO_RUN") {
        Some(root) if root.is_empty() => Err(Error::EmptyRunDirectory),
        root => Ok(root.map(PathBuf::from)),
    }
}

/// The directory `name` in that for runtime state: `$KAIDO_RUN`, or `/run/kaido`. Fails if another
/// user could replace it.
pub fn run_directory(name: &str) -> Result<PathBuf, Error> {
    let root = named_directory()?.unwrap_or_else(|| DEFAULT.into());
    check_directory(&root, name)?;
    Ok(root.join(name))
}

fn check_directory(root: &Path, name: &str) -> Result<(), Error> {
    let unsafe_directory = |source| Error::RunDirectory { path: root.into(), source };
    private::check(&root.join(name)).map_err(unsafe_directory)
}

const DEFAULT: &str = "/run/kaido";

impl Labs {
    /// The labs under `/run/kaido`, or under `$KAIDO_RUN`.
    pub fn of_environment() -> Result<Self, Error> {
        Ok(match named_directory()? {
            // The daemons of a lab have a different working directory.
            Some(root) => {
                let root = std::path::absolute(&root).unwrap_or(root);
                check_directory(&root, "labs")?;
                Self::at(root)
            }
            None => Self { root: DEFAULT.into(), owned: true },
        })
    }

    /// The labs under `root`.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), owned: false }
    }

    /// The directory of all runtime state.
    pub fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn is_owned(&self) -> bool {
        self.owned
    }

    pub(crate) fn directory(&self, name: &str) -> PathBuf {
        self.root.join("labs").join(name)
    }

    /// Names of the labs, in order.
    pub fn names(&self) -> Result<Vec<String>, Error> {
        let labs = self.root.join("labs");
        let entries = match fs::read_dir(&labs) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) if source.kind() == std::io::ErrorKind::NotADirectory => {
                return Err(Error::RunDirectory { path: self.root.clone(), source });
            }
            Err(error) => return Err(Error::file("read", labs)(error)),
        };
        let mut names: Vec<String> = entries
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter(|name| model::is_lab_name(name) && is_lab(&self.directory(name)))
            .collect();
        names.sort();
        Ok(names)
    }

    /// State of a lab: `starting` and `stopping` only while a command holds its lock.
    pub fn phase(&self, name: &str) -> Phase {
        let directory = self.directory(name);
        let written = State::read(&directory).map_or(Phase::Starting, |state| state.phase);
        match written {
            Phase::Ready if !has_lost_owner(&directory) => Phase::Ready,
            phase if self.lock(name).is_err() => phase,
            _ => Phase::Broken,
        }
    }

    /// Opens the lab called `name`, which must be up.
    pub fn open(&self, name: &str) -> Result<Lab, Error> {
        if !model::is_lab_name(name) {
            return Err(Error::BadName(name.into()));
        }
        let directory = self.directory(name);
        if !is_lab(&directory) {
            return Err(Error::NoLab { name: name.into(), known: self.names()? });
        }
        match self.phase(name) {
            Phase::Ready => {}
            phase => return Err(Error::NotReady { name: name.into(), phase: phase.word() }),
        }
        let topology =
            read_topology(&directory).ok_or_else(|| Error::Damaged { name: name.into() })?;
        Ok(Lab { name: name.into(), directory, topology, owner: None })
    }

    /// Opens the lab called `name`; without a name, the only existing one.
    pub fn choose(&self, name: Option<&str>) -> Result<Lab, Error> {
        match (name, self.names()?.as_slice()) {
            (Some(name), _) => self.open(name),
            (None, [only]) => self.open(only),
            (None, known) => Err(Error::WhichLab { known: known.to_vec() }),
        }
    }

    /// Locks a lab, unless another process holds the lock. Waits for children of a killed command.
    pub(crate) fn lock(&self, name: &str) -> Result<Lock, Error> {
        let directory = self.directory(name);
        let lock = retry_while_inherited(&directory, || lock(&directory));
        lock.ok_or_else(|| Error::Busy(name.into()))
    }
}

/// Time that the child of a killed command may take for execve(2), with which it releases the lock.
const CHILD: Duration = Duration::from_secs(10);

/// Retries `take` while the recorded holder of a lab's lock has ended: its children keep the lock until
/// execve(2). Returns `None` if another process holds it, or after [`CHILD`].
fn retry_while_inherited<T>(directory: &Path, take: impl Fn() -> Option<T>) -> Option<T> {
    let begin = Instant::now();
    loop {
        if let Some(taken) = take() {
            return Some(taken);
        }
        let holder = State::read(directory).and_then(|state| state.holder);
        let is_child = holder.is_some_and(|holder| holder.has_ended());
        if !is_child || begin.elapsed() > CHILD {
            return None;
        }
        pause(Duration::from_millis(5));
    }
}

/// Locks a directory or a file, unless another process holds the lock.
pub(crate) fn lock(path: &Path) -> Option<Lock> {
    Lock::existing(path).ok()?
}

/// The file that the owner of a lab keeps locked for its lifetime. Labs that outlive their commands
/// have none.
fn owner_file(directory: &Path) -> PathBuf {
    directory.join("owner")
}

/// Makes this process the owner of the lab in a new directory.
pub(crate) fn own(directory: &Path) -> Result<Lock, Error> {
    let path = owner_file(directory);
    let taken = || Error::file("lock", &path)(std::io::ErrorKind::WouldBlock.into());
    Lock::file(&path).map_err(Error::file("lock", &path))?.ok_or_else(taken)
}

/// True if the process that owned a lab has exited.
fn has_lost_owner(directory: &Path) -> bool {
    let path = owner_file(directory);
    let is_free = || match Lock::is_free(&path) {
        Ok(false) => None,
        known => Some(known.unwrap_or(false)),
    };
    retry_while_inherited(directory, is_free).unwrap_or(false)
}

impl Lab {
    /// Lab name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The lab's network.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// The lab's directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Path of the controller's socket.
    pub fn controller_socket(&self) -> PathBuf {
        self.directory.join(SOCKET)
    }

    /// The namespace of a node.
    pub fn namespace(&self, node: &str) -> Result<netlink::Namespace, Error> {
        self.placed(node)?;
        Ok(netlink::Namespace::open(namespace_path(&self.directory, node))?)
    }

    /// A node that can run programs.
    pub fn placed(&self, name: &str) -> Result<&topology::Node, Error> {
        let node = self.node(name)?;
        match &node.attachment {
            _ if node.has_namespace() => Ok(node),
            Some(attachment) => {
                let (node, interface) = (name.into(), attachment.interface.clone());
                Err(Error::Lookup(LookupError::Outside { node, interface }))
            }
            None => Err(Error::Lookup(LookupError::Virtual(name.into()))),
        }
    }

    /// Finds a node of the topology. The error lists the existing ones.
    pub fn node(&self, name: &str) -> Result<&topology::Node, Error> {
        self.topology.node(name).ok_or_else(|| {
            Error::Lookup(LookupError::NoNode {
                name: name.into(),
                known: self.topology.nodes.iter().map(|node| node.name.clone()).collect(),
            })
        })
    }
}

/// The file that marks a directory as a lab's. It is the first file in the directory, and the last
/// to be removed.
pub(crate) const MARKER: &str = ".kaido-lab";

/// True if a directory is a lab's, or the remains of one without its marker: empty, or with
/// namespaces, which stay mounted if a user removes the directory by hand.
pub(crate) fn is_lab(directory: &Path) -> bool {
    let entries = |directory: &Path| fs::read_dir(directory).ok();
    let is_namespace = |entry: fs::DirEntry| netlink::Namespace::open(entry.path()).is_ok();
    directory.join(MARKER).exists()
        || entries(directory).is_some_and(|mut entries| entries.next().is_none())
        || entries(&namespaces_directory(directory))
            .is_some_and(|entries| entries.flatten().any(is_namespace))
}

/// Prefix of the directory's name before a lab has its final name; followed by the process's PID.
pub(crate) const UNNAMED: &str = ".new-";

/// The namespace of LANs' bridges and of the controller. It cannot collide with a node's: those
/// have no dot.
pub(crate) const INFRASTRUCTURE: &str = ".infrastructure";

/// Name of the namespace of a node's programs. Names of nodes begin with a letter.
pub(crate) fn programs_namespace(node: &str) -> String {
    format!(".programs-{node}")
}

/// File name of the controller's socket in a lab's directory.
pub(crate) const SOCKET: &str = "controller.sock";

/// File name of the emulator's socket in the lab's directory.
pub const EMULATOR_SOCKET: &str = "emulator.sock";

/// Path of the emulator's socket.
pub(crate) fn emulator_socket(directory: &Path) -> PathBuf {
    directory.join(EMULATOR_SOCKET)
}

/// Path of the emulator's configuration.
pub(crate) fn emulator_config(directory: &Path) -> PathBuf {
    directory.join("emulator.json")
}

pub(crate) fn namespaces_directory(directory: &Path) -> PathBuf {
    directory.join("netns")
}

pub(crate) fn namespace_path(directory: &Path, node: &str) -> PathBuf {
    namespaces_directory(directory).join(node)
}

pub(crate) fn nodes_directory(directory: &Path) -> PathBuf {
    directory.join("nodes")
}

pub(crate) fn node_directory(directory: &Path, node: &str) -> PathBuf {
    nodes_directory(directory).join(node)
}

pub(crate) fn read_topology(directory: &Path) -> Option<Topology> {
    let text = files::read_text(&directory.join("lab.yaml")).ok()?;
    topology_file::parse("lab.yaml", &text).ok()
}

impl State {
    pub(crate) fn new(file: &Path) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        // JSON is always UTF-8, and the path is only displayed.
        let file = file.to_string_lossy().into_owned().into();
        Self {
            phase: Phase::Starting,
            file,
            started: now.as_secs(),
            ready_ns: None,
            holder: Holder::own(),
        }
    }

    pub(crate) fn read(directory: &Path) -> Option<Self> {
        serde_json::from_slice(&files::read(&directory.join("state.json")).ok()?).ok()
    }

    pub(crate) fn write(&self, directory: &Path) -> Result<(), Error> {
        let json = serde_json::to_vec(self).expect("a state has no map, and its path is UTF-8");
        let path = directory.join("state.json");
        private::replace(&path, &json).map_err(Error::file("write", path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A lab without namespaces, as stored on disk.
    fn written(labs: &Labs, name: &str) -> PathBuf {
        let directory = labs.directory(name);
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join(MARKER), "").unwrap();
        fs::write(directory.join("lab.yaml"), "name: a\nnodes: {h1: {}}\n").unwrap();
        let state = State { phase: Phase::Ready, ..State::new(Path::new("/a.yaml")) };
        state.write(&directory).unwrap();
        directory
    }

    #[test]
    fn a_lab_that_has_lost_its_topology_is_broken_and_says_so() {
        let root = tempfile::tempdir().unwrap();
        let labs = Labs::at(root.path());
        let yaml = written(&labs, "a").join("lab.yaml");
        let look = || labs.list().unwrap().pop().unwrap();
        assert_eq!((look().phase, look().troubles.len()), (Phase::Ready, 0));
        for garbled in ["", "nodes: [", "\0"] {
            fs::write(&yaml, garbled).unwrap();
            assert_eq!(look().phase, Phase::Broken, "{garbled:?}");
        }
        fs::remove_file(&yaml).unwrap();
        let said = labs.open("a").unwrap_err().to_string();
        assert_eq!((look().phase, look().troubles), (Phase::Broken, vec![said]));
    }

    #[test]
    fn a_lock_that_outlives_its_holder_is_waited_for() {
        let root = tempfile::tempdir().unwrap();
        let labs = Labs::at(root.path());
        let directory = written(&labs, "a");
        let hold = |phase, holder| {
            State { phase, holder, ..State::new(Path::new("/a.yaml")) }.write(&directory).unwrap();
            lock(&directory).unwrap()
        };
        let living = hold(Phase::Starting, Holder::own());
        assert!(labs.lock("a").is_err());
        assert_eq!(labs.phase("a"), Phase::Starting);
        drop(living);
        let mut process = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let ended = Holder::of(process.id());
        process.kill().unwrap();
        process.wait().unwrap();
        let is_broken_soon = |inherited: Lock| {
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    pause(Duration::from_millis(100));
                    drop(inherited);
                });
                assert_eq!(labs.phase("a"), Phase::Broken);
            });
        };
        is_broken_soon(hold(Phase::Starting, ended.clone()));
        drop(hold(Phase::Ready, ended));
        is_broken_soon(own(&directory).unwrap());
    }

    #[test]
    fn pipes_in_a_labs_directory_are_not_waited_for() {
        let root = tempfile::tempdir().unwrap();
        let labs = Labs::at(root.path());
        for name in ["lab.yaml", "state.json", "state.json.new", "owner", "netns", MARKER] {
            let path = written(&labs, "a").join(name);
            let _ = fs::remove_file(&path);
            nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
            labs.list().unwrap();
            let _ = labs.open("a");
            labs.down("a").unwrap_or_else(|error| panic!("{name}: {error:?}"));
            assert!(labs.names().unwrap().is_empty(), "{name}");
        }
    }

    #[test]
    fn a_reader_of_a_rewritten_file_keeps_the_whole_old_one() {
        let directory = tempfile::tempdir().unwrap();
        let [path, old] = ["emulator.json", "old"].map(|name| directory.path().join(name));
        fs::write(&path, "all that was there").unwrap();
        fs::hard_link(&path, &old).unwrap();
        crate::daemons::spawn::write(&path, &7).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "7");
        assert_eq!(fs::read_to_string(&old).unwrap(), "all that was there");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2, "nothing stays beside it");
    }
}
