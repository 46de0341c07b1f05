//! Users who can change files and folders.

use std::fs::Metadata;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use nix::unistd::geteuid;

/// Mode bits that permit writing to users other than the owner.
const OTHERS_WRITE: u32 = 0o022;

/// Sticky bit: in such a folder (/tmp), only its owner can rename or remove a file.
const STICKY: u32 = 0o1000;

pub(crate) fn is_owned(found: &Metadata) -> Result<(), String> {
    let user = found.uid();
    match user == 0 || user == geteuid().as_raw() {
        true => Ok(()),
        false => Err(format!("it is user {user}'s")),
    }
}

/// In a sticky folder other users create entries, but do not replace those of this user.
pub(crate) fn is_ancestor(found: &Metadata) -> Result<(), String> {
    if found.mode() & STICKY != 0 { is_owned(found) } else { is_private(found) }
}

pub(crate) fn is_private(found: &Metadata) -> Result<(), String> {
    is_owned(found)?;
    if found.is_dir() && found.mode() & OTHERS_WRITE != 0 {
        return Err(format!("its mode is {:04o}, which others may write", found.mode() & 0o7777));
    }
    Ok(())
}

pub(crate) fn refused(path: &Path, why: String) -> io::Error {
    io::Error::new(ErrorKind::PermissionDenied, format!("{} is not safe: {why}", path.display()))
}
