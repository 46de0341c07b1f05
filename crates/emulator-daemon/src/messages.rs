//! Batched reception of messages.

use std::os::fd::{AsRawFd as _, OwnedFd};

use nix::errno::Errno;

/// Receives up to `messages.len()` available messages without blocking: recvmmsg(2).
///
/// # Safety
///
/// Every pointer in `messages` must refer to memory of the length given with it, which must not be
/// accessed otherwise until the call returns.
pub(crate) unsafe fn receive(fd: &OwnedFd, messages: &mut [libc::mmsghdr]) -> nix::Result<usize> {
    // SAFETY: the length matches the slice; the caller guarantees that its pointers are valid.
    let count = unsafe {
        libc::recvmmsg(
            fd.as_raw_fd(),
            messages.as_mut_ptr(),
            messages.len() as u32,
            libc::MSG_DONTWAIT as _,
            std::ptr::null_mut(),
        )
    };
    Errno::result(count).map(|count| count as usize)
}
