//! The two rings between a switch and a tenant's process, in memory that both can write.
//!
//! ```text
//!    0  the switch's line: descriptors put (u32), messages sent (u32), bell (u32), "wake me" (u32)
//!   64  the process's line: verdicts put (u32), "wake me" (u32)
//! 4096  descriptors, 32 bytes each, then as many verdicts
//! ```
//!
//! There are no more packets on their way than a ring has places, and each verdict is of one of them. So
//! neither side has to be told how far the other one has read, and there is less to lie about. The switch
//! keeps for itself what it has put and taken: of the process's line it reads the number of verdicts,
//! once for each look.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use std::time::Duration;

use nix::errno::Errno;

use super::memory::Mapping;

/// Descriptors put: free-running.
const PUT: usize = 0;
/// Messages sent on the control socket: the process looks there when it changes.
const MESSAGES: usize = 4;
/// What the process sleeps on.
const BELL: usize = 8;
/// Whether the switch sleeps.
const SWITCH_SLEEPS: usize = 12;
/// Verdicts put: free-running.
const ANSWERED: usize = 64;
/// Whether the process sleeps.
const PROCESS_SLEEPS: usize = 68;
/// Where the descriptors begin. In front of them there is room ([`super::readings`]).
pub(super) const ENTRIES: usize = 4096;
const ENTRY: usize = 32;

/// A packet on its way to a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Descriptor {
    pub(super) slot: u32,
    pub(super) generation: u32,
    pub(super) start: u32,
    pub(super) length: u32,
    pub(super) port: u32,
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

/// The switch's end.
#[derive(Debug)]
pub(super) struct SwitchEnd {
    rings: Rings,
    put: u32,
    shown: u32,
    taken: u32,
}

impl SwitchEnd {
    pub(super) fn new(rings: Rings) -> Self {
        Self { rings, put: 0, shown: 0, taken: 0 }
    }

    /// Puts a descriptor into the ring; the process does not see it yet.
    pub(super) fn put(&mut self, packet: Descriptor) {
        let Descriptor { slot, generation, start, length, port } = packet;
        let words = [join(slot, generation), join(start, length), join(port, 0), 0];
        self.rings.write(self.put, false, words);
        self.put = self.put.wrapping_add(1);
    }

    /// Shows what has been put, and wakes the process if it sleeps.
    pub(super) fn show(&mut self) {
        if self.shown != self.put {
            self.shown = self.put;
            self.rings.word(PUT).store(self.put, Ordering::Release);
            self.wake();
        }
    }

    /// Says that there is a message on the control socket.
    pub(super) fn announce(&self) {
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
            futex_wake(bell);
        }
    }

    /// The number of verdicts that there are; none if there cannot be so many.
    pub(super) fn answered(&self) -> Option<u32> {
        let all = self.rings.word(ANSWERED).load(Ordering::Acquire);
        let new = all.wrapping_sub(self.taken);
        (new <= self.shown.wrapping_sub(self.taken)).then_some(new)
    }

    /// The next verdict, which is known to be there.
    pub(super) fn take(&mut self) -> Reply {
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

    /// Asks the process to wake us; false if there is a verdict already, and no need to sleep.
    pub(super) fn ask(&self) -> bool {
        self.rings.word(SWITCH_SLEEPS).store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        self.rings.word(ANSWERED).load(Ordering::Relaxed) == self.taken
    }
}

/// The process's end, which believes the switch.
#[derive(Debug)]
pub(super) struct ProcessEnd {
    rings: Rings,
    taken: u32,
    answered: u32,
    messages: u32,
}

impl ProcessEnd {
    pub(super) fn new(rings: Rings) -> Self {
        Self { rings, taken: 0, answered: 0, messages: 0 }
    }

    /// The number of descriptors that there are.
    pub(super) fn waiting(&self) -> u32 {
        self.rings.word(PUT).load(Ordering::Acquire).wrapping_sub(self.taken)
    }

    /// The next one, which is known to be there.
    pub(super) fn take(&mut self) -> Descriptor {
        let [packet, place, port, _] = self.rings.read(self.taken, false).map(halves);
        self.taken = self.taken.wrapping_add(1);
        Descriptor {
            slot: packet.0,
            generation: packet.1,
            start: place.0,
            length: place.1,
            port: port.0,
        }
    }

