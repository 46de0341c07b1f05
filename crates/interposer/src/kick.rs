//! The library's own system call for a TX ring.

use std::ffi::{c_int, c_void};

use libc::{size_t, sockaddr, socklen_t, ssize_t};

use crate::real::{real, required};

/// Type of sendto(2).
pub(crate) type SendTo = unsafe extern "C" fn(
    c_int,
    *const c_void,
    size_t,
    c_int,
    *const sockaddr,
    socklen_t,
) -> ssize_t;

/// Makes the kernel look at a socket's TX ring.
pub(crate) fn kick(descriptor: c_int) {
    let call = required(real!(c"sendto", SendTo));
    let none = std::ptr::null_mut();
    // SAFETY: there is no buffer and no address. A failure is that of the client's next call.
    unsafe { call(descriptor, none, 0, libc::MSG_DONTWAIT, none.cast(), 0) };
}
