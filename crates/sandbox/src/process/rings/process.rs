//! Ring end of the process.

use std::sync::atomic::{Ordering, fence};
use std::time::Duration;

use super::futex;
use super::{
    ANSWERED, BELL, DIGESTS, DIGESTS_LOST, DIGESTS_PUT, DIGESTS_TAKEN, Descriptor, MESSAGES,
    PROCESS_SLEEPS, PUT, Reply, Rings, SWITCH_SLEEPS, halves, join,
};

/// Ring end of the process, which trusts the switch.
#[derive(Debug)]
pub(in crate::process) struct ProcessEnd {
    pub(super) rings: Rings,
    taken: u32,
    answered: u32,
    messages: u32,
    digests: u32,
    lost: u32,
}

impl ProcessEnd {
    pub(in crate::process) fn new(rings: Rings) -> Self {
        Self { rings, taken: 0, answered: 0, messages: 0, digests: 0, lost: 0 }
    }

    /// Number of pending descriptors.
    pub(in crate::process) fn waiting(&self) -> u32 {
        self.rings.word(PUT).load(Ordering::Acquire).wrapping_sub(self.taken)
    }

    /// Takes the next descriptor, which must be pending.
    pub(in crate::process) fn take(&mut self) -> Descriptor {
        let [packet, place, port, time] = self.rings.read(self.taken, false);
        let [packet, place, port] = [packet, place, port].map(halves);
        self.taken = self.taken.wrapping_add(1);
        Descriptor {
            slot: packet.0,
            generation: packet.1,
            start: place.0,
            length: place.1,
            port: port.0,
            at_ns: (port.1 != 0).then_some(time),
        }
    }

    /// Puts a verdict into the ring, not yet published.
    pub(in crate::process) fn put(&mut self, reply: Reply) {
        let words = [
            join(reply.slot, reply.generation),
            join(reply.start, reply.length),
            join(reply.port, reply.verdict),
            join(reply.clone_port, reply.has_clone),
        ];
        self.rings.write(self.answered, true, words);
        self.answered = self.answered.wrapping_add(1);
    }

    /// Puts a digest of at most 256 bytes into the ring, not yet published. Counts it as lost if
    /// the ring is full.
    pub(in crate::process) fn put_digest(&mut self, id: u32, data: &[u8]) {
        let taken = self.rings.word(DIGESTS_TAKEN).load(Ordering::Acquire);
        if self.digests.wrapping_sub(taken) >= DIGESTS {
            return self.lose_digests(1);
        }
        let [head, words @ ..] = self.rings.digest(self.digests);
        head.store(join(id, data.len() as u32), Ordering::Relaxed);
        for (word, part) in words.iter().zip(data.chunks(8)) {
            let mut eight = [0; 8];
            eight[..part.len()].copy_from_slice(part);
            word.store(u64::from_le_bytes(eight), Ordering::Relaxed);
        }
        self.digests = self.digests.wrapping_add(1);
    }

    /// Announces digests that do not exist.
    #[cfg(test)]
    pub(in crate::process) fn claim_digests(&mut self, count: u32) {
        self.digests = self.digests.wrapping_add(count);
    }

    /// Counts digests as lost.
    pub(in crate::process) fn lose_digests(&mut self, count: u32) {
        self.lost = self.lost.wrapping_add(count);
        self.rings.word(DIGESTS_LOST).store(self.lost, Ordering::Relaxed);
    }

    /// Publishes all entries put so far. Returns true if the switch sleeps and has to be woken.
    pub(in crate::process) fn show(&self) -> bool {
        self.rings.word(DIGESTS_PUT).store(self.digests, Ordering::Release);
        self.rings.word(ANSWERED).store(self.answered, Ordering::Release);
        fence(Ordering::SeqCst);
        let sleeps = self.rings.word(SWITCH_SLEEPS);
        let is_asked = sleeps.load(Ordering::Relaxed) != 0;
        if is_asked {
            sleeps.store(0, Ordering::Relaxed);
        }
        is_asked
    }

    /// True if a message has been announced and not yet taken.
    pub(in crate::process) fn has_message(&self) -> bool {
        self.rings.word(MESSAGES).load(Ordering::Acquire) != self.messages
    }

    /// Marks one message as taken.
    pub(in crate::process) fn took_message(&mut self) {
        self.messages = self.messages.wrapping_add(1);
    }

    /// Sleeps until there is work, or until the timeout.
    pub(in crate::process) fn sleep(&self, most: Duration) {
        let bell = self.rings.word(BELL);
        let before = bell.load(Ordering::Acquire);
        let sleeps = self.rings.word(PROCESS_SLEEPS);
        sleeps.store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if self.waiting() == 0 && !self.has_message() {
            futex::wait(bell, before, most);
        }
        sleeps.store(0, Ordering::Relaxed);
    }
}
