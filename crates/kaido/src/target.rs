//! Files that are written whole or not at all.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// A file that will be written.
pub(crate) enum Target {
    /// A pipe or a device is written to as it is.
    Open(File),
    /// A file is made beside it, and takes its place.
    Replaced { path: PathBuf, permissions: fs::Permissions },
}

impl Target {
    /// Where a path leads; an error if nothing can be written there.
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        // The file that a link leads to is replaced, and not the link.
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
        // Whether there can be one beside it; it goes again at once.
        beside(&path, &permissions)?;
        Ok(Self::Replaced { path, permissions })
    }

    /// Writes it.
    pub(crate) fn write(self, text: &[u8]) -> io::Result<()> {
        match self {
            Self::Open(mut file) => file.write_all(text),
            Self::Replaced { path, permissions } => {
                let mut file = beside(&path, &permissions)?;
                file.write_all(text)?;
                file.persist(path)?;
                Ok(())
            }
        }
    }
}

/// A new file in the folder of another one. Permissions are as umask leaves them.
fn beside(path: &Path, permissions: &fs::Permissions) -> io::Result<NamedTempFile> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut builder = tempfile::Builder::new();
    builder.prefix(".kaido-").permissions(permissions.clone());
    builder.tempfile_in(folder.unwrap_or(Path::new(".")))
}
