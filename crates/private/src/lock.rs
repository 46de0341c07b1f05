//! Locks that end with their process.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg, OFlag};
use nix::unistd::geteuid;

/// An exclusive lock on a file or a folder (flock(2)). It ends with the process, however that ends.
///
/// Whoever can open a file can lock it: only paths that no other user reaches keep others from it.
#[derive(Debug)]
pub struct Lock(Flock<File>);

impl Lock {
    /// Locks a file or folder that exists. `None`: another process has the lock.
    pub fn existing(path: &Path) -> io::Result<Option<Self>> {
        let file = File::options().read(true).custom_flags(flags().bits()).open(path)?;
        Self::take(file)
    }

    /// Creates a file if there is none, and locks it. `None`: another process has the lock.
    pub fn file(path: &Path) -> io::Result<Option<Self>> {
        let mut options = File::options();
        options.read(true).write(true).create(true).mode(0o600).custom_flags(flags().bits());
        let file = options.open(path)?;
        let owner = file.metadata()?.uid();
        if owner != geteuid().as_raw() {
            let why = format!("{} is user {owner}'s", path.display());
            return Err(io::Error::new(ErrorKind::PermissionDenied, why));
        }
        Self::take(file)
    }

    /// Whether no process has the lock of a file that exists. Two that ask at once do not take each other for a holder.
    pub fn is_free(path: &Path) -> io::Result<bool> {
        let file = File::options().read(true).custom_flags(flags().bits()).open(path)?;
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

/// A link is not followed, and a pipe that nobody writes to is not waited for.
fn flags() -> OFlag {
    OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK
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
