//! Memory that the writer writes to: a file or device memory.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use nix::sys::statfs::{SYSFS_MAGIC, fstatfs};

use crate::layout::header;
use crate::mapping::Mapping;

/// Destination of a publication.
#[derive(Debug)]
pub(crate) enum Memory {
    /// A file, written with pwrite(2). It is never mapped: a process that writes to a mapping of a
    /// truncated file is killed (SIGBUS).
    File(File),
    /// Device memory, which can only be mapped, and which cannot be truncated.
    Device(Mapping),
}

impl Memory {
    /// Returns the memory of an open file. The memory of a PCI device is a file in sysfs.
    pub(crate) fn map(file: &File) -> io::Result<Self> {
        Ok(match fstatfs(file)?.filesystem_type() {
            SYSFS_MAGIC => Self::Device(Mapping::new(file)?),
            _ => Self::File(file.try_clone()?),
        })
    }

    /// Writes the first words under the sequence lock: readers see an odd sequence number
    /// meanwhile.
    pub(crate) fn write(&self, words: &[u64]) -> io::Result<()> {
        match self {
            Self::Device(mapping) => {
                mapping.write(words);
                Ok(())
            }
            Self::File(file) => write_file(file, words),
        }
    }
}

/// The page cache receives the writes of one process in order.
fn write_file(file: &File, words: &[u64]) -> io::Result<()> {
    let mut sequence = [0; 8];
    // A truncated file starts over: any odd number is valid.
    let _ = file.read_at(&mut sequence, header::SEQUENCE as u64)?;
    let odd = u64::from_le_bytes(sequence).wrapping_add(1) | 1;
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes[header::SEQUENCE..][..8].copy_from_slice(&odd.to_le_bytes());
    file.write_all_at(&odd.to_le_bytes(), header::SEQUENCE as u64)?;
    file.write_all_at(&bytes, 0)?;
    file.write_all_at(&odd.wrapping_add(1).to_le_bytes(), header::SEQUENCE as u64)
}
