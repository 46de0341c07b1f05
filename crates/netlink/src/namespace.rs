//! Network namespaces: creating, opening by path, entering and removing them.

use std::fs::{self, File, OpenOptions};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::{io, thread};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use nix::sys::stat::fstat;
use nix::sys::statfs::{NSFS_MAGIC, statfs};

use crate::owned::{Holder, Ids};
use crate::{Error, Handle, Result, set_up};

/// Index of the loopback interface, the first of every network namespace.
pub const LOOPBACK: u32 = 1;

/// An open network namespace. It lives as long as a descriptor, a process or a bind mount refers to
/// it.
#[derive(Debug, Clone)]
pub struct Namespace {
    fd: Arc<OwnedFd>,
    path: Option<PathBuf>,
}

impl Namespace {
    /// Creates a namespace that is bind-mounted on `path`, with its loopback interface up. The
    /// calling thread stays in its own namespace.
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        Self::create_by(path, || Self::in_new(|| Self::bind(&own_namespace(), path)))
    }

    /// Bind-mounts the calling thread's namespace on `path`, which keeps it alive until the path is
    /// removed.
    pub fn keep_current(path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let failed =
            |source| Error::io(format!("keep the namespace by {}", path.display()), source);
        OpenOptions::new().write(true).create_new(true).open(path).map_err(failed)?;
        Self::bind(&own_namespace(), path)
    }

    /// Creates a namespace as [`Self::create`] does, owned by a new user namespace with these IDs.
    /// `holder` is a command that calls [`hold_owned_namespace`](crate::hold_owned_namespace): a
    /// process with several threads cannot create a user namespace.
    pub fn create_owned(path: impl AsRef<Path>, holder: &mut Command, ids: &Ids) -> Result<Self> {
        let path = path.as_ref();
        Self::create_by(path, || {
            let holder = Holder::start(holder, ids)?;
            Self::bind(&holder.network(), path)?;
            let namespace = Self::open(path)?;
            namespace.set_loopback_up()?;
            Ok(namespace)
        })
    }

    /// Creates a namespace without a path. Only this value, and the processes inside, keep it
    /// alive.
    pub fn unnamed() -> Result<Self> {
        Self::in_new(|| Ok(()))
    }

    /// Opens the namespace at `path`.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let operation = || format!("open the namespace {}", path.display());
        // O_NONBLOCK: do not block if the path is a FIFO.
        let file = OpenOptions::new().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(path);
        let file = file.map_err(|source| Error::io(operation(), source))?;
        let kind = nix::sys::statfs::fstatfs(&file).map_err(|e| Error::io(operation(), e))?;
        if kind.filesystem_type() != NSFS_MAGIC {
            return Err(Error::NotANamespace { path: path.into() });
        }
        Ok(Self { fd: Arc::new(file.into()), path: Some(path.into()) })
    }

    /// The calling thread's namespace.
    pub fn current() -> Result<Self> {
        let file = File::open(own_namespace())
            .map_err(|source| Error::io("open the thread's namespace", source))?;
        Ok(Self { fd: Arc::new(file.into()), path: None })
    }

    /// Runs `work` in a new thread inside the namespace, and waits for it.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T> {
        in_thread(|| {
            self.enter()?;
            Ok(work())
        })
    }

    /// Moves the calling thread into the namespace for good, for a process that is about to exec.
    pub fn enter(&self) -> Result<()> {
        setns(&self.fd, CloneFlags::CLONE_NEWNET)
            .map_err(|errno| Error::io("enter a network namespace", errno))
    }

    /// The path on which the namespace is mounted, if it was created or opened by path.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The namespace's inode number. It identifies the namespace as long as the namespace lives.
    pub fn inode(&self) -> Result<u64> {
        fstat(&self.fd)
            .map(|status| status.st_ino)
            .map_err(|errno| Error::io("identify a network namespace", errno))
    }

    /// A number that no other namespace gets until the machine reboots (SO_NETNS_COOKIE), unlike an
    /// inode number.
    pub fn cookie(&self) -> Result<u64> {
        let failed = |errno| Error::io("identify a network namespace", errno);
        let get = || {
            let (family, kind) = (AddressFamily::Unix, SockType::Datagram);
            let socket = socket(family, kind, SockFlag::SOCK_CLOEXEC, None)?;
            let (mut cookie, mut length) = (0_u64, size_of::<u64>() as libc::socklen_t);
            // SAFETY: the kernel writes 8 bytes to `cookie`.
            let done = unsafe {
                libc::getsockopt(
                    socket.as_raw_fd(),
                    libc::SOL_SOCKET,
                    libc::SO_NETNS_COOKIE,
                    (&raw mut cookie).cast(),
                    &raw mut length,
                )
            };
            Errno::result(done).map(|_| cookie)
        };
        self.run(get)?.map_err(failed)
    }

    /// Removes the path. The kernel frees the namespace once nothing refers to it.
    pub fn remove(self) -> Result<()> {
        self.path.as_deref().map_or(Ok(()), Self::remove_path)
    }

    /// Removes `path` if it is a namespace or the empty file of a half-finished creation. A missing
    /// path is not an error. Any other file is left alone, and an error is returned.
    pub fn remove_path(path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let failed = |source| Error::io(format!("remove the namespace {}", path.display()), source);
        let not_ours = || Error::NotANamespace { path: path.into() };
        // Two concurrent creations on one path can leave two mounts on it.
        loop {
            match statfs(path) {
                Ok(found) if found.filesystem_type() == NSFS_MAGIC => {
                    umount2(path, MntFlags::MNT_DETACH).map_err(|errno| failed(errno.into()))?;
                }
                Ok(_) => break,
                Err(Errno::ENOENT) => return Ok(()),
                Err(errno) => return Err(failed(errno.into())),
            }
        }
        let file = fs::symlink_metadata(path).map_err(failed)?;
        if !file.is_file() || file.len() > 0 {
            return Err(not_ours());
        }
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(error)),
            _ => Ok(()),
        }
    }

    /// Creates the file of a namespace that `make` mounts on it.
    fn create_by(path: &Path, make: impl FnOnce() -> Result<Self>) -> Result<Self> {
        // The file is created before the namespace: a file without a mount on it marks a creation
        // that failed half-way.
        OpenOptions::new().write(true).create_new(true).open(path).map_err(|source| {
            Error::io(format!("make the namespace {}", path.display()), source)
        })?;
        match make() {
            Ok(namespace) => Ok(Self { path: Some(path.into()), ..namespace }),
            Err(error) => {
                // Report the first error, not that of the clean-up.
                let _ = Self::remove_path(path);
                Err(error)
            }
        }
    }

    /// Mounts a namespace on a file.
    fn bind(namespace: &Path, path: &Path) -> Result<()> {
        mount(Some(namespace), path, None::<&str>, MsFlags::MS_BIND, None::<&str>)
            .map_err(|errno| Error::io(format!("mount a namespace on {}", path.display()), errno))
    }

    fn set_loopback_up(&self) -> Result<()> {
        Handle::within(self)?.request("set the loopback interface up", set_up(LOOPBACK))
    }

    /// Creates a namespace, runs `prepare` in it, and opens it.
    fn in_new(prepare: impl FnOnce() -> Result<()> + Send) -> Result<Self> {
        in_thread(|| {
            unshare(CloneFlags::CLONE_NEWNET)
                .map_err(|errno| Error::io("make a network namespace", errno))?;
            prepare()?;
            let made = Self::current()?;
            made.set_loopback_up()?;
            Ok(made)
        })
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Namespace {
    /// The shared descriptor, which a request that refers to the namespace keeps open.
    pub(crate) fn shared(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.fd)
    }
}

