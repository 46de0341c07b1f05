//! Shared memory arena for packets: frames of one size.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::errno::Errno;

use crate::memory::{Mapping, sealed};

/// Maximum size of a frame in bytes.
const MAX_FRAME: u32 = 1 << 24;

/// Shared memory arena for packets: frames of one size. The sandbox process may read and write it
/// at any time, so data that must not change has to be copied.
///
/// An arena belongs to one tenant, because its process sees all packets in it. [`Arena::claim`]
/// makes sure of that.
#[derive(Debug)]
pub struct Arena {
    file: OwnedFd,
    mapping: Mapping,
    frames: u32,
    frame_size: u32,
    has_owner: AtomicBool,
}

impl Arena {
    /// Allocates `frames` frames of `frame_size` bytes, zeroed.
    ///
    /// # Errors
    ///
    /// Fails if the memory cannot be allocated. Returns `EINVAL` if there are no frames, or if the
    /// frame size is zero or exceeds 16 MiB.
    pub fn new(frames: u32, frame_size: u32) -> Result<Self, Errno> {
        let size = Self::bytes(frames, frame_size)?;
        Self::from_file(sealed("kaido-packets", size)?, frames, frame_size)
    }

    /// Creates an arena in an existing memfd that is sealed against shrinking.
    ///
    /// # Errors
    ///
    /// As [`Arena::new`]; also returns `EINVAL` if the memfd is too small or not sealed.
    pub fn from_file(file: OwnedFd, frames: u32, frame_size: u32) -> Result<Self, Errno> {
        let mapping = Mapping::new(&file, Self::bytes(frames, frame_size)?)?;
        Ok(Self { file, mapping, frames, frame_size, has_owner: AtomicBool::new(false) })
    }

    fn bytes(frames: u32, frame_size: u32) -> Result<usize, Errno> {
        let size = (frames as usize).checked_mul(frame_size as usize);
        let is_sane = frame_size <= MAX_FRAME;
        size.filter(|size| *size > 0 && is_sane).ok_or(Errno::EINVAL)
    }

    /// Claims the arena for a sandbox. Returns false if another one has claimed it.
    pub fn claim(&self) -> bool {
        !self.has_owner.swap(true, Ordering::AcqRel)
    }

    /// Releases a claim.
    pub fn release(&self) {
        self.has_owner.store(false, Ordering::Release);
    }

    /// File descriptor of the arena, for mapping it elsewhere.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Number of frames.
    pub fn frames(&self) -> u32 {
        self.frames
    }

    /// Size of a frame in bytes.
    pub fn frame_size(&self) -> u32 {
        self.frame_size
    }

    /// Address of a frame. Accesses race with those of the sandbox process.
    ///
    /// # Panics
    ///
    /// If the frame does not exist.
    pub fn frame(&self, slot: u32) -> NonNull<u8> {
        assert!(slot < self.frames, "frame {slot} of {}", self.frames);
        let size = self.frame_size as usize;
        self.mapping.at(slot as usize * size, size)
    }

    /// Copies bytes into a frame.
    ///
    /// # Panics
    ///
    /// If they do not fit into the frame.
    pub fn write(&self, slot: u32, start: u32, bytes: &[u8]) {
        self.check(start, bytes.len());
        // SAFETY: the range is in the frame, and a slice cannot overlap a mapping without
        // references.
        unsafe {
            let to = self.frame(slot).add(start as usize);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), to.as_ptr(), bytes.len());
        }
    }

    /// Copies bytes out of a frame.
    ///
    /// # Panics
    ///
    /// If they are not all in the frame.
    pub fn read(&self, slot: u32, start: u32, bytes: &mut [u8]) {
        self.check(start, bytes.len());
        // SAFETY: as above.
        unsafe {
            let from = self.frame(slot).add(start as usize);
            std::ptr::copy_nonoverlapping(from.as_ptr(), bytes.as_mut_ptr(), bytes.len());
        }
    }

    fn check(&self, start: u32, length: usize) {
        let fits = (start as usize).checked_add(length);
        let size = self.frame_size as usize;
        assert!(fits.is_some_and(|end| end <= size), "{length} bytes at {start} of {size}");
    }
}