    /// Puts a verdict into the ring; the switch does not see it yet.
    pub(super) fn put(&mut self, reply: Reply) {
        let words = [
            join(reply.slot, reply.generation),
            join(reply.start, reply.length),
            join(reply.port, reply.verdict),
            join(reply.clone_port, reply.has_clone),
        ];
        self.rings.write(self.answered, true, words);
        self.answered = self.answered.wrapping_add(1);
    }

    /// Shows what has been put. True if the switch sleeps, and is to be woken.
    pub(super) fn show(&self) -> bool {
        self.rings.word(ANSWERED).store(self.answered, Ordering::Release);
        fence(Ordering::SeqCst);
        let sleeps = self.rings.word(SWITCH_SLEEPS);
        let is_asked = sleeps.load(Ordering::Relaxed) != 0;
        if is_asked {
            sleeps.store(0, Ordering::Relaxed);
        }
        is_asked
    }

    /// Whether a message has been sent that has not been taken.
    pub(super) fn has_message(&self) -> bool {
        self.rings.word(MESSAGES).load(Ordering::Acquire) != self.messages
    }

    /// One message is taken.
    pub(super) fn took_message(&mut self) {
        self.messages = self.messages.wrapping_add(1);
    }

    /// Sleeps until something is new, or the time is over.
    pub(super) fn sleep(&self, most: Duration) {
        let bell = self.rings.word(BELL);
        let before = bell.load(Ordering::Acquire);
        let sleeps = self.rings.word(PROCESS_SLEEPS);
        sleeps.store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if self.waiting() == 0 && !self.has_message() {
            futex_wait(bell, before, most);
        }
        sleeps.store(0, Ordering::Relaxed);
    }
}

/// Sleeps as long as the word has this value; may return without a reason.
fn futex_wait(word: &AtomicU32, value: u32, most: Duration) {
    let most = libc::timespec {
        tv_sec: i64::try_from(most.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(most.subsec_nanos()),
    };
    // SAFETY: the word and the time are there as long as the call.
    unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, value, &raw const most);
    }
}

fn futex_wake(word: &AtomicU32) {
    // SAFETY: the word is there as long as the call.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, 1) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::memory::sealed;

    fn ends(places: u32) -> (SwitchEnd, ProcessEnd) {
        let file = sealed("rings", Rings::bytes(places)).unwrap();
        let rings = || Rings::new(&file, places).unwrap();
        (SwitchEnd::new(rings()), ProcessEnd::new(rings()))
    }

    fn descriptor(slot: u32) -> Descriptor {
        Descriptor { slot, generation: 2, start: 3, length: 4, port: 5 }
    }

    fn reply(slot: u32) -> Reply {
        Reply {
            slot,
            generation: 2,
            start: 3,
            length: 4,
            verdict: 5,
            port: 6,
            has_clone: 1,
            clone_port: 7,
        }
    }

    #[test]
    fn what_is_put_is_taken_once_it_is_shown() {
        let (mut switch, mut process) = ends(4);
        for round in 0..9 {
            switch.put(descriptor(round));
            assert_eq!(process.waiting(), 0);
            switch.show();
            assert_eq!(process.waiting(), 1);
            assert_eq!(process.take(), descriptor(round));
            process.put(reply(round));
            assert_eq!(switch.answered(), Some(0));
            assert!(!process.show());
            assert_eq!(switch.answered(), Some(1));
            assert_eq!(switch.take(), reply(round));
        }
    }

    #[test]
    fn more_verdicts_than_packets_are_a_lie() {
        let (mut switch, mut process) = ends(4);
        process.put(reply(0));
        process.show();
        assert_eq!(switch.answered(), None);
        switch.put(descriptor(0));
        assert_eq!(switch.answered(), None, "not shown yet");
        switch.show();
        assert_eq!(switch.answered(), Some(1));
    }

    #[test]
    fn sleepers_are_woken() {
        let (mut switch, mut process) = ends(4);
        std::thread::scope(|scope| {
            scope.spawn(move || {
                while process.waiting() == 0 {
                    process.sleep(Duration::from_secs(5));
                }
                process.take();
                process.put(reply(0));
                process.show()
            });
            switch.put(descriptor(0));
            switch.show();
            while switch.answered() == Some(0) {
                std::hint::spin_loop();
            }
        });
        assert!(!switch.ask(), "there is a verdict");
        switch.take();
        assert!(switch.ask());
    }
}
