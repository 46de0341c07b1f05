//! epoll(7) on sockets. The kernel would report packets that are still judged, so that an eventfd(2)
//! takes the socket's place: it is readable if the client has packets to take.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use libc::{epoll_event, pollfd, sigset_t, timespec};

use crate::created;
use crate::real::{real, required};

/// Polling interval of the kernel's rings while they have packets.
const PAUSE: Duration = Duration::from_micros(50);
/// Maximum delay until a new socket is polled.
const LOOK: Duration = Duration::from_millis(10);

/// The watched sockets.
struct Watched {
    /// Eventfds by the socket's descriptor.
    events: BTreeMap<RawFd, Arc<OwnedFd>>,
    /// True while a thread runs [`watch`].
    is_running: bool,
}

static WATCHED: Mutex<Watched> = Mutex::new(Watched { events: BTreeMap::new(), is_running: false });

fn watched() -> MutexGuard<'static, Watched> {
    WATCHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Replaces epoll_ctl(2).
///
/// # Safety
///
/// As epoll_ctl(2).
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn epoll_ctl(
    epoll: c_int,
    operation: c_int,
    descriptor: c_int,
    event: *mut epoll_event,
) -> c_int {
    type Control = unsafe extern "C" fn(c_int, c_int, c_int, *mut epoll_event) -> c_int;
    let call = required(real!(c"epoll_ctl", Control));
    let watched = match created::find(descriptor) {
        Some(_) => event_of(descriptor),
        None => None,
    };
    let descriptor = watched.as_ref().map_or(descriptor, |event| event.as_raw_fd());
    // SAFETY: the caller's arguments, with another descriptor.
    unsafe { call(epoll, operation, descriptor, event) }
}

/// Returns the eventfd of a socket. Without one, epoll reports the kernel's readiness.
fn event_of(descriptor: RawFd) -> Option<Arc<OwnedFd>> {
    let mut watched = watched();
    if let Some(event) = watched.events.get(&descriptor) {
        return Some(Arc::clone(event));
    }
    // SAFETY: the call takes two numbers.
    let created = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
    if created < 0 {
        return None;
    }
    // SAFETY: the descriptor is new, and has no other owner.
    let event = Arc::new(unsafe { OwnedFd::from_raw_fd(created) });
    if !watched.is_running {
        xsk_client::start(watch).ok()?;
        watched.is_running = true;
    }
    watched.events.insert(descriptor, Arc::clone(&event));
    Some(event)
}

/// Drops the eventfd of a closed socket, which removes it from all epoll instances.
pub(crate) fn forget(descriptor: RawFd) {
    let forgotten = watched().events.remove(&descriptor);
    // close(2) is this library's, and takes the lock.
    drop(forgotten);
}

/// Moves the packets of all watched sockets until there are none any more.
fn watch() {
    loop {
        let watched: Vec<_> = {
            let mut watched = watched();
            if watched.events.is_empty() {
                watched.is_running = false;
                return;
            }
            watched.events.iter().map(|(fd, event)| (*fd, Arc::clone(event))).collect()
        };
        let ready = |(fd, _): &(RawFd, _)| pollfd { fd: *fd, events: libc::POLLIN, revents: 0 };
        let mut polled: Vec<_> = watched.iter().map(ready).collect();
        let is_judging =
            |(fd, _): &(RawFd, _)| xsk_client::find(*fd).is_some_and(|socket| socket.is_judging());
        let time = if watched.iter().any(is_judging) { PAUSE } else { LOOK };
        let has_packets = wait(&mut polled, time);
        for (descriptor, event) in &watched {
            let Some(socket) = xsk_client::find(*descriptor) else { continue };
            if socket.advance().is_readable {
                set(event);
            }
        }
        if has_packets {
            pause();
        }
    }
}

#[allow(clippy::disallowed_methods)] // The kernel's ring stays readable while the client's is full.
fn pause() {
    std::thread::sleep(PAUSE);
}

/// Waits for the kernel's rings, and not for the client's as ppoll(2) of this library does.
fn wait(polled: &mut [pollfd], time: Duration) -> bool {
    let time = timespec { tv_sec: 0, tv_nsec: time.subsec_nanos().into() };
    let mask = std::ptr::null::<sigset_t>();
    let (fds, count) = (polled.as_mut_ptr(), polled.len());
    // SAFETY: the array and the time live until the call returns.
    unsafe { libc::syscall(libc::SYS_ppoll, fds, count, &raw const time, mask, 0usize) > 0 }
}

/// Makes an eventfd readable.
fn set(event: &OwnedFd) {
    let one = 1_u64.to_ne_bytes();
    // A full eventfd is readable.
    // SAFETY: the value lives until the call returns.
    let _ = unsafe { libc::write(event.as_raw_fd(), one.as_ptr().cast(), one.len()) };
}

/// Sets each eventfd to the state of its socket.
fn update() {
    // A thread of the parent may have had the lock at fork(2). The sockets are the parent's.
    if xsk_client::is_child() {
        return;
    }
    for (descriptor, event) in &watched().events {
        let Some(socket) = xsk_client::find(*descriptor) else { continue };
        socket.advance();
        let mut value = [0_u8; 8];
        // Reset before the socket is checked: the other thread may set it in between.
        // SAFETY: the value lives until the call returns.
        let _ = unsafe { libc::read(event.as_raw_fd(), value.as_mut_ptr().cast(), value.len()) };
        if socket.is_readable() {
            set(event);
        }
    }
}

/// Replaces epoll_wait(2).
///
/// # Safety
///
/// As epoll_wait(2).
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn epoll_wait(
    epoll: c_int,
    found: *mut epoll_event,
    most: c_int,
    timeout: c_int,
) -> c_int {
    type Wait = unsafe extern "C" fn(c_int, *mut epoll_event, c_int, c_int) -> c_int;
    let call = required(real!(c"epoll_wait", Wait));
    update();
    // SAFETY: the caller's arguments.
    unsafe { call(epoll, found, most, timeout) }
}

/// Replaces epoll_pwait(2).
///
/// # Safety
///
/// As epoll_pwait(2).
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn epoll_pwait(
    epoll: c_int,
    found: *mut epoll_event,
    most: c_int,
    timeout: c_int,
    mask: *const sigset_t,
) -> c_int {
    type Wait =
        unsafe extern "C" fn(c_int, *mut epoll_event, c_int, c_int, *const sigset_t) -> c_int;
    let call = required(real!(c"epoll_pwait", Wait));
    update();
    // SAFETY: the caller's arguments.
    unsafe { call(epoll, found, most, timeout, mask) }
}

/// Replaces epoll_pwait2(2).
///
/// # Safety
///
/// As epoll_pwait2(2).
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn epoll_pwait2(
    epoll: c_int,
    found: *mut epoll_event,
    most: c_int,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    type Wait = unsafe extern "C" fn(
        c_int,
        *mut epoll_event,
        c_int,
        *const timespec,
        *const sigset_t,
    ) -> c_int;
    // Since glibc 2.35. A program that calls it has it.
    let call = required(real!(c"epoll_pwait2", Wait));
    update();
    // SAFETY: the caller's arguments.
    unsafe { call(epoll, found, most, timeout, mask) }
}
