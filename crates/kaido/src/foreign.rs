//! Files that another user may own.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::statfs::{FsType, fstatfs};
use nix::unistd::Uid;

/// File system of pipes without a name (linux/magic.h).
const PIPEFS_MAGIC: FsType = FsType(0x5049_5045);

/// Returns true if a file belongs to this user or to root.
pub(crate) fn is_own(found: &Metadata) -> bool {
    found.uid() == 0 || found.uid() == Uid::effective().as_raw()
}

/// Opens a file, unless it is a pipe with a name that belongs to another user: its other end could make
/// this process wait forever, or receive its output.
pub(crate) fn open(path: &Path, options: &OpenOptions) -> io::Result<File> {
    open_checked(path, OFlag::O_PATH, options)
}

/// Like [`open`], without following a symbolic link (ELOOP).
pub(crate) fn open_no_link(path: &Path, options: &OpenOptions) -> io::Result<File> {
    open_checked(path, OFlag::O_PATH | OFlag::O_NOFOLLOW, options)
}

fn open_checked(path: &Path, flags: OFlag, options: &OpenOptions) -> io::Result<File> {
    let found = File::options().read(true).custom_flags(flags.bits()).open(path)?;
    let metadata = found.metadata()?;
    // With both flags, a link is opened itself.
    if metadata.is_symlink() {
        return Err(Errno::ELOOP.into());
    }
    let is_pipe = metadata.file_type().is_fifo();
    // Pipes of a shell have no name, and those of `sudo` belong to the user who calls it.
    let is_named = || Ok::<_, Errno>(fstatfs(&found)?.filesystem_type() != PIPEFS_MAGIC);
    if is_pipe && !is_own(&metadata) && is_named()? {
        return Err(io::Error::other("the pipe belongs to another user"));
    }
    private::reopen(&found, options)
}
