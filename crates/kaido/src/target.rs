//! Files that are written as a whole or not at all.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use tempfile::NamedTempFile;

use crate::failure::Failure;

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

/// A file to be written.
pub(crate) enum Target {
    /// A pipe or a device, written in place.
    Open(File),
    /// A regular file, replaced by a new file in the same directory.
    Replaced { path: PathBuf, permissions: fs::Permissions },
}

impl Target {
    /// Prepares a path for writing; fails if it cannot be written.
    pub(crate) fn resolve(path: &Path) -> io::Result<Self> {
        // Replace the file that a symbolic link points to, not the link.
        let (path, permissions) = match fs::canonicalize(path) {
            Ok(path) => {
                let file = File::options().append(true).open(&path)?;
                let found = file.metadata()?;
                if !found.is_file() {
                    return Ok(Self::Open(file));
                }
                (path, found.permissions())
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                (path.to_owned(), fs::Permissions::from_mode(0o666))
            }
            Err(error) => return Err(error),
        };
        // Check that a new file can be created there; it is removed immediately.
        beside(&path, &permissions)?;
        Ok(Self::Replaced { path, permissions })
    }

    /// Prepares a path for writing. A symbolic link there is replaced, and not followed.
    pub(crate) fn replacing(path: &Path) -> io::Result<Self> {
        let permissions = fs::Permissions::from_mode(0o666);
        beside(path, &permissions)?;
        Ok(Self::Replaced { path: path.to_owned(), permissions })
    }

    /// Writes the contents.
    pub(crate) fn write(self, text: &[u8]) -> io::Result<()> {
        match self {
            Self::Open(mut file) => file.write_all(text),
            Self::Replaced { path, permissions } => {
                let mut file = beside(&path, &permissions)?;
                file.write_all(text).map_err(plain)?;
                file.persist(path)?;
                Ok(())
            }
        }
    }
}

/// Creates a temporary file in the directory of `path`. The umask applies to the permissions.
fn beside(path: &Path, permissions: &fs::Permissions) -> io::Result<NamedTempFile> {
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
    if let Some(directory) = directory.filter(|directory| !directory.is_dir()) {
        let why = format!("no directory {}", directory.display());
        return Err(io::Error::new(io::ErrorKind::NotFound, why));
    }
    let mut builder = tempfile::Builder::new();
    builder.prefix(".kaido-").permissions(permissions.clone());
    builder.tempfile_in(directory.unwrap_or(Path::new("."))).map_err(plain)
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
