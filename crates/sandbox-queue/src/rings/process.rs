//! Ring end of the process.

use std::sync::atomic::{Ordering, fence};
use std::time::Duration;

use super::futex;
use super::{
    ANSWERED, BELL, DIGESTS, DIGESTS_LOST, DIGESTS_PUT, DIGESTS_TAKEN, Descriptor, MAX_QUEUES,
    MESSAGES, PROCESS_SLEEPS, PUT, Reply, Rings, SWITCH_SLEEPS, USED, halves, join,
};

/// Ring end of the process, which trusts the switch.
#[derive(Debug)]
pub struct ProcessEnd {
    pub(super) rings: Rings,
    queues: [Queue; MAX_QUEUES as usize],
    messages: u32,
    digests: u32,
    lost: u32,
}

#[derive(Debug, Clone, Copy, Default)]
struct Queue {
    taken: u32,
    answered: u32,
}

impl ProcessEnd {
    /// Uses the rings for the first time.
    pub fn new(rings: Rings) -> Self {
        let queues = [Queue::default(); MAX_QUEUES as usize];
        Self { rings, queues, messages: 0, digests: 0, lost: 0 }
    }

    /// Numbers of the queues that the switch uses.
    pub fn queues(&self) -> impl Iterator<Item = u32> + use<> {
        let used = self.rings.word(USED).load(Ordering::Relaxed);
        (0..self.rings.queues).filter(move |queue| used & 1 << queue != 0)
    }

    /// Number of pending descriptors of a queue.
    pub fn waiting(&self, queue: u32) -> u32 {
        let put = self.rings.queue_word(queue, PUT).load(Ordering::Acquire);
        put.wrapping_sub(self.queues[queue as usize].taken)
    }

    /// Returns true if a queue has pending descriptors.
    pub fn has_packets(&self) -> bool {
        self.queues().any(|queue| self.waiting(queue) > 0)
    }

    /// Takes the next descriptor, which must be pending.
    pub fn take(&mut self, queue: u32) -> Descriptor {
        let taken = &mut self.queues[queue as usize].taken;
        let [packet, place, port, time] = self.rings.read(queue, *taken, false);
        let [packet, place, port] = [packet, place, port].map(halves);
        *taken = taken.wrapping_add(1);
        Descriptor {
            slot: packet.0,
            generation: packet.1,
            start: place.0,
            length: place.1,
            port: port.0,
            at_ns: (port.1 != 0).then_some(time),
        }
    }

    /// Puts a verdict into the ring of a queue, not yet published.
    pub fn put(&mut self, queue: u32, reply: Reply) {
        let words = [
            join(reply.slot, reply.generation),
            join(reply.start, reply.length),
            join(reply.port, reply.verdict),
            join(reply.clone_port, reply.has_clone),
        ];
        let answered = &mut self.queues[queue as usize].answered;
        self.rings.write(queue, *answered, true, words);
        *answered = answered.wrapping_add(1);
    }

    /// Puts a digest of at most 256 bytes into the ring, not yet published. Counts it as lost if
    /// the ring is full.
    pub fn put_digest(&mut self, id: u32, data: &[u8]) {
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

    /// Announces digests that do not exist, for tests of the switch.
    #[doc(hidden)]
    pub fn claim_digests(&mut self, count: u32) {
        self.digests = self.digests.wrapping_add(count);
    }

    /// Counts digests as lost.
    pub fn lose_digests(&mut self, count: u32) {
        self.lost = self.lost.wrapping_add(count);
        self.rings.word(DIGESTS_LOST).store(self.lost, Ordering::Relaxed);
    }

    /// Publishes all digests, and all verdicts of a queue. Returns true if the switch sleeps and
    /// has to be woken.
    pub fn show(&self, queue: u32) -> bool {
        self.rings.word(DIGESTS_PUT).store(self.digests, Ordering::Release);
        let answered = self.queues[queue as usize].answered;
        self.rings.queue_word(queue, ANSWERED).store(answered, Ordering::Release);
        self.wakes_switch()
    }

    /// Publishes all digests. Returns true if there are new ones, and the switch sleeps and has to be
    /// woken.
    pub fn show_digests(&self) -> bool {
        let put = self.rings.word(DIGESTS_PUT);
        let is_new = put.load(Ordering::Relaxed) != self.digests;
        if is_new {
            put.store(self.digests, Ordering::Release);
        }
        is_new && self.wakes_switch()
    }

    /// Returns true if the switch sleeps, and only once.
    fn wakes_switch(&self) -> bool {
        fence(Ordering::SeqCst);
        let sleeps = self.rings.word(SWITCH_SLEEPS);
        let is_asked = sleeps.load(Ordering::Relaxed) != 0;
        if is_asked {
            sleeps.store(0, Ordering::Relaxed);
        }
        is_asked
    }

    /// True if a message has been announced and not yet taken.
    pub fn has_message(&self) -> bool {
        self.rings.word(MESSAGES).load(Ordering::Acquire) != self.messages
    }

    /// Marks one message as taken.
    pub fn took_message(&mut self) {
        self.messages = self.messages.wrapping_add(1);
    }

    /// Sleeps until there is work, or until the timeout.
    pub fn sleep(&self, most: Duration) {
        let bell = self.rings.word(BELL);
        let before = bell.load(Ordering::Acquire);
        let sleeps = self.rings.word(PROCESS_SLEEPS);
        sleeps.store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if !self.has_packets() && !self.has_message() {
            futex::wait(bell, before, most);
        }
        sleeps.store(0, Ordering::Relaxed);
    }
}
