//! Reads files and pipes that the user names, up to a size.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{IsTerminal, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, anyhow};
use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};

use crate::failure::Failure;
use crate::foreign;

/// Files of a tenant's program. They stay the same if the tenant puts others in their places.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) program: File,
    pub(crate) entries: Option<File>,
    /// Directory of the program's name, for included files (O_PATH).
    pub(crate) directory: Arc<File>,
}

/// Reads a text file of at most `largest` bytes; `what` names its kind in errors. Rejects other
/// file types, which may be endless.
pub(crate) fn read(path: &Path, what: &str, largest: u64) -> Result<String, Failure> {
    text(read_bytes(path, what, largest)?, path)
}

/// Does the same, and returns the file's path without symbolic links, if it has one. It is that of the file
/// that is read, also if another file takes its place.
pub(crate) fn read_with_path(
    path: &Path,
    what: &str,
    largest: u64,
) -> Result<(String, PathBuf), Failure> {
    let file = open(path)?;
    let real = private::real_path(&file).ok().filter(|real| real.is_absolute());
    let text = text(read_open(&file, path, what, largest)?, path)?;
    Ok((text, real.unwrap_or_else(|| path.to_owned())))
}

/// Like [`read`], of a file that may be open already; `path` is its name.
pub(crate) fn read_opened(
    opened: Option<&File>,
    path: &Path,
    what: &str,
    largest: u64,
) -> Result<String, Failure> {
    text(read_opened_bytes(opened, path, what, largest)?, path)
}

/// Like [`read_bytes`], of a file that may be open already; `path` is its name.
pub(crate) fn read_opened_bytes(
    opened: Option<&File>,
    path: &Path,
    what: &str,
    largest: u64,
) -> Result<Vec<u8>, Failure> {
    match opened {
        Some(file) => read_open(file, path, what, largest),
        None => read_bytes(path, what, largest),
    }
}

/// First bytes of an object (ELF).
const OBJECT: &[u8] = b"\x7fELF";

fn text(bytes: Vec<u8>, path: &Path) -> Result<String, Failure> {
    let cannot = || format!("cannot read {}", path.display());
    let no_text = |error: std::string::FromUtf8Error| {
        std::io::Error::new(std::io::ErrorKind::InvalidData, error.utf8_error())
    };
    if bytes.starts_with(OBJECT) {
        let help = "give its source; `kaido p4 explain` and `kaido p4 run` take objects";
        return Err(Failure::usage(anyhow!("{} is an object, not text: {help}", path.display())));
    }
    String::from_utf8(bytes).map_err(no_text).with_context(cannot).map_err(Failure::usage)
}

/// Reads a text file in a directory that other users control, and that may be open already. Links that
/// leave the directory are errors: they could lead to files that only this user may read.
pub(crate) fn read_in(
    directory: &Path,
    opened: Option<&File>,
    name: &OsStr,
    what: &str,
    largest: u64,
) -> Result<String, Failure> {
    let path = directory.join(name);
    let cannot = || format!("cannot read {}", path.display());
    let directory = opened.map_or_else(|| File::open(directory), File::try_clone);
    let directory = directory.with_context(cannot).map_err(Failure::usage)?;
    let how = OpenHow::new().flags(OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC);
    let file = match openat2(directory, name, how.resolve(ResolveFlag::RESOLVE_BENEATH)) {
        Err(Errno::EXDEV) => {
            let text = "is absolute, or leads outside its directory, perhaps by a symbolic link: copy the file";
            return Err(Failure::usage(anyhow!("{} {text}", path.display())));
        }
        opened => opened.with_context(cannot).map_err(Failure::usage)?,
    };
    text(read_open(&file.into(), &path, what, largest)?, &path)
}

/// Reads a file of any content.
pub(crate) fn read_bytes(path: &Path, what: &str, largest: u64) -> Result<Vec<u8>, Failure> {
    read_open(&open(path)?, path, what, largest)
}

fn open(path: &Path) -> Result<File, Failure> {
    let cannot = || format!("cannot read {}", path.display());
    let file = foreign::open(path, File::options().read(true));
    file.with_context(cannot).map_err(Failure::usage)
}

