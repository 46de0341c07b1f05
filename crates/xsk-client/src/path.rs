//! Packets of one direction of a socket, and their chunks, which travel back.

use std::sync::Arc;

use sandbox::process::Hosted;
use xsk::{Consumer, Descriptor, Frames, Producer, State};

use crate::fate::Fate;
use crate::judge::Judge;
use crate::packet::{Packet, is_continued};

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
    /// A packet whose last descriptor has not been read.
    pub(crate) begun: Begun,
}

/// A packet whose last descriptor has not been read.
#[derive(Debug, Default)]
pub(crate) enum Begun {
    #[default]
    None,
    /// It waits for its end to be submitted.
    Waiting(Packet),
    /// Its descriptors pass without a program.
    Passing,
    /// Its descriptors are dropped.
    Dropped,
}

impl Path {
    /// Moves all entries for which there is room.
    pub fn advance(&mut self) {
        if !self.judge.is_quiet() {
            self.collect();
        }
        self.return_chunks();
        self.forward();
        if self.judge.is_hosted() && !self.judge.is_quiet() {
            self.collect();
        }
    }

    /// Returns chunks to the source: those of the sink, and those of dropped packets.
    pub fn return_chunks(&mut self) {
        // The sink's index is not read without need: the kernel writes that of the fill ring for each
        // packet, on another CPU.
        if self.chunks_in.available() == 0 && self.dropped.is_empty() {
            return;
        }
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
        // The beginning of a packet does not wait for its rest without a program.
        if self.packets_in.available() == 0 && !matches!(self.begun, Begun::Waiting(_)) {
            return;
        }
        if self.judge.is_idle() { self.pass() } else { self.submit() }
    }

    /// Forwards packets to the sink.
    fn pass(&mut self) {
        let (mut packets, mut has_passed) = (0, false);
        // The program has been detached since this packet began. `submit` has left room for it.
        self.begun = match std::mem::take(&mut self.begun) {
            Begun::Waiting(packet) => {
                for part in packet.parts() {
                    has_passed |= self.put(State::Judging, part);
                }
                Begun::Passing
            }
            begun => begun,
        };
        let room = self.packets_in.available().min(self.packets_out.free());
        for _ in 0..room {
            let descriptor = self.packets_in.take();
            let is_dropped = matches!(self.begun, Begun::Dropped);
            has_passed |= self.put_rest(descriptor, is_dropped);
            packets += u32::from(!is_dropped && !is_continued(descriptor));
        }
        if room > 0 {
            self.packets_in.release();
        }
        if has_passed {
            self.packets_out.publish();
        }
        self.judge.count_unjudged(packets);
    }

    /// Submits packets to the program.
    fn submit(&mut self) {
        let begun =
            if let Begun::Waiting(packet) = &self.begun { packet.count() as u32 } else { 0 };
        let flying = self.judge.flying_parts() + begun;
        let room = self.packets_in.available().min(self.packets_out.free().saturating_sub(flying));
        let (mut taken, mut frames, mut has_passed) = (0, self.judge.room(), false);
        // With the queue, a round trip takes a fifth longer (bench xsk, latency-inline).
        let host = self.judge.idle_host();
        let mut turn = host.as_deref().and_then(Hosted::take);
        while taken < room && (frames > 0 || !self.needs_frame()) {
            let descriptor = self.packets_in.take();
            taken += 1;
            let ends = !is_continued(descriptor);
            match std::mem::take(&mut self.begun) {
                Begun::Passing => {
                    has_passed |= self.put_rest(descriptor, false);
                    self.judge.count_unjudged(u32::from(ends));
                }
                Begun::Dropped => has_passed |= self.put_rest(descriptor, true),
                before => {
                    self.begun = match self.join(before, descriptor) {
                        Some(packet) if ends => {
                            frames -= 1;
                            if let Some(turn) = &mut turn {
                                let (packet, fate) = self.judge.judge(turn, packet);
                                let Self { packets_out, source, sink, frames, dropped, .. } = self;
                                let owners = (*source, *sink);
                                has_passed |=
                                    hand_over(&packet, fate, frames, owners, packets_out, dropped);
                            } else if let Err(packet) = self.judge.submit(packet) {
                                self.drop_packet(&packet);
                            }
                            Begun::None
                        }
                        Some(packet) => Begun::Waiting(packet),
                        None if ends => Begun::None,
                        None => Begun::Dropped,
                    };
                }
            }
        }
        // The queue's packets are judged by `flush`.
        drop(turn);
        if taken > 0 {
            self.packets_in.release();
            self.judge.flush();
        }
        if has_passed {
            self.packets_out.publish();
        }
    }

