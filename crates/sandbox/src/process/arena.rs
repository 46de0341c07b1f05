//! The packets' memory: frames of one size.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::errno::Errno;

use super::memory::{Mapping, sealed};
use crate::packet::MAX_MEMORY;

/// The packets' memory: frames of one size, which a tenant's process may read and write at any time. What
/// has to stay as it is has to be copied.
///
/// It is one tenant's: [`Sandbox::start`](super::Sandbox::start) refuses memory that another sandbox has,
/// whose process would see this one's packets.
#[derive(Debug)]
pub struct Arena {
    file: OwnedFd,
    mapping: Mapping,
    frames: u32,
    frame_size: u32,
    has_owner: AtomicBool,
}

/// The packets' memory as its one sandbox has it.
#[derive(Debug)]
pub(super) struct Owned(Arc<Arena>);

impl Owned {
    /// Takes the memory; nothing if another sandbox has it.
    pub(super) fn take(arena: Arc<Arena>) -> Option<Self> {
        let is_free = !arena.has_owner.swap(true, Ordering::AcqRel);
        is_free.then(|| Self(arena))
    }
}

impl std::ops::Deref for Owned {
    type Target = Arc<Arena>;

    fn deref(&self) -> &Arc<Arena> {
        &self.0
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        self.0.has_owner.store(false, Ordering::Release);
    }
}

impl Arena {
    /// Memory for `frames` frames of `frame_size` bytes, all zero.
    ///
    /// # Errors
    ///
    /// There is no such memory; `EINVAL`: a frame has no bytes, or more than 16 MiB, or there is none.
    pub fn new(frames: u32, frame_size: u32) -> Result<Self, Errno> {
        let size = Self::bytes(frames, frame_size)?;
        Self::of(sealed("kaido-packets", size)?, frames, frame_size)
    }

    /// Frames in memory that is there: a file in memory that is sealed against being cut.
    ///
    /// # Errors
    ///
    /// As of [`Arena::new`]; `EINVAL` too if it is too small, or not sealed.
    pub fn of(file: OwnedFd, frames: u32, frame_size: u32) -> Result<Self, Errno> {
        let mapping = Mapping::new(&file, Self::bytes(frames, frame_size)?)?;
        Ok(Self { file, mapping, frames, frame_size, has_owner: AtomicBool::new(false) })
    }

    fn bytes(frames: u32, frame_size: u32) -> Result<usize, Errno> {
        let size = (frames as usize).checked_mul(frame_size as usize);
        let is_sane = frame_size as usize <= MAX_MEMORY;
        size.filter(|size| *size > 0 && is_sane).ok_or(Errno::EINVAL)
    }

    /// The file, to map it elsewhere.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// The number of frames.
    pub fn frames(&self) -> u32 {
        self.frames
    }

    /// Bytes of a frame.
    pub fn frame_size(&self) -> u32 {
        self.frame_size
    }

    /// Where a frame is. Whoever reads or writes there does so while others may.
    ///
    /// # Panics
    ///
    /// If there is no such frame.
    pub fn frame(&self, slot: u32) -> NonNull<u8> {
        assert!(slot < self.frames, "frame {slot} of {}", self.frames);
        let size = self.frame_size as usize;
        self.mapping.at(slot as usize * size, size)
    }

    /// Copies bytes into a frame.
    ///
    /// # Panics
    ///
    /// If they do not lie in a frame.
    pub fn write(&self, slot: u32, start: u32, bytes: &[u8]) {
        self.check(start, bytes.len());
        // SAFETY: within the frame; a slice is no part of a mapping to which there are no references.
        unsafe {
            let to = self.frame(slot).add(start as usize);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), to.as_ptr(), bytes.len());
        }
    }

    /// Copies bytes out of a frame.
    ///
    /// # Panics
    ///
    /// If they do not lie in a frame.
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