/// The calling thread's namespace. `/proc/self` would give the main thread's.
fn own_namespace() -> PathBuf {
    "/proc/thread-self/ns/net".into()
}

/// Runs `work` in a new thread, which ends with it. A thread cannot reliably return from a
/// namespace that it has entered, so it is not reused.
fn in_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| match scope.spawn(work).join() {
        Ok(value) => value,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::in_namespace;

    #[test]
    fn root_a_namespace_lives_at_its_path() {
        in_namespace(|| {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("r1");
            let here = Namespace::current().unwrap().inode().unwrap();
            let made = Namespace::create(&path).unwrap();
            assert_ne!(made.inode().unwrap(), here);
            assert_eq!(Namespace::current().unwrap().inode().unwrap(), here);
            assert!(Namespace::create(&path).unwrap_err().is_exists());

            let opened = Namespace::open(&path).unwrap();
            assert_eq!(opened.inode().unwrap(), made.inode().unwrap());
            let inside = opened.run(|| Namespace::current().unwrap().inode().unwrap()).unwrap();
            assert_eq!(inside, made.inode().unwrap());
            let links = Handle::within(&made).unwrap().links().unwrap();
            assert!(links.len() == 1 && links[0].up, "{links:?}");

            made.remove().unwrap();
            assert!(!path.exists());
        });
    }

    #[test]
    fn root_removing_is_tolerant_but_takes_no_strangers() {
        in_namespace(|| {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("r1");
            Namespace::remove_path(&path).unwrap();
            fs::write(&path, "").unwrap();
            assert!(matches!(Namespace::open(&path), Err(Error::NotANamespace { .. })));
            Namespace::remove_path(&path).unwrap();
            assert!(!path.exists());
            fs::write(&path, "not empty").unwrap();
            assert!(matches!(Namespace::remove_path(&path), Err(Error::NotANamespace { .. })));
            assert!(matches!(
                Namespace::remove_path(directory.path()),
                Err(Error::NotANamespace { .. })
            ));
            assert!(path.exists());
        });
    }
}
