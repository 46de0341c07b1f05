//! Locks that are released when their process exits.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::unistd::geteuid;

use crate::file;

/// An exclusive lock on a file or a directory (flock(2)). The kernel releases it when the process
/// exits for any reason.
///
/// Any user who can open a file can lock it: use paths that other users cannot access.
#[derive(Debug)]
pub struct Lock(Flock<File>);

impl Lock {
    /// Locks an existing file or directory. Returns `None` if another process holds the lock.
    pub fn existing(path: &Path) -> io::Result<Option<Self>> {
        let file = File::options().read(true).custom_flags(file::FLAGS.bits()).open(path)?;
        Self::take(file)
    }

    /// Locks a file, and creates it if it does not exist. Returns `None` if another process holds
    /// the lock.
    pub fn file(path: &Path) -> io::Result<Option<Self>> {
        let mut options = File::options();
        options.read(true).write(true).create(true).mode(0o600).custom_flags(file::FLAGS.bits());
        let file = options.open(path)?;
        let owner = file.metadata()?.uid();
        if owner != geteuid().as_raw() {
            let why = format!("{} is user {owner}'s", path.display());
            return Err(io::Error::new(ErrorKind::PermissionDenied, why));
        }
        Self::take(file)
    }

    /// Returns true if no process holds the lock of an existing file. Concurrent calls do not
    /// affect each other.
    pub fn is_free(path: &Path) -> io::Result<bool> {
        let file = File::options().read(true).custom_flags(file::FLAGS.bits()).open(path)?;
        match Flock::lock(file, FlockArg::LockSharedNonblock) {
            Ok(_) => Ok(true),
            Err((_, Errno::EWOULDBLOCK)) => Ok(false),
            Err((_, errno)) => Err(errno.into()),
        }
    }

    fn take(file: File) -> io::Result<Option<Self>> {
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => Ok(Some(Self(lock))),
            Err((_, Errno::EWOULDBLOCK)) => Ok(None),
            Err((_, errno)) => Err(errno.into()),
        }
    }

    /// The locked file.
    pub(crate) fn as_file(&self) -> &File {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_process_at_a_time_has_a_lock() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("lock");
        let first = Lock::file(&path).unwrap().unwrap();
        assert!(Lock::file(&path).unwrap().is_none());
        assert!(Lock::existing(&path).unwrap().is_none());
        assert!(!Lock::is_free(&path).unwrap());
        drop(first);
        assert!(Lock::is_free(&path).unwrap());
        assert!(Lock::file(&path).unwrap().is_some());
        assert!(Lock::existing(root.path()).unwrap().is_some());
        std::os::unix::fs::symlink(&path, root.path().join("link")).unwrap();
        assert!(Lock::file(&root.path().join("link")).is_err());
    }
}
