//! System calls that wait for packets. A socket is readable if the client's RX ring has packets:
//! packets in the kernel's ring have no verdict yet.

use std::ffi::{c_int, c_short};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use libc::{nfds_t, pollfd, sigset_t, size_t, timespec};
use xsk_client::{Polled, Socket};

use crate::real::{real, required};

/// Type of poll(2).
type Poll = unsafe extern "C" fn(*mut pollfd, nfds_t, c_int) -> c_int;
/// Type of ppoll(2).
type PPoll = unsafe extern "C" fn(*mut pollfd, nfds_t, *const timespec, *const sigset_t) -> c_int;

/// Replaces poll(2).
///
/// # Safety
///
/// As poll(2).
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn poll(polled: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int {
    let call = required(real!(c"poll", Poll));
    let timeout = u64::try_from(timeout).ok().map(Duration::from_millis);
    // SAFETY: the caller's arguments, or none.
    wait(unsafe { slice(polled, count) }, timeout, |fds, timeout| unsafe {
        call(fds.as_mut_ptr(), fds.len() as nfds_t, milliseconds(timeout))
    })
}

/// Replaces ppoll(2).
///
/// # Safety
///
/// As ppoll(2).
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ppoll(
    polled: *mut pollfd,
    count: nfds_t,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    let call = required(real!(c"ppoll", PPoll));
    // SAFETY: the caller's time, or none.
    let Ok(duration) = duration(unsafe { timeout.as_ref() }) else {
        // SAFETY: the caller's arguments.
        return unsafe { call(polled, count, timeout, mask) };
    };
    // SAFETY: the caller's array, or none.
    wait_with_mask(unsafe { slice(polled, count) }, duration, mask)
}

/// An invalid time, which the kernel reports.
pub(crate) struct Invalid;

/// Converts the timeout of a call; `None` without one.
pub(crate) fn duration(time: Option<&timespec>) -> Result<Option<Duration>, Invalid> {
    let Some(time) = time else { return Ok(None) };
    let seconds = u64::try_from(time.tv_sec).map_err(|_| Invalid)?;
    let rest = u32::try_from(time.tv_nsec).map_err(|_| Invalid)?;
    if rest >= 1_000_000_000 { Err(Invalid) } else { Ok(Some(Duration::new(seconds, rest))) }
}

/// Waits as ppoll(2) does.
pub(crate) fn wait_with_mask(
    fds: &mut [pollfd],
    timeout: Option<Duration>,
    mask: *const sigset_t,
) -> c_int {
    let call = required(real!(c"ppoll", PPoll));
    wait(fds, timeout, |fds, timeout| {
        let time = timeout.map(|time| timespec {
            tv_sec: libc::time_t::try_from(time.as_secs()).unwrap_or(libc::time_t::MAX),
            tv_nsec: time.subsec_nanos().into(),
        });
        let time = time.as_ref().map_or(std::ptr::null(), |time| &raw const *time);
        // SAFETY: the caller's descriptors and mask, and a time that lives until the call returns.
        unsafe { call(fds.as_mut_ptr(), fds.len() as nfds_t, time, mask) }
    })
}

/// Replaces poll(2) of programs that are compiled with _FORTIFY_SOURCE.
///
/// # Safety
///
/// As poll(2), with the size of the array in bytes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __poll_chk(
    polled: *mut pollfd,
    count: nfds_t,
    timeout: c_int,
    bytes: size_t,
) -> c_int {
    check(count, bytes);
    // SAFETY: the caller's arguments.
    unsafe { poll(polled, count, timeout) }
}

/// Replaces ppoll(2) of programs that are compiled with _FORTIFY_SOURCE.
///
/// # Safety
///
/// As ppoll(2), with the size of the array in bytes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __ppoll_chk(
    polled: *mut pollfd,
    count: nfds_t,
    timeout: *const timespec,
    mask: *const sigset_t,
    bytes: size_t,
) -> c_int {
    check(count, bytes);
    // SAFETY: the caller's arguments.
    unsafe { ppoll(polled, count, timeout, mask) }
}

/// Aborts if an array is too small, as the C library does.
fn check(count: nfds_t, bytes: size_t) {
    if (bytes / size_of::<pollfd>()) < count as usize {
        std::process::abort();
    }
}

/// Returns the caller's array.
///
/// # Safety
///
/// The pointer is null, or to `count` descriptors.
unsafe fn slice<'a>(polled: *mut pollfd, count: nfds_t) -> &'a mut [pollfd] {
    match polled.is_null() {
        true => &mut [],
        // SAFETY: required by this function as well.
        false => unsafe { std::slice::from_raw_parts_mut(polled, count as usize) },
    }
}

