//! select(2) and pselect(2), by way of ppoll(2). Calls without an AF_XDP socket go to the C library.

use std::ffi::{c_int, c_short, c_ulong};
use std::os::fd::RawFd;
use std::time::{Duration, Instant};

use libc::{fd_set, pollfd, sigset_t, timespec, timeval};

use crate::polling::{self, duration};
use crate::real::{real, required};

/// Type of select(2).
type Select =
    unsafe extern "C" fn(c_int, *mut fd_set, *mut fd_set, *mut fd_set, *mut timeval) -> c_int;
/// Type of pselect(2).
type PSelect = unsafe extern "C" fn(
    c_int,
    *mut fd_set,
    *mut fd_set,
    *mut fd_set,
    *const timespec,
    *const sigset_t,
) -> c_int;

/// Number of descriptors in a word of a set.
const WORD: usize = c_ulong::BITS as usize;

/// Events of ppoll(2) to wait for, and those that put a descriptor into the result, for the sets of
/// readable, writable and exceptional descriptors (fs/select.c).
const EVENTS: [(c_short, c_short); 3] = [
    (libc::POLLIN, libc::POLLIN | libc::POLLHUP | libc::POLLERR),
    (libc::POLLOUT, libc::POLLOUT | libc::POLLERR),
    (libc::POLLPRI, libc::POLLPRI),
];

/// Replaces select(2).
///
/// # Safety
///
/// As select(2).
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn select(
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
    timeout: *mut timeval,
) -> c_int {
    let call = required(real!(c"select", Select));
    // SAFETY: the caller's time, or none.
    let time = unsafe { timeout.as_ref() }.map(normalized);
    // SAFETY: the caller's sets, or none.
    let sets = unsafe { Sets::new(count, [read, write, except]) };
    let (Some(mut sets), Ok(limit)) = (sets, duration(time.as_ref())) else {
        // SAFETY: the caller's arguments.
        return unsafe { call(count, read, write, except, timeout) };
    };
    let begin = Instant::now();
    let result = sets.wait(limit, std::ptr::null());
    // SAFETY: as above.
    if let (Some(time), Some(limit)) = (unsafe { timeout.as_mut() }, limit) {
        // Linux stores the remaining time (select(2)), which is no longer than the time.
        let left = limit.saturating_sub(begin.elapsed());
        (time.tv_sec, time.tv_usec) = (left.as_secs() as _, left.subsec_micros().into());
    }
    result
}

/// Converts a time as the kernel does, which allows more than a second of microseconds.
fn normalized(time: &timeval) -> timespec {
    const MICROSECONDS: libc::suseconds_t = 1_000_000;
    timespec {
        tv_sec: time.tv_sec.saturating_add(time.tv_usec / MICROSECONDS),
        tv_nsec: time.tv_usec % MICROSECONDS * 1000,
    }
}

/// Replaces pselect(2).
///
/// # Safety
///
/// As pselect(2).
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pselect(
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    let call = required(real!(c"pselect", PSelect));
    // SAFETY: the caller's sets, or none.
    let sets = unsafe { Sets::new(count, [read, write, except]) };
    // SAFETY: the caller's time, or none.
    let (Some(mut sets), Ok(limit)) = (sets, duration(unsafe { timeout.as_ref() })) else {
        // SAFETY: the caller's arguments.
        return unsafe { call(count, read, write, except, timeout, mask) };
    };
    sets.wait(limit, mask)
}

/// The sets of a call, with an AF_XDP socket in them.
struct Sets {
    /// First words; null for an absent set.
    words: [*mut c_ulong; 3],
    /// Descriptors in the sets.
    given: Vec<RawFd>,
    /// Descriptors that the call waits for.
    polled: Vec<pollfd>,
}

impl Sets {
    /// Reads the sets. Returns `None` without an AF_XDP socket.
    ///
    /// # Safety
    ///
    /// The sets are null, or have room for the descriptors below `count` that can be open, while
    /// the result exists.
    unsafe fn new(count: c_int, sets: [*mut fd_set; 3]) -> Option<Self> {
        let words = sets.map(|set| set.cast::<c_ulong>());
        let polled = |descriptor: RawFd| {
            let (word, bit) = place(descriptor);
            let is_in = |set: &*mut c_ulong| {
                // SAFETY: required by this function as well.
                !set.is_null() && unsafe { *set.add(word) } & bit != 0
            };
            let wanted = words.iter().zip(EVENTS).filter(|(set, _)| is_in(set));
            let events = wanted.fold(0, |events, (_, (wanted, _))| events | wanted);
            (events != 0).then_some(pollfd { fd: descriptor, events, revents: 0 })
        };
        let mut sockets = xsk_client::descriptors().into_iter();
        sockets.find(|descriptor| *descriptor < count && polled(*descriptor).is_some())?;
        let polled: Vec<_> = (0..limit(count)).filter_map(polled).collect();
        Some(Self { words, given: polled.iter().map(|one| one.fd).collect(), polled })
    }

    /// Waits, and writes the result into the sets. Returns the number of their members, or -1 with
    /// the sets unchanged.
    fn wait(&mut self, timeout: Option<Duration>, mask: *const sigset_t) -> c_int {
        let begin = Instant::now();
        loop {
            let left = timeout.map(|timeout| timeout.saturating_sub(begin.elapsed()));
            let ready = polling::wait_with_mask(&mut self.polled, left, mask);
            if ready < 0 {
                return -1;
            }
            if self.polled.iter().any(|one| one.revents & libc::POLLNVAL != 0) {
                // SAFETY: the call returns the address of the thread's error number.
                unsafe { *libc::__errno_location() = libc::EBADF };
                return -1;
            }
            let members: usize = EVENTS.iter().map(|kind| self.members(*kind).count()).sum();
            if ready == 0 || members > 0 {
                self.write();
                return members as c_int;
            }
            // A hang-up of a descriptor that is not in the set of readable ones ends no call.
            self.polled.retain(|one| one.revents == 0);
        }
    }

    /// Returns the descriptors that are ready for the events of a set.
    fn members(&self, kind: (c_short, c_short)) -> impl Iterator<Item = RawFd> {
        let (wanted, found) = kind;
        let is_ready = move |one: &&pollfd| one.events & wanted != 0 && one.revents & found != 0;
        self.polled.iter().filter(is_ready).map(|one| one.fd)
    }

    /// Writes the result into the sets.
    fn write(&self) {
        for (set, kind) in self.words.iter().zip(EVENTS).filter(|(set, _)| !set.is_null()) {
            for descriptor in &self.given {
                let (word, bit) = place(*descriptor);
                // SAFETY: `new` has read this word, as its caller allows.
                unsafe { *set.add(word) &= !bit };
            }
            for descriptor in self.members(kind) {
                let (word, bit) = place(descriptor);
                // SAFETY: as above.
                unsafe { *set.add(word) |= bit };
            }
        }
    }
}

/// Limits the number of descriptors of a call to those of the C library's sets, or to the size of
/// the process's table, as the kernel does: a caller may give more than its sets have.
fn limit(count: c_int) -> c_int {
    if count <= libc::FD_SETSIZE as c_int {
        return count;
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let size = status.lines().find_map(|line| line.strip_prefix("FDSize:")?.trim().parse().ok());
    count.min(size.unwrap_or(libc::FD_SETSIZE as c_int))
}

/// Returns the index of a descriptor's word in a set, and its bit there.
fn place(descriptor: RawFd) -> (usize, c_ulong) {
    let descriptor = descriptor as usize;
    (descriptor / WORD, 1 << (descriptor % WORD))
}
