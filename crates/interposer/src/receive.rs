//! Receive path: the client's fill ring to the kernel's, the kernel's RX ring to the client's.

use std::sync::Arc;

use xsk::{Consumer, Descriptor, Frames, Producer, State};

use crate::attachment::Fate;
use crate::judge::Judge;

/// Ends of the four rings of a socket's receive path.
pub(crate) struct Receive {
    pub(crate) client_fill: Consumer<u64>,
    pub(crate) fill: Producer<u64>,
    pub(crate) rx: Consumer<Descriptor>,
    pub(crate) client_rx: Producer<Descriptor>,
    pub(crate) frames: Arc<Frames>,
    pub(crate) judge: Judge,
    /// Chunks of dropped packets, which return to the kernel.
    pub(crate) dropped: Vec<u64>,
}

impl Receive {
    /// Moves all entries for which there is room.
    pub(crate) fn advance(&mut self) {
        if !self.judge.is_idle() {
            self.collect();
        }
        self.refill();
        self.receive();
    }

    fn refill(&mut self) {
        let again = self.dropped.len().min(self.fill.free() as usize);
        for address in self.dropped.drain(..again) {
            self.fill.put(address);
        }
        let filled = self.client_fill.available().min(self.fill.free());
        for _ in 0..filled {
            let address = self.client_fill.take();
            // A frame that is not the client's is not given to the kernel a second time.
            match self.frames.step(address, State::Client, State::Receiving) {
                Ok(()) => self.fill.put(address),
                Err(_) => self.judge.wrong_owner(),
            }
        }
        if filled > 0 {
            self.client_fill.release();
        }
        if filled > 0 || again > 0 {
            self.fill.publish();
        }
    }

    fn receive(&mut self) {
        let is_judged = !self.judge.is_idle();
        let room = self.client_rx.free().saturating_sub(self.judge.flying());
        let room = if is_judged { room.min(self.judge.room()) } else { room };
        let received = self.rx.available().min(room);
        if received == 0 {
            return;
        }
        for _ in 0..received {
            let descriptor = self.rx.take();
            let owner = if is_judged { State::Judging } else { State::Client };
            if self.frames.step(descriptor.address, State::Receiving, owner).is_err() {
                self.judge.wrong_owner();
            } else if !is_judged {
                self.judge.is_fragment(descriptor);
                self.client_rx.put(descriptor);
            } else if !self.judge.submit(descriptor) {
                drop_packet(&self.frames, &mut self.dropped, descriptor);
            }
        }
        self.rx.release();
        if is_judged {
            self.judge.flush();
        } else {
            self.judge.unjudged(received);
            self.client_rx.publish();
        }
    }

    /// Hands judged packets to the client. There is room, because `receive` leaves it free.
    fn collect(&mut self) {
        let (frames, client_rx, dropped) = (&self.frames, &mut self.client_rx, &mut self.dropped);
        let mut has_passed = false;
        let mut done = |descriptor: Descriptor, fate| {
            if fate == Fate::Drop {
                drop_packet(frames, dropped, descriptor);
            } else if frames.step(descriptor.address, State::Judging, State::Client).is_ok() {
                client_rx.put(descriptor);
                has_passed = true;
            }
        };
        self.judge.collect(&mut done);
        self.judge.submit_again(&mut done);
        if has_passed {
            self.client_rx.publish();
        }
    }

    /// Returns true if the client has packets to take.
    pub(crate) fn is_readable(&self, size: u32) -> bool {
        self.client_rx.free() < size
    }

    /// Returns true if the kernel needs a system call to receive.
    pub(crate) fn needs_wakeup(&self) -> bool {
        self.fill.needs_wakeup()
    }
}

/// Returns the chunk of a packet that is being judged to the kernel's fill ring.
fn drop_packet(frames: &Frames, dropped: &mut Vec<u64>, descriptor: Descriptor) {
    if frames.step(descriptor.address, State::Judging, State::Receiving).is_ok() {
        dropped.push(descriptor.address);
    }
}
