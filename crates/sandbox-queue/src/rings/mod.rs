//! The rings of a sandbox process, in memory that the switch and the process can write.
//!
//! ```text
//!     0  written by the switch: queues in use (u32, a bit each), messages sent (u32), doorbell
//!        (u32), "wake me" (u32), digests taken (u32)
//!    64  written by the process: "wake me" (u32), digests put (u32), digests lost (u32)
//!  1024  readings of the tenant's VM
//!  8192  256 digests: id (u32), length (u32), and 256 bytes
//! 75776  queues:
//!          0  written by the switch: descriptors put (u32)
//!         64  written by the process: verdicts put (u32)
//!        128  descriptors, 32 bytes each, then as many verdicts
//! ```
//!
//! At most as many packets are in flight in a queue as a ring has entries, and each verdict belongs
//! to one of them. So neither side has to publish its consumer index, which leaves fewer shared
//! fields to validate. The switch keeps its own indexes private; of a queue's words that the process
//! writes, it reads the number of verdicts, once per poll. There can be more digests than the switch
//! takes, so their consumer index is published, and the process drops the excess.

mod futex;
mod notices;
mod process;
mod switch;
#[cfg(test)]
mod tests;

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use nix::errno::Errno;
use p4_object::MAX_DIGEST;

use crate::memory::Mapping;
pub use notices::Notices;
pub use process::ProcessEnd;
pub use switch::SwitchEnd;

/// Maximum number of queues of a process.
pub const MAX_QUEUES: u32 = 32;
/// Size of the header in bytes. From byte 1024 on, it is free for other uses.
pub const HEADER: usize = 8192;

/// Queues that the switch uses, a bit each.
const USED: usize = 0;
/// Number of messages sent on the control socket. The process reads the socket when it changes.
const MESSAGES: usize = 4;
/// Futex word on which the process sleeps.
const BELL: usize = 8;
/// Nonzero while the switch sleeps.
const SWITCH_SLEEPS: usize = 12;
/// Consumer index of digests; free-running.
const DIGESTS_TAKEN: usize = 16;
/// Nonzero while the process sleeps.
const PROCESS_SLEEPS: usize = 64;
/// Producer index of digests; free-running.
const DIGESTS_PUT: usize = 68;
/// Number of digests dropped since the start of the process.
const DIGESTS_LOST: usize = 72;

/// Capacity of the digest ring; a power of two.
const DIGESTS: u32 = 256;
/// Size of a digest entry in words: header and payload.
const DIGEST_WORDS: usize = 1 + MAX_DIGEST as usize / 8;
const QUEUES: usize = HEADER + DIGESTS as usize * DIGEST_WORDS * 8;

/// In a queue: producer index of descriptors; free-running.
const PUT: usize = 0;
/// In a queue: producer index of verdicts; free-running.
const ANSWERED: usize = 64;
/// In a queue: offset of the descriptors.
const ENTRIES: usize = 128;
const ENTRY: usize = 32;

/// Descriptor of a packet in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Descriptor {
    /// Frame.
    pub slot: u32,
    /// Number of packets submitted in this frame, modulo 2^32.
    pub generation: u32,
    /// Offset of the packet in its frame.
    pub start: u32,
    /// Length in bytes.
    pub length: u32,
    /// Ingress port.
    pub port: u32,
    /// Time of the packet in nanoseconds, if it differs from the host time.
    pub at_ns: Option<u64>,
}

/// Verdict as written by the process. Untrusted: any field may have any value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reply {
    /// Frame.
    pub slot: u32,
    /// Generation of the descriptor.
    pub generation: u32,
    /// New offset of the packet in its frame.
    pub start: u32,
    /// New length.
    pub length: u32,
    /// Verdict and its port, encoded by [`Code`](crate::Code).
    pub verdict: u32,
    /// Egress port of a redirected packet.
    pub port: u32,
    /// 1 if there is a clone, otherwise 0.
    pub has_clone: u32,
    /// Egress port of the clone.
    pub clone_port: u32,
}

