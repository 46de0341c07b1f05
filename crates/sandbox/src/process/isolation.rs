//! Isolation of the sandbox process.

use std::ffi::CString;
use std::fmt;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::AT_FDCWD;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::stat::{Mode, SFlag, mknod};
use nix::unistd::{
    Gid, Uid, chdir, geteuid, mkdir, pivot_root, setgroups, setresgid, setresuid, symlinkat,
};
use serde::{Deserialize, Serialize};

use super::filter;

/// Isolation of a sandbox process: a set of parts. The kernel and the user's privileges determine
/// which are available.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Isolation(u32);

/// Names of the parts.
const PARTS: [(Isolation, &str); 14] = [
    (Isolation::USER, "user namespace"),
    (Isolation::NETWORK, "network namespace"),
    (Isolation::MOUNT, "mount namespace"),
    (Isolation::IPC, "IPC namespace"),
    (Isolation::HOSTNAME, "UTS namespace"),
    (Isolation::PROCESSES, "PID namespace (no child processes)"),
    (Isolation::NO_FILES, "empty root"),
    (Isolation::NOBODY, "another user than root"),
    (Isolation::OWN_USER, "a user of its own"),
    (Isolation::NO_RIGHTS, "no capabilities"),
    (Isolation::CALLS, "system calls filtered"),
    (Isolation::MEMORY, "memory limit of a control group"),
    (Isolation::CPU, "CPU limit of a control group"),
    (Isolation::MACHINE, "virtual machine"),
];

impl Isolation {
    /// User namespace.
    pub const USER: Self = Self(1);
    /// Network namespace without interfaces.
    pub const NETWORK: Self = Self(1 << 1);
    /// Mount namespace.
    pub const MOUNT: Self = Self(1 << 2);
    /// IPC namespace.
    pub const IPC: Self = Self(1 << 3);
    /// UTS namespace.
    pub const HOSTNAME: Self = Self(1 << 4);
    /// PID namespace for children, although the process cannot fork.
    pub const PROCESSES: Self = Self(1 << 5);
    /// Empty root directory.
    pub const NO_FILES: Self = Self(1 << 6);
    /// Not root outside of its namespaces.
    pub const NOBODY: Self = Self(1 << 7);
    /// No capabilities, and no way to gain any (`no_new_privs`). Always present.
    pub const NO_RIGHTS: Self = Self(1 << 8);
    /// Seccomp filter. Always present.
    pub const CALLS: Self = Self(1 << 9);
    /// Memory limit of a control group.
    pub const MEMORY: Self = Self(1 << 10);
    /// CPU limit of a control group.
    pub const CPU: Self = Self(1 << 11);

    /// User id that no other visible process has.
    pub const OWN_USER: Self = Self(1 << 12);

    /// Virtual machine. The other parts are those of QEMU.
    pub const MACHINE: Self = Self(1 << 13);

    /// Parts required by default to load a program; the operator can choose others.
    pub const REQUIRED: Self = Self(
        Self::NETWORK.0
            | Self::MOUNT.0
            | Self::IPC.0
            | Self::NO_FILES.0
            | Self::NOBODY.0
            | Self::LEAST.0,
    );
    /// All namespaces but the user namespace.
    const NAMESPACES: Self =
        Self(Self::NETWORK.0 | Self::MOUNT.0 | Self::IPC.0 | Self::HOSTNAME.0 | Self::PROCESSES.0);
    /// Parts required of a virtual machine. The files of its mount namespace are QEMU's program,
    /// libraries and firmware.
    pub const REQUIRED_OF_VM: Self = Self(
        Self::MACHINE.0
            | Self::NETWORK.0
            | Self::MOUNT.0
            | Self::IPC.0
            | Self::NOBODY.0
            | Self::LEAST.0,
    );
    /// Parts without which there is no sandbox.
    pub const LEAST: Self = Self(Self::NO_RIGHTS.0 | Self::CALLS.0);

    #[cfg(test)]
    pub(super) fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// Returns true if all of these parts are present.
    pub fn has(self, parts: Self) -> bool {
        self.0 & parts.0 == parts.0
    }

    /// Parts of `parts` that are missing.
    #[must_use]
    pub fn lacks(self, parts: Self) -> Self {
        Self(parts.0 & !self.0)
    }

    /// Returns true if the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Names of the parts.
    pub fn names(self) -> Vec<&'static str> {
        PARTS.iter().filter(|(part, _)| self.has(*part)).map(|(_, name)| *name).collect()
    }

    /// Adds parts.
    #[must_use]
    pub const fn with(self, parts: Self) -> Self {
        Self(self.0 | parts.0)
    }

    /// Adds the control group limits, which the process itself cannot observe.
    pub(super) fn in_group(self, memory: bool, cpu: bool) -> Self {
        let part = |part: Self, is: bool| if is { part.0 } else { 0 };
        let own = self.0 & !(Self::MEMORY.0 | Self::CPU.0);
        Self(own | part(Self::MEMORY, memory) | part(Self::CPU, cpu))
    }

    fn note(&mut self, part: Self, done: Result<(), Errno>) {
        if done.is_ok() {
            self.0 |= part.0;
        }
    }
}

