//! Parsing of a publication, after its bytes have been copied from shared memory.

use std::collections::HashSet;
use std::time::Duration;

use crate::key::{Unit, is_name};
use crate::layout::{ENTRY, HEADER, MAGIC, MAX_KEYS, NAME, VERSION, entry, header, state};

/// Publication of a VM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publication {
    /// Generation of the keys.
    pub generation: u64,
    /// Number of heartbeats.
    pub beat: u64,
    /// The writer's clock at the last heartbeat, in nanoseconds.
    pub now_ns: u64,
    /// True if the writer has shut down cleanly.
    pub ended: bool,
    /// Values; names are unique.
    pub entries: Vec<Entry>,
}

/// A value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Name.
    pub name: String,
    /// Unit.
    pub unit: Unit,
    /// Value; None if it was never set.
    pub value: Option<u64>,
    /// The writer's clock when the value was sampled, in nanoseconds.
    pub at_ns: u64,
    /// Time for which the value is fresh.
    pub valid: Duration,
}

/// Reason that bytes are not a valid publication.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Bad {
    /// Too few bytes.
    #[error("truncated: {found} of {wanted} bytes")]
    Short {
        /// Number of bytes found.
        found: usize,
        /// Number of bytes required.
        wanted: usize,
    },
    /// Only zeros: no writer has written yet.
    #[error("nothing is published there yet")]
    Nothing,
    /// Another magic number.
    #[error("it is not a file written by `kaido p4 publish`")]
    Magic,
    /// Another version.
    #[error("layout version {0} is not supported (this build: {VERSION})")]
    Version(u32),
    /// Too many keys.
    #[error("too many keys: {0} (maximum {MAX_KEYS})")]
    Keys(u32),
    /// An invalid or duplicate name.
    #[error("key {0} has an empty or duplicate name")]
    Name(usize),
    /// An invalid state.
    #[error("its writer's state, {0}, is not valid")]
    State(u32),
}

/// Parses a publication. Bytes after its end are ignored.
///
/// # Errors
///
/// The reason that the bytes are not valid.
pub fn parse(bytes: &[u8]) -> Result<Publication, Bad> {
    let short = |wanted| Bad::Short { found: bytes.len(), wanted };
    check_magic(bytes)?;
    let head = bytes.first_chunk::<HEADER>().ok_or_else(|| short(HEADER))?;
    let version = u32_at(head, header::VERSION);
    if version != VERSION {
        return Err(Bad::Version(version));
    }
    let keys = u32_at(head, header::KEYS);
    let count = usize::try_from(keys).ok().filter(|count| *count <= MAX_KEYS);
    let count = count.ok_or(Bad::Keys(keys))?;
    let ended = match u32_at(head, header::STATE) {
        state::RUNS => false,
        state::ENDED => true,
        other => return Err(Bad::State(other)),
    };
    let wanted = HEADER + count * ENTRY;
    let rest = bytes.get(HEADER..wanted).ok_or_else(|| short(wanted))?;
    let mut entries = Vec::with_capacity(count);
    let mut names = HashSet::with_capacity(count);
    for (at, bytes) in rest.as_chunks::<ENTRY>().0.iter().enumerate() {
        let one = read(bytes).ok_or(Bad::Name(at))?;
        if !names.insert(one.name.clone()) {
            return Err(Bad::Name(at));
        }
        entries.push(one);
    }
    Ok(Publication {
        generation: u64_at(head, header::GENERATION),
        beat: u64_at(head, header::BEAT),
        now_ns: u64_at(head, header::NOW),
        ended,
        entries,
    })
}

/// Checks the magic number.
pub(crate) fn check_magic(bytes: &[u8]) -> Result<(), Bad> {
    let magic = &bytes[..bytes.len().min(MAGIC.len())];
    if magic.iter().all(|byte| *byte == 0) {
        return Err(Bad::Nothing);
    }
    match MAGIC.starts_with(magic) {
        true => Ok(()),
        false => Err(Bad::Magic),
    }
}

fn read(bytes: &[u8; ENTRY]) -> Option<Entry> {
    let name = &bytes[..NAME];
    let end = name.iter().position(|byte| *byte == 0)?;
    let name = std::str::from_utf8(&name[..end]).ok().filter(|name| is_name(name))?;
    let is_there = u32_at(bytes, entry::IS) == 1;
    Some(Entry {
        name: name.to_owned(),
        unit: Unit::from_number(u32_at(bytes, entry::UNIT)),
        value: is_there.then(|| u64_at(bytes, entry::VALUE)),
        at_ns: u64_at(bytes, entry::AT),
        valid: Duration::from_nanos(u64_at(bytes, entry::VALID)),
    })
}

/// Reads a number at an offset that is within bounds.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut eight = [0; 8];
    eight.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(eight)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut four = [0; 4];
    four.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(four)
}
