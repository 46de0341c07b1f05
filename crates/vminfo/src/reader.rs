//! Copies what a VM says of itself out of the memory that it shares.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{Ordering, fence};

use crate::layout::{HEADER, SIZE, header};
use crate::publication::{Bad, Publication, check_magic, parse, u64_at};

/// How often it is tried to read between two writes. Writing takes a microsecond; who writes without end
/// is not waited for.
const TRIES: usize = 8;

/// Why there is nothing to read at the moment.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file is not there, or cannot be read.
    #[error("cannot read it: {0}")]
    File(#[from] io::Error),
    /// It is no publication.
    #[error(transparent)]
    Bad(#[from] Bad),
    /// It is being written whenever it is read, or its writer died while it wrote.
    #[error("it is being written, or its writer died meanwhile")]
    Torn,
}

/// Reads what a VM publishes in a file. It is opened for each look: a VM that begins again may have
/// put another one in its place.
#[derive(Debug)]
pub struct Reader {
    path: PathBuf,
    bytes: Box<[u8]>,
}

impl Reader {
    /// Reads this file, which need not be there yet.
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), bytes: vec![0; SIZE].into() }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is said now, as it was between two writes. Never waits, and takes as long as copying 33 KB
    /// eight times at most.
    ///
    /// # Errors
    ///
    /// There is nothing that could be read.
    pub fn read(&mut self) -> Result<Publication, ReadError> {
        let mut how = OpenOptions::new();
        // A pipe in the file's place would keep the reader waiting, a terminal become its own.
        how.read(true).custom_flags(nix::libc::O_NONBLOCK | nix::libc::O_NOCTTY);
        let file = how.open(&self.path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is no file").into());
        }
        let mut head = [0; HEADER];
        let sequence = |head: &mut [u8; HEADER]| {
            let found = fill(head, |bytes, at| file.read_at(bytes, at))?;
            check_magic(&head[..found])?;
            match found {
                HEADER => Ok(u64_at(head, header::SEQUENCE)),
                _ => Err(ReadError::Bad(Bad::Short { found, wanted: HEADER })),
            }
        };
        for _ in 0..TRIES {
            let before = sequence(&mut head)?;
            fence(Ordering::Acquire);
            if !before.is_multiple_of(2) {
                std::hint::spin_loop();
                continue;
            }
            let found = fill(&mut self.bytes, |bytes, at| file.read_at(bytes, at))?;
            fence(Ordering::Acquire);
            if sequence(&mut head)? == before {
                return Ok(parse(&self.bytes[..found])?);
            }
        }
        Err(ReadError::Torn)
    }
}

/// Reads until there is no room or nothing more; how many bytes.
fn fill(
    bytes: &mut [u8],
    read: impl Fn(&mut [u8], u64) -> io::Result<usize>,
) -> Result<usize, ReadError> {
    let mut found = 0;
    while found < bytes.len() {
        match read(&mut bytes[found..], found as u64) {
            Ok(0) => break,
            Ok(count) => found += count,
            Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
            Err(why) => return Err(why.into()),
        }
    }
    Ok(found)
}
