//! The shared memory, byte by byte. Numbers have their lowest byte first.
//!
//! ```text
//!   0  magic       "KAIDO-VM"
//!   8  version     u32: 1
//!  12  keys        u32: how many there are, at most 256
//!  16  sequence    u64: odd while the writer writes; another one whenever it has written
//!  24  generation  u64: another one when keys have changed, or with another writer
//!  32  beat        u64: heartbeats so far
//!  40  now         u64: the writer's clock at the last one, in nanoseconds
//!  48  state       u32: 1 runs, 2 has ended
//!  52  zeros
//!  64  the first key:
//!        0  name    64 bytes, with zeros behind it
//!       64  unit    u32
//!       68  is      u32: 1 if there is a value
//!       72  value   u64
//!       80  at      u64: the writer's clock when it was counted, in nanoseconds
//!       88  valid   u64: how long it is fresh, in nanoseconds
//!       96  zeros
//! 192  the second key, and so on
//! ```
//!
//! A reader takes what lies between two looks at one even sequence number.

/// What it begins with.
pub const MAGIC: [u8; 8] = *b"KAIDO-VM";
/// The version of this layout.
pub const VERSION: u32 = 1;
/// The most keys.
pub const MAX_KEYS: usize = 256;
/// Bytes of a name, with at least one zero behind it.
pub const NAME: usize = 64;
/// Bytes in front of the first key.
pub const HEADER: usize = 64;
/// Bytes of a key.
pub const ENTRY: usize = 128;
/// Bytes of all.
pub const SIZE: usize = HEADER + MAX_KEYS * ENTRY;

/// Where the parts of the header are.
pub mod header {
    /// The version.
    pub const VERSION: usize = 8;
    /// The number of keys.
    pub const KEYS: usize = 12;
    /// The sequence number.
    pub const SEQUENCE: usize = 16;
    /// Which keys these are.
    pub const GENERATION: usize = 24;
    /// The number of heartbeats.
    pub const BEAT: usize = 32;
    /// The writer's clock.
    pub const NOW: usize = 40;
    /// Whether the writer runs.
    pub const STATE: usize = 48;
}

/// Where the parts of a key are, behind its first byte.
pub mod entry {
    /// The unit.
    pub const UNIT: usize = 64;
    /// Whether there is a value.
    pub const IS: usize = 68;
    /// The value.
    pub const VALUE: usize = 72;
    /// When it was counted.
    pub const AT: usize = 80;
    /// How long it is fresh.
    pub const VALID: usize = 88;
}

/// What the header's state says.
pub mod state {
    /// The writer runs.
    pub const RUNS: u32 = 1;
    /// It has ended, and said so.
    pub const ENDED: u32 = 2;
}
