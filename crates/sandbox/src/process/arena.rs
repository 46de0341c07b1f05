//! The packets' memory: frames of one size.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;

use nix::errno::Errno;

use super::memory::{Mapping, sealed};
use crate::packet::MAX_MEMORY;

/// The packets' memory: frames of one size, which a tenant's process may write at any time. What has to
/// stay as it is has to be copied.
#[derive(Debug)]
pub struct Arena {
    file: OwnedFd,
    mapping: Mapping,
    frames: u32,
    frame_size: u32,
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
        Ok(Self { file, mapping, frames, frame_size })
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