impl fmt::Display for Isolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.names().join(", "))
    }
}

/// User and group id if no dedicated user is possible: the overflow id, which is that of unmapped
/// ids in other user namespaces.
const NOBODY: u32 = 65_534;

/// First user id of sandboxes, to which the pid is added (at most 2^22, proc(5)). The range is
/// above those that systemd (`UIDS-GIDS.md`) and Debian assign to users, services, containers and
/// `subuid`.
const FIRST_USER: u32 = 0x7f00_0000;

/// Drops the privileges that QEMU does not need. `group`: a group that it needs. The caller installs
/// the filter of system calls.
///
/// # Errors
///
/// Fails if capabilities or limits cannot be dropped.
pub(super) fn isolate_vm(group: Option<u32>) -> Result<Isolation, String> {
    let mut done = Isolation::default();
    let failed = |what: &'static str| move |why: Errno| format!("{what}: {why}");
    nix::sys::prctl::set_no_new_privs().map_err(failed("no_new_privs"))?;
    // QEMU has threads, which a new PID namespace for children would forbid.
    let namespaces = Isolation::NETWORK.with(Isolation::MOUNT).with(Isolation::IPC);
    self::namespaces(&mut done, namespaces.with(Isolation::HOSTNAME));
    if done.has(Isolation::MOUNT) {
        qemu_root().map_err(failed("QEMU's root directory"))?;
    }
    nobody(&mut done, group);
    drop_rights().map_err(failed("capabilities"))?;
    done = done.with(Isolation::LEAST);
    set_death_signal().map_err(failed("PR_SET_PDEATHSIG"))?;
    for resource in [Resource::RLIMIT_CORE, Resource::RLIMIT_FSIZE, Resource::RLIMIT_MSGQUEUE] {
        setrlimit(resource, 0, 0).map_err(failed("limits"))?;
    }
    if done.has(Isolation::OWN_USER) {
        // QEMU has a few threads, which count for its user.
        setrlimit(Resource::RLIMIT_NPROC, 64, 64).map_err(failed("limits"))?;
    }
    Ok(done)
}

/// Drops all privileges except for the two open descriptors and `memory` bytes of memory.
///
/// # Errors
///
/// Fails if a mandatory part is not possible: capabilities, limits, or the seccomp filter.
pub(super) fn isolate(memory: u64) -> Result<Isolation, String> {
    let mut done = Isolation::default();
    let failed = |what: &'static str| move |why: Errno| format!("{what}: {why}");
    nix::sys::prctl::set_no_new_privs().map_err(failed("no_new_privs"))?;
    namespaces(&mut done, Isolation::NAMESPACES);
    done.note(Isolation::NO_FILES, empty_root());
    nobody(&mut done, None);
    if !done.has(Isolation::USER) {
        done.note(Isolation::USER, unshare(CloneFlags::CLONE_NEWUSER));
    }
    drop_rights().map_err(failed("capabilities"))?;
    done.0 |= Isolation::NO_RIGHTS.0;
    set_death_signal().map_err(failed("PR_SET_PDEATHSIG"))?;
    nix::sys::prctl::set_dumpable(false).map_err(failed("PR_SET_DUMPABLE"))?;
    close_files();
    limit(memory).map_err(failed("limits"))?;
    filter::install(filter::Stage::Load)?;
    done.0 |= Isolation::CALLS.0;
    Ok(done)
}

/// Ends this process with its parent. The kernel resets this when credentials change, so set it after
/// that.
pub(super) fn set_death_signal() -> Result<(), Errno> {
    nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL)
}

/// Root does not unshare its user namespace: inside a new one, it could not change its user id.
fn namespaces(done: &mut Isolation, wanted: Isolation) {
    if !geteuid().is_root() {
        done.note(Isolation::USER, unshare(CloneFlags::CLONE_NEWUSER));
    }
    let all = [
        (Isolation::NETWORK, CloneFlags::CLONE_NEWNET),
        (Isolation::MOUNT, CloneFlags::CLONE_NEWNS),
        (Isolation::IPC, CloneFlags::CLONE_NEWIPC),
        (Isolation::HOSTNAME, CloneFlags::CLONE_NEWUTS),
        (Isolation::PROCESSES, CloneFlags::CLONE_NEWPID),
    ];
    for (part, flag) in all.into_iter().filter(|(part, _)| wanted.has(*part)) {
        done.note(part, unshare(flag));
    }
}

/// Replaces the root with an empty file system.
fn empty_root() -> Result<(), Errno> {
    new_root("size=4k,nr_inodes=2,mode=555", || Ok(()))
}

