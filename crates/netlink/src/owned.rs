//! Network namespaces that are owned by a user namespace of their own (user_namespaces(7)):
//! capabilities of a process in the user namespace reach this network namespace, and no other.

use std::collections::BTreeSet;
use std::ffi::c_int;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _, FromRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::errno::Errno;
use nix::sched::{CloneFlags, setns, unshare};
use nix::unistd::{Gid, Uid, setgroups, setresgid, setresuid};

use crate::{Error, Namespace, Result};

/// User and group IDs of a user namespace, besides its root's (0).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ids {
    /// User ID.
    pub user: u32,
    /// Group IDs.
    pub groups: Vec<u32>,
}

impl Ids {
    /// The machine's ID for an ID of the namespace. No user and no range of subordinate IDs is above
    /// 2^31 (systemd, "Users, Groups, UIDs and GIDs"): the namespace's users own no file of the
    /// machine's.
    pub fn outside(id: u32) -> u32 {
        const FIRST: u32 = 0xc000_0000;
        FIRST.saturating_add(id)
    }

    /// Content of `uid_map` or `gid_map`.
    fn map(ids: &[u32]) -> String {
        let ids: BTreeSet<u32> = ids.iter().copied().chain([0]).collect();
        ids.into_iter().map(|id| format!("{id} {} 1\n", Self::outside(id))).collect()
    }
}

/// Moves this process, which must have one thread, into a new user namespace and a new network
/// namespace that it owns, writes the errno as a byte to standard output, 0 on success, and waits until
/// standard input is closed.
pub fn hold_owned_namespace() -> Result<()> {
    let failed = |source| Error::io("hold a user namespace", source);
    let unshared =
        become_owner().and_then(|()| unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET));
    // The kernel's error numbers are below 134.
    let errno = unshared.err().map_or(0, |errno| errno as u8);
    let mut output = io::stdout();
    output.write_all(&[errno]).and_then(|()| output.flush()).map_err(failed)?;
    io::copy(&mut io::stdin(), &mut io::sink()).map(drop).map_err(failed)
}

/// Takes a user ID that no other process has. The kernel accounts resources of a user namespace to
/// its owner as well (inotify instances, queued signals, message queues): root's would be used up.
/// Capabilities are kept, since kernels may refuse user namespaces to users without.
fn become_owner() -> std::result::Result<(), Errno> {
    // SAFETY: prctl(2) with PR_SET_SECUREBITS takes a number.
    let kept = unsafe { libc::prctl(libc::PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP) };
    Errno::result(kept)?;
    let owner = Uid::from_raw(FIRST_OWNER.saturating_add(std::process::id()));
    setresuid(owner, owner, owner)
}

/// capabilities(7); libc does not have it.
const SECBIT_NO_SETUID_FIXUP: libc::c_ulong = 1 << 2;
/// Owners of user namespaces: this number plus a process ID, of which there are 2^22 at most.
const FIRST_OWNER: u32 = 0xd000_0000;

/// A process that executes [`hold_owned_namespace`].
pub(crate) struct Holder(Child);

impl Holder {
    /// Starts the process, and maps the IDs in its user namespace.
    pub(crate) fn start(holder: &mut Command, ids: &Ids) -> Result<Self> {
        let failed = |source| Error::io("make a user namespace", source);
        holder.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut started = Self(holder.spawn().map_err(failed)?);
        let mut errno = [0];
        let output = started.0.stdout.as_mut().expect("it is piped");
        output.read_exact(&mut errno).map_err(failed)?;
        if errno != [0] {
            return Err(failed(Errno::from_raw(errno[0].into()).into()));
        }
        let process = Path::new("/proc").join(started.0.id().to_string());
        let write = |file: &str, ids: &[u32]| {
            // The kernel accepts one write.
            File::options()
                .write(true)
                .open(process.join(file))?
                .write_all(Ids::map(ids).as_bytes())
        };
        write("uid_map", &[ids.user])
            .and_then(|()| write("gid_map", &ids.groups))
            .map_err(failed)?;
        Ok(started)
    }

    /// The network namespace.
    pub(crate) fn network(&self) -> PathBuf {
        format!("/proc/{}/ns/net", self.0.id()).into()
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        // It ends by itself, or has ended.
        let _ = self.0.wait();
    }
}

impl Namespace {
    /// Moves this process, which must have one thread, into the user namespace that owns the network
    /// namespace, as its root.
    pub fn enter_user_namespace_as_root(&self) -> Result<()> {
        let failed = |errno: Errno| Error::io("become root of a network namespace's owner", errno);
        // ioctl_ns(2). SAFETY: the request takes no argument, and the returned descriptor has no other owner.
        let owner = unsafe {
            let fd: c_int = libc::ioctl(self.as_fd().as_raw_fd(), libc::NS_GET_USERNS);
            Errno::result(fd).map(|fd| OwnedFd::from_raw_fd(fd)).map_err(failed)?
        };
        setns(owner, CloneFlags::CLONE_NEWUSER).map_err(failed)?;
        let (user, group) = (Uid::from_raw(0), Gid::from_raw(0));
        setgroups(&[group]).map_err(failed)?;
        setresgid(group, group, group).map_err(failed)?;
        setresuid(user, user, user).map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::in_namespace;

    #[test]
    fn root_an_owned_namespace_has_its_ids_alone() {
        in_namespace(|| {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("r1");
            let ids = Ids { user: 103, groups: vec![107, 106, 107] };
            let mut holder = Command::new("unshare");
            holder.args(["--user", "--net", "sh", "-c", "printf '\\0'; cat"]);
            let namespace = Namespace::create_owned(&path, &mut holder, &ids).unwrap();
            let links = crate::Handle::within(&namespace).unwrap().links().unwrap();
            assert!(links.len() == 1 && links[0].up, "{links:?}");
            let mut shell = Command::new("nsenter");
            shell.arg(format!("--net={}", path.display())).args([
                "sh",
                "-c",
                "readlink /proc/self/ns/net",
            ]);
            let said = String::from_utf8(shell.output().unwrap().stdout).unwrap();
            assert_eq!(said.trim(), format!("net:[{}]", namespace.inode().unwrap()));
            assert_eq!(
                Ids::map(&ids.groups),
                "0 3221225472 1\n106 3221225578 1\n107 3221225579 1\n"
            );
            namespace.remove().unwrap();
        });
    }

    #[test]
    fn root_a_holder_that_fails_leaves_nothing() {
        in_namespace(|| {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("r1");
            let ids = Ids { user: 103, groups: vec![] };
            let make = |script: &str| {
                let mut holder = Command::new("sh");
                holder.args(["-c", script]);
                Namespace::create_owned(&path, &mut holder, &ids).unwrap_err().to_string()
            };
            let limit = make("printf '\\034'; cat");
            assert_eq!(limit, "make a user namespace: No space left on device (os error 28)");
            assert!(make("exit 1").starts_with("make a user namespace: "));
            // Without a user namespace of its own, whose IDs can be mapped.
            assert!(make("printf '\\0'; cat").starts_with("make a user namespace: "));
            assert!(!path.exists());
        });
    }
}
