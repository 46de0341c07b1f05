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
/// this process wait forever, or receive its output. Opening a device may have effects,
/// such as the start of a watchdog, and another user's link may lead to it: only those are opened that are
/// open as standard input, output or error, and those without effects.
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
    let kind = metadata.file_type();
    if (kind.is_char_device() || kind.is_block_device()) && !is_harmless(&metadata) {
        return Err(io::Error::other("it is a device"));
    }
    let is_pipe = kind.is_fifo();
    // Pipes of a shell have no name, and those of `sudo` belong to the user who calls it.
    let is_named = || Ok::<_, Errno>(fstatfs(&found)?.filesystem_type() != PIPEFS_MAGIC);
    if is_pipe && !is_own(&metadata) && is_named()? {
        return Err(io::Error::other("the pipe belongs to another user"));
    }
    private::reopen(&found, options)
}

/// Returns true for the file of standard input, output or error, and for null, zero, full and tty.
fn is_harmless(found: &Metadata) -> bool {
    let open = ["/proc/self/fd/0", "/proc/self/fd/1", "/proc/self/fd/2"];
    let mut open = open.into_iter().filter_map(|path| std::fs::metadata(path).ok());
    let known = [(1, 3), (1, 5), (1, 7), (5, 0)];
    let mut known = known.into_iter().map(|(major, minor)| nix::sys::stat::makedev(major, minor));
    found.file_type().is_char_device() && known.any(|device| device == found.rdev())
        || open.any(|one| (one.dev(), one.ino()) == (found.dev(), found.ino()))
}