fn read_open(file: &File, path: &Path, what: &str, largest: u64) -> Result<Vec<u8>, Failure> {
    let name = path.display();
    let cannot = || format!("cannot read {name}");
    let is_none = |why: &str| Failure::usage(anyhow!("{name} is not a {what}: {why}"));
    let found = file.metadata().with_context(cannot).map_err(Failure::usage)?;
    let kind = found.file_type();
    let is_device = kind.is_block_device() || kind.is_char_device() && !file.is_terminal();
    if kind.is_dir() || is_device {
        return Err(is_none("neither a file nor a pipe"));
    }
    let too_large = || is_none(&format!("larger than {} MiB", largest >> 20));
    if found.len() > largest {
        return Err(too_large());
    }
    let mut bytes = Vec::with_capacity(found.len() as usize);
    let read = file.take(largest + 1).read_to_end(&mut bytes);
    if bytes.len() as u64 > largest {
        return Err(too_large());
    }
    read.with_context(cannot).map_err(Failure::usage)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_not_read_as_text() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a.o");
        std::fs::write(&file, b"\x7fELF\x02\x01\x01\xff").unwrap();
        let why = read(&file, "program", 100).unwrap_err().text();
        assert!(why.contains("a.o is an object, not text: give its source"), "{why}");
    }

    #[test]
    fn no_more_is_read_than_there_may_be() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path();
        std::fs::write(path, "x".repeat(2 << 20)).unwrap();
        assert_eq!(read(path, "text", 2 << 20).unwrap().len(), 2 << 20);
        let said = |error: Failure| format!("{error:?}");
        let larger = said(read(path, "text", (2 << 20) - 1).unwrap_err());
        assert!(larger.contains("is not a text: larger than 1 MiB"), "{larger}");
        for other in ["/dev/zero", "/tmp"] {
            let other = said(read(Path::new(other), "text", 9).unwrap_err());
            assert!(other.contains("is not a text: neither a file nor a pipe"), "{other}");
        }
    }

    #[test]
    fn a_file_is_read_with_its_own_path() {
        let directory = tempfile::tempdir().unwrap();
        let [file, link] = ["file", "link"].map(|name| directory.path().join(name));
        std::fs::write(&file, "text").unwrap();
        std::os::unix::fs::symlink("file", &link).unwrap();
        assert_eq!(read_with_path(&link, "text", 9).unwrap(), ("text".to_owned(), file));
    }

    #[test]
    fn links_that_leave_a_directory_are_not_followed() {
        let [directory, outside] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let secret = outside.path().join("secret");
        std::fs::write(&secret, "secret").unwrap();
        let link = |target: &Path, name: &str| {
            std::os::unix::fs::symlink(target, directory.path().join(name)).unwrap();
        };
        std::fs::write(directory.path().join("file"), "text").unwrap();
        link(Path::new("file"), "inside");
        link(&secret, "outside");
        link(&Path::new("..").join(outside.path().file_name().unwrap()).join("secret"), "above");
        // The kernel rejects an absolute link wherever it leads.
        link(&directory.path().join("file"), "absolute");
        let read = |name: &str| read_in(directory.path(), None, OsStr::new(name), "text", 99);
        assert_eq!(["file", "inside"].map(|name| read(name).unwrap()), ["text"; 2]);
        for name in ["outside", "above", "absolute"] {
            let error = format!("{:?}", read(name).unwrap_err());
            let wanted = "is absolute, or leads outside its directory, perhaps by a symbolic link: copy the file";
            assert!(error.contains(wanted), "{error}");
        }
    }

    #[test]
    fn an_endless_pipe_is_read_up_to_there() {
        let mut endless =
            std::process::Command::new("yes").stdout(std::process::Stdio::piped()).spawn().unwrap();
        let descriptor = std::os::fd::AsRawFd::as_raw_fd(endless.stdout.as_ref().unwrap());
        let path = format!("/proc/self/fd/{descriptor}");
        let error = format!("{:?}", read(Path::new(&path), "text", 1 << 20).unwrap_err());
        endless.kill().unwrap();
        endless.wait().unwrap();
        assert!(error.contains("larger than 1 MiB"), "{error}");
    }
}
