//! Path resolution by descriptors, with a check of each component.

use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{OFlag, openat, readlinkat};
use nix::sys::stat::Mode;

use crate::trust::{is_ancestor, is_owned, refused};

/// Maximum number of symbolic links in a path (path_resolution(7)).
const LINKS: usize = 40;

/// Result of resolving a path as the kernel does.
pub(crate) struct Walk {
    /// The existing part of the path, without symbolic links.
    pub(crate) at: PathBuf,
    /// Descriptors of the existing directories, from the root directory on (O_PATH).
    pub(crate) directories: Vec<File>,
    /// Names that are missing below.
    pub(crate) missing: Vec<OsString>,
}

impl Walk {
    /// Resolves an absolute path. Each directory and each symbolic link on the way is opened first,
    /// and checked by its descriptor: only root and this user may be able to change it.
    pub(crate) fn to(path: &Path) -> io::Result<Self> {
        Self::with(path, is_ancestor, |next, link| is_owned(link).map_err(|why| refused(next, why)))
    }

    /// Like [`Walk::to`], with other checks of directories, and of symbolic links with their paths.
    pub(crate) fn with(
        path: &Path,
        check: impl Fn(&Metadata) -> Result<(), String>,
        mut check_link: impl FnMut(&Path, &Metadata) -> io::Result<()>,
    ) -> io::Result<Self> {
        let mut walk =
            Self { at: "/".into(), directories: vec![File::open("/")?], missing: Vec::new() };
        // The next name is last.
        let (mut names, mut links) = (reversed(path), 0);
        while let Some(name) = names.pop() {
            if name == "/" {
                walk.at = "/".into();
                walk.directories.truncate(1);
                continue;
            }
            if name == "." {
                continue;
            }
            if name == ".." {
                if walk.directories.len() > 1 {
                    walk.at.pop();
                    walk.directories.pop();
                }
                continue;
            }
            let directory = walk.directories.last().expect("the root directory is never removed");
            let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
            let found = match openat(directory, name.as_os_str(), flags, Mode::empty()) {
                Ok(found) => File::from(found),
                Err(Errno::ENOENT) => {
                    names.push(name);
                    names.reverse();
                    walk.missing = names;
                    return Ok(walk);
                }
                Err(errno) => return Err(errno.into()),
            };
            let next = walk.at.join(&name);
            let metadata = found.metadata()?;
            if metadata.is_symlink() {
                check_link(&next, &metadata)?;
                links += 1;
                if links > LINKS {
                    return Err(Errno::ELOOP.into());
                }
                names.extend(reversed(Path::new(&readlinkat(&found, "")?)));
                continue;
            }
            check(&metadata).map_err(|why| refused(&next, why))?;
            walk.at = next;
            walk.directories.push(found);
        }
        Ok(walk)
    }
}

fn reversed(path: &Path) -> Vec<OsString> {
    path.components().rev().map(|name| name.as_os_str().to_owned()).collect()
}
