//! Pins: names of maps, programs and links in a BPF file system, which outlive the process.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sys::statfs::{BPF_FS_MAGIC, statfs};

use crate::Error;
use crate::libbpf::{check, fd};

/// Opens the object pinned at `path`.
pub(crate) fn pinned(path: &Path) -> io::Result<OwnedFd> {
    let name = c_path(path)?;
    // SAFETY: the path is a C string that lives until the call returns.
    fd(unsafe { libbpf_sys::bpf_obj_get(name.as_ptr()) })
}

/// Pins a map, program or link in a BPF file system.
pub(crate) fn pin(object: BorrowedFd<'_>, path: &Path) -> Result<(), Error> {
    let failed = |source| Error::Pin { path: path.into(), source };
    let name = c_path(path).map_err(failed)?;
    // SAFETY: the path is a C string that lives until the call returns.
    check(unsafe { libbpf_sys::bpf_obj_pin(object.as_raw_fd(), name.as_ptr()) }).map_err(failed)
}

/// Prepares `directory` for pins: mounts a BPF file system there unless there is one already.
pub fn prepare_pins(directory: &Path) -> Result<(), Error> {
    let failed = |source: io::Error| Error::Pin { path: directory.into(), source };
    std::fs::create_dir_all(directory).map_err(failed)?;
    let found = statfs(directory).map_err(|errno| failed(errno.into()))?;
    if found.filesystem_type() == BPF_FS_MAGIC {
        return Ok(());
    }
    mount(Some("bpf"), directory, Some("bpf"), MsFlags::empty(), Some("mode=0700"))
        .map_err(|errno| failed(errno.into()))
}

/// Unmounts the BPF file system at `directory`, if there is one, which removes all of its pins.
pub fn unmount_pins(directory: &Path) -> Result<(), Error> {
    let failed = |source: io::Error| Error::Pin { path: directory.into(), source };
    // If two processes prepared the directory concurrently, it may be mounted twice.
    loop {
        match statfs(directory) {
            Ok(found) if found.filesystem_type() == BPF_FS_MAGIC => {
                umount2(directory, MntFlags::MNT_DETACH).map_err(|errno| failed(errno.into()))?;
            }
            Ok(_) | Err(nix::errno::Errno::ENOENT | nix::errno::Errno::ENOTDIR) => return Ok(()),
            Err(errno) => return Err(failed(errno.into())),
        }
    }
}

fn c_path(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(Into::into)
}
