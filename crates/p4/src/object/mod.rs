//! Programs as objects: eBPF in ELF files, with the conventions of p4c's uBPF back end, so that its
//! objects run here and ours elsewhere.
//!
//! `.text` has the function `entry(packet, struct standard_metadata *)`, and what it calls; `maps` has
//! one definition of five 32-bit numbers for each map, which code refers to by relocations.

mod instruction;
mod read;
#[cfg(test)]
mod tests;
mod verify;
mod write;

use std::collections::BTreeMap;

pub use instruction::{FRAME, Instruction, callee, opcode, wide};
pub use read::read;
pub use verify::verify;
pub use write::write;

/// The most instructions of a program.
pub const MAX_INSTRUCTIONS: usize = 65_536;
/// The most maps of a program.
pub const MAX_MAPS: usize = 1024;
/// The most bytes of a map's key, and of a value.
pub const MAX_KEY: u32 = 4096;
/// The most bytes that all values of a map take.
pub const MAX_MAP_BYTES: u64 = 1 << 30;
/// The function in which a program begins.
pub const ENTRY: &str = "entry";

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

/// How keys are found in a map. The numbers are those of p4c's uBPF run time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MapKind {
    /// A key is a place: 1.
    Array,
    /// A key is a value: 4.
    Hash,
    /// A key is a prefix's length in 32 bits, and its bytes: 5.
    LpmTrie,
}

impl MapKind {
    /// The kind that a number means.
    pub fn from_number(number: u32) -> Option<Self> {
        match number {
            1 => Some(Self::Array),
            4 => Some(Self::Hash),
            5 => Some(Self::LpmTrie),
            _ => None,
        }
    }

    /// The number that means it.
    pub fn number(self) -> u32 {
        match self {
            Self::Array => 1,
            Self::Hash => 4,
            Self::LpmTrie => 5,
        }
    }
}

/// What a program may call, by the number that p4c's uBPF run time gives it.
pub const HELPERS: [(i32, &str); 10] = [
    (1, "map_lookup"),
    (2, "map_update"),
    (3, "map_delete"),
    (4, "map_add"),
    (5, "time_get_ns"),
    (6, "hash"),
    (7, "printf"),
    (8, "adjust_head"),
    (9, "packet_data"),
    (11, "truncate"),
];

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
