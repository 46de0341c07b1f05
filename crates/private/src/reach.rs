//! Directories of any owner, in which files for the user are created.
//!
//! Another user may own a directory on the way, but not lead elsewhere: symbolic links on the way have to
//! be root's or this user's. The descriptor of the directory stays the same if a name on the way changes.

use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::{Mode, mkdirat};

use crate::walk::Walk;

/// Opens a directory (O_PATH).
///
/// # Errors
///
/// Fails if it does not exist, or if a symbolic link of another user is on the way.
pub fn open_directory(path: &Path) -> io::Result<File> {
    let Walk { directories, missing, .. } = walk(path)?;
    if missing.is_empty() { last(directories) } else { Err(Errno::ENOENT.into()) }
}

/// Like [`open_directory`], after creating the missing directories. The umask applies to their mode.
///
/// # Errors
///
/// As [`open_directory`], or if a directory cannot be created.
pub fn make_directory(path: &Path) -> io::Result<File> {
    let Walk { mut directories, missing, .. } = walk(path)?;
    for name in missing {
        let directory = directories.last().ok_or(ErrorKind::NotFound)?;
        match mkdirat(directory, name.as_os_str(), Mode::from_bits_truncate(0o777)) {
            Ok(()) | Err(Errno::EEXIST) => {}
            Err(errno) => return Err(errno.into()),
        }
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        directories.push(openat(directory, name.as_os_str(), flags, Mode::empty())?.into());
    }
    last(directories)
}

fn last(mut directories: Vec<File>) -> io::Result<File> {
    // The root directory is never removed.
    let found = directories.pop().ok_or(ErrorKind::NotFound)?;
    if found.metadata()?.is_dir() { Ok(found) } else { Err(Errno::ENOTDIR.into()) }
}

/// Returns the path of an entry of an open directory. It is valid while the directory is open.
pub fn entry(directory: &File, name: &OsStr) -> PathBuf {
    Path::new("/proc/self/fd").join(directory.as_raw_fd().to_string()).join(name)
}

fn walk(path: &Path) -> io::Result<Walk> {
    fn any(_: &Metadata) -> Result<(), String> {
        Ok(())
    }
    // Components such as `..` are kept, since they follow links.
    let absolute = std::env::current_dir()?.join(path);
    Walk::with(&absolute, any)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, symlink};
    use std::process::Command;

    use super::*;

    #[test]
    fn directories_are_opened_and_made() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("a/b");
        let missing = open_directory(&path).map(drop).unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::NotFound);
        let made = make_directory(&path).unwrap();
        let number = |file: &File| file.metadata().unwrap().ino();
        assert_eq!(number(&made), number(&open_directory(&path).unwrap()));
        // A link of this user, and `..` after it.
        symlink(&path, root.path().join("link")).unwrap();
        let parent = open_directory(&root.path().join("link/..")).unwrap();
        assert_eq!(number(&parent), number(&open_directory(&root.path().join("a")).unwrap()));
        fs::write(entry(&made, "file".as_ref()), "text").unwrap();
        assert_eq!(fs::read(path.join("file")).unwrap(), b"text");
        // The name leads elsewhere now, and the descriptor does not.
        fs::rename(&path, root.path().join("moved")).unwrap();
        fs::write(entry(&made, "file".as_ref()), "again").unwrap();
        assert_eq!(fs::read(root.path().join("moved/file")).unwrap(), b"again");
        assert!(open_directory(&root.path().join("moved/file")).is_err());
        assert!(make_directory(&root.path().join("moved/file")).is_err());
    }

    #[test]
    fn root_links_of_other_users_are_refused() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("theirs");
        fs::create_dir(&path).unwrap();
        let link = path.join("link");
        symlink("/root", &link).unwrap();
        let run = |arguments: &[&str]| {
            let status = Command::new("chown").args(arguments).args([&path, &link]).status();
            assert!(status.unwrap().success());
        };
        run(&["-h", "65534"]);
        // Their directory may be used.
        make_directory(&path.join("new")).unwrap();
        for refused in [&link, &link.join("x")] {
            for result in [open_directory(refused), make_directory(refused)] {
                let why = result.map(drop).unwrap_err().to_string();
                assert!(why.contains("it is user 65534's"), "{why}");
            }
        }
    }
}
