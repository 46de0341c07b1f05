//! Many messages by one system call.

use std::os::fd::{AsRawFd as _, OwnedFd};

use nix::errno::Errno;

/// Receives as many messages as there are and `messages` has room for, without waiting: recvmmsg(2).
///
/// # Safety
///
/// Every pointer in `messages` leads to memory of the length beside it, which nobody else uses until this
/// returns.
pub(crate) unsafe fn receive(fd: &OwnedFd, messages: &mut [libc::mmsghdr]) -> nix::Result<usize> {
    // SAFETY: the slice is as long as is said here; what its pointers lead to is the caller's promise.
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
