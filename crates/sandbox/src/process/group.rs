//! Control groups (cgroups(7)): what a tenant's process may take of memory and of processors, where this
//! machine has them and lets this user make some.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Groups are named by who made them, so that those of the dead are found.
const PREFIX: &str = "kaido-";
/// What a share of a processor is counted in, in microseconds.
const PERIOD: u64 = 10_000;

/// How long a process that has ended may be counted.
const LEAVING: Duration = Duration::from_secs(1);

/// What a process may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Share {
    /// Bytes of memory.
    pub memory: u64,
    /// Hundredths of one processor; None is all that there is.
    pub cpu: Option<u32>,
}

/// A process's group, in as many hierarchies as its limits need. Removed when it is dropped, once the
/// process is gone.
#[derive(Debug, Default)]
pub(super) struct Group {
    folders: Vec<PathBuf>,
    pub(super) memory: bool,
    pub(super) cpu: bool,
}

/// A hierarchy of groups.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Hierarchy {
    /// Where groups are made.
    root: PathBuf,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Version 2, which has all.
    Unified,
    /// Version 1: a hierarchy for each.
    Memory,
    Cpu,
}

impl Group {
    /// A group with these limits: those of them that can be had.
    pub(super) fn new(share: Share) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        let mut group = Self::default();
        for one in hierarchies(&read("/proc/self/mounts"), &read("/proc/self/cgroup")) {
            group.join(&one, &name, share);
        }
        group
    }

    /// Makes a group in a hierarchy, for what there is no limit yet.
    fn join(&mut self, hierarchy: &Hierarchy, name: &str, share: Share) {
        let wants_memory = !self.memory && hierarchy.kind != Kind::Cpu;
        let wants_cpu = !self.cpu && hierarchy.kind != Kind::Memory && share.cpu.is_some();
        if !wants_memory && !wants_cpu {
            return;
        }
        remove_dead(&hierarchy.root);
        if hierarchy.kind == Kind::Unified {
            // They may be passed on already; if they cannot be, the limits cannot be written.
            let _ = fs::write(hierarchy.root.join("cgroup.subtree_control"), "+memory +cpu");
        }
        let folder = hierarchy.root.join(format!("{PREFIX}{name}"));
        if fs::create_dir(&folder).is_err() {
            return;
        }
        let set = |file: &str, value: String| fs::write(folder.join(file), value).is_ok();
        let memory = share.memory.to_string();
        let quota = share.cpu.map_or(0, |cpu| (u64::from(cpu) * PERIOD / 100).max(1000));
        match hierarchy.kind {
            Kind::Unified => {
                if wants_memory && set("memory.max", memory) {
                    self.memory = true;
                    // A machine without swap has no such file.
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
        self.folders.push(folder);
    }

    /// Has a process live in it.
    ///
    /// # Errors
    ///
    /// It cannot.
    pub(super) fn take(&self, process: u32) -> io::Result<()> {
        let mut each = self.folders.iter();
        each.try_for_each(|folder| fs::write(folder.join("cgroup.procs"), process.to_string()))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for folder in &self.folders {
            // A process that has ended is counted for a moment longer. What stays all the same, the next
            // group to be made removes.
            let begin = Instant::now();
            while fs::remove_dir(folder).is_err_and(|why| why.kind() == io::ErrorKind::ResourceBusy)
                && begin.elapsed() < LEAVING
            {
                std::thread::yield_now();
            }
        }
    }
}

/// The hierarchies that have limits, from `/proc/self/mounts` and `/proc/self/cgroup`; in version 1
/// below this process's own group, whose limits hold as well.
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
            // Groups with processes have none below them that limit anything: those are made at the top.
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

/// Removes groups whose makers are gone.
fn remove_dead(root: &Path) {
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let maker = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split('-').next());
        if let Some(maker) = maker.and_then(|maker| maker.parse::<u32>().ok())
            && !Path::new("/proc").join(maker.to_string()).exists()
        {
            // One with a process in it stays.
            let _ = fs::remove_dir(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
