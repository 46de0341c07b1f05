//! System calls with which a client wakes the kernel to process a ring.

use std::ffi::{c_int, c_void};

use libc::{msghdr, size_t, sockaddr, socklen_t, ssize_t};

use crate::real::{real, required};

/// Transmits a socket's packets. Makes the system call if the kernel needs it.
fn transmit(descriptor: c_int, call: impl FnOnce() -> ssize_t) -> ssize_t {
    let Some(socket) = xsk_client::find(descriptor) else { return call() };
    // Another thread moves the packets, or reads counters: the next call, or the link's thread within 10 ms,
    // continues.
    let Ok(mut locked) = socket.transmit.try_lock() else { return 0 };
    let Some(transmit) = locked.as_mut() else { return call() };
    transmit.advance();
    // Packets that wait for verdicts are not in the kernel's ring yet.
    let has_packets = transmit.has_output() || transmit.is_idle();
    if !transmit.needs_wakeup() || !has_packets {
        return 0;
    }
    let result = call();
    transmit.return_chunks();
    result
}

/// Type of sendto(2).
type SendTo = unsafe extern "C" fn(
    c_int,
    *const c_void,
    size_t,
    c_int,
    *const sockaddr,
    socklen_t,
) -> ssize_t;

/// Replaces sendto(2).
///
/// # Safety
///
/// As sendto(2).
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn sendto(
    descriptor: c_int,
    buffer: *const c_void,
    length: size_t,
    flags: c_int,
    address: *const sockaddr,
    address_length: socklen_t,
) -> ssize_t {
    let call = required(real!(c"sendto", SendTo));
    // SAFETY: the caller's arguments.
    transmit(descriptor, || unsafe {
        call(descriptor, buffer, length, flags, address, address_length)
    })
}

/// Replaces send(2).
///
/// # Safety
///
/// As send(2).
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn send(
    descriptor: c_int,
    buffer: *const c_void,
    length: size_t,
    flags: c_int,
) -> ssize_t {
    type Send = unsafe extern "C" fn(c_int, *const c_void, size_t, c_int) -> ssize_t;
    let call = required(real!(c"send", Send));
    // SAFETY: the caller's arguments.
    transmit(descriptor, || unsafe { call(descriptor, buffer, length, flags) })
}

/// Replaces sendmsg(2).
///
/// # Safety
///
/// As sendmsg(2).
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn sendmsg(
    descriptor: c_int,
    message: *const msghdr,
    flags: c_int,
) -> ssize_t {
    type SendMessage = unsafe extern "C" fn(c_int, *const msghdr, c_int) -> ssize_t;
    let call = required(real!(c"sendmsg", SendMessage));
    // SAFETY: the caller's arguments.
    transmit(descriptor, || unsafe { call(descriptor, message, flags) })
}

/// Moves the entries of a socket before and after the kernel receives packets.
fn receive(descriptor: c_int, call: impl FnOnce() -> ssize_t) -> ssize_t {
    let Some(socket) = xsk_client::find(descriptor) else { return call() };
    socket.advance();
    // The call drives the device's driver with busy polling (SO_PREFER_BUSY_POLL).
    let result = call();
    socket.advance();
    result
}

/// Replaces recvfrom(2).
///
/// # Safety
///
/// As recvfrom(2).
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn recvfrom(
    descriptor: c_int,
    buffer: *mut c_void,
    length: size_t,
    flags: c_int,
    address: *mut sockaddr,
    address_length: *mut socklen_t,
) -> ssize_t {
    type ReceiveFrom = unsafe extern "C" fn(
        c_int,
        *mut c_void,
        size_t,
        c_int,
        *mut sockaddr,
        *mut socklen_t,
    ) -> ssize_t;
    let call = required(real!(c"recvfrom", ReceiveFrom));
    // SAFETY: the caller's arguments.
    receive(descriptor, || unsafe {
        call(descriptor, buffer, length, flags, address, address_length)
    })
}

/// Replaces recvmsg(2).
///
/// # Safety
///
/// As recvmsg(2).
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn recvmsg(
    descriptor: c_int,
    message: *mut msghdr,
    flags: c_int,
) -> ssize_t {
    type ReceiveMessage = unsafe extern "C" fn(c_int, *mut msghdr, c_int) -> ssize_t;
    let call = required(real!(c"recvmsg", ReceiveMessage));
    // SAFETY: the caller's arguments.
    receive(descriptor, || unsafe { call(descriptor, message, flags) })
}
