//! Ring end of the switch, which does not trust the process.

use std::sync::atomic::{Ordering, fence};

use p4_object::MAX_DIGEST;

use super::futex;
use super::{
    ANSWERED, BELL, DIGESTS, DIGESTS_LOST, DIGESTS_PUT, DIGESTS_TAKEN, Descriptor, MESSAGES,
    PROCESS_SLEEPS, PUT, Reply, Rings, SWITCH_SLEEPS, halves, join,
};

/// Ring end of the switch.
#[derive(Debug)]
pub(in crate::process) struct SwitchEnd {
    rings: Rings,
    put: u32,
    shown: u32,
    taken: u32,
    digests: u32,
}

impl SwitchEnd {
    pub(in crate::process) fn new(rings: Rings) -> Self {
        Self { rings, put: 0, shown: 0, taken: 0, digests: 0 }
    }

    /// Puts a descriptor into the ring, not yet published.
    pub(in crate::process) fn put(&mut self, packet: Descriptor) {
        let Descriptor { slot, generation, start, length, port, at_ns } = packet;
        let has_time = u32::from(at_ns.is_some());
        let time = at_ns.unwrap_or_default();
        let words = [join(slot, generation), join(start, length), join(port, has_time), time];
        self.rings.write(self.put, false, words);
        self.put = self.put.wrapping_add(1);
    }

    /// Publishes all descriptors put so far, and wakes the process if it sleeps.
    pub(in crate::process) fn show(&mut self) {
        if self.shown != self.put {
            self.shown = self.put;
            self.rings.word(PUT).store(self.put, Ordering::Release);
            self.wake();
        }
    }

    /// Announces a message on the control socket.
    pub(in crate::process) fn announce(&self) {
        self.rings.word(MESSAGES).fetch_add(1, Ordering::Release);
        self.wake();
    }

    fn wake(&self) {
        // Pairs with the fence in `sleep`: either the process sees the new entries, or we see that
        // it sleeps.
        fence(Ordering::SeqCst);
        let sleeps = self.rings.word(PROCESS_SLEEPS);
        if sleeps.load(Ordering::Relaxed) != 0 {
            sleeps.store(0, Ordering::Relaxed);
            let bell = self.rings.word(BELL);
            bell.fetch_add(1, Ordering::Release);
            futex::wake(bell);
        }
    }

    /// Number of pending verdicts; `None` if the index is invalid.
    pub(in crate::process) fn answered(&self) -> Option<u32> {
        let all = self.rings.word(ANSWERED).load(Ordering::Acquire);
        let new = all.wrapping_sub(self.taken);
        (new <= self.shown.wrapping_sub(self.taken)).then_some(new)
    }

    /// Takes the next verdict, which must be pending.
    pub(in crate::process) fn take(&mut self) -> Reply {
        let [packet, place, act, clone] = self.rings.read(self.taken, true).map(halves);
        self.taken = self.taken.wrapping_add(1);
        Reply {
            slot: packet.0,
            generation: packet.1,
            start: place.0,
            length: place.1,
            port: act.0,
            verdict: act.1,
            clone_port: clone.0,
            has_clone: clone.1,
        }
    }

    /// Number of pending digests; `None` if the index is invalid.
    pub(in crate::process) fn digests(&self) -> Option<u32> {
        let all = self.rings.word(DIGESTS_PUT).load(Ordering::Acquire);
        let new = all.wrapping_sub(self.digests);
        (new <= DIGESTS).then_some(new)
    }

    /// Takes the next digest, which must be pending: its id, its length, and the whole buffer.
    /// Untrusted: id and length may have any value.
    pub(in crate::process) fn take_digest(&mut self) -> (u32, u32, [u8; MAX_DIGEST as usize]) {
        let [head, words @ ..] = self.rings.digest(self.digests);
        let (id, length) = halves(head.load(Ordering::Relaxed));
        let mut bytes = [0; MAX_DIGEST as usize];
        for (eight, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *eight = word.load(Ordering::Relaxed).to_le_bytes();
        }
        self.digests = self.digests.wrapping_add(1);
        (id, length, bytes)
    }

    /// Publishes the consumer index of digests.
    pub(in crate::process) fn took_digests(&self) {
        self.rings.word(DIGESTS_TAKEN).store(self.digests, Ordering::Release);
    }

    /// Number of lost digests as reported by the process.
    pub(in crate::process) fn lost_digests(&self) -> u32 {
        self.rings.word(DIGESTS_LOST).load(Ordering::Relaxed)
    }

    /// Asks the process for a wake-up. Returns false if a verdict is already pending.
    pub(in crate::process) fn ask(&self) -> bool {
        self.rings.word(SWITCH_SLEEPS).store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        self.rings.word(ANSWERED).load(Ordering::Relaxed) == self.taken
    }
}
