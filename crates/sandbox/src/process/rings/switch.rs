//! The switch's end, which believes nothing.

use std::sync::atomic::{Ordering, fence};

use p4::object::MAX_DIGEST;

use super::futex;
use super::{
    ANSWERED, BELL, DIGESTS, DIGESTS_LOST, DIGESTS_PUT, DIGESTS_TAKEN, Descriptor, MESSAGES,
    PROCESS_SLEEPS, PUT, Reply, Rings, SWITCH_SLEEPS, halves, join,
};

/// The switch's end.
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

    /// Puts a descriptor into the ring; the process does not see it yet.
    pub(in crate::process) fn put(&mut self, packet: Descriptor) {
        let Descriptor { slot, generation, start, length, port, at_ns } = packet;
        let has_time = u32::from(at_ns.is_some());
        let time = at_ns.unwrap_or_default();
        let words = [join(slot, generation), join(start, length), join(port, has_time), time];
        self.rings.write(self.put, false, words);
        self.put = self.put.wrapping_add(1);
    }

    /// Shows what has been put, and wakes the process if it sleeps.
    pub(in crate::process) fn show(&mut self) {
        if self.shown != self.put {
            self.shown = self.put;
            self.rings.word(PUT).store(self.put, Ordering::Release);
            self.wake();
        }
    }

    /// Says that there is a message on the control socket.
    pub(in crate::process) fn announce(&self) {
        self.rings.word(MESSAGES).fetch_add(1, Ordering::Release);
        self.wake();
    }

    fn wake(&self) {
        // Together with the one in `sleep`: either the process sees what is new, or we that it sleeps.
        fence(Ordering::SeqCst);
        let sleeps = self.rings.word(PROCESS_SLEEPS);
        if sleeps.load(Ordering::Relaxed) != 0 {
            sleeps.store(0, Ordering::Relaxed);
            let bell = self.rings.word(BELL);
            bell.fetch_add(1, Ordering::Release);
            futex::wake(bell);
        }
    }

    /// The number of verdicts that there are; none if there cannot be so many.
    pub(in crate::process) fn answered(&self) -> Option<u32> {
        let all = self.rings.word(ANSWERED).load(Ordering::Acquire);
        let new = all.wrapping_sub(self.taken);
        (new <= self.shown.wrapping_sub(self.taken)).then_some(new)
    }

    /// The next verdict, which is known to be there.
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

    /// The number of digests that there are; none if there cannot be so many.
    pub(in crate::process) fn digests(&self) -> Option<u32> {
        let all = self.rings.word(DIGESTS_PUT).load(Ordering::Acquire);
        let new = all.wrapping_sub(self.digests);
        (new <= DIGESTS).then_some(new)
    }

    /// The next digest, which is known to be there: its id, how many of its bytes count, and all of them.
    /// Any numbers at all.
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

    /// Tells the process which digests were taken.
    pub(in crate::process) fn took_digests(&self) {
        self.rings.word(DIGESTS_TAKEN).store(self.digests, Ordering::Release);
    }

    /// The number of digests that had no room, as the process says.
    pub(in crate::process) fn lost_digests(&self) -> u32 {
        self.rings.word(DIGESTS_LOST).load(Ordering::Relaxed)
    }

    /// Asks the process to wake us; false if there is a verdict already, and no need to sleep.
    pub(in crate::process) fn ask(&self) -> bool {
        self.rings.word(SWITCH_SLEEPS).store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        self.rings.word(ANSWERED).load(Ordering::Relaxed) == self.taken
    }
}
