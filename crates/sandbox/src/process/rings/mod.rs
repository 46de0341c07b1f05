//! The two rings between a switch and a tenant's process, in memory that both can write.
//!
//! ```text
//!    0  the switch's line: descriptors put (u32), messages sent (u32), bell (u32), "wake me" (u32),
//!       digests taken (u32)
//!   64  the process's line: verdicts put (u32), "wake me" (u32), digests put (u32), digests lost (u32)
//! 4096  descriptors, 32 bytes each, then as many verdicts, then 256 digests: id (u32), bytes (u32), and
//!       256 bytes
//! ```
//!
//! There are no more packets on their way than a ring has places, and each verdict is of one of them. So
//! neither side has to be told how far the other one has read, and there is less to lie about. The switch
//! keeps for itself what it has put and taken: of the process's line it reads the number of verdicts,
//! once for each look. Of digests there may be more than anybody takes: the process is told how many were
//! taken, and keeps to itself what has no room.

mod futex;
mod process;
mod switch;
#[cfg(test)]
mod tests;

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use nix::errno::Errno;
use p4::object::MAX_DIGEST;

use super::memory::Mapping;
pub(super) use process::ProcessEnd;
pub(super) use switch::SwitchEnd;

/// Descriptors put: free-running.
const PUT: usize = 0;
/// Messages sent on the control socket: the process looks there when it changes.
const MESSAGES: usize = 4;
/// What the process sleeps on.
const BELL: usize = 8;
/// Whether the switch sleeps.
const SWITCH_SLEEPS: usize = 12;
/// Digests taken: free-running.
const DIGESTS_TAKEN: usize = 16;
/// Verdicts put: free-running.
const ANSWERED: usize = 64;
/// Whether the process sleeps.
const PROCESS_SLEEPS: usize = 68;
/// Digests put: free-running.
const DIGESTS_PUT: usize = 72;
/// Digests that had no room, since the beginning.
const DIGESTS_LOST: usize = 76;
/// Where the descriptors begin. In front of them there is room ([`super::readings`]).
pub(super) const ENTRIES: usize = 4096;
const ENTRY: usize = 32;
/// Digests that there is room for: a power of two.
pub(super) const DIGESTS: u32 = 256;
/// A digest's head, and its bytes, in words.
const DIGEST_WORDS: usize = 1 + MAX_DIGEST as usize / 8;

/// A packet on its way to a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Descriptor {
    pub(super) slot: u32,
    pub(super) generation: u32,
    pub(super) start: u32,
    pub(super) length: u32,
    pub(super) port: u32,
    /// The packet's own time in nanoseconds, where it is not the machine's.
    pub(super) at_ns: Option<u64>,
}

/// What a process says of a packet. Any numbers at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reply {
    pub(super) slot: u32,
    pub(super) generation: u32,
    pub(super) start: u32,
    pub(super) length: u32,
    pub(super) verdict: u32,
    pub(super) port: u32,
    pub(super) has_clone: u32,
    pub(super) clone_port: u32,
}

fn join(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

fn halves(word: u64) -> (u32, u32) {
    (word as u32, (word >> 32) as u32)
}

/// The memory of both rings.
#[derive(Debug)]
pub(super) struct Rings {
    mapping: Mapping,
    /// A power of two.
    places: u32,
}

impl Rings {
    /// Bytes of rings with so many places each.
    pub(super) fn bytes(places: u32) -> usize {
        Self::digests(places) + DIGESTS as usize * DIGEST_WORDS * 8
    }

    /// Where digests begin.
    fn digests(places: u32) -> usize {
        ENTRIES + 2 * ENTRY * places as usize
    }

    pub(super) fn new(file: impl AsFd, places: u32) -> Result<Self, Errno> {
        if !places.is_power_of_two() {
            return Err(Errno::EINVAL);
        }
        Ok(Self { mapping: Mapping::new(file, Self::bytes(places))?, places })
    }

    fn word(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: aligned, since mappings begin with pages; both sides use atomics alone.
        unsafe { self.mapping.at(offset, 4).cast().as_ref() }
    }

    fn entry(&self, at: u32, is_reply: bool) -> &[AtomicU64; 4] {
        let at =
            (at & (self.places - 1)) as usize + if is_reply { self.places as usize } else { 0 };
        // SAFETY: as above.
        unsafe { self.mapping.at(ENTRIES + at * ENTRY, ENTRY).cast().as_ref() }
    }

    fn digest(&self, at: u32) -> &[AtomicU64; DIGEST_WORDS] {
        let at = (at & (DIGESTS - 1)) as usize * DIGEST_WORDS * 8;
        let memory = self.mapping.at(Self::digests(self.places) + at, DIGEST_WORDS * 8);
        // SAFETY: as above.
        unsafe { memory.cast().as_ref() }
    }

    fn write(&self, at: u32, is_reply: bool, words: [u64; 4]) {
        for (cell, word) in self.entry(at, is_reply).iter().zip(words) {
            cell.store(word, Ordering::Relaxed);
        }
    }

    fn read(&self, at: u32, is_reply: bool) -> [u64; 4] {
        let cells = self.entry(at, is_reply);
        std::array::from_fn(|one| cells[one].load(Ordering::Relaxed))
    }
}
