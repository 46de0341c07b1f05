//! Writer of a VM's published values.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;
use private::Followed;

use crate::key::Key;
use crate::layout::{ENTRY, HEADER, MAGIC, MAX_KEYS, SIZE, VERSION, entry, header, state};
use crate::memory::Memory;
use crate::now_ns;

/// Reason that nothing can be published.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The file cannot be opened, extended or written.
    #[error("cannot publish in {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// The device has too little memory.
    #[error("{} has {found} bytes, and {SIZE} are needed", path.display())]
    Small {
        /// The file.
        path: PathBuf,
        /// Size in bytes.
        found: u64,
    },
    /// The path is a symbolic link.
    #[error("{} is a symbolic link: name the file itself", .0.display())]
    Link(PathBuf),
    /// The file contains something else.
    #[error(
        "{} is something else, which would be lost: publish in a file of its own, or remove it first",
        .0.display()
    )]
    Foreign(PathBuf),
    /// The file was truncated by another process.
    #[error("another process has truncated {}", .0.display())]
    Truncated(PathBuf),
    /// Another writer uses the file.
    #[error("another process publishes in {}", .0.display())]
    Busy(PathBuf),
    /// The maximum number of keys is reached.
    #[error("cannot add key `{0}`: at most {MAX_KEYS} keys")]
    Full(String),
    /// The name is already in use.
    #[error("`{0}` is published twice")]
    Duplicate(String),
}

/// Publishes values. Dropping it marks the publication as ended.
#[derive(Debug)]
pub struct Writer {
    memory: Memory,
    /// Contents to be written to `memory`, as words.
    words: Vec<u64>,
    keys: Vec<Key>,
    /// Holds the lock while the writer exists.
    file: File,
    path: PathBuf,
}

/// Returns true if a file begins with something other than a publication. Device memory cannot be
/// read this way and is accepted.
fn is_foreign(file: &File) -> bool {
    let mut begin = [0; 8];
    let some = file.read_at(&mut begin, 0).unwrap_or(0);
    let begin = &begin[..some];
    begin != MAGIC && begin.iter().any(|byte| *byte != 0)
}

fn failed(path: &Path, source: io::Error) -> WriteError {
    WriteError::File { path: path.to_owned(), source }
}

impl Writer {
    /// Creates a publication in a file, which is created if necessary, or in device memory: the
    /// file `resource2` of an ivshmem device. It becomes visible with the first heartbeat.
    ///
    /// # Errors
    ///
    /// The file cannot be opened, contains something else, or is in use by another writer.
    pub fn create(path: &Path) -> Result<Self, WriteError> {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let directory = private::follow(parent.unwrap_or(Path::new(".")));
        Self::create_in(&directory.map_err(|source| failed(path, source))?, path)
    }

