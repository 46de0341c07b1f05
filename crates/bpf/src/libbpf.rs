//! Results of libbpf's functions.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// Converts a result of libbpf, which is negative for an error.
pub(crate) fn check(result: i32) -> io::Result<()> {
    if result < 0 { Err(io::Error::from_raw_os_error(-result)) } else { Ok(()) }
}

/// Converts a result of libbpf, which is a new descriptor, or negative for an error.
pub(crate) fn fd(result: i32) -> io::Result<OwnedFd> {
    check(result)?;
    // SAFETY: the call that returned the descriptor created it for this process, which is its only
    // owner.
    Ok(unsafe { OwnedFd::from_raw_fd(result) })
}
