//! Programs as objects: eBPF in ELF files, with the conventions of p4c's uBPF back end, so that its
//! objects run here and ours elsewhere.
//!
//! `.text` has the function `entry(packet, struct standard_metadata *)`, and what it calls; `maps` has
//! one definition of five 32-bit numbers for each map, which code refers to by relocations. Beside
//! them, for who knows them: `kaido.entries` (what maps hold at first), `kaido.digests` (what code tells
//! the control plane), `kaido.p4info` (P4Runtime's p4info), `kaido.vm` (the names of what it reads of the
//! tenant's VM) and DWARF's line table.

mod digests;
mod entries;
mod hash;
pub mod helper;
mod instruction;
mod keys;
mod lines;
pub mod opcode;
mod read;
#[cfg(test)]
mod tests;
mod verify;
mod write;

use std::collections::BTreeMap;

pub use entries::{Entry, Key, WordRange};
pub use hash::{lookup3, lookup3_of};
pub use helper::HELPERS;
pub use instruction::{FRAME, Instruction, callee, wide};
pub use read::read;
pub use verify::verify;
pub use write::write;

/// The most instructions of a program.
pub const MAX_INSTRUCTIONS: usize = 65_536;
/// The most maps of a program.
pub const MAX_MAPS: usize = 1024;
/// The most bytes of a map's, a function's or a source file's name.
pub const MAX_NAME: usize = 1024;
/// The most bytes of a map's key, and of a value.
pub const MAX_KEY: u32 = 4096;
/// The most bytes that all values of a map take.
pub const MAX_MAP_BYTES: u64 = 1 << 30;
/// The function in which a program begins.
pub const ENTRY: &str = "entry";
/// The section of what maps hold at first.
const ENTRIES: &str = "kaido.entries";
/// The most digests of a program, and the most bytes of one.
pub const MAX_DIGESTS: usize = 64;
/// See [`MAX_DIGESTS`].
pub const MAX_DIGEST: u32 = 256;
/// The section of digests.
const DIGESTS: &str = "kaido.digests";
/// The section of p4info.
const INFO: &str = "kaido.p4info";
/// The section of keys: names, each behind the other with a zero byte between them.
const KEYS: &str = "kaido.vm";

/// A program.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Object {
    /// Its instructions. A `lddw` of a map has the map's place in `maps`.
    pub code: Vec<Instruction>,
    /// The instruction in which it begins.
    pub entry: usize,
    /// Its functions, by the instruction in which they begin.
    pub functions: BTreeMap<usize, String>,
    /// Its maps.
    pub maps: Vec<Map>,
    /// What they hold when it is loaded; an entry that is there already stays.
    pub entries: Vec<Entry>,
    /// What a control plane knows of it: P4Runtime's p4info, as protobuf has it; empty if it does not
    /// say.
    pub info: Vec<u8>,
    /// What it reads of its tenant's VM: names, by the numbers that its calls of `get_vm_info` have.
    pub keys: Vec<String>,
    /// What it may tell the control plane, by the ids that code has for it.
    pub digests: Vec<Digest>,
    /// Where its instructions come from.
    pub lines: Lines,
}

/// Values that a program has for the control plane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Digest {
    /// Its name.
    pub name: String,
    /// Bytes of each.
    pub size: u32,
}

/// Where instructions come from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Lines {
    /// The names of files.
    pub files: Vec<String>,
    /// From which instruction on what comes from which line of which file; both from 1, and columns
    /// too.
    pub rows: Vec<LineRow>,
}

/// Where an instruction comes from, and those behind it up to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineRow {
    /// The instruction.
    pub at: usize,
    /// A place in the names of files.
    pub file: usize,
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
}

/// A map: what code keeps between packets, or the control plane tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Map {
    /// Its name.
    pub name: String,
    /// How keys are found.
    pub kind: MapKind,
    /// Bytes of a key.
    pub key_size: u32,
    /// Bytes of a value.
    pub value_size: u32,
    /// The most entries.
    pub max_entries: u32,
}

impl Map {
    /// Whether there can be such a map.
    ///
    /// # Errors
    ///
    /// What is wrong with its name or its sizes.
    pub fn check(&self) -> Result<(), BadObject> {
        let Self { kind, key_size, value_size, max_entries, .. } = *self;
        let wrong = |why: String| Err(BadObject::Map { map: self.name.clone(), why });
        if self.name.len() > MAX_NAME {
            return wrong(format!("its name has {} bytes, of at most {MAX_NAME}", self.name.len()));
        }
        let fits = match kind {
            MapKind::Array => key_size == 4,
            MapKind::Hash => key_size >= 1,
            MapKind::LpmTrie => key_size >= 5,
            MapKind::Ternary => key_size >= 8 && key_size.is_multiple_of(8),
        };
        if !fits || key_size > MAX_KEY {
            return wrong(format!("a key of {key_size} bytes"));
        }
        let bytes = u64::from(max_entries) * (u64::from(key_size) + u64::from(value_size));
        if max_entries == 0 || value_size > MAX_KEY || bytes > MAX_MAP_BYTES {
            return wrong(format!("{max_entries} entries of {value_size} bytes"));
        }
        Ok(())
    }
}

/// How keys are found in a map. But for the last, the numbers are those of p4c's uBPF
/// run time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MapKind {
    /// A key is a place: 1.
    Array,
    /// A key is a value: 4.
    Hash,
    /// A key is a prefix's length in 32 bits, and its bytes: 5.
    LpmTrie,
    /// A key is whole words, each within a range under a mask; the entry with the highest priority
    /// is found: 100, which p4c does not have.
    Ternary,
}

impl MapKind {
    /// The kind that a number means.
    pub fn from_number(number: u32) -> Option<Self> {
        match number {
            1 => Some(Self::Array),
            4 => Some(Self::Hash),
            5 => Some(Self::LpmTrie),
            100 => Some(Self::Ternary),
            _ => None,
        }
    }

    /// The number that means it.
    pub fn number(self) -> u32 {
        match self {
            Self::Array => 1,
            Self::Hash => 4,
            Self::LpmTrie => 5,
            Self::Ternary => 100,
        }
    }
}

/// Why a file is no program that can be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadObject {
    /// It is no ELF file, or a damaged one.
    #[error("it is no ELF file that can be read: {0}")]
    Elf(String),
    /// It is for another machine.
    #[error(
        "it is for {0}, not for eBPF: compile it with `kaido p4 compile`, or p4c-ubpf and clang -target bpf"
    )]
    Machine(String),
    /// A part of it is missing.
    #[error("it has no {0}")]
    Missing(&'static str),
    /// There is too much of something.
    #[error("it has {count} {what}, and {most} are the most")]
    TooMuch {
        /// Of what.
        what: &'static str,
        /// How much.
        count: usize,
        /// How much there may be.
        most: usize,
    },
    /// A map that cannot be made.
    #[error("map `{map}`: {why}")]
    Map {
        /// Its name.
        map: String,
        /// What is wrong with it.
        why: String,
    },
    /// A name of what it reads of its tenant's VM that is none.
    #[error("`{0}` is no name of what a VM publishes")]
    Key(String),
    /// Code that refers to something that it has not.
    #[error("instruction {at} refers to {to}")]
    Reference {
        /// The instruction.
        at: usize,
        /// What it refers to.
        to: String,
    },
    /// Code that cannot be run.
    #[error("instruction {at}, `{instruction}`: {why}")]
    Instruction {
        /// The instruction.
        at: usize,
        /// It, as people read it.
        instruction: String,
        /// What is wrong with it.
        why: String,
    },
}
