//! Users who can change files and directories.

use std::fs::Metadata;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use nix::unistd::geteuid;

/// Mode bit that permits writing to all users.
const WORLD_WRITES: u32 = 0o002;

/// Mode bit that permits writing to the group.
const GROUP_WRITES: u32 = 0o020;

/// Sticky bit: in such a directory (/tmp), only its owner can rename or remove a file.
const STICKY: u32 = 0o1000;

/// Users who may replace a file, or the entries of a directory.
#[derive(Debug, Clone, Copy)]
pub struct Writers {
    /// Trusted user, in addition to root.
    pub owner: u32,
    /// True if the members of the file's group are trusted too.
    pub group: bool,
}

impl Writers {
    /// Root and the user of this process.
    fn of_process() -> Self {
        Self { owner: geteuid().as_raw(), group: false }
    }

    /// Checks that no other user owns the file or directory.
    fn own(self, found: &Metadata) -> Result<(), String> {
        let user = found.uid();
        match user == 0 || user == self.owner {
            true => Ok(()),
            false => Err(format!("it is user {user}'s")),
        }
    }

    /// Checks that no other user can replace the file, or an entry of the directory.
    ///
    /// # Errors
    ///
    /// Returns the reason.
    pub fn check(self, found: &Metadata) -> Result<(), String> {
        self.own(found)?;
        let others = if self.group { WORLD_WRITES } else { GROUP_WRITES | WORLD_WRITES };
        // In a sticky directory other users create entries, but do not replace those of this user.
        let is_sticky = found.is_dir() && found.mode() & STICKY != 0;
        if found.mode() & others != 0 && !is_sticky {
            return Err(writable(found));
        }
        Ok(())
    }
}

pub(crate) fn is_owned(found: &Metadata) -> Result<(), String> {
    Writers::of_process().own(found)
}

/// Checks a component of a path. For a file, only the owner counts here: its mode is checked when
/// it is opened.
pub(crate) fn is_ancestor(found: &Metadata) -> Result<(), String> {
    if found.is_dir() { Writers::of_process().check(found) } else { is_owned(found) }
}

/// Checks a directory for files of this user only, so that a sticky one is refused too.
pub(crate) fn is_private(found: &Metadata) -> Result<(), String> {
    is_owned(found)?;
    if is_shared(found) { Err(writable(found)) } else { Ok(()) }
}

/// Returns true if users other than its owner can create entries in a directory, also a sticky one.
pub(crate) fn is_shared(found: &Metadata) -> bool {
    found.is_dir() && found.mode() & (GROUP_WRITES | WORLD_WRITES) != 0
}

fn writable(found: &Metadata) -> String {
    format!("its mode is {:04o}, which others may write", found.mode() & 0o7777)
}

pub(crate) fn refused(path: &Path, why: String) -> io::Error {
    io::Error::new(ErrorKind::PermissionDenied, format!("{} is not safe: {why}", path.display()))
}
