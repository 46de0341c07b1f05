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

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use std::time::Duration;

use nix::errno::Errno;

use p4::object::MAX_DIGEST;

use super::memory::Mapping;

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

/// The switch's end.
#[derive(Debug)]
pub(super) struct SwitchEnd {
    rings: Rings,
    put: u32,
    shown: u32,
    taken: u32,
    digests: u32,
}

impl SwitchEnd {
    pub(super) fn new(rings: Rings) -> Self {
        Self { rings, put: 0, shown: 0, taken: 0, digests: 0 }
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

    /// The number of digests that there are; none if there cannot be so many.
    pub(super) fn digests(&self) -> Option<u32> {
        let all = self.rings.word(DIGESTS_PUT).load(Ordering::Acquire);
        let new = all.wrapping_sub(self.digests);
        (new <= DIGESTS).then_some(new)
    }

    /// The next digest, which is known to be there: its id, how many of its bytes count, and all of them.
    /// Any numbers at all.
    pub(super) fn take_digest(&mut self) -> (u32, u32, [u8; MAX_DIGEST as usize]) {
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
    pub(super) fn took_digests(&self) {
        self.rings.word(DIGESTS_TAKEN).store(self.digests, Ordering::Release);
    }

    /// The number of digests that had no room, as the process says.
    pub(super) fn lost_digests(&self) -> u32 {
        self.rings.word(DIGESTS_LOST).load(Ordering::Relaxed)
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
    digests: u32,
    lost: u32,
}

impl ProcessEnd {
    pub(super) fn new(rings: Rings) -> Self {
        Self { rings, taken: 0, answered: 0, messages: 0, digests: 0, lost: 0 }
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

    /// Puts a digest of at most 256 bytes into the ring, or counts it if there is no room. The switch
    /// does not see it yet.
    pub(super) fn put_digest(&mut self, id: u32, data: &[u8]) {
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

    /// Says that there are digests which there are not.
    #[cfg(test)]
    pub(super) fn claim_digests(&mut self, count: u32) {
        self.digests = self.digests.wrapping_add(count);
    }

    /// Counts digests that had no room.
    pub(super) fn lose_digests(&mut self, count: u32) {
        self.lost = self.lost.wrapping_add(count);
        self.rings.word(DIGESTS_LOST).store(self.lost, Ordering::Relaxed);
    }

    /// Shows what has been put. True if the switch sleeps, and is to be woken.
    pub(super) fn show(&self) -> bool {
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
    fn digests_have_room_or_are_counted() {
        let (mut switch, mut process) = ends(4);
        process.put_digest(7, &[1, 2, 3]);
        assert_eq!(switch.digests(), Some(0), "not shown yet");
        process.show();
        assert_eq!(switch.digests(), Some(1));
        let (id, length, bytes) = switch.take_digest();
        assert_eq!((id, length, &bytes[..4]), (7, 3, &[1, 2, 3, 0][..]));
        switch.took_digests();
        for round in 0..DIGESTS + 9 {
            process.put_digest(round, &[0xab; MAX_DIGEST as usize]);
        }
        process.show();
        assert_eq!((switch.digests(), switch.lost_digests()), (Some(DIGESTS), 9));
        for round in 0..DIGESTS {
            assert_eq!(switch.take_digest(), (round, MAX_DIGEST, [0xab; MAX_DIGEST as usize]));
        }
        process.put_digest(1, &[]);
        assert_eq!(switch.lost_digests(), 10, "nobody has said that they were taken");
        switch.took_digests();
        process.put_digest(1, &[]);
        process.show();
        assert_eq!(switch.digests(), Some(1));
    }

    #[test]
    fn more_digests_than_there_is_room_for_are_a_lie() {
        let (switch, process) = ends(4);
        process.rings.word(DIGESTS_PUT).store(DIGESTS + 1, Ordering::Release);
        assert_eq!(switch.digests(), None);
        process.rings.word(DIGESTS_PUT).store(u32::MAX, Ordering::Release);
        assert_eq!(switch.digests(), None);
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