    /// Returns true if the next descriptor may end a packet that is submitted.
    fn needs_frame(&self) -> bool {
        matches!(self.begun, Begun::None | Begun::Waiting(_))
    }

    /// Forwards or drops a part of a packet that is not judged. Returns true if it is forwarded.
    fn put_rest(&mut self, descriptor: Descriptor, is_dropped: bool) -> bool {
        let is_put = if is_dropped {
            self.drop_part(self.source, descriptor);
            false
        } else {
            self.put(self.source, descriptor)
        };
        self.begun = match is_continued(descriptor) {
            false => Begun::None,
            true if is_dropped => Begun::Dropped,
            true => Begun::Passing,
        };
        is_put
    }

    /// Adds a descriptor to the packet that has begun, if one has. Returns `None` if it is dropped.
    fn join(&mut self, begun: Begun, descriptor: Descriptor) -> Option<Packet> {
        let is_owned = self.frames.step(descriptor.address, self.source, State::Judging).is_ok();
        if !is_owned {
            self.judge.count_wrong_owner();
        }
        let Begun::Waiting(mut packet) = begun else {
            return is_owned.then(|| Packet::new(descriptor));
        };
        // The sink has to have room for the whole packet.
        let fits = is_owned && packet.push(descriptor);
        if fits && packet.count() < self.packets_out.size() as usize {
            return Some(packet);
        }
        if is_owned {
            self.judge.count_unfit();
        }
        self.drop_packet(&packet);
        None
    }

    /// Hands a descriptor to the sink. Returns false if its frame has another owner.
    fn put(&mut self, from: State, descriptor: Descriptor) -> bool {
        let is_owned = self.frames.step(descriptor.address, from, self.sink).is_ok();
        match is_owned {
            true => self.packets_out.put(descriptor),
            false => self.judge.count_wrong_owner(),
        }
        is_owned
    }

    /// Returns the frames of a packet to the source.
    fn drop_packet(&mut self, packet: &Packet) {
        packet.parts().for_each(|part| self.drop_part(State::Judging, part));
    }

    /// Returns a frame to the source.
    fn drop_part(&mut self, from: State, descriptor: Descriptor) {
        match self.frames.step(descriptor.address, from, self.source) {
            Ok(()) => self.dropped.push(descriptor.address),
            Err(_) => self.judge.count_wrong_owner(),
        }
    }

    /// Returns true if packets pass without a program.
    pub fn is_idle(&self) -> bool {
        self.judge.is_idle()
    }

    /// Hands over the packets that have been judged.
    fn collect(&mut self) {
        let Self { packets_out, source, sink, frames, judge, dropped, .. } = self;
        let (owners, mut has_passed) = ((*source, *sink), false);
        let mut done = |packet: &Packet, fate| {
            has_passed |= hand_over(packet, fate, frames, owners, packets_out, dropped);
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

    /// Returns true if the source's ring is at most half full, as the kernel's poll(2) has it.
    pub(crate) fn is_writable(&self) -> bool {
        self.packets_in.available() <= self.packets_in.size() / 2
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

/// Hands a judged packet to the sink, or back to the source. There is room, because
/// [`Path::forward`] leaves it free. Returns true if the sink gets a part.
fn hand_over(
    packet: &Packet,
    fate: Fate,
    frames: &Frames,
    (source, sink): (State, State),
    packets_out: &mut Producer<Descriptor>,
    dropped: &mut Vec<u64>,
) -> bool {
    let kept = if let Fate::Pass(kept) = fate { kept } else { 0 };
    let mut has_passed = false;
    for (at, part) in packet.parts().enumerate() {
        let owner = if at < kept { sink } else { source };
        if frames.step(part.address, State::Judging, owner).is_err() {
            continue;
        }
        if at < kept {
            packets_out.put(part);
            has_passed = true;
        } else {
            dropped.push(part.address);
        }
    }
    has_passed
}

#[cfg(test)]
#[path = "path_tests.rs"]
mod tests;
