//! System calls with which a client makes the kernel look at a ring.

use std::ffi::{c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use libc::{msghdr, nfds_t, pollfd, size_t, sockaddr, socklen_t, ssize_t};

use xsk_client::{Socket, complain};

use crate::libxdp;
use crate::real::{real, required};

/// Replaces socket(2), to report AF_XDP sockets that are not libxdp's.
///
/// # Safety
///
/// As socket(2).
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    static IS_REPORTED: AtomicBool = AtomicBool::new(false);
    type Create = unsafe extern "C" fn(c_int, c_int, c_int) -> c_int;
    let call = required(real!(c"socket", Create));
    if domain == libc::AF_XDP && !libxdp::is_creating() && !IS_REPORTED.swap(true, Relaxed) {
        complain(
            "the client makes an AF_XDP socket itself, not by libxdp as a shared library: no program \
             judges its packets. `kaido p4 attach` runs programs on its interfaces without it",
        );
    }
    // SAFETY: the caller's arguments.
    unsafe { call(domain, kind, protocol) }
}

/// Transmits a socket's packets. Makes the system call if the kernel needs it.
fn transmit(descriptor: c_int, call: impl FnOnce() -> ssize_t) -> ssize_t {
    let Some(socket) = xsk_client::find(descriptor) else { return call() };
    // Another thread that holds the lock is in the same call.
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

/// Replaces poll(2). A socket is readable if its client has packets to take.
///
/// # Safety
///
/// As poll(2).
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn poll(polled: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int {
    type Poll = unsafe extern "C" fn(*mut pollfd, nfds_t, c_int) -> c_int;
    let call = required(real!(c"poll", Poll));
    let fds = match polled.is_null() {
        true => &mut [],
        // SAFETY: the caller's array.
        false => unsafe { std::slice::from_raw_parts_mut(polled, count as usize) },
    };
    let sockets: Vec<Option<Arc<Socket>>> = fds.iter().map(|fd| xsk_client::find(fd.fd)).collect();
    if sockets.iter().all(Option::is_none) {
        // SAFETY: the caller's arguments.
        return unsafe { call(polled, count, timeout) };
    }
    let begin = Instant::now();
    loop {
        let all = || sockets.iter().flatten();
        all().for_each(|socket| socket.advance());
        if timeout == 0 && all().any(|socket| socket.is_waiting()) {
            // A client that polls without a pause may keep the process from running: on one
            // CPU a round trip took 27 ms without this.
            std::thread::yield_now();
            all().for_each(|socket| socket.advance());
        }
        let is_ready = all().any(|socket| socket.is_readable());
        let is_judging = timeout != 0 && !is_ready && all().any(|socket| socket.is_judging());
        let left = left(timeout, begin);
        let needs_call =
            left != 0 || sockets.len() > 1 || all().any(|socket| socket.needs_wakeup());
        if needs_call {
            let time = if is_ready || is_judging { 0 } else { left };
            // SAFETY: the caller's arguments.
            let result = unsafe { call(polled, count, time) };
            if result < 0 {
                return result;
            }
            all().for_each(|socket| socket.advance());
        } else {
            fds.iter_mut().for_each(|fd| fd.revents = 0);
        }
        let mut has_kernel_packets = false;
        for (fd, socket) in fds.iter_mut().zip(&sockets) {
            if let Some(socket) = socket {
                has_kernel_packets |= fd.revents & libc::POLLIN != 0;
                fd.revents &= !libc::POLLIN;
                if socket.is_readable() {
                    fd.revents |= libc::POLLIN & fd.events;
                }
            }
        }
        let ready = fds.iter().filter(|fd| fd.revents != 0).count();
        if ready > 0 || left == 0 {
            return ready as c_int;
        }
        if is_judging {
            // Verdicts take microseconds, and the process may need this CPU.
            std::thread::yield_now();
        } else if has_kernel_packets {
            // Packets wait for another process: the kernel's ring stays readable.
            // SAFETY: no descriptors are polled.
            unsafe { call(std::ptr::null_mut(), 0, 1) };
        }
    }
}

/// Rest of a timeout in milliseconds; negative without one.
fn left(timeout: c_int, begin: Instant) -> c_int {
    if timeout <= 0 {
        return timeout;
    }
    let past = c_int::try_from(begin.elapsed().as_millis()).unwrap_or(c_int::MAX);
    timeout.saturating_sub(past).max(0)
}
