//! The system call for a TX ring.

use std::os::fd::RawFd;

/// Makes the kernel look at a socket's TX ring. It sends at most 32 packets (TX_BATCH_SIZE).
///
/// Failures are temporary: the kernel has no memory for a packet, or the interface is down.
pub fn kick(descriptor: RawFd) {
    let none = std::ptr::null_mut::<libc::c_void>();
    // The C library's function may be that of the preload library.
    // SAFETY: there is no buffer and no address.
    unsafe { libc::syscall(libc::SYS_sendto, descriptor, none, 0, libc::MSG_DONTWAIT, none, 0) };
}
