//! Files of mode 0600 that follow no link.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;

/// Options for a file that is this user's alone. A link is not followed, and a pipe that nobody reads is not
/// waited for.
fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600).custom_flags((OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits());
    options
}

/// Creates a file that must not exist, and writes its content.
pub fn create(path: &Path, content: &[u8]) -> io::Result<()> {
    options().write(true).create_new(true).open(path)?.write_all(content)
}

/// Writes a file beside `path` and renames it: a reader sees the old content or the new, whole.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    let new = PathBuf::from(new);
    // Left by a process that was killed.
    match fs::remove_file(&new) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let written = create(&new, content).and_then(|()| fs::rename(&new, path));
    if written.is_err() {
        // The first error is the one to report.
        let _ = fs::remove_file(&new);
    }
    written
}

/// Opens a file to read it and to append to it, and creates it where there is none.
pub fn append(path: &Path) -> io::Result<File> {
    options().read(true).append(true).create(true).open(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn links_are_not_followed() {
        let root = tempfile::tempdir().unwrap();
        let victim = root.path().join("victim");
        fs::write(&victim, "untouched").unwrap();
        let link = root.path().join("link");
        symlink(&victim, &link).unwrap();
        assert!(create(&link, b"x").is_err() && append(&link).is_err());
        replace(&link, b"x").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_file());
        let [beside, file] = ["file.new", "file"].map(|name| root.path().join(name));
        symlink(&victim, &beside).unwrap();
        replace(&file, b"x").unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "untouched");
        assert_eq!(fs::read_to_string(&file).unwrap(), "x");
    }

    #[test]
    fn files_are_their_users_alone() {
        let root = tempfile::tempdir().unwrap();
        let [made, replaced, log] = ["a", "b", "c"].map(|name| root.path().join(name));
        create(&made, b"").unwrap();
        replace(&replaced, b"").unwrap();
        append(&log).unwrap();
        for path in [&made, &replaced, &log] {
            assert_eq!(mode(path), 0o600);
        }
        assert!(create(&made, b"").is_err());
    }
}
