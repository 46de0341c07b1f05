//! Packets of one direction of a socket, and their chunks, which travel back.

use std::sync::Arc;

use xsk::{Consumer, Descriptor, Frames, Producer, State};

use crate::attachment::Fate;
use crate::judge::Judge;

/// Ends of the four rings of one direction.
///
/// | direction | packets | chunks |
/// |---|---|---|
/// | receive | kernel's RX ring to the client's | client's fill ring to the kernel's |
/// | transmit | client's TX ring to the kernel's | kernel's completion ring to the client's |
pub struct Path {
    pub(crate) packets_in: Consumer<Descriptor>,
    pub(crate) packets_out: Producer<Descriptor>,
    pub(crate) chunks_in: Consumer<u64>,
    pub(crate) chunks_out: Producer<u64>,
    /// Owner of a packet's frame before and after this path.
    pub(crate) source: State,
    pub(crate) sink: State,
    pub(crate) frames: Arc<Frames>,
    pub(crate) judge: Judge,
    /// Chunks of dropped packets, which return to the source.
    pub(crate) dropped: Vec<u64>,
}

impl Path {
    /// Moves all entries for which there is room.
    pub fn advance(&mut self) {
        if !self.judge.is_idle() {
            self.collect();
        }
        self.return_chunks();
        self.forward();
        if self.judge.is_hosted() && self.judge.flying() > 0 {
            self.collect();
        }
    }

    /// Returns chunks to the source: those of the sink, and those of dropped packets.
    pub fn return_chunks(&mut self) {
        let dropped = self.dropped.len().min(self.chunks_out.free() as usize);
        for address in self.dropped.drain(..dropped) {
            self.chunks_out.put(address);
        }
        let returned = self.chunks_in.available().min(self.chunks_out.free());
        for _ in 0..returned {
            let address = self.chunks_in.take();
            // A frame is not returned by a side that does not own it, and not a second time.
            match self.frames.step(address, self.sink, self.source) {
                Ok(()) => self.chunks_out.put(address),
                Err(_) => self.judge.count_wrong_owner(),
            }
        }
        if returned > 0 {
            self.chunks_in.release();
        }
        if returned > 0 || dropped > 0 {
            self.chunks_out.publish();
        }
    }

    /// Forwards packets to the sink, or submits them to the program.
    fn forward(&mut self) {
        let is_judged = !self.judge.is_idle();
        let room = self.packets_out.free().saturating_sub(self.judge.flying());
        let room = if is_judged { room.min(self.judge.room()) } else { room };
        let count = self.packets_in.available().min(room);
        if count == 0 {
            return;
        }
        for _ in 0..count {
            let descriptor = self.packets_in.take();
            let owner = if is_judged { State::Judging } else { self.sink };
            if self.frames.step(descriptor.address, self.source, owner).is_err() {
                self.judge.count_wrong_owner();
            } else if !is_judged {
                self.judge.is_fragment(descriptor);
                self.packets_out.put(descriptor);
            } else if !self.judge.submit(descriptor)
                && self.frames.step(descriptor.address, State::Judging, self.source).is_ok()
            {
                self.dropped.push(descriptor.address);
            }
        }
        self.packets_in.release();
        if is_judged {
            self.judge.flush();
        } else {
            self.judge.count_unjudged(count);
            self.packets_out.publish();
        }
    }

    /// Returns true if packets pass without a program.
    pub fn is_idle(&self) -> bool {
        self.judge.is_idle()
    }

    /// Hands judged packets to the sink. There is room, because `forward` leaves it free.
    fn collect(&mut self) {
        let Self { packets_out, source, sink, frames, judge, dropped, .. } = self;
        let mut has_passed = false;
        let mut done = |descriptor: Descriptor, fate| {
            let owner = if fate == Fate::Drop { *source } else { *sink };
            if frames.step(descriptor.address, State::Judging, owner).is_err() {
                return;
            }
            if fate == Fate::Drop {
                dropped.push(descriptor.address);
            } else {
                packets_out.put(descriptor);
                has_passed = true;
            }
        };
        judge.collect(&mut done);
        judge.submit_again(&mut done);
        if has_passed {
            packets_out.publish();
        }
    }

    /// Number of packets that the sink has to take.
    pub fn pending(&self) -> u32 {
        self.packets_out.pending()
    }

    /// Returns true if the sink has packets to take: new ones, or older ones, since a system call
    /// transmits at most 32 (TX_BATCH_SIZE).
    pub fn has_output(&self) -> bool {
        self.pending() > 0
    }

    /// Returns true if the kernel needs a system call to continue. The client's rings ask for none.
    pub fn needs_wakeup(&self) -> bool {
        self.packets_out.needs_wakeup() || self.chunks_out.needs_wakeup()
    }
}
