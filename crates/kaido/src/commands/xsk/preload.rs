//! Clients that cannot be preloaded: their packets would pass without their programs.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use nix::unistd::{getegid, geteuid};

use crate::failure::Failure;

/// Bits of a mode (inode(7)).
const SET_USER: u32 = 0o4000;
const SET_GROUP: u32 = 0o2000;
/// Type of a program header with the dynamic linker (elf(5)).
const PT_INTERP: u32 = 3;
/// Maximum number of program headers to read; compilers write about a dozen.
const HEADERS: usize = 256;

/// Refuses a command whose program cannot be preloaded. A script, and a program that starts another
/// one, cannot be judged here.
pub(super) fn check(command: &OsStr) -> Result<(), Failure> {
    // Starting it reports what is missing.
    let Some(why) = find(command).and_then(|path| reason(&path)) else { return Ok(()) };
    Err(Failure::usage(anyhow!(
        "`{}` {why}, so that no program could judge its packets: `kaido p4 attach` runs programs on \
         its interfaces without it",
        command.display()
    )))
}

/// Returns the file of a command, as execvp(3) finds it.
fn find(command: &OsStr) -> Option<PathBuf> {
    if command.as_encoded_bytes().contains(&b'/') {
        return Some(command.into());
    }
    let all = std::env::var_os("PATH")?;
    let mut all = std::env::split_paths(&all).map(|directory| directory.join(command));
    all.find(|path| path.is_file())
}

/// Returns the reason that a file cannot be preloaded (ld.so(8)).
fn reason(path: &Path) -> Option<&'static str> {
    let mut file = File::open(path).ok()?;
    let found = file.metadata().ok()?;
    let is_other_user = found.mode() & SET_USER != 0 && found.uid() != geteuid().as_raw();
    let is_other_group = found.mode() & SET_GROUP != 0 && found.gid() != getegid().as_raw();
    if is_other_user || is_other_group {
        return Some("runs as another user or group (setuid), and is not preloaded");
    }
    let mut head = Vec::new();
    file.by_ref().take(64).read_to_end(&mut head).ok()?;
    let [0x7f, b'E', b'L', b'F', class, ..] = head[..] else { return None };
    if class != if cfg!(target_pointer_width = "64") { 2 } else { 1 } {
        return Some("is of another architecture than Kaido's library");
    }
    let (at, size, count) = headers(&head)?;
    let mut rest = Vec::new();
    file.take(at + (size * count) as u64).read_to_end(&mut rest).ok()?;
    let headers = rest.get(usize::try_from(at).ok()?.checked_sub(head.len())?..)?;
    let kind = |header: &[u8]| header.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes));
    let is_dynamic = headers.chunks_exact(size).any(|one| kind(one) == Some(PT_INTERP));
    (!is_dynamic).then_some("is linked statically, and cannot be preloaded")
}

/// Place of the program headers in a file of 64 bits, their size and their number.
fn headers(head: &[u8]) -> Option<(u64, usize, usize)> {
    let at = u64::from_ne_bytes(*head.get(32..)?.first_chunk()?);
    let half = |at: usize| Some(u16::from_ne_bytes(*head.get(at..)?.first_chunk()?));
    let (size, count) = (usize::from(half(54)?), usize::from(half(56)?));
    (size > 4 && count <= HEADERS && at < 1 << 20).then_some((at, size, count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_programs_can_be_preloaded() {
        for name in ["sh", "/bin/sh", "sleep"] {
            let path = find(OsStr::new(name)).unwrap();
            assert_eq!(reason(&path), None, "{name}");
        }
        assert_eq!(reason(Path::new("/etc/passwd")), None, "the kernel says what it is");
        assert_eq!(find(OsStr::new("no-such-command")), None);
    }
}