/// Replaces the root with one that has the programs and libraries of this machine, read-only, its
/// `/proc`, and KVM: no sockets, no directories to write to, no configuration.
fn qemu_root() -> Result<(), Errno> {
    let none = None::<&str>;
    new_root("size=64k,nr_inodes=64,mode=755", || {
        let bind = |from: &Path, to: &str| {
            mount(Some(from), to, none, MsFlags::MS_BIND | MsFlags::MS_REC, none)
        };
        for name in ["usr", "lib", "lib64", "bin"] {
            let from = Path::new("/").join(name);
            if let Ok(target) = std::fs::read_link(&from) {
                symlinkat(&target, AT_FDCWD, name)?;
            } else if from.is_dir() {
                mkdir(name, Mode::from_bits_truncate(0o755))?;
                bind(&from, name)?;
                close_mounts(name)?;
            }
        }
        for name in ["proc", "dev"] {
            mkdir(name, Mode::from_bits_truncate(0o755))?;
        }
        bind(Path::new("/proc"), "proc")?;
        for device in ["kvm", "null", "urandom"] {
            let (from, to) = (Path::new("/dev").join(device), format!("dev/{device}"));
            if from.exists() {
                mknod(to.as_str(), SFlag::S_IFREG, Mode::from_bits_truncate(0o644), 0)?;
                bind(&from, &to)?;
            }
        }
        Ok(())
    })
}

/// Makes a mount and all mounts below it read-only (mount_setattr(2), since Linux 5.12).
fn close_mounts(name: &str) -> Result<(), Errno> {
    let name = CString::new(name).map_err(|_| Errno::EINVAL)?;
    let flags = libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;
    let attributes =
        libc::mount_attr { attr_set: flags, attr_clr: 0, propagation: 0, userns_fd: 0 };
    // SAFETY: the name and the attributes outlive the call, which gets the size of the latter.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            name.as_ptr(),
            libc::AT_RECURSIVE,
            &raw const attributes,
            size_of_val(&attributes),
        )
    };
    Errno::result(done).map(drop)
}

/// Replaces the root with a temporary file system, which `fill` fills in the current directory.
fn new_root(options: &str, fill: impl FnOnce() -> Result<(), Errno>) -> Result<(), Errno> {
    let none = None::<&str>;
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount(none, "/", none, private, none)?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("none"), "/tmp", Some("tmpfs"), flags, Some(options))?;
    chdir("/tmp")?;
    fill()?;
    // Stacks the old root on the new one and detaches it (pivot_root(2), "NOTES").
    pivot_root(".", ".")?;
    umount2(".", MntFlags::MNT_DETACH)?;
    chdir("/")?;
    let read_only = flags | MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY;
    mount(none, "/", none, read_only, none)
}

fn nobody(done: &mut Isolation, group: Option<u32>) {
    if geteuid().is_root() {
        let own = become_user(FIRST_USER | std::process::id(), group);
        done.note(Isolation::OWN_USER, own);
        // The id may not be mapped in a user namespace.
        done.note(Isolation::NOBODY, own.or_else(|_| become_user(NOBODY, group)));
    } else {
        done.0 |= Isolation::NOBODY.0;
    }
}

fn become_user(id: u32, supplementary: Option<u32>) -> Result<(), Errno> {
    let (user, group) = (Uid::from_raw(id), Gid::from_raw(id));
    setgroups(&supplementary.map(Gid::from_raw).into_iter().collect::<Vec<_>>())
        .and_then(|()| setresgid(group, group, group))
        .and_then(|()| setresuid(user, user, user))
}

/// Drops all capabilities (capabilities(7)).
fn drop_rights() -> Result<(), Errno> {
    const VERSION_3: u32 = 0x2008_0522;
    #[repr(C)]
    struct Head {
        version: u32,
        pid: i32,
    }
    #[repr(C)]
    #[derive(Default)]
    struct Data {
        effective: u32,
        permitted: u32,
        inheritable: u32,
    }
    for capability in 0..64 {
        // Fails for capabilities that do not exist, and without CAP_SETPCAP. Without capabilities
        // and with no_new_privs, the bounding set has no effect.
        // SAFETY: all arguments are integers.
        unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };
    }
    // SAFETY: all arguments are integers.
    unsafe { libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) };
    let head = Head { version: VERSION_3, pid: 0 };
    let none = [Data::default(), Data::default()];
    // SAFETY: both structures have the layout of capset(2) and outlive the call.
    let done = unsafe { libc::syscall(libc::SYS_capset, &raw const head, none.as_ptr()) };
    Errno::result(done).map(drop)
}

/// Closes all descriptors except for the control socket and the doorbell.
fn close_files() {
    // SAFETY: this process has no other descriptors in use; mappings persist.
    unsafe { libc::syscall(libc::SYS_close_range, 2, u32::MAX, 0) };
}

fn limit(memory: u64) -> Result<(), Errno> {
    let all = [
        (Resource::RLIMIT_AS, memory),
        (Resource::RLIMIT_NOFILE, 2),
        (Resource::RLIMIT_NPROC, 0),
        (Resource::RLIMIT_CORE, 0),
        (Resource::RLIMIT_FSIZE, 0),
        (Resource::RLIMIT_MEMLOCK, 0),
        (Resource::RLIMIT_MSGQUEUE, 0),
    ];
    all.into_iter().try_for_each(|(resource, most)| setrlimit(resource, most, most))
}
