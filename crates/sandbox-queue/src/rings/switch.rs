//! Packet end of the switch, which does not trust the process.

use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use super::{ANSWERED, Descriptor, PUT, Reply, Rings, SWITCH_SLEEPS, USED, halves, join};

/// End of one queue on the side of the switch.
#[derive(Debug)]
pub struct SwitchEnd {
    rings: Arc<Rings>,
    queue: u32,
    put: u32,
    shown: u32,
    taken: u32,
}

impl SwitchEnd {
    /// Opens a queue of a process. No one else uses it, and it is [quiet](Rings::is_quiet).
    ///
    /// # Panics
    ///
    /// If the queue does not exist.
    pub fn new(rings: Arc<Rings>, queue: u32) -> Self {
        assert!(queue < rings.queues, "queue {queue} of {}", rings.queues);
        rings.word(USED).fetch_or(1 << queue, Ordering::Relaxed);
        // Goes on where an earlier user ended. A process that has changed the index harms itself.
        let put = rings.queue_word(queue, PUT).load(Ordering::Acquire);
        Self { rings, queue, put, shown: put, taken: put }
    }

    /// Puts a descriptor into the ring, not yet published.
    pub fn put(&mut self, packet: Descriptor) {
        let Descriptor { slot, generation, start, length, port, at_ns } = packet;
        let has_time = u32::from(at_ns.is_some());
        let time = at_ns.unwrap_or_default();
        let words = [join(slot, generation), join(start, length), join(port, has_time), time];
        self.rings.write(self.queue, self.put, false, words);
        self.put = self.put.wrapping_add(1);
    }

    /// Publishes all descriptors put so far, and wakes the process if it sleeps.
    pub fn show(&mut self) {
        if self.shown != self.put {
            self.shown = self.put;
            self.rings.queue_word(self.queue, PUT).store(self.put, Ordering::Release);
            self.rings.wake();
        }
    }

    /// Number of pending verdicts; `None` if the index is invalid.
    pub fn answered(&self) -> Option<u32> {
        let all = self.rings.queue_word(self.queue, ANSWERED).load(Ordering::Acquire);
        let new = all.wrapping_sub(self.taken);
        (new <= self.shown.wrapping_sub(self.taken)).then_some(new)
    }

    /// Takes the next verdict, which must be pending.
    pub fn take(&mut self) -> Reply {
        let [packet, place, act, clone] = self.rings.read(self.queue, self.taken, true).map(halves);
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

    /// Asks the process for a wake-up. Returns false if a verdict is already pending.
    pub fn ask(&self) -> bool {
        self.rings.word(SWITCH_SLEEPS).store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let answered = self.rings.queue_word(self.queue, ANSWERED);
        answered.load(Ordering::Relaxed) == self.taken
    }
}
