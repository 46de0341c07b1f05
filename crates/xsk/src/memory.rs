//! A ring in memory of this process.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::mapping::Mapping;
use crate::{NEED_WAKEUP, Offsets, Ring};

/// Memory of a ring whose producer and consumer are both in this process. Others can map it once
/// more, as they map a ring of the kernel.
#[derive(Debug)]
pub struct RingMemory {
    mapping: Mapping,
    file: OwnedFd,
    offsets: Offsets,
    size: u32,
}

impl RingMemory {
    /// Creates a ring of `size` entries, a power of two, of `words` 64-bit words each. Its parts are
    /// at the offsets that a ring of the kernel has.
    ///
    /// # Errors
    ///
    /// Fails if there is too little memory, or if there are too many descriptors.
    pub fn new(offsets: Offsets, size: u32, words: usize) -> io::Result<Self> {
        let bytes = offsets.bytes(size, words * size_of::<u64>());
        // SAFETY: the name is a C string.
        let created = unsafe { libc::memfd_create(c"kaido-ring".as_ptr(), libc::MFD_CLOEXEC) };
        if created < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new, and has no other owner.
        let file = unsafe { OwnedFd::from_raw_fd(created) };
        let length = libc::off_t::try_from(bytes).map_err(io::Error::other)?;
        // SAFETY: the call takes two numbers.
        if unsafe { libc::ftruncate(created, length) } < 0 {
            return Err(io::Error::last_os_error());
        }
        let mapping = Mapping::shared(bytes, file.as_fd(), 0)?;
        // The ring's view is within the mapping.
        offsets.ring(&mapping, size)?;
        Ok(Self { mapping, file, offsets, size })
    }

    /// Returns the addresses of the ring.
    pub fn view(&self) -> Ring {
        self.offsets.ring(&self.mapping, self.size).expect("`new` has tried it")
    }

    /// The memory, from its first byte on.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Asks the client for a system call after each change of the ring.
    pub fn ask_for_wakeups(&self) {
        // SAFETY: the flags are an aligned word in the mapping, which both sides access atomically.
        let flags = unsafe { AtomicU32::from_ptr(self.view().flags) };
        flags.store(NEED_WAKEUP, Ordering::Relaxed);
    }
}
