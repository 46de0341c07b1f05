//! Transmit path: the client's TX ring to the kernel's, the kernel's completion ring to the client's.

use std::sync::Arc;

use xsk::{Consumer, Descriptor, Frames, Producer, State};

use crate::attachment::Fate;
use crate::judge::Judge;

/// Ends of the four rings of a socket's transmit path.
pub(crate) struct Transmit {
    pub(crate) client_tx: Consumer<Descriptor>,
    pub(crate) tx: Producer<Descriptor>,
    pub(crate) completion: Consumer<u64>,
    pub(crate) client_completion: Producer<u64>,
    pub(crate) frames: Arc<Frames>,
    pub(crate) judge: Judge,
    /// Chunks of dropped packets, which return to the client.
    pub(crate) dropped: Vec<u64>,
}

impl Transmit {
    /// Moves all entries for which there is room. Returns true if the kernel has packets to transmit:
    /// new ones, or older ones, since a system call transmits at most 32 (TX_BATCH_SIZE).
    pub(crate) fn advance(&mut self) -> bool {
        if !self.judge.is_idle() {
            self.collect();
        }
        self.complete();
        self.transmit();
        self.tx.pending() > 0
    }

    fn transmit(&mut self) {
        let is_judged = !self.judge.is_idle();
        let room = self.tx.free().saturating_sub(self.judge.flying());
        let room = if is_judged { room.min(self.judge.room()) } else { room };
        let sent = self.client_tx.available().min(room);
        if sent == 0 {
            return;
        }
        for _ in 0..sent {
            let descriptor = self.client_tx.take();
            let owner = if is_judged { State::Judging } else { State::Transmitting };
            // A frame that is not the client's is not transmitted a second time.
            if self.frames.step(descriptor.address, State::Client, owner).is_err() {
                self.judge.wrong_owner();
            } else if !is_judged {
                self.judge.is_fragment(descriptor);
                self.tx.put(descriptor);
            } else if !self.judge.submit(descriptor) {
                drop_packet(&self.frames, &mut self.dropped, descriptor);
            }
        }
        self.client_tx.release();
        if is_judged {
            self.judge.flush();
        } else {
            self.judge.unjudged(sent);
            self.tx.publish();
        }
    }

    /// Hands judged packets to the kernel. There is room, because `transmit` leaves it free.
    fn collect(&mut self) {
        let (frames, tx, dropped) = (&self.frames, &mut self.tx, &mut self.dropped);
        let mut has_passed = false;
        let mut done = |descriptor: Descriptor, fate| {
            if fate == Fate::Drop {
                drop_packet(frames, dropped, descriptor);
            } else if frames.step(descriptor.address, State::Judging, State::Transmitting).is_ok() {
                tx.put(descriptor);
                has_passed = true;
            }
        };
        self.judge.collect(&mut done);
        self.judge.submit_again(&mut done);
        if has_passed {
            self.tx.publish();
        }
    }

    /// Returns frames to the client that the kernel has sent, or that programs have dropped.
    pub(crate) fn complete(&mut self) {
        let dropped = self.dropped.len().min(self.client_completion.free() as usize);
        for address in self.dropped.drain(..dropped) {
            self.client_completion.put(address);
        }
        let done = self.completion.available().min(self.client_completion.free());
        for _ in 0..done {
            let address = self.completion.take();
            match self.frames.step(address, State::Transmitting, State::Client) {
                Ok(()) => self.client_completion.put(address),
                Err(_) => self.judge.wrong_owner(),
            }
        }
        if done > 0 {
            self.completion.release();
        }
        if done > 0 || dropped > 0 {
            self.client_completion.publish();
        }
    }

    /// Returns true if packets pass without a program.
    pub(crate) fn is_idle(&self) -> bool {
        self.judge.is_idle()
    }

    /// Returns true if the kernel needs a system call to transmit.
    pub(crate) fn needs_wakeup(&self) -> bool {
        self.tx.needs_wakeup()
    }
}

/// Returns the chunk of a packet that is being judged to the client.
fn drop_packet(frames: &Frames, dropped: &mut Vec<u64>, descriptor: Descriptor) {
    if frames.step(descriptor.address, State::Judging, State::Client).is_ok() {
        dropped.push(descriptor.address);
    }
}
