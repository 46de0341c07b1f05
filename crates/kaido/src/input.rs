//! Reads files and pipes that the user names, up to a size.

use std::fs::File;
use std::io::{IsTerminal, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use anyhow::{Context, anyhow};

use crate::failure::Failure;

/// Reads a text file of at most `largest` bytes; `what` names its kind in errors. Rejects other
/// file types, which may be endless.
pub(crate) fn read(path: &Path, what: &str, largest: u64) -> Result<String, Failure> {
    let bytes = read_bytes(path, what, largest)?;
    let cannot = || format!("cannot read {}", path.display());
    let no_text = |error: std::string::FromUtf8Error| {
        std::io::Error::new(std::io::ErrorKind::InvalidData, error.utf8_error())
    };
    String::from_utf8(bytes).map_err(no_text).with_context(cannot).map_err(Failure::usage)
}

/// Does the same for a file that need not be text.
pub(crate) fn read_bytes(path: &Path, what: &str, largest: u64) -> Result<Vec<u8>, Failure> {
    let name = path.display();
    let cannot = || format!("cannot read {name}");
    let is_none = |why: &str| Failure::usage(anyhow!("{name} is not a {what}: {why}"));
    let file = File::open(path).with_context(cannot).map_err(Failure::usage)?;
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
