//! Control groups (cgroups(7)) that limit memory and CPU time of a sandbox process, where the host
//! has them and permits creating them.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Number of the next group.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// Prefix of group names. The creator's pid, a number and the inode of its PID namespace follow, so
/// that stale groups can be found.
const PREFIX: &str = "kaido-";
/// Period of the CPU quota in microseconds.
const PERIOD: u64 = 10_000;

/// Time to wait for an exited process to leave its group.
const LEAVING: Duration = Duration::from_secs(1);

/// Age of a group without a process whose creator is not known.
const OLD: Duration = Duration::from_secs(60);

/// Resource limits of a process.
#[derive(Debug, Clone, Copy)]
pub(super) struct Share {
    /// Memory in bytes.
    pub memory: u64,
    /// CPU time in percent of one CPU; `None` for no limit.
    pub cpu: Option<u32>,
}

/// Control group of a process, in as many hierarchies as its limits need. Removed on drop, after
/// the process has exited.
#[derive(Debug, Default)]
pub(super) struct Group {
    directories: Vec<PathBuf>,
    pub(super) memory: bool,
    pub(super) cpu: bool,
}

/// A cgroup hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Hierarchy {
    /// Directory in which groups are created.
    root: PathBuf,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Version 2, with all controllers.
    Unified,
    /// Version 1: one hierarchy per controller.
    Memory,
    Cpu,
}

impl Group {
    /// Creates a group with as many of these limits as the host permits.
    pub(super) fn new(share: Share) -> Self {
        let hierarchies = hierarchies(&read("/proc/self/mounts"), &read("/proc/self/cgroup"));
        let name = free_name(&hierarchies);
        let mut group = Self::default();
        for one in &hierarchies {
            group.join(one, &name, share);
        }
        group
    }

    /// Creates a group in a hierarchy for the limits that are not yet set.
    fn join(&mut self, hierarchy: &Hierarchy, name: &str, share: Share) {
        let wants_memory = !self.memory && hierarchy.kind != Kind::Cpu;
        let wants_cpu = !self.cpu && hierarchy.kind != Kind::Memory && share.cpu.is_some();
        if !wants_memory && !wants_cpu {
            return;
        }
        remove_dead(&hierarchy.root);
        if hierarchy.kind == Kind::Unified {
            // The controllers may already be enabled. If they cannot be enabled, setting the limits
            // fails.
            let _ = fs::write(hierarchy.root.join("cgroup.subtree_control"), "+memory +cpu");
        }
        let directory = hierarchy.root.join(name);
        if fs::create_dir(&directory).is_err() {
            return;
        }
        let set = |file: &str, value: String| fs::write(directory.join(file), value).is_ok();
        let memory = share.memory.to_string();
        let quota = share.cpu.map_or(0, quota);
        match hierarchy.kind {
            Kind::Unified => {
                if wants_memory && set("memory.max", memory) {
                    self.memory = true;
                    // The file does not exist on hosts without swap accounting.
                    set("memory.swap.max", "0".to_owned());
                }
                self.cpu |= wants_cpu && set("cpu.max", format!("{quota} {PERIOD}"));
            }
            Kind::Memory => self.memory = set("memory.limit_in_bytes", memory),
            Kind::Cpu => {
                self.cpu = set("cpu.cfs_period_us", PERIOD.to_string())
                    && set("cpu.cfs_quota_us", quota.to_string());
            }
        }
        self.directories.push(directory);
    }

    /// Moves a process into the group.
    ///
    /// # Errors
    ///
    /// Fails if the kernel rejects the move.
    pub(super) fn take(&self, process: u32) -> io::Result<()> {
        let mut each = self.directories.iter();
        each.try_for_each(|directory| {
            fs::write(directory.join("cgroup.procs"), process.to_string())
        })
    }

    /// Gives the group SCHED_IDLE's weight beside other groups, or takes it away. A thread's own
    /// SCHED_IDLE counts only beside threads of its group. Nothing changes in a hierarchy without the
    /// CPU controller.
    pub(super) fn set_idle(&self, is_idle: bool) {
        self.set("cpu.idle", if is_idle { "1" } else { "0" });
    }

    /// Limits CPU time to a share of one CPU in percent.
    pub(super) fn limit(&self, cpu: u32) {
        let quota = quota(cpu);
        self.set("cpu.max", &format!("{quota} {PERIOD}"));
        self.set("cpu.cfs_quota_us", &quota.to_string());
    }

    /// Removes the limit of CPU time.
    pub(super) fn unlimit(&self) {
        self.set("cpu.max", "max");
        self.set("cpu.cfs_quota_us", "-1");
    }

