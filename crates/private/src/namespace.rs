//! Locks on network namespaces.

use std::fs::{self, File};
use std::io::{self, ErrorKind::NotFound, Read as _, Seek as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::{Lock, directory};

/// Directory of the locks of all network namespaces of this machine. It does not depend on the
/// labs' directory, because namespaces are global to the kernel.
const DIRECTORY: &str = "/run/kaido/namespaces";

/// Exclusive use of a network namespace for a purpose such as `dataplane`. The file is removed on
/// drop; a file left by a killed process is reused.
#[derive(Debug)]
pub struct NamespaceLock {
    path: PathBuf,
    #[expect(dead_code, reason = "holding it is its use")]
    lock: Lock,
}

/// The longest time that others need to remove the file of a dead process, or the empty directory.
const CLEANING: Duration = Duration::from_secs(1);

/// Error of a failed attempt to lock a namespace.
#[derive(Debug, thiserror::Error)]
pub enum TakeError {
    /// Another process holds the lock for the same purpose; with its PID, if it has recorded it.
    #[error("{} holds the lock of this network namespace", .0.map_or("another process".into(), |process| format!("process {process}")))]
    Taken(Option<u32>),
    /// The lock cannot be created.
    #[error("cannot create the lock {}", path.display())]
    Failed {
        /// Path of the lock file.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
}

impl NamespaceLock {
    /// Locks the calling thread's network namespace.
    pub fn take(purpose: &str) -> Result<Self, TakeError> {
        let path = Path::new("/proc/thread-self/ns/net");
        let failed = |source| TakeError::Failed { path: path.into(), source };
        let inode = fs::metadata(path).map_err(failed)?.ino();
        Self::take_in(Path::new(DIRECTORY), inode, purpose)
    }

    fn take_in(directory: &Path, inode: u64, purpose: &str) -> Result<Self, TakeError> {
        let path = directory.join(format!("{inode}-{purpose}"));
        let failed = |source| TakeError::Failed { path: path.clone(), source };
        let since = Instant::now();
        loop {
            let lock = match directory::make(directory).and_then(|()| Lock::file(&path)) {
                Ok(Some(lock)) => lock,
                Ok(None) => {
                    let holder = holder(&path);
                    if holder.is_some_and(is_alive) || since.elapsed() > CLEANING {
                        return Err(TakeError::Taken(holder));
                    }
                    pause();
                    continue;
                }
                // The last holder of another lock removes the empty directory at any moment.
                Err(error) if error.kind() == NotFound && since.elapsed() < CLEANING => {
                    pause();
                    continue;
                }
                Err(error) => return Err(failed(error)),
            };
            // The previous holder may have removed the file between open and flock.
            let [locked, there] = [lock.as_file().metadata(), fs::symlink_metadata(&path)];
            if there.is_ok_and(|there| locked.is_ok_and(|locked| locked.ino() == there.ino())) {
                note_holder(lock.as_file()).map_err(failed)?;
                return Ok(Self { path, lock });
            }
        }
    }
}

impl Drop for NamespaceLock {
    fn drop(&mut self) {
        // Remove it while holding the lock, so that another process's file is not removed. Best
        // effort.
        let _ = fs::remove_file(&self.path);
        if let Some(directory) = self.path.parent() {
            remove_empty(directory);
        }
    }
}

/// Removes the lock files that killed processes have left.
pub fn remove_stale_namespace_locks() {
    remove_stale_in(Path::new(DIRECTORY));
}

fn remove_stale_in(directory: &Path) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        if let Ok(Some(_lock)) = Lock::existing(&path) {
            // Remove it while holding the lock, as above.
            let _ = fs::remove_file(&path);
        }
    }
    remove_empty(directory);
}

/// Removes the directory and its parent if they are empty.
fn remove_empty(directory: &Path) {
    let _ = fs::remove_dir(directory);
    if let Some(above) = directory.parent() {
        let _ = fs::remove_dir(above);
    }
}

fn note_holder(mut file: &File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(std::process::id().to_string().as_bytes())
}

fn is_alive(process: u32) -> bool {
    Path::new(&format!("/proc/{process}")).exists()
}

#[expect(
    clippy::disallowed_methods,
    reason = "the removal of a file by another process has no event"
)]
fn pause() {
    std::thread::sleep(Duration::from_millis(1));
}

fn holder(path: &Path) -> Option<u32> {
    let mut text = String::new();
    File::open(path).ok()?.take(16).read_to_string(&mut text).ok()?;
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_has_one_holder_for_each_purpose() {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("kaido/namespaces");
        let take = |inode, purpose| NamespaceLock::take_in(&directory, inode, purpose);
        let first = take(7, "dataplane").unwrap();
        let other = [take(7, "node").unwrap(), take(8, "dataplane").unwrap()];
        let refused = take(7, "dataplane");
        assert!(matches!(refused, Err(TakeError::Taken(pid)) if pid == Some(std::process::id())));
        drop(first);
        drop(take(7, "dataplane").unwrap());
        // A dead process's file, locked by the one that removes it.
        let cleaned = directory.join("6-node");
        drop(take(6, "node"));
        fs::write(&cleaned, u32::MAX.to_string()).unwrap();
        let cleaning = Lock::existing(&cleaned).unwrap().unwrap();
        let cleaner = std::thread::spawn(move || {
            pause();
            drop(cleaning);
        });
        take(6, "node").unwrap();
        cleaner.join().unwrap();
        let left = directory.join("9-node");
        fs::write(&left, "1").unwrap();
        remove_stale_in(&directory);
        assert!(!left.exists() && take(8, "dataplane").is_err(), "held ones stay");
        drop(other);
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_directory_that_others_remove_is_created_again() {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("kaido/namespaces");
        let take = |inode| {
            for _ in 0..2000 {
                drop(NamespaceLock::take_in(&directory, inode, "node").unwrap());
            }
        };
        std::thread::scope(|scope| [1, 2].map(|inode| scope.spawn(move || take(inode))).len());
    }
}
