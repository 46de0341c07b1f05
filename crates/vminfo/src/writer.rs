//! Writes what a VM says of itself.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use crate::key::Key;
use crate::layout::{ENTRY, HEADER, MAGIC, MAX_KEYS, SIZE, VERSION, entry, header, state};
use crate::memory::Memory;
use crate::now_ns;

/// Why nothing can be published.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The file does not open, or cannot be made as large as it has to be.
    #[error("cannot publish in {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is a device's memory, and there is too little of it.
    #[error("{} has {found} bytes, and {SIZE} are needed", path.display())]
    Small {
        /// The file.
        path: PathBuf,
        /// How many bytes it has.
        found: u64,
    },
    /// It has something else in it.
    #[error(
        "{} is something else, which would be lost: publish in a file of its own, or remove it first",
        .0.display()
    )]
    Foreign(PathBuf),
    /// Somebody has made it shorter.
    #[error("somebody has cut {}", .0.display())]
    Cut(PathBuf),
    /// Another writer is there.
    #[error("somebody else publishes in {}", .0.display())]
    Busy(PathBuf),
    /// There are as many keys as there can be.
    #[error("`{0}` is one key too many: {MAX_KEYS} are the most")]
    Full(String),
    /// The name is there already.
    #[error("`{0}` is published twice")]
    Twice(String),
}

/// Publishes values. When it is dropped, readers see that it has ended.
#[derive(Debug)]
pub struct Writer {
    memory: Memory,
    /// What `memory` is to say, as words.
    words: Vec<u64>,
    keys: Vec<Key>,
    /// Locked as long as this writes.
    file: File,
    path: PathBuf,
}

/// Whether a file begins with what is no publication. A device's memory cannot be read so, and is taken.
fn is_foreign(file: &File) -> bool {
    let mut begin = [0; 8];
    let some = file.read_at(&mut begin, 0).unwrap_or(0);
    let begin = &begin[..some];
    begin != MAGIC && begin.iter().any(|byte| *byte != 0)
}

impl Writer {
    /// Publishes in a file, which is made if there is none, or in a device's memory: the file
    /// `resource2` of an ivshmem device. Nothing is seen of it before the first heartbeat.
    ///
    /// # Errors
    ///
    /// The file is not to be had, has something else in it, or somebody else writes there.
    pub fn create(path: &Path) -> Result<Self, WriteError> {
        let failed = |source| WriteError::File { path: path.to_owned(), source };
        let mut how = OpenOptions::new();
        // A pipe would keep it waiting.
        how.read(true).write(true).create(true).truncate(false).custom_flags(nix::libc::O_NONBLOCK);
        let file = how.open(path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(std::fs::TryLockError::WouldBlock) => {
                return Err(WriteError::Busy(path.to_owned()));
            }
            Err(std::fs::TryLockError::Error(why)) => return Err(failed(why)),
        }
        let found = file.metadata().map_err(failed)?;
        if !found.is_file() {
            return Err(failed(io::Error::other("it is no file")));
        }
        if is_foreign(&file) {
            return Err(WriteError::Foreign(path.to_owned()));
        }
        if found.len() < SIZE as u64 {
            // A device's memory is as large as it is.
            file.set_len(SIZE as u64)
                .map_err(|_| WriteError::Small { path: path.to_owned(), found: found.len() })?;
        }
        let memory = Memory::of(&file).map_err(failed)?;
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
        // No other writer has begun at this time, as far as anybody may care.
        writer.set(header::GENERATION, began());
        Ok(writer)
    }

    fn set(&mut self, at: usize, value: u64) {
        self.words[at / 8] = value;
    }

    /// Adds a key, without a value as yet; its place. Readers see it with the next heartbeat.
    ///
    /// # Errors
    ///
    /// There are too many, or it is there already.
    pub fn add(&mut self, key: Key) -> Result<usize, WriteError> {
        let place = self.keys.len();
        if self.keys.iter().any(|other| other.name() == key.name()) {
            return Err(WriteError::Twice(key.name().to_owned()));
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
        let count = self.keys.len() as u64;
        self.set(header::VERSION, u64::from(VERSION) | count << 32);
        self.words[header::GENERATION / 8] = self.words[header::GENERATION / 8].wrapping_add(1);
        Ok(place)
    }

    /// The keys, in the order of their places.
    pub fn keys(&self) -> &[Key] {
        &self.keys
    }

    /// Sets a value, which was counted now. Readers see it with the next heartbeat.
    ///
    /// # Panics
    ///
    /// If there is no such place.
    pub fn set_value(&mut self, place: usize, value: u64) {
        assert!(place < self.keys.len(), "key {place} of {}", self.keys.len());
        let start = HEADER + place * ENTRY;
        let unit = u64::from(self.keys[place].unit.number());
        self.set(start + entry::UNIT, unit | 1 << 32);
        self.set(start + entry::VALUE, value);
        self.set(start + entry::AT, now_ns());
    }

    /// Publishes what was set, and gives a sign of life.
    ///
    /// # Errors
    ///
    /// The file has been cut, or cannot be written.
    pub fn beat(&mut self) -> Result<(), WriteError> {
        // Readers would find it too short. One that is cut after this is reported by the next heartbeat.
        if self.file.metadata().is_ok_and(|found| found.len() < SIZE as u64) {
            return Err(WriteError::Cut(self.path.clone()));
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
        // Nobody is there to be told.
        let _ = self.beat();
    }
}

/// A number that no writer before had, most likely: the time of day in nanoseconds.
fn began() -> u64 {
    std::time::UNIX_EPOCH.elapsed().map_or(0, |time| time.as_nanos() as u64)
}
