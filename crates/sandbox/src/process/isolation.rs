//! What keeps a tenant's process from everything but its packets.

use std::fmt;

use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::sys::resource::{Resource, setrlimit};
use nix::unistd::{Gid, Uid, chdir, geteuid, pivot_root, setgroups, setresgid, setresuid};

use super::filter;

/// What keeps a process from everything but its packets: those parts that this machine's kernel has,
/// and lets this user have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Isolation(u32);

/// The parts of it.
const PARTS: [(Isolation, &str); 13] = [
    (Isolation::USER, "user namespace"),
    (Isolation::NETWORK, "network namespace"),
    (Isolation::MOUNT, "mount namespace"),
    (Isolation::IPC, "IPC namespace"),
    (Isolation::HOSTNAME, "UTS namespace"),
    (Isolation::PROCESSES, "PID namespace of its children, of which it can have none"),
    (Isolation::NO_FILES, "empty root"),
    (Isolation::NOBODY, "another user than root"),
    (Isolation::OWN_USER, "a user of its own"),
    (Isolation::NO_RIGHTS, "no capabilities"),
    (Isolation::CALLS, "system calls filtered"),
    (Isolation::MEMORY, "memory limited by a control group"),
    (Isolation::CPU, "processors limited by a control group"),
];

impl Isolation {
    /// A user namespace of its own.
    pub const USER: Self = Self(1);
    /// A network namespace of its own: no interface.
    pub const NETWORK: Self = Self(1 << 1);
    /// A mount namespace of its own.
    pub const MOUNT: Self = Self(1 << 2);
    /// An IPC namespace of its own.
    pub const IPC: Self = Self(1 << 3);
    /// A UTS namespace of its own.
    pub const HOSTNAME: Self = Self(1 << 4);
    /// A PID namespace for children; it cannot have any.
    pub const PROCESSES: Self = Self(1 << 5);
    /// Its root folder is empty.
    pub const NO_FILES: Self = Self(1 << 6);
    /// It is not root outside of its namespaces either.
    pub const NOBODY: Self = Self(1 << 7);
    /// No capabilities, and none to be had (`no_new_privs`). Always there.
    pub const NO_RIGHTS: Self = Self(1 << 8);
    /// System calls are filtered. Always there.
    pub const CALLS: Self = Self(1 << 9);
    /// A control group limits its memory.
    pub const MEMORY: Self = Self(1 << 10);
    /// A control group limits its share of the processors.
    pub const CPU: Self = Self(1 << 11);

    /// Its user id is no other process's that it or this process could see.
    pub const OWN_USER: Self = Self(1 << 12);

    /// The parts without which no program is loaded, unless the operator chooses otherwise.
    pub const REQUIRED: Self = Self(
        Self::NETWORK.0
            | Self::MOUNT.0
            | Self::IPC.0
            | Self::NO_FILES.0
            | Self::NOBODY.0
            | Self::LEAST.0,
    );
    /// The parts without which there is no sandbox at all.
    pub const LEAST: Self = Self(Self::NO_RIGHTS.0 | Self::CALLS.0);

    pub(super) fn bits(self) -> u32 {
        self.0
    }

    pub(super) fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// Whether all of these are there.
    pub fn has(self, parts: Self) -> bool {
        self.0 & parts.0 == parts.0
    }

    /// The parts of these that are not there.
    #[must_use]
    pub fn lacks(self, parts: Self) -> Self {
        Self(parts.0 & !self.0)
    }

    /// Whether there is no part.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The names of its parts.
    pub fn names(self) -> Vec<&'static str> {
        PARTS.iter().filter(|(part, _)| self.has(*part)).map(|(_, name)| *name).collect()
    }

    /// With what its process cannot know of itself.
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

/// The user and group of a process where no user of its own can be had: another user namespace's
/// overflow id.
const NOBODY: u32 = 65_534;

/// Where users of sandboxes begin, to which their process's number is added (2^22 at most, proc(5)):
/// above what systemd (`UIDS-GIDS.md`) and Debian give to users, services, containers and `subuid`.
const FIRST_USER: u32 = 0x7f00_0000;

/// Gives up everything but the two files that are open already, and `memory` bytes of memory.
///
/// # Errors
///
/// What has to work does not: rights cannot be given up, or calls not be filtered.
pub(super) fn isolate(memory: u64) -> Result<Isolation, String> {
    let mut done = Isolation::default();
    let failed = |what: &'static str| move |why: Errno| format!("{what}: {why}");
    nix::sys::prctl::set_no_new_privs().map_err(failed("no_new_privs"))?;
    namespaces(&mut done);
    done.note(Isolation::NO_FILES, empty_root());
    nobody(&mut done);
    if !done.has(Isolation::USER) {
        done.note(Isolation::USER, unshare(CloneFlags::CLONE_NEWUSER));
    }
    drop_rights().map_err(failed("capabilities"))?;
    done.0 |= Isolation::NO_RIGHTS.0;
    // Credentials have changed: this is forgotten when they do.
    nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL)
        .map_err(failed("PR_SET_PDEATHSIG"))?;
    nix::sys::prctl::set_dumpable(false).map_err(failed("PR_SET_DUMPABLE"))?;
    close_files();
    limit(memory).map_err(failed("limits"))?;
    filter::install(filter::Stage::Load)?;
    done.0 |= Isolation::CALLS.0;
    Ok(done)
}

/// As root, root's namespaces are left first: a user namespace would forbid to become nobody.
fn namespaces(done: &mut Isolation) {
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
    for (part, flag) in all {
        done.note(part, unshare(flag));
    }
}

/// A file system without a file in place of all that there are.
fn empty_root() -> Result<(), Errno> {
    let none = None::<&str>;
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount(none, "/", none, private, none)?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("none"), "/tmp", Some("tmpfs"), flags, Some("size=4k,nr_inodes=2,mode=555"))?;
    chdir("/tmp")?;
    // The old root goes where the new one is, and away from there (pivot_root(2), "NOTES").
    pivot_root(".", ".")?;
    umount2(".", MntFlags::MNT_DETACH)?;
    chdir("/")?;
    let read_only = flags | MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY;
    mount(none, "/", none, read_only, none)
}

fn nobody(done: &mut Isolation) {
    if geteuid().is_root() {
        let own = become_user(FIRST_USER | std::process::id());
        done.note(Isolation::OWN_USER, own);
        // A user namespace may have no such number.
        done.note(Isolation::NOBODY, own.or_else(|_| become_user(NOBODY)));
    } else {
        done.0 |= Isolation::NOBODY.0;
    }
}

fn become_user(id: u32) -> Result<(), Errno> {
    let (user, group) = (Uid::from_raw(id), Gid::from_raw(id));
    setgroups(&[])
        .and_then(|()| setresgid(group, group, group))
        .and_then(|()| setresuid(user, user, user))
}

/// Gives all capabilities up (capabilities(7)).
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
        // Fails for those that there are not, and without the right to; without rights and with
        // no_new_privs the bounding set means nothing.
        // SAFETY: numbers only.
        unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };
    }
    // SAFETY: numbers only.
    unsafe { libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) };
    let head = Head { version: VERSION_3, pid: 0 };
    let none = [Data::default(), Data::default()];
    // SAFETY: both are as the call has them, and there as long as it.
    let done = unsafe { libc::syscall(libc::SYS_capset, &raw const head, none.as_ptr()) };
    Errno::result(done).map(drop)
}

/// Closes everything but the control socket and the bell.
fn close_files() {
    // SAFETY: nothing in this process uses another file: memory stays mapped.
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
