//! Shared memory that neither process can resize.
//!
//! Packet bytes are copied through raw pointers while the other process may write them. Rust's
//! memory model calls this a data race, but it does not model other processes. The hardware returns
//! old or new bytes, and this code does not assume more. The ring indexes, on which correctness
//! depends, are atomic.

use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::libc;
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::mman::{MapFlags, ProtFlags, mmap};

/// Smallest size of a memfd.
const PAGE: usize = 4096;

/// Shared, writable mapping of a memfd or of a device's memory.
#[derive(Debug)]
pub struct Mapping {
    address: NonNull<u8>,
    size: usize,
}

// SAFETY: the memory is accessed through atomics and raw pointers, never through references to
// bytes.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

/// Creates a memfd of fixed size: the next power of two, as that of a PCI device. If it could shrink,
/// processes that map it would get SIGBUS.
///
/// # Errors
///
/// Fails if the memory cannot be allocated.
pub fn sealed(name: &str, size: usize) -> Result<OwnedFd, Errno> {
    let file = memfd_create(name, MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING)?;
    let size = size.max(PAGE).checked_next_power_of_two().ok_or(Errno::EFBIG)?;
    nix::unistd::ftruncate(&file, i64::try_from(size).map_err(|_| Errno::EFBIG)?)?;
    let seals = SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SEAL;
    fcntl(&file, FcntlArg::F_ADD_SEALS(seals))?;
    Ok(file)
}

/// True if a file has at least this size and cannot shrink.
fn is_sealed(file: impl AsFd, size: usize) -> bool {
    let seals = fcntl(file.as_fd(), FcntlArg::F_GET_SEALS).map(SealFlag::from_bits_truncate);
    let holds = seals.is_ok_and(|seals| seals.contains(SealFlag::F_SEAL_SHRINK));
    let length = nix::sys::stat::fstat(file.as_fd()).map_or(0, |stat| stat.st_size);
    holds && usize::try_from(length).is_ok_and(|length| length >= size)
}

impl Mapping {
    /// Maps the first `size` bytes of a memfd.
    ///
    /// # Errors
    ///
    /// Returns `EINVAL` if the memfd is smaller, or not sealed against shrinking.
    pub fn new(file: impl AsFd, size: usize) -> Result<Self, Errno> {
        if !is_sealed(&file, size) {
            return Err(Errno::EINVAL);
        }
        Self::map(file, size)
    }

    /// Maps the first `size` bytes of a PCI device's memory (a `resource` file of sysfs), which has a
    /// fixed size.
    ///
    /// # Errors
    ///
    /// Returns `EINVAL` if it is smaller.
    pub fn of_device(file: impl AsFd, size: usize) -> Result<Self, Errno> {
        let length = nix::sys::stat::fstat(file.as_fd())?.st_size;
        if !usize::try_from(length).is_ok_and(|length| length >= size) {
            return Err(Errno::EINVAL);
        }
        Self::map(file, size)
    }

    fn map(file: impl AsFd, size: usize) -> Result<Self, Errno> {
        let length = size.try_into().map_err(|_| Errno::EINVAL)?;
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: the kernel chooses an unused address.
        let at = unsafe { mmap(None, length, access, MapFlags::MAP_SHARED, file, 0)? };
        Ok(Self { address: at.cast(), size })
    }

    /// Size in bytes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Address of a range.
    ///
    /// # Panics
    ///
    /// If the range is not in the mapping.
    pub fn at(&self, offset: usize, size: usize) -> NonNull<u8> {
        let fits = offset.checked_add(size).is_some_and(|end| end <= self.size);
        assert!(fits, "{size} bytes at {offset} of {}", self.size);
        // SAFETY: just checked.
        unsafe { self.address.add(offset) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // Not munmap(2) of the C library: in an AF_XDP client, that is a function of the preload
        // library, whose locks the caller may hold.
        // SAFETY: `new` created the mapping with this size, and pointers to it borrow `self`.
        let unmapped = unsafe { libc::syscall(libc::SYS_munmap, self.address.as_ptr(), self.size) };
        debug_assert_eq!(unmapped, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sealed_memory_cannot_be_truncated() {
        let file = sealed("test", 8192).unwrap();
        assert!(is_sealed(&file, 8192) && !is_sealed(&file, 8193));
        assert_eq!(nix::unistd::ftruncate(&file, 4096), Err(Errno::EPERM));
        assert_eq!(nix::unistd::ftruncate(&file, 1 << 20), Err(Errno::EPERM));
        let open = memfd_create("open", MFdFlags::MFD_CLOEXEC).unwrap();
        nix::unistd::ftruncate(&open, 8192).unwrap();
        assert_eq!(Mapping::new(&open, 8192).err(), Some(Errno::EINVAL));
        let (one, other) = (Mapping::new(&file, 8192).unwrap(), Mapping::new(&file, 8192).unwrap());
        // SAFETY: the offset is within both mappings.
        unsafe {
            one.at(8191, 1).write(7);
            assert_eq!(other.at(8191, 1).read(), 7);
        }
    }
}
