//! Layout of the shared memory. Numbers are little-endian.
//!
//! ```text
//!   0  magic       "KAIDO-VM"
//!   8  version     u32: 1
//!  12  keys        u32: number of keys, at most 256
//!  16  sequence    u64: odd during a write; changes with each write
//!  24  generation  u64: changes when keys have changed, and with each writer
//!  32  beat        u64: number of heartbeats
//!  40  now         u64: the writer's clock at the last heartbeat, in nanoseconds
//!  48  state       u32: 1 running, 2 ended
//!  52  zeros
//!  64  the first key:
//!        0  name    64 bytes, padded with zeros
//!       64  unit    u32
//!       68  is      u32: 1 if there is a value
//!       72  value   u64
//!       80  at      u64: the writer's clock when it was sampled, in nanoseconds
//!       88  valid   u64: time for which the value is fresh, in nanoseconds
//!       96  zeros
//! 192  the second key, and so on
//! ```
//!
//! A copy is consistent if the sequence number before and after it is the same even number.

/// Magic number at the beginning.
pub const MAGIC: [u8; 8] = *b"KAIDO-VM";
/// Version of this layout.
pub const VERSION: u32 = 1;
/// Maximum number of keys.
pub const MAX_KEYS: usize = 256;
/// Size of a name, including at least one terminating zero.
pub const NAME: usize = 64;
/// Size of the header, in bytes.
pub const HEADER: usize = 64;
/// Size of a key, in bytes.
pub const ENTRY: usize = 128;
/// Total size, in bytes.
pub const SIZE: usize = HEADER + MAX_KEYS * ENTRY;

/// Offsets of the fields of the header.
pub mod header {
    /// Version.
    pub const VERSION: usize = 8;
    /// Number of keys.
    pub const KEYS: usize = 12;
    /// Sequence number.
    pub const SEQUENCE: usize = 16;
    /// Generation of the keys.
    pub const GENERATION: usize = 24;
    /// Number of heartbeats.
    pub const BEAT: usize = 32;
    /// The writer's clock.
    pub const NOW: usize = 40;
    /// State of the writer.
    pub const STATE: usize = 48;
}

/// Offsets of the fields of a key.
pub mod entry {
    /// Unit.
    pub const UNIT: usize = 64;
    /// Presence of a value.
    pub const IS: usize = 68;
    /// Value.
    pub const VALUE: usize = 72;
    /// Time of sampling.
    pub const AT: usize = 80;
    /// Time for which the value is fresh.
    pub const VALID: usize = 88;
}

/// States of the writer.
pub mod state {
    /// Running.
    pub const RUNS: u32 = 1;
    /// Ended: the writer has shut down cleanly.
    pub const ENDED: u32 = 2;
}
