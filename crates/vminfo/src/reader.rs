//! Reads the publication of a VM from the memory that it shares.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{Ordering, fence};

use crate::layout::{HEADER, SIZE, header};
use crate::publication::{Bad, Publication, check_magic, parse, u64_at};

/// Number of attempts to read a consistent copy. A write takes a microsecond; the reader does not
/// wait for a writer that writes incessantly.
const TRIES: usize = 8;

/// Reason that a publication cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file does not exist or cannot be read.
    #[error("cannot read the publication: {0}")]
    File(#[from] io::Error),
    /// The file does not contain a valid publication.
    #[error(transparent)]
    Bad(#[from] Bad),
    /// The writer was writing during every attempt, or died while it was writing.
    #[error("no consistent copy: a write is in progress, or the writer died during one")]
    Torn,
}

/// Reads the publication of a VM from a file. The file is opened for each read, because a restarted
/// VM may have replaced it.
#[derive(Debug)]
pub struct Reader {
    path: PathBuf,
    bytes: Box<[u8]>,
}

impl Reader {
    /// Creates a reader for a file, which may not exist yet.
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), bytes: vec![0; SIZE].into() }
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the file, unless another user can have put it there in place of the VM's. Nothing else is
    /// opened, since opening a device may have effects.
    fn open(&self) -> io::Result<File> {
        let found = private::follow(&self.path)?;
        if let Some(link) = &found.link {
            let why = format!("{} is a symbolic link of another user", link.display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        found.check_place()?;
        private::reopen_regular(&found.file)
    }

    /// Reads a consistent publication. Never blocks; the worst case is copying 33 KB eight times.
    ///
    /// # Errors
    ///
    /// There is no readable publication.
    pub fn read(&mut self) -> Result<Publication, ReadError> {
        let file = self.open()?;
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

/// Reads until the buffer is full or the file ends. Returns the number of bytes.
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