fn join(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

fn halves(word: u64) -> (u32, u32) {
    (word as u32, (word >> 32) as u32)
}

/// Shared memory of the rings.
#[derive(Debug)]
pub struct Rings {
    mapping: Mapping,
    /// Capacity of each ring; a power of two.
    places: u32,
    queues: u32,
}

impl Rings {
    /// Memory in bytes of `queues` queues with this capacity.
    pub fn bytes(places: u32, queues: u32) -> usize {
        QUEUES + queues as usize * Self::queue_bytes(places)
    }

    fn queue_bytes(places: u32) -> usize {
        ENTRIES + 2 * ENTRY * places as usize
    }

    /// Maps the rings in a memfd.
    ///
    /// # Errors
    ///
    /// Fails if the memory cannot be mapped. Returns `EINVAL` if it is too small, if `places` is
    /// not a power of two, or if there are no or too many queues.
    pub fn new(file: impl AsFd, places: u32, queues: u32) -> Result<Self, Errno> {
        Self::mapped(places, queues, |size| Mapping::new(file, size))
    }

    /// Like [`Rings::new`], in memory that `map` maps.
    ///
    /// # Errors
    ///
    /// As [`Rings::new`].
    pub fn mapped(
        places: u32,
        queues: u32,
        map: impl FnOnce(usize) -> Result<Mapping, Errno>,
    ) -> Result<Self, Errno> {
        if !places.is_power_of_two() || !(1..=MAX_QUEUES).contains(&queues) {
            return Err(Errno::EINVAL);
        }
        Ok(Self { mapping: map(Self::bytes(places, queues))?, places, queues })
    }

    /// Returns true if the process has answered all packets of a queue.
    pub fn is_quiet(&self, queue: u32) -> bool {
        let word = |offset| self.queue_word(queue, offset).load(Ordering::Acquire);
        queue < self.queues && word(PUT) == word(ANSWERED)
    }

    /// Number of verdicts of a queue, modulo 2^32, as the process says; 0 if there is no such queue.
    pub fn verdicts(&self, queue: u32) -> u32 {
        match queue < self.queues {
            true => self.queue_word(queue, ANSWERED).load(Ordering::Acquire),
            false => 0,
        }
    }

    fn word(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: the word is aligned, since mappings are page-aligned; both sides use only
        // atomics.
        unsafe { self.mapping.at(offset, 4).cast().as_ref() }
    }

    fn queue(&self, queue: u32) -> usize {
        QUEUES + queue as usize * Self::queue_bytes(self.places)
    }

    fn queue_word(&self, queue: u32, offset: usize) -> &AtomicU32 {
        self.word(self.queue(queue) + offset)
    }

    fn entry(&self, queue: u32, at: u32, is_reply: bool) -> &[AtomicU64; 4] {
        let at =
            (at & (self.places - 1)) as usize + if is_reply { self.places as usize } else { 0 };
        // SAFETY: as above.
        unsafe { self.mapping.at(self.queue(queue) + ENTRIES + at * ENTRY, ENTRY).cast().as_ref() }
    }

    fn digest(&self, at: u32) -> &[AtomicU64; DIGEST_WORDS] {
        let at = (at & (DIGESTS - 1)) as usize * DIGEST_WORDS * 8;
        let memory = self.mapping.at(HEADER + at, DIGEST_WORDS * 8);
        // SAFETY: as above.
        unsafe { memory.cast().as_ref() }
    }

    fn write(&self, queue: u32, at: u32, is_reply: bool, words: [u64; 4]) {
        for (cell, word) in self.entry(queue, at, is_reply).iter().zip(words) {
            cell.store(word, Ordering::Relaxed);
        }
    }

    fn read(&self, queue: u32, at: u32, is_reply: bool) -> [u64; 4] {
        let cells = self.entry(queue, at, is_reply);
        std::array::from_fn(|one| cells[one].load(Ordering::Relaxed))
    }

    /// Wakes the process if it sleeps.
    fn wake(&self) {
        // Pairs with the fence in `ProcessEnd::sleep`: either the process sees the new entries, or
        // we see that it sleeps.
        fence(Ordering::SeqCst);
        let sleeps = self.word(PROCESS_SLEEPS);
        if sleeps.load(Ordering::Relaxed) != 0 {
            sleeps.store(0, Ordering::Relaxed);
            let bell = self.word(BELL);
            bell.fetch_add(1, Ordering::Release);
            futex::wake(bell);
        }
    }
}
