//! Files of mode 0600, opened without following symbolic links.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;

use crate::trust::{is_owned, refused};

/// Flags that prevent following a symbolic link, and blocking on a FIFO.
pub(crate) const FLAGS: OFlag = OFlag::O_NOFOLLOW.union(OFlag::O_NONBLOCK);

/// Options for a private file of this user.
fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600).custom_flags(FLAGS.bits());
    options
}

/// Creates a file, which must not exist, and writes its content.
pub fn create(path: &Path, content: &[u8]) -> io::Result<()> {
    options().write(true).create_new(true).open(path)?.write_all(content)
}

/// Replaces a file atomically: a reader sees either the old or the new content.
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
        // Report the first error.
        let _ = fs::remove_file(&new);
    }
    written
}

/// Opens a file for reading and appending, and creates it if it does not exist.
pub fn append(path: &Path) -> io::Result<File> {
    options().read(true).append(true).create(true).open(path)
}

/// Opens a regular file to read it. No other kind of file is opened, since opening a device may have
/// effects, and a FIFO may block.
pub fn open_regular(path: &Path) -> io::Result<File> {
    open_by(path, OFlag::O_PATH)
}

/// Returns true if an open file is below a directory, or is the directory. Symbolic links on the way to
/// the file are resolved, so that one in the directory to a file elsewhere does not count. `directory` is a
/// path without links: a link that has since taken the place of one of its directories is not followed.
///
/// # Errors
///
/// Fails if the file's path cannot be found.
pub fn is_below(file: &File, directory: &Path) -> io::Result<bool> {
    Ok(real_path(file)?.starts_with(directory))
}

/// Returns the path of an open file, without symbolic links.
///
/// # Errors
///
/// Fails if it cannot be found.
pub fn real_path(file: &File) -> io::Result<PathBuf> {
    fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Opens a regular file of root or of this user, without following a symbolic link, to read it.
pub fn open_own(path: &Path) -> io::Result<File> {
    let file = open_by(path, OFlag::O_PATH | OFlag::O_NOFOLLOW)?;
    is_owned(&file.metadata()?).map_err(|why| refused(path, why))?;
    Ok(file)
}

fn open_by(path: &Path, flags: OFlag) -> io::Result<File> {
    reopen_regular(&File::options().read(true).custom_flags(flags.bits()).open(path)?)
}

/// Opens a file again that was opened with O_PATH, to read it.
///
/// # Errors
///
/// As [`reopen`], or if it is not a regular file.
pub fn reopen_regular(found: &File) -> io::Result<File> {
    if !found.metadata()?.is_file() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "it is not a regular file"));
    }
    reopen(found, File::options().read(true))
}

/// Opens a file again that was opened with O_PATH. A regular one is not waited for if its owner holds a
/// lease on it (fcntl(2)), which delays each open(2) by 45 s.
///
/// # Errors
///
/// As open(2).
pub fn reopen(found: &File, options: &OpenOptions) -> io::Result<File> {
    let mut options = options.clone();
    if found.metadata()?.is_file() {
        options.custom_flags(OFlag::O_NONBLOCK.bits());
    }
    let opened = options.open(format!("/proc/self/fd/{}", found.as_raw_fd()));
    opened.map_err(|error| match error.kind() {
        ErrorKind::WouldBlock => io::Error::new(error.kind(), "its owner holds a lease on it"),
        _ => error,
    })
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

    #[test]
    fn links_lead_out_of_a_directory() {
        let root = tempfile::tempdir().unwrap();
        let [inside, beside] = ["inside", "inside-not"].map(|name| root.path().join(name));
        for (at, directory) in [&inside, &beside].into_iter().enumerate() {
            fs::create_dir(directory).unwrap();
            fs::write(directory.join("file"), at.to_string()).unwrap();
        }
        symlink(beside.join("file"), inside.join("link")).unwrap();
        let way = root.path().join("way");
        symlink(&inside, &way).unwrap();
        for (path, is_inside) in [
            (inside.join("file"), true),
            (inside.join("link"), false),
            (inside.join("../inside-not/file"), false),
            (root.path().join("way/file"), true),
            (beside.join("file"), false),
        ] {
            let file = open_regular(&path).unwrap();
            assert_eq!(is_below(&file, &inside).unwrap(), is_inside, "{}", path.display());
            // A link that takes the place of the directory leads to no files that may be shown.
            assert!(!is_below(&file, &way).unwrap());
        }
    }

    #[test]
    fn only_regular_files_are_opened() {
        let root = tempfile::tempdir().unwrap();
        let [file, link, pipe] = ["file", "link", "pipe"].map(|name| root.path().join(name));
        fs::write(&file, "x").unwrap();
        symlink(&file, &link).unwrap();
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(open_regular(&file).is_ok() && open_regular(&link).is_ok());
        assert!(open_own(&file).is_ok() && open_own(&link).is_err());
        for path in [&pipe, Path::new("/dev/null"), root.path()] {
            assert!(open_regular(path).is_err() && open_own(path).is_err(), "{}", path.display());
        }
    }
}