/// Converts a timeout to milliseconds, rounded up; negative without one.
fn milliseconds(timeout: Option<Duration>) -> c_int {
    let Some(timeout) = timeout else { return -1 };
    c_int::try_from(timeout.as_micros().div_ceil(1000)).unwrap_or(c_int::MAX)
}

/// Polls one socket without waiting, as switches do in their loops.
fn poll_one(fd: &mut pollfd, socket: &Socket, call: impl FnOnce(&mut [pollfd]) -> c_int) -> c_int {
    let mut polled = socket.advance();
    if polled.is_waiting {
        // As in `wait`.
        thread::yield_now();
        polled = socket.advance();
    }
    fd.revents = 0;
    if polled.needs_wakeup {
        let result = call(std::slice::from_mut(fd));
        if result < 0 {
            return result;
        }
        polled = socket.advance();
    }
    set_events(fd, polled);
    c_int::from(fd.revents != 0)
}

/// Replaces the kernel's answer, which is about its own rings, by one about the client's. Errors stay.
fn set_events(fd: &mut pollfd, polled: Polled) {
    let errors = fd.revents & (libc::POLLERR | libc::POLLHUP | libc::POLLNVAL);
    fd.revents = errors | (ready(polled) & fd.events);
}

/// Events of a socket that have occurred.
fn ready(polled: Polled) -> c_short {
    let flag = |is_set, flags| if is_set { flags } else { 0 };
    flag(polled.is_readable, libc::POLLIN | libc::POLLRDNORM)
        | flag(polled.is_writable, libc::POLLOUT | libc::POLLWRNORM)
}

/// Waits for packets that the client can take, or for other descriptors. `call` waits for the
/// kernel.
fn wait(
    fds: &mut [pollfd],
    timeout: Option<Duration>,
    call: impl Fn(&mut [pollfd], Option<Duration>) -> c_int,
) -> c_int {
    if let ([fd], Some(Duration::ZERO)) = (&mut *fds, timeout) {
        return match xsk_client::find(fd.fd) {
            Some(socket) => poll_one(fd, &socket, |fd| call(fd, timeout)),
            None => call(fds, timeout),
        };
    }
    let sockets: Vec<Option<Arc<Socket>>> = fds.iter().map(|fd| xsk_client::find(fd.fd)).collect();
    if sockets.iter().all(Option::is_none) {
        return call(fds, timeout);
    }
    let waits = timeout != Some(Duration::ZERO);
    let begin = Instant::now();
    loop {
        let all = || sockets.iter().flatten();
        let advance = || -> Vec<_> {
            sockets.iter().map(|one| one.as_ref().map(|socket| socket.advance())).collect()
        };
        let mut polled = advance();
        if !waits && polled.iter().flatten().any(|one| one.is_waiting) {
            // A client that polls without a pause may keep the process from running: on one
            // CPU a round trip took 27 ms without this.
            thread::yield_now();
            polled = advance();
        }
        let is_ready = fds
            .iter()
            .zip(&polled)
            .any(|(fd, polled)| polled.is_some_and(|polled| ready(polled) & fd.events != 0));
        let is_judging = waits && !is_ready && all().any(|socket| socket.is_judging());
        let left = timeout.map(|timeout| timeout.saturating_sub(begin.elapsed()));
        let is_over = left == Some(Duration::ZERO);
        // At least two descriptors if the timeout is zero.
        let time = if is_ready || is_judging { Some(Duration::ZERO) } else { left };
        let result = call(fds, time);
        if result < 0 {
            return result;
        }
        polled = advance();
        let mut has_kernel_events = false;
        for (fd, polled) in fds.iter_mut().zip(polled) {
            if let Some(polled) = polled {
                has_kernel_events |= fd.revents & (libc::POLLIN | libc::POLLOUT) != 0;
                set_events(fd, polled);
            }
        }
        let ready = fds.iter().filter(|fd| fd.revents != 0).count();
        if ready > 0 || is_over {
            return ready as c_int;
        }
        if is_judging {
            // Verdicts take microseconds, and the process may need this CPU.
            thread::yield_now();
        } else if has_kernel_events {
            // Packets wait for another process, while the kernel's ring stays readable or writable.
            let _ = call(&mut [], Some(Duration::from_millis(1)));
        }
    }
}
