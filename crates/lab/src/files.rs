//! Safe reading of files that another user may have replaced: only regular files up to a size
//! limit.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

/// Maximum size of a file, as for a trace.
pub(crate) const LARGEST: u64 = 64 << 20;

/// Number of bytes read from the end of a log.
const END: u64 = 64 << 10;

/// Opens a regular file and returns its size. Other file types are rejected: they may have no end.
fn open_regular(path: &Path) -> io::Result<(File, u64)> {
    let file = private::open_regular(path)?;
    let length = file.metadata()?.len();
    Ok((file, length))
}

fn refused(why: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why)
}

/// Reads a file.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    read_up_to(path, LARGEST)
}

fn read_up_to(path: &Path, largest: u64) -> io::Result<Vec<u8>> {
    let (file, length) = open_regular(path)?;
    let too_large = || Err(refused(format!("it is larger than {} MiB", largest >> 20)));
    if length > largest {
        return too_large();
    }
    let mut bytes = Vec::new();
    // The file may grow in the meantime.
    file.take(largest + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > largest { too_large() } else { Ok(bytes) }
}

/// Reads a file as UTF-8 text.
pub(crate) fn read_text(path: &Path) -> io::Result<String> {
    String::from_utf8(read(path)?).map_err(|_| refused("it is not UTF-8 text".into()))
}

/// Returns the last lines of a log; empty if the log does not exist.
pub(crate) fn tail(path: &Path, lines: usize) -> String {
    let read = || {
        let (mut file, length) = open_regular(path)?;
        file.seek(SeekFrom::Start(length.saturating_sub(END)))?;
        let mut bytes = Vec::new();
        file.take(END).read_to_end(&mut bytes)?;
        Ok::<_, io::Error>(String::from_utf8_lossy(&bytes).into_owned())
    };
    let text = read().unwrap_or_default();
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

/// Removes a file or a directory with its contents.
pub(crate) fn remove_whatever(path: &Path) -> std::io::Result<()> {
    if fs::symlink_metadata(path)?.is_dir() {
        fs::remove_dir_all(path)
    } else {
        fs::remove_file(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endless_or_too_large_file_is_refused_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let [pipe, large, text] = ["pipe", "large", "text"].map(|name| directory.path().join(name));
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        File::create(&large).unwrap().set_len(20 << 30).unwrap();
        std::fs::write(&text, "one\ntwo\nthree\n").unwrap();
        for (path, why) in [
            (&*pipe, "not a regular file"),
            (Path::new("/dev/zero"), "not a regular file"),
            (directory.path(), "not a regular file"),
            (&large, "larger than 64 MiB"),
        ] {
            let error = read(path).unwrap_err().to_string();
            assert!(error.contains(why), "{}: {error}", path.display());
        }
        assert_eq!(read_text(&text).unwrap(), "one\ntwo\nthree\n");
        assert!(read_up_to(&text, 13).is_err() && read_up_to(&text, 14).is_ok());
        assert_eq!(tail(&text, 2), "two\nthree");
        assert_eq!(tail(&pipe, 2), "");
        assert!(tail(&large, 2).len() as u64 <= END);
        std::fs::write(&text, [0xff]).unwrap();
        assert!(read_text(&text).unwrap_err().to_string().contains("UTF-8"));
    }
}
