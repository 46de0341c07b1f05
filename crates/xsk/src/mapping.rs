//! Memory that is mapped into this process.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;

/// A mapping, removed on drop.
#[derive(Debug)]
pub(crate) struct Mapping {
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the memory is shared with the kernel anyway, and accessed through raw pointers only.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps new memory of this process, in whole pages.
    pub(crate) fn anonymous(bytes: usize) -> io::Result<Self> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
        Self::new(bytes, flags, -1, 0)
    }

    /// Maps memory that a file shares. `offset` selects the ring of an AF_XDP socket.
    pub(crate) fn shared(
        bytes: usize,
        file: BorrowedFd<'_>,
        offset: libc::off_t,
    ) -> io::Result<Self> {
        Self::new(bytes, libc::MAP_SHARED | libc::MAP_POPULATE, file.as_raw_fd(), offset)
    }

    fn new(bytes: usize, flags: i32, file: i32, offset: libc::off_t) -> io::Result<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let none = std::ptr::null_mut::<libc::c_void>();
        // mmap(2) of the C library may be the preload library's, which maps its own rings in place of
        // the kernel's.
        // SAFETY: the kernel chooses the place, so that no other memory is replaced.
        let base =
            unsafe { libc::syscall(libc::SYS_mmap, none, bytes, access, flags, file, offset) };
        let base = if base == -1 { None } else { NonNull::new(base as *mut u8) };
        Ok(Self { base: base.ok_or_else(io::Error::last_os_error)?, bytes })
    }

    /// Address of the first byte.
    pub(crate) fn base(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// Address of a field at an offset that the kernel has given.
    pub(crate) fn at<T>(&self, offset: u64) -> io::Result<*mut T> {
        let end = usize::try_from(offset).ok().and_then(|at| at.checked_add(size_of::<T>()));
        if end.is_none_or(|end| end > self.bytes) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        // SAFETY: the offset lies in the mapping.
        Ok(unsafe { self.base().add(offset as usize) }.cast())
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // Not munmap(2) of the C library, which the preload library replaces.
        // SAFETY: the mapping is this value's own.
        unsafe { libc::syscall(libc::SYS_munmap, self.base(), self.bytes) };
    }
}