    /// Like [`Writer::create`], in an open directory: the file is the last component of `path`.
    ///
    /// # Errors
    ///
    /// As [`Writer::create`].
    pub fn create_in(directory: &Followed, path: &Path) -> Result<Self, WriteError> {
        let failed = |source| failed(path, source);
        let name = path.file_name().ok_or_else(|| failed(ErrorKind::IsADirectory.into()))?;
        // In a directory that others write to, a symbolic link could lead to any file. Opening a
        // FIFO would block.
        let flags = OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_CLOEXEC;
        let flags = flags | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
        let opened = openat(&directory.file, name, flags, Mode::from_bits_truncate(0o666));
        let file = File::from(opened.map_err(|errno| match errno {
            Errno::ELOOP => WriteError::Link(path.to_owned()),
            _ => failed(errno.into()),
        })?);
        // Its owner could lock it, and truncate it.
        directory.check_entry(name, &file).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(std::fs::TryLockError::WouldBlock) => {
                return Err(WriteError::Busy(path.to_owned()));
            }
            Err(std::fs::TryLockError::Error(why)) => return Err(failed(why)),
        }
        let found = file.metadata().map_err(failed)?;
        if !found.is_file() {
            return Err(failed(io::Error::other("it is not a regular file")));
        }
        if is_foreign(&file) {
            return Err(WriteError::Foreign(path.to_owned()));
        }
        if found.len() < SIZE as u64 {
            // Device memory cannot be extended.
            file.set_len(SIZE as u64)
                .map_err(|_| WriteError::Small { path: path.to_owned(), found: found.len() })?;
        }
        let memory = Memory::map(&file).map_err(failed)?;
        let mut writer = Self {
            memory,
            words: vec![0; HEADER / 8],
            keys: Vec::new(),
            file,
            path: path.to_owned(),
        };
        writer.set(0, u64::from_le_bytes(MAGIC));
        writer.set(header::VERSION, u64::from(VERSION));
        writer.set(header::STATE, u64::from(state::RUNS));
        // Distinguishes this writer from others, unless one was created at the same time.
        writer.set(header::GENERATION, began());
        Ok(writer)
    }

    fn set(&mut self, at: usize, value: u64) {
        self.words[at / 8] = value;
    }

    /// Sets two fields of 32 bits: at `at`, and at `at + 4`.
    fn set_pair(&mut self, at: usize, first: u32, second: u32) {
        self.set(at, u64::from(first) | u64::from(second) << 32);
    }

    /// Adds a key without a value, and returns its index. It becomes visible with the next
    /// heartbeat.
    ///
    /// # Errors
    ///
    /// There are too many keys, or the name is already in use.
    pub fn add(&mut self, key: Key) -> Result<usize, WriteError> {
        let place = self.keys.len();
        if self.keys.iter().any(|other| other.name() == key.name()) {
            return Err(WriteError::Duplicate(key.name().to_owned()));
        }
        if place == MAX_KEYS {
            return Err(WriteError::Full(key.name().to_owned()));
        }
        let start = HEADER + place * ENTRY;
        self.words.resize((start + ENTRY) / 8, 0);
        let mut name = [0; entry::UNIT];
        name[..key.name().len()].copy_from_slice(key.name().as_bytes());
        for (at, word) in name.as_chunks::<8>().0.iter().enumerate() {
            self.set(start + at * 8, u64::from_le_bytes(*word));
        }
        self.set(start + entry::UNIT, u64::from(key.unit.number()));
        let valid = u64::try_from(key.valid.as_nanos()).unwrap_or(u64::MAX);
        self.set(start + entry::VALID, valid);
        self.keys.push(key);
        self.set_pair(header::VERSION, VERSION, self.keys.len() as u32);
        self.words[header::GENERATION / 8] = self.words[header::GENERATION / 8].wrapping_add(1);
        Ok(place)
    }

    /// Returns the keys, in the order of their indices.
    pub fn keys(&self) -> &[Key] {
        &self.keys
    }

    /// Sets a value, sampled now. It becomes visible with the next heartbeat.
    ///
    /// # Panics
    ///
    /// If the index is out of bounds.
    pub fn set_value(&mut self, place: usize, value: u64) {
        assert!(place < self.keys.len(), "key {place} of {}", self.keys.len());
        let start = HEADER + place * ENTRY;
        self.set_pair(start + entry::UNIT, self.keys[place].unit.number(), 1);
        self.set(start + entry::VALUE, value);
        self.set(start + entry::AT, now_ns());
    }

    /// Publishes all values with a heartbeat.
    ///
    /// # Errors
    ///
    /// The file was truncated or cannot be written.
    pub fn beat(&mut self) -> Result<(), WriteError> {
        // Readers would find it too short. A truncation after this check is detected by the next
        // heartbeat.
        if self.file.metadata().is_ok_and(|found| found.len() < SIZE as u64) {
            return Err(WriteError::Truncated(self.path.clone()));
        }
        self.words[header::BEAT / 8] = self.words[header::BEAT / 8].wrapping_add(1);
        self.set(header::NOW, now_ns());
        let failed = |source| WriteError::File { path: self.path.clone(), source };
        self.memory.write(&self.words).map_err(failed)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.set(header::STATE, u64::from(state::ENDED));
        // An error cannot be reported here.
        let _ = self.beat();
        // Closing the file is not enough: a process that another thread is starting holds a copy of
        // the descriptor until it executes its program.
        let _ = self.file.unlock();
    }
}

/// Returns a number that no earlier writer is likely to have: the time of day in nanoseconds.
fn began() -> u64 {
    std::time::UNIX_EPOCH.elapsed().map_or(0, |time| time.as_nanos() as u64)
}
