//! select(2) and pselect(2), by way of ppoll(2). Calls without a socket of a client are the C
//! library's.

use std::ffi::{c_int, c_short, c_ulong};
use std::time::{Duration, Instant};

use libc::{fd_set, pollfd, sigset_t, timespec, timeval};

use crate::polling;
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
    let time = unsafe { timeout.as_ref() };
    let duration = time.map(|time| duration(time.tv_sec, time.tv_usec, 1_000_000, 1000));
    // SAFETY: the caller's sets, or none.
    let sets = unsafe { Sets::new(count, [read, write, except]) };
    // An invalid time is reported by the kernel.
    let (Some(mut sets), false) = (sets, duration == Some(None)) else {
        // SAFETY: the caller's arguments.
        return unsafe { call(count, read, write, except, timeout) };
    };
    let begin = Instant::now();
    let result = sets.wait(duration.flatten(), std::ptr::null());
    // SAFETY: as above.
    if let Some(time) = unsafe { timeout.as_mut() } {
        // Linux leaves the rest of the time.
        let left = duration.flatten().unwrap_or_default().saturating_sub(begin.elapsed());
        time.tv_sec = libc::time_t::try_from(left.as_secs()).unwrap_or(libc::time_t::MAX);
        time.tv_usec = left.subsec_micros().into();
    }
    result
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
    // SAFETY: the caller's time, or none.
    let time = unsafe { timeout.as_ref() };
    let duration = time.map(|time| duration(time.tv_sec, time.tv_nsec, 1_000_000_000, 1));
    // SAFETY: the caller's sets, or none.
    let sets = unsafe { Sets::new(count, [read, write, except]) };
    // An invalid time is reported by the kernel.
    let (Some(mut sets), false) = (sets, duration == Some(None)) else {
        // SAFETY: the caller's arguments.
        return unsafe { call(count, read, write, except, timeout, mask) };
    };
    sets.wait(duration.flatten(), mask)
}

/// Returns a duration of seconds and a rest below `limit`, in units of `nanoseconds`; `None` if it
/// is invalid.
fn duration(seconds: i64, rest: i64, limit: i64, nanoseconds: u32) -> Option<Duration> {
    let rest = u32::try_from(rest).ok().filter(|rest| i64::from(*rest) < limit)?;
    Some(Duration::new(u64::try_from(seconds).ok()?, rest * nanoseconds))
}

/// The sets of a call, with a socket of the client in them.
struct Sets {
    /// First words; null for an absent set.
    words: [*mut c_ulong; 3],
    polled: Vec<pollfd>,
}

impl Sets {
    /// Reads the sets. Returns `None` if no socket of the client is in them.
    ///
    /// # Safety
    ///
    /// The sets are null, or have room for `count` descriptors while the result exists.
    unsafe fn new(count: c_int, sets: [*mut fd_set; 3]) -> Option<Self> {
        let words = sets.map(|set| set.cast::<c_ulong>());
        let mut polled = Vec::new();
        for descriptor in 0..count {
            let (word, bit) = place(descriptor);
            let mut events = 0;
            for (set, (wanted, _)) in words.iter().zip(EVENTS) {
                // SAFETY: required by this function as well.
                if !set.is_null() && unsafe { *set.add(word) } & bit != 0 {
                    events |= wanted;
                }
            }
            if events != 0 {
                polled.push(pollfd { fd: descriptor, events, revents: 0 });
            }
        }
        let has_socket = polled.iter().any(|one| xsk_client::find(one.fd).is_some());
        has_socket.then_some(Self { words, polled })
    }

    /// Waits, and writes the result into the sets. Returns the number of their members, or -1 with
    /// the sets unchanged.
    fn wait(&mut self, timeout: Option<Duration>, mask: *const sigset_t) -> c_int {
        if polling::wait_with_mask(&mut self.polled, timeout, mask) < 0 {
            return -1;
        }
        if self.polled.iter().any(|one| one.revents & libc::POLLNVAL != 0) {
            // SAFETY: the call returns the address of the thread's error number.
            unsafe { *libc::__errno_location() = libc::EBADF };
            return -1;
        }
        let mut members = 0;
        for one in &self.polled {
            let (word, bit) = place(one.fd);
            for (set, (wanted, found)) in self.words.iter().zip(EVENTS) {
                if one.events & wanted == 0 {
                    continue;
                }
                // SAFETY: `new` has read this word, as its caller allows.
                let word = unsafe { &mut *set.add(word) };
                if one.revents & found == 0 {
                    *word &= !bit;
                } else {
                    members += 1;
                }
            }
        }
        members
    }
}

/// Returns the index of a descriptor's word in a set, and its bit there.
fn place(descriptor: c_int) -> (usize, c_ulong) {
    let descriptor = descriptor as usize;
    (descriptor / WORD, 1 << (descriptor % WORD))
}