    /// Writes a value into a file where it exists.
    fn set(&self, file: &str, value: &str) {
        for directory in &self.directories {
            let mut options = fs::OpenOptions::new();
            let opened = options.write(true).truncate(true).open(directory.join(file));
            let _ = opened.and_then(|mut file| file.write_all(value.as_bytes()));
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for directory in &self.directories {
            // If the removal times out, a later `Group::new` removes the group.
            remove(directory);
        }
    }
}

/// Returns the CPU time in each period in microseconds, at least what the kernel accepts, for a share in
/// percent.
fn quota(cpu: u32) -> u64 {
    (u64::from(cpu) * PERIOD / 100).max(1000)
}

/// Finds the hierarchies with suitable controllers in `/proc/self/mounts` and `/proc/self/cgroup`.
/// In version 1, groups are created below this process's own group, so that its limits apply as
/// well.
fn hierarchies(mounts: &str, own: &str) -> Vec<Hierarchy> {
    let mut all = Vec::new();
    for line in mounts.lines() {
        let fields: Vec<_> = line.split(' ').collect();
        let [_, mount, of, options, ..] = fields[..] else { continue };
        let mount = Path::new(mount);
        let controls = |name: &str| options.split(',').any(|one| one == name);
        let below = |name: &str| {
            let path = own.lines().find_map(|line| {
                let mut parts = line.splitn(3, ':').skip(1);
                let names = parts.next()?;
                names.split(',').any(|one| one == name).then(|| parts.next())?
            });
            mount.join(path.unwrap_or("/").trim_start_matches('/'))
        };
        match of {
            // Version 2 does not allow controllers below a group with processes, so groups are
            // created at the root.
            "cgroup2" => all.push(Hierarchy { root: mount.to_owned(), kind: Kind::Unified }),
            "cgroup" if controls("memory") => {
                all.push(Hierarchy { root: below("memory"), kind: Kind::Memory });
            }
            "cgroup" if controls("cpu") => {
                all.push(Hierarchy { root: below("cpu"), kind: Kind::Cpu });
            }
            _ => {}
        }
    }
    all
}

/// Reads a file of /proc. Other users can mount at paths that are not UTF-8.
fn read(path: &str) -> String {
    fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

/// Removes the control groups of processes that were killed together with the commands that had
/// started them.
pub fn remove_stale_groups() {
    for one in hierarchies(&read("/proc/self/mounts"), &read("/proc/self/cgroup")) {
        remove_dead(&one.root);
    }
}

/// Removes a group. An exited process stays in it for a moment.
fn remove(directory: &Path) {
    let begin = Instant::now();
    while fs::remove_dir(directory).is_err_and(|why| why.kind() == io::ErrorKind::ResourceBusy)
        && begin.elapsed() < LEAVING
    {
        std::thread::yield_now();
    }
}

/// Returns true if a process runs. A zombie does not.
fn runs(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // proc_pid_stat(5): the name, in parentheses, may contain any byte; the state follows.
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next());
    state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

/// Inode of this process's PID namespace; 0 without /proc.
fn pid_namespace() -> u64 {
    fs::metadata("/proc/self/ns/pid").map_or(0, |namespace| namespace.ino())
}

/// Returns the name of a new group. Groups with this process's pid, in the namespace with this inode, may
/// be those of an earlier process: they are removed, or other numbers taken if a process runs in them.
fn free_name(hierarchies: &[Hierarchy]) -> String {
    let (process, namespace) = (std::process::id(), pid_namespace());
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{PREFIX}{process}-{number}-{namespace}");
        let is_free = |one: &Hierarchy| {
            let path = one.root.join(&name);
            fs::remove_dir(&path).is_ok() || !path.exists()
        };
        if hierarchies.iter().all(is_free) {
            return name;
        }
    }
}

/// Removes groups of creators that have exited, unless a process runs in them. Pids of other namespaces
/// are not known here.
fn remove_dead(root: &Path) {
    let namespace = pid_namespace();
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        let Some((maker, of)) = entry.file_name().to_str().and_then(maker) else { continue };
        // Those of other namespaces and earlier versions are old then, or still get their process.
        let is_old = || {
            let changed = entry.metadata().and_then(|of| of.modified()).ok();
            changed.and_then(|at| at.elapsed().ok()).is_some_and(|age| age > OLD)
        };
        let is_dead = if of == Some(namespace) { !runs(maker) } else { is_old() };
        if is_dead {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// Returns the pid in the name of a group, and the inode of its PID namespace, which names of earlier
/// versions do not have.
fn maker(name: &str) -> Option<(u32, Option<u64>)> {
    let mut parts = name.strip_prefix(PREFIX)?.split('-');
    let maker = parts.next()?.parse().ok()?;
    let _number: u32 = parts.next()?.parse().ok()?;
    let namespace = parts.next().map(str::parse).transpose().ok()?;
    parts.next().is_none().then_some((maker, namespace))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_of_any_name_are_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("mounts");
        fs::write(&path, b"f /home/a/x\xff fuse rw 0 0\nc /sys/fs/cgroup cgroup2 rw 0 0\n")
            .unwrap();
        let text = read(path.to_str().unwrap());
        assert!(text.lines().nth(1) == Some("c /sys/fs/cgroup cgroup2 rw 0 0"), "{text}");
    }

    #[test]
    fn weight_and_limit_are_set_where_a_hierarchy_has_them() {
        let root = tempfile::tempdir().unwrap();
        let directories = ["unified", "cpu", "memory"].map(|name| root.path().join(name)).to_vec();
        directories.iter().for_each(|one| fs::create_dir(one).unwrap());
        let files = ["unified/cpu.idle", "unified/cpu.max", "cpu/cpu.idle", "cpu/cpu.cfs_quota_us"];
        files.iter().for_each(|file| fs::write(root.path().join(file), "").unwrap());
        let group = Group { directories, memory: true, cpu: true };
        group.set_idle(true);
        group.limit(50);
        group.unlimit();
        let read = |file: &&str| fs::read_to_string(root.path().join(file)).unwrap();
        assert_eq!(files.iter().map(read).collect::<Vec<_>>(), ["1", "max", "1", "-1"]);
        assert!(!root.path().join("memory/cpu.idle").exists());
    }

    #[test]
    fn groups_of_ended_creators_are_removed() {
        let root = tempfile::tempdir().unwrap();
        let named =
            |pid: u32, namespace: u64| root.path().join(format!("{PREFIX}{pid}-0-{namespace}"));
        let group = |pid: u32| named(pid, pid_namespace());
        let mut zombie = std::process::Command::new("true").spawn().unwrap();
        while runs(zombie.id()) {
            std::thread::yield_now();
        }
        let all = [std::process::id(), zombie.id(), u32::MAX].map(group);
        all.iter().for_each(|one| fs::create_dir(one).unwrap());
        let foreign = named(u32::MAX, 1);
        fs::create_dir(&foreign).unwrap();
        remove_dead(root.path());
        assert_eq!(all.map(|one| one.exists()), [true, false, false]);
        assert!(foreign.exists(), "its creator may run in another PID namespace");
        zombie.wait().unwrap();
    }

    #[test]
    fn names_of_an_earlier_process_with_this_pid_are_free_again() {
        let root = tempfile::tempdir().unwrap();
        let hierarchies = [Hierarchy { root: root.path().into(), kind: Kind::Memory }];
        let last = free_name(&hierarchies);
        let number = last.split('-').nth(2).unwrap();
        let next: u32 = number.parse().unwrap();
        let all: Vec<_> = (next + 1..next + 50)
            .map(|number| {
                root.path().join(last.replace(&format!("-{}-", next), &format!("-{number}-")))
            })
            .collect();
        all.iter().for_each(|one| fs::create_dir(one).unwrap());
        // A process runs in the first ones.
        all[..10].iter().for_each(|one| fs::write(one.join("cgroup.procs"), "").unwrap());
        let name = free_name(&hierarchies);
        assert!(!root.path().join(&name).exists(), "{name}");
        assert!(all[..10].iter().all(|one| one.exists()));
    }

    #[test]
    fn only_own_names_are_those_of_groups() {
        assert_eq!(maker("kaido-7-0-4026531836"), Some((7, Some(4026531836))));
        assert_eq!(maker("kaido-7-0"), Some((7, None)));
        for other in
            ["kaido-labs-eu", "kaido-7", "kaido-7-x", "kaido-7-0-", "kaido-7-0-1-2", "x-7-0"]
        {
            assert_eq!(maker(other), None, "{other}");
        }
    }

    #[test]
    fn hierarchies_are_found() {
        let mounts = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n\
            cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0\n\
            cgroup /sys/fs/cgroup/memory cgroup rw,relatime,memory 0 0\n\
            cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        let own = "4:memory:/a/b\n1:cpu,cpuacct:/\n0::/\n";
        let one = |root: &str, kind| Hierarchy { root: root.into(), kind };
        assert_eq!(
            hierarchies(mounts, own),
            [
                one("/sys/fs/cgroup/cpu,cpuacct/", Kind::Cpu),
                one("/sys/fs/cgroup/memory/a/b", Kind::Memory),
                one("/sys/fs/cgroup/unified", Kind::Unified),
            ]
        );
        assert_eq!(hierarchies("", ""), []);
        assert_eq!(hierarchies("cgroup\n", ":\n"), []);
    }
}
