//! Compiled programs: eBPF in ELF object files. They follow the conventions of p4c's uBPF back end,
//! so p4c's objects run here and ours run in p4c's run time.
//!
//! Section `.text` has the function `entry(packet, struct standard_metadata *)` and its callees.
//! Section `maps` has one definition of five 32-bit words for each map; code refers to maps by
//! relocations. There are also sections that only Kaido reads: `kaido.entries` (initial map
//! entries), `kaido.digests` (digests that the code sends to the control plane), `kaido.p4info`
//! (P4Runtime's P4Info) and `kaido.vm` (names of the values that the program reads from the
//! tenant's VM). DWARF's line table maps instructions to source lines.
//!
//! The conventions between code and the machine that runs it are here too: [`helper`] functions,
//! [`metadata`] and the verdict ([`action`]), [`cells`] of counters and meters, and values of the
//! tenant's VM ([`vm`]).
#![forbid(unsafe_code)]

pub mod action;
mod bounded;
pub mod cells;
mod digests;
mod entries;
mod hash;
pub mod helper;
mod instruction;
mod keys;
mod library;
mod lines;
pub mod metadata;
pub mod opcode;
mod read;
#[cfg(test)]
mod read_tests;
mod sections;
#[cfg(test)]
mod tests;
mod verify;
pub mod vm;
mod write;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use bounded::bounded;
pub use entries::{Entry, Key, WordRange};
pub use hash::{lookup3, lookup3_of};
pub use helper::HELPERS;
pub use instruction::{FRAME, Instruction, callee, wide};
pub use library::{Library, LinkedCall, link};
pub use read::read;
pub use verify::verify;
pub use write::write;

/// Maximum number of instructions in a program.
pub const MAX_INSTRUCTIONS: usize = 65_536;
/// Maximum number of maps in a program.
pub const MAX_MAPS: usize = 1024;
/// Maximum length in bytes of the name of a map, a function or a source file.
pub const MAX_NAME: usize = 1024;
/// Maximum size in bytes of a map's key, and of a value.
pub const MAX_KEY: u32 = 4096;
/// Maximum size in bytes of all entries of a map.
pub const MAX_MAP_BYTES: u64 = 1 << 30;
/// Name of the entry function.
pub const ENTRY: &str = "entry";
/// Section of the initial map entries.
const ENTRIES: &str = "kaido.entries";
/// Maximum number of digests in a program. A digest has at most [`MAX_DIGEST`] bytes.
pub const MAX_DIGESTS: usize = 64;
/// Maximum size in bytes of a digest. See [`MAX_DIGESTS`].
pub const MAX_DIGEST: u32 = 256;
/// Section of the digests.
const DIGESTS: &str = "kaido.digests";
/// Section of the P4Info.
const INFO: &str = "kaido.p4info";
/// Section of the VM keys: names, separated by zero bytes.
const KEYS: &str = "kaido.vm";

/// A compiled program.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Object {
    /// Instructions. The immediate of a `lddw` that loads a map is the index into `maps`.
    pub code: Vec<Instruction>,
    /// Index of the first instruction to execute.
    pub entry: usize,
    /// Functions, by index of their first instruction.
    pub functions: BTreeMap<usize, String>,
    /// Maps.
    pub maps: Vec<Map>,
    /// Initial map entries. Loading does not replace an entry that is already present.
    pub entries: Vec<Entry>,
    /// Serialized P4Info (protobuf) for the control plane; empty if there is none.
    pub info: Vec<u8>,
    /// Keys of the values read from the tenant's VM. Their indices are the arguments of
    /// `get_vm_info` calls.
    pub keys: Vec<String>,
    /// Digests that the program may send to the control plane, by the id that the code uses.
    pub digests: Vec<Digest>,
    /// Line table.
    pub lines: Lines,
}

/// A digest: a message from the program to the control plane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digest {
    /// Name.
    pub name: String,
    /// Size of a message in bytes.
    pub size: u32,
}

/// Line table: source locations of instructions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Lines {
    /// Names of the source files.
    pub files: Vec<String>,
    /// Rows, each valid from its instruction on. Lines and columns count from 1.
    pub rows: Vec<LineRow>,
}

/// Source location of an instruction and of those after it, up to the next row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineRow {
    /// Index of the instruction.
    pub at: usize,
    /// Index into `files`.
    pub file: usize,
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
}

/// A map: state that code keeps between packets, or data from the control plane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Map {
    /// Name.
    pub name: String,
    /// The lookup method.
    pub kind: MapKind,
    /// Size of a key in bytes.
    pub key_size: u32,
    /// Size of a value in bytes.
    pub value_size: u32,
    /// Maximum number of entries.
    pub max_entries: u32,
}

impl Map {
    /// Validates the definition of the map.
    ///
    /// # Errors
    ///
    /// If its name or its sizes are invalid.
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

/// Type of a map. All numbers but the last are those of p4c's uBPF run time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum MapKind {
    /// The key is an index (type 1).
    Array,
    /// Exact match on the key (type 4).
    Hash,
    /// Longest prefix match (type 5). The key is a 32-bit prefix length, then the prefix's bytes.
    LpmTrie,
    /// Ternary and range match. The key consists of 64-bit words, each matched by a range under a
    /// mask; the matching entry with the highest priority wins. Type 100 does not exist in p4c.
    Ternary,
}

impl MapKind {
    /// Returns the type with this number.
    pub fn from_number(number: u32) -> Option<Self> {
        match number {
            1 => Some(Self::Array),
            4 => Some(Self::Hash),
            5 => Some(Self::LpmTrie),
            100 => Some(Self::Ternary),
            _ => None,
        }
    }

    /// Returns the number of the type.
    pub fn number(self) -> u32 {
        match self {
            Self::Array => 1,
            Self::Hash => 4,
            Self::LpmTrie => 5,
            Self::Ternary => 100,
        }
    }
}

/// The reason why a file is not a valid program.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadObject {
    /// The file is not an ELF file, or it is damaged.
    #[error("it is not a valid ELF file: {0}")]
    Elf(String),
    /// The file is for another machine.
    #[error(
        "it is for {0}, not for eBPF: compile it with `kaido p4 compile`, or p4c-ubpf and clang -target bpf"
    )]
    Machine(String),
    /// A required part is missing.
    #[error("it has no {0}")]
    Missing(&'static str),
    /// It cannot be linked to a program.
    #[error("it has {0}, and is not a library")]
    NotLibrary(&'static str),
    /// A limit is exceeded.
    #[error("it has {count} {what}, and the limit is {most}")]
    TooMuch {
        /// The kind of thing that is limited.
        what: &'static str,
        /// The number found.
        count: usize,
        /// The maximum.
        most: usize,
    },
    /// An invalid map.
    #[error("map `{map}`: {why}")]
    Map {
        /// Name of the map.
        map: String,
        /// The reason.
        why: String,
    },
    /// An invalid name of a value from the tenant's VM.
    #[error("`{0}` is not a valid key of a VM")]
    Key(String),
    /// An instruction with an unresolved reference.
    #[error("instruction {at} refers to {to}")]
    Reference {
        /// Index of the instruction.
        at: usize,
        /// Target of the reference.
        to: String,
    },
    /// An invalid instruction.
    #[error("instruction {at}, `{instruction}`: {why}")]
    Instruction {
        /// Index of the instruction.
        at: usize,
        /// Disassembly.
        instruction: String,
        /// The reason.
        why: String,
    },
}
