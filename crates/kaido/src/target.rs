//! Files that are written as a whole or not at all.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use nix::errno::Errno;
use tempfile::NamedTempFile;

use crate::failure::Failure;
use crate::foreign::{self, is_own};

/// Fails if the output file is one of the input files, under any name.
pub(crate) fn is_none_of<'p>(
    to: &Path,
    read: impl IntoIterator<Item = &'p Path>,
) -> Result<(), Failure> {
    let which = |path: &Path| fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
    let Some(place) = which(to) else { return Ok(()) };
    match read.into_iter().find(|one| which(one) == Some(place)) {
        None => Ok(()),
        Some(one) => {
            let (to, one) = (to.display(), one.display());
            Err(Failure::usage(anyhow!("{to} is {one}, which is read here: write another file")))
        }
    }
}

/// Creates a directory for several files. One of another user is refused: that user's links in it could
/// lead to any file.
pub(crate) fn own_directory(path: &Path) -> io::Result<OwnDirectory> {
    let directory = private::make_directory(path)?;
    match is_own(&directory.metadata()?) {
        true => Ok(OwnDirectory(directory)),
        false => Err(io::Error::other("the directory belongs to another user")),
    }
}

/// An open directory.
pub(crate) struct OwnDirectory(File);

impl OwnDirectory {
    /// Path of the directory, which stays valid if its name changes.
    pub(crate) fn path(&self) -> PathBuf {
        private::entry(&self.0, OsStr::new(""))
    }
}

/// A file to be written.
pub(crate) enum Target {
    /// A pipe or a device, written in place.
    Open(File),
    /// A regular file, replaced by a new file in the same directory.
    Replaced(Place, fs::Permissions),
}

/// An open directory, and a name in it.
pub(crate) struct Place {
    directory: File,
    name: OsString,
}

impl Target {
    /// Prepares a path for writing; fails if it cannot be written.
    pub(crate) fn resolve(path: &Path) -> io::Result<Self> {
        let place = follow(path)?;
        let new = fs::Permissions::from_mode(0o666);
        let permissions = match place.open_existing(File::options().append(true)) {
            Ok(file) => {
                let found = file.metadata()?;
                if !found.is_file() {
                    return Ok(Self::Open(file));
                }
                // Another user's file does not decide who reads the new one.
                if is_own(&found) { found.permissions() } else { new }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => new,
            // A link of another user, which is replaced.
            Err(error) if error.raw_os_error() == Some(Errno::ELOOP as i32) => new,
            Err(error) => return Err(error),
        };
        // Check that a new file can be created there; it is removed immediately.
        place.create(&permissions)?;
        Ok(Self::Replaced(place, permissions))
    }

    /// Prepares a path for writing. A symbolic link there is replaced, and not followed.
    pub(crate) fn replacing(path: &Path) -> io::Result<Self> {
        let permissions = fs::Permissions::from_mode(0o666);
        let place = Place::open(path)?;
        place.create(&permissions)?;
        Ok(Self::Replaced(place, permissions))
    }

    /// Writes the contents.
    pub(crate) fn write(self, text: &[u8]) -> io::Result<()> {
        match self {
            Self::Open(mut file) => file.write_all(text),
            Self::Replaced(place, permissions) => {
                let mut file = place.create(&permissions)?;
                file.write_all(text).map_err(plain)?;
                file.persist(place.path()).map_err(|failed| plain(failed.error))?;
                Ok(())
            }
        }
    }
}

/// Returns the file to which symbolic links at a path lead, or the first link of another user: it is
/// replaced, since it could lead to any file. The kernel checks links in shared directories only when
/// it follows them itself (`fs.protected_symlinks`).
fn follow(path: &Path) -> io::Result<Place> {
    /// Links that the kernel follows (path_resolution(7)).
    const LINKS: usize = 40;
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        let place = Place::open(&path)?;
        match fs::symlink_metadata(place.path()) {
            Ok(found) if found.is_symlink() && is_own(&found) => {
                let to = fs::read_link(place.path())?;
                path = path.parent().unwrap_or(Path::new("")).join(to);
            }
            Ok(_) => return Ok(place),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(place),
            Err(error) => return Err(error),
        }
    }
    Err(Errno::ELOOP.into())
}

impl Place {
    /// Opens the directory of a path. Links of other users on the way are refused
    /// ([`private::open_directory`]).
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let name = path.file_name().ok_or(Errno::EISDIR)?.to_owned();
        let parent = path.parent().unwrap_or(Path::new(""));
        let directory = private::open_directory(parent).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                io::Error::new(error.kind(), format!("no directory {}", parent.display()))
            }
            _ => error,
        })?;
        Ok(Self { directory, name })
    }

    /// Path of the file. It is valid while this value exists.
    pub(crate) fn path(&self) -> PathBuf {
        private::entry(&self.directory, &self.name)
    }

    /// Opens the file if it exists, without following a symbolic link.
    pub(crate) fn open_existing(&self, options: &fs::OpenOptions) -> io::Result<File> {
        foreign::open_no_link(&self.path(), options)
    }

    /// Creates a temporary file in the directory. The umask applies to the permissions.
    fn create(&self, permissions: &fs::Permissions) -> io::Result<NamedTempFile> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(".kaido-").permissions(permissions.clone());
        builder.tempfile_in(private::entry(&self.directory, OsStr::new(""))).map_err(plain)
    }
}

/// Strips the temporary file's path from an error: the user does not know that name.
fn plain(error: io::Error) -> io::Error {
    let source = error.get_ref().and_then(std::error::Error::source);
    match source.and_then(|source| source.downcast_ref::<io::Error>()?.raw_os_error()) {
        Some(number) => io::Error::from_raw_os_error(number),
        None => io::Error::from(error.kind()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_do_not_name_internal_files() {
        let here = tempfile::tempdir().unwrap();
        let said = |path: &Path| match Target::resolve(path) {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        };
        let nowhere = here.path().join("none/x");
        let directory = format!("no directory {}", here.path().join("none").display());
        assert_eq!(said(&nowhere), directory);
        // A file instead of a directory.
        fs::write(here.path().join("none"), "").unwrap();
        assert!(!said(&nowhere).contains(".kaido-"), "{}", said(&nowhere));
        // In /proc even root cannot create files.
        let process = said(Path::new("/proc/none"));
        assert!(!process.is_empty() && !process.contains(".kaido-"), "{process}");
        assert_eq!(said(&here.path().join("new")), "");
    }
}
