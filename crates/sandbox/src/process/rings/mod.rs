//! The descriptor rings between a switch and a sandbox process, in memory that both can write.
//!
//! ```text
//!    0  the switch's cache line: descriptors put (u32), messages sent (u32), doorbell (u32),
//!       "wake me" (u32), digests taken (u32)
//!   64  the process's cache line: verdicts put (u32), "wake me" (u32), digests put (u32),
//!       digests lost (u32)
//! 4096  descriptors, 32 bytes each, then as many verdicts, then 256 digests: id (u32),
//!       length (u32), and 256 bytes
//! ```
//!
//! At most as many packets are in flight as a ring has entries, and each verdict belongs to one of
//! them. So neither side has to publish its consumer index, which leaves fewer shared fields to
//! validate. The switch keeps its own indexes private; of the process's cache line, it reads the
//! number of verdicts, once per poll. There can be more digests than the switch takes, so their
//! consumer index is published, and the process drops the excess.

mod futex;
mod process;
mod switch;
#[cfg(test)]
mod tests;

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use nix::errno::Errno;
use p4_object::MAX_DIGEST;

use super::memory::Mapping;
pub(super) use process::ProcessEnd;
pub(super) use switch::SwitchEnd;

/// Producer index of descriptors; free-running.
const PUT: usize = 0;
/// Number of messages sent on the control socket. The process reads the socket when it changes.
const MESSAGES: usize = 4;
/// Futex word on which the process sleeps.
const BELL: usize = 8;
/// Nonzero while the switch sleeps.
const SWITCH_SLEEPS: usize = 12;
/// Consumer index of digests; free-running.
const DIGESTS_TAKEN: usize = 16;
/// Producer index of verdicts; free-running.
const ANSWERED: usize = 64;
/// Nonzero while the process sleeps.
const PROCESS_SLEEPS: usize = 68;
/// Producer index of digests; free-running.
const DIGESTS_PUT: usize = 72;
/// Number of digests dropped since the start of the process.
const DIGESTS_LOST: usize = 76;
/// Offset of the descriptors. The space before it also holds [`super::readings`].
pub(super) const ENTRIES: usize = 4096;
const ENTRY: usize = 32;
/// Capacity of the digest ring; a power of two.
pub(super) const DIGESTS: u32 = 256;
/// Size of a digest entry in words: header and payload.
const DIGEST_WORDS: usize = 1 + MAX_DIGEST as usize / 8;

/// Descriptor of a packet in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Descriptor {
    pub(super) slot: u32,
    pub(super) generation: u32,
    pub(super) start: u32,
    pub(super) length: u32,
    pub(super) port: u32,
    /// Time of the packet in nanoseconds, if it differs from the host time.
    pub(super) at_ns: Option<u64>,
}

/// Verdict as written by the process. Untrusted: any field may have any value.
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

/// Shared memory of the rings.
#[derive(Debug)]
pub(super) struct Rings {
    mapping: Mapping,
    /// Capacity; a power of two.
    places: u32,
}

impl Rings {
    /// Memory in bytes of rings with this capacity.
    pub(super) fn bytes(places: u32) -> usize {
        Self::digests(places) + DIGESTS as usize * DIGEST_WORDS * 8
    }

    /// Offset of the digests.
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
        // SAFETY: the word is aligned, since mappings are page-aligned; both sides use only
        // atomics.
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
