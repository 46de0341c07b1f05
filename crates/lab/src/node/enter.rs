//! Running commands on a node: in its network namespace, with its own view of FRR and /sys.

use std::path::{Path, PathBuf};
use std::process::Command;

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};

use crate::Error;
use crate::error::LookupError;
use crate::life::state::{Lab, namespace_path, node_directory};

/// The directory in which FRR's programs look for their sockets.
pub(crate) const FRR_RUN: &str = "/run/frr";
const FRR_ETC: &str = "/etc/frr";

impl Lab {
    /// Moves the calling thread onto a node permanently, for a process that is about to exec a
    /// command.
    pub fn enter(&self, node: &str) -> Result<(), Error> {
        let runs_frr = self.placed(node)?.runs_frr();
        enter(&self.directory, node, runs_frr)
    }

    /// The command that captures packets on a node's interface.
    pub fn capture_command(&self, node: &str, interface: &str) -> Result<Command, Error> {
        self.placed(node)?;
        let at = self.topology.node_index(node).unwrap_or_default();
        let known = self.topology.interface_names(at);
        if !known.contains(&interface) {
            return Err(Error::Lookup(LookupError::NoInterface {
                node: node.into(),
                name: interface.into(),
                known: known.into_iter().map(str::to_owned).collect(),
            }));
        }
        let mut command = Command::new("tcpdump");
        command.args(["-n", "-i", interface]);
        Ok(command)
    }
}

/// Runs `work` on a thread of its own, which it can move into namespaces. A thread that forks has
/// entered them already: if this process is killed, its children are found there at any moment.
pub(crate) fn on_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| scope.spawn(work).join().expect("starting a process does not panic"))
}

/// Moves the calling thread into a node's network namespace and a new mount namespace, where FRR's
/// directories and /sys are the node's. The process's other threads are unaffected.
pub(crate) fn enter(directory: &Path, node: &str, frr: bool) -> Result<(), Error> {
    netlink::Namespace::open(namespace_path(directory, node))?.enter()?;
    unshare(CloneFlags::CLONE_NEWNS).map_err(mount_error("/"))?;
    // Mounts from here on do not propagate to the parent namespace.
    let slave = MsFlags::MS_REC | MsFlags::MS_SLAVE;
    mount(None::<&str>, "/", None::<&str>, slave, None::<&str>).map_err(mount_error("/"))?;
    if frr {
        let files = node_directory(directory, node);
        bind(&files.join("run"), FRR_RUN)?;
        bind(&files.join("etc"), FRR_ETC)?;
    }
    fresh_sys()
}

/// Replaces /run by an empty directory with the node's FRR_RUN, and the directories that all users
/// share by empty ones with few files, for daemons that may be compromised: they have sockets of
/// the machine's daemons and of users, and network namespaces (/run/netns) that any user can open.
/// Also hides the machine's terminals, of which there is a limited number (kernel.pty.max).
pub(crate) fn hide_machine() -> Result<(), Error> {
    let sockets = std::fs::File::open(FRR_RUN).map_err(Error::file("open", FRR_RUN))?;
    empty("/run", "mode=0755,size=64k,nr_inodes=1k")?;
    for shared in ["/tmp", "/var/tmp", "/dev/shm"] {
        if Path::new(shared).is_dir() {
            empty(shared, "mode=1777,size=16m,nr_inodes=1k")?;
        }
    }
    if Path::new("/dev/ptmx").exists() {
        bind(Path::new("/dev/null"), "/dev/ptmx")?;
    }
    if Path::new("/dev/pts").is_dir() {
        empty("/dev/pts", "mode=0755,size=4k,nr_inodes=2")?;
    }
    std::fs::create_dir(FRR_RUN).map_err(Error::file("create", FRR_RUN))?;
    bind(&descriptor(&sockets), FRR_RUN)
}

/// Mounts /proc again in a mount namespace of its own, for the first process of a PID namespace:
/// that of the machine shows the network of each process (/proc/PID/net).
pub fn hide_processes() -> Result<(), Error> {
    unshare(CloneFlags::CLONE_NEWNS).map_err(mount_error("/"))?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("proc"), "/proc", Some("proc"), flags, None::<&str>).map_err(mount_error("/proc"))
}

fn empty(directory: &str, options: &str) -> Result<(), Error> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("tmpfs"), directory, Some("tmpfs"), flags, Some(options))
        .map_err(mount_error(directory))
}

/// Path of an open file, also if a mount hides it.
fn descriptor(file: &std::fs::File) -> PathBuf {
    use std::os::fd::AsRawFd;
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

/// Mounts /sys again, since it shows the interfaces of the namespace in which it was mounted.
/// Mounts below it (bpffs, control groups) are moved along.
fn fresh_sys() -> Result<(), Error> {
    // Other users can mount at paths that are not UTF-8.
    let mounts =
        std::fs::read("/proc/self/mounts").map_err(Error::file("read", "/proc/self/mounts"))?;
    let below: Vec<String> = String::from_utf8_lossy(&mounts)
        .lines()
        .filter_map(|line| line.split(' ').nth(1))
        .filter(|path| path.starts_with("/sys/fs/") && path.matches('/').count() == 3)
        .map(str::to_owned)
        .collect();
    // The new mount would hide them: open each before mounting.
    let held: Vec<(String, std::fs::File)> = below
        .into_iter()
        .filter_map(|path| Some((path.clone(), std::fs::File::open(path).ok()?)))
        .collect();
    mount(Some("sysfs"), "/sys", Some("sysfs"), MsFlags::empty(), None::<&str>)
        .map_err(mount_error("/sys"))?;
    for (path, file) in held {
        // A kernel without the mount point does not need the mount.
        let flags = MsFlags::MS_BIND | MsFlags::MS_REC;
        let _ = mount(Some(&descriptor(&file)), path.as_str(), None::<&str>, flags, None::<&str>);
    }
    Ok(())
}

fn bind(from: &Path, onto: &str) -> Result<(), Error> {
    mount(Some(from), onto, None::<&str>, MsFlags::MS_BIND, None::<&str>).map_err(mount_error(onto))
}

fn mount_error(path: &str) -> impl FnOnce(nix::errno::Errno) -> Error {
    let path = path.to_owned();
    move |errno| Error::File { doing: "mount", path: path.into(), source: errno.into() }
}
