//! A program attached to one direction of a socket.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use sandbox::PacketBuffer;
use sandbox::process::{Hosted, Turn};
use sandbox_queue::{
    Accusation, Answer, Arena, Decision, PacketQueue, Policy, Reason, Rings, SwitchEnd,
};
use xsk_link::{Attach, Direction, Tally, Verdict};

use crate::area::Area;
use crate::fate::Fate;
use crate::packet::Packet;
use crate::trace::Trace;

/// Space before each packet, for headers that the program adds.
const HEADROOM: u32 = 256;

/// Time in which a process that polls on another CPU answers a batch.
const POLLS: Duration = Duration::from_micros(20);

/// A program attached to one direction of a socket. Packets are copied into frames that the
/// program's process sees, and back after its verdict, so that the process neither reads other
/// packets of the client nor changes one that the client reads. Of a program that this process
/// hosts, received packets may stay where they are.
pub(crate) struct Attachment {
    pub(crate) number: u64,
    port: u32,
    queue: PacketQueue,
    arena: Arena,
    /// Free frames; the one used last is the first to be used again, since it is in the cache.
    free: Vec<u32>,
    /// The client's descriptors of the packet in each frame.
    held: Box<[Packet]>,
    /// Number of descriptors of the packets in flight.
    parts: u32,
    deadline: Duration,
    hold: Duration,
    policy: Policy,
    /// Received packets are judged where they are, if this process hosts the program. Those that the
    /// client transmits may still be its own, as those that it keeps for a retransmission; and
    /// those that `default` passes have their original bytes.
    is_in_place: bool,
    /// Time until which packets wait for another process.
    held_until: Option<Instant>,
    /// Time of the last accusation.
    accused: Option<Instant>,
    has_violated: bool,
    /// The program, if this process hosts it.
    host: Option<Arc<Hosted>>,
}

/// Decision about a packet, and its new length.
#[derive(Debug, Clone, Copy)]
struct Judged {
    decision: Decision,
    reason: Reason,
    length: u32,
}

impl Attachment {
    /// Opens the queue of a program. The files are those of the order.
    pub(crate) fn new(
        order: &Attach,
        rings: &OwnedFd,
        frames: OwnedFd,
        host: Option<Arc<Hosted>>,
    ) -> Result<Self, Errno> {
        let arena = Arena::from_file(frames, order.frames, order.frame_size)?;
        let rings = Rings::new(rings, order.places, order.queues)?;
        if order.number >= order.queues {
            return Err(Errno::EINVAL);
        }
        let (number, queues, places) = (order.number, order.queues, order.places);
        let mut queue = PacketQueue::new(&arena, number, queues, places, order.policy);
        queue.connect(SwitchEnd::new(Arc::new(rings), number));
        let frames = queue.frames();
        Ok(Self {
            number: order.attachment,
            port: order.port,
            held: vec![Packet::default(); frames.len()].into(),
            parts: 0,
            free: frames.rev().collect(),
            queue,
            arena,
            deadline: Duration::from_micros(order.deadline_us.into()),
            hold: Duration::from_micros(order.hold_us.into()),
            policy: order.policy,
            is_in_place: order.direction == Direction::Receive && order.policy == Policy::Closed,
            held_until: None,
            accused: None,
            has_violated: false,
            host,
        })
    }

    /// Number of packets that can be submitted.
    pub(crate) fn room(&self) -> u32 {
        match self.held_until.is_some_and(|until| Instant::now() < until) {
            true => 0,
            false => self.free.len() as u32,
        }
    }

    /// Number of packets whose fate has not been taken.
    pub(crate) fn flying(&self) -> u32 {
        (self.held.len() - self.free.len()) as u32
    }

    /// Number of descriptors of the packets whose fate has not been taken.
    pub(crate) fn flying_parts(&self) -> u32 {
        self.parts
    }

    /// Returns true if the process is slower than a process on another CPU that polls.
    pub(crate) fn is_waiting(&self) -> bool {
        self.queue.since().is_some_and(|since| since.elapsed() > POLLS)
    }

    /// Submits a packet. Fails if it does not fit into a frame, or lies outside of the UMEM. There
    /// must be [room](Attachment::room).
    pub(crate) fn submit(&mut self, area: &Area, packet: Packet) -> Result<(), Packet> {
        let length = packet.length();
        let fits = length <= self.arena.frame_size().saturating_sub(HEADROOM);
        let Some(slot) = self.free.last().copied().filter(|_| fits) else { return Err(packet) };
        if !packet.copy_to(area, &self.arena, slot, HEADROOM) {
            return Err(packet);
        }
        let submitted =
            sandbox_queue::Packet { slot, start: HEADROOM, length, port: self.port, at: None };
        if self.queue.submit(submitted).is_err() {
            return Err(packet);
        }
        self.free.pop();
        self.parts += packet.count() as u32;
        self.held[(slot - self.queue.frames().start) as usize] = packet;
        Ok(())
    }

    /// Publishes submitted packets.
    pub(crate) fn flush(&mut self) {
        self.queue.flush();
        self.serve();
    }

    /// Returns true if verdicts follow immediately: this process hosts the program.
    pub(crate) fn is_hosted(&self) -> bool {
        self.host.is_some()
    }

    /// Judges the submitted packets if this process hosts the program.
    fn serve(&self) {
        if let Some(host) = &self.host
            && self.queue.flying() > 0
        {
            host.serve();
        }
    }

    /// Processes verdicts. Returns an accusation of the process, if there is a new one.
    pub(crate) fn collect(&mut self) -> Option<Accusation> {
        if self.has_violated {
            return None;
        }
        // Another thread may have kept this one from it.
        self.serve();
        if let Err(violation) = self.queue.collect() {
            self.has_violated = true;
            return Some(Accusation::Violation(violation));
        }
        // This process's own threads judge the packets, until the host ends.
        if self.host.as_ref().is_some_and(|host| !host.has_ended()) {
            return None;
        }
        let since = self.queue.since()?;
        let since = self.accused.map_or(since, |accused| since.max(accused));
        if since.elapsed() <= self.deadline {
            return None;
        }
        self.accused = Some(Instant::now());
        Some(Accusation::Late)
    }

    /// Ends the connection with the process, which has exited.
    pub(crate) fn end(&mut self, flying: Reason, later: Reason) {
        self.host = None;
        self.held_until = (later == Reason::Restarting).then(|| Instant::now() + self.hold);
        self.queue.disconnect(flying, later);
    }

    /// Takes the next packet, with its new length and bytes if it passes. A program makes packets up
    /// to `longest` bytes.
    pub(crate) fn take(
        &mut self,
        area: &Area,
        longest: u32,
        tally: &mut Tally,
        trace: &mut Trace,
    ) -> Option<(Packet, Fate)> {
        let answer = self.queue.take()?;
        let slot = answer.slot;
        let held = &mut self.held[(slot - self.queue.frames().start) as usize];
        let mut packet = std::mem::take(held);
        self.parts -= packet.count() as u32;
        self.free.push(slot);
        if answer.reason == Reason::Crashed {
            return Some((packet, Fate::Again));
        }
        let before = trace.begun(area, &packet);
        let Answer { start, length, decision, reason, .. } = answer;
        let judged = Judged { decision, reason, length };
        let keep = |packet: &mut Packet| packet.copy_from(area, &self.arena, slot, start, length);
        let (verdict, fate) = self.verdict(judged, &mut packet, longest, tally, keep);
        trace.end(area, before, verdict, fate, (length, &packet));
        Some((packet, fate))
    }

    /// Returns the program if this thread may [judge](Attachment::judge) packets: this process hosts it,
    /// and no packet is in flight, which another one could overtake.
    pub(crate) fn idle_host(&self) -> Option<Arc<Hosted>> {
        self.host.clone().filter(|_| self.flying() == 0)
    }

    /// Judges a packet on this thread: in the client's memory, or in a copy. Fails as
    /// [`submit`](Attachment::submit) does.
    pub(crate) fn judge(
        &self,
        turn: &mut Turn<'_>,
        area: &Area,
        mut packet: Packet,
        longest: u32,
        tally: &mut Tally,
        trace: &mut Trace,
    ) -> Result<(Packet, Fate), Packet> {
        let before = trace.begun(area, &packet);
        let in_place = packet.place(area).filter(|_| self.is_in_place);
        let slot = self.queue.frames().start;
        let (memory, size, start) = match in_place {
            Some((memory, size)) => (memory, size, 0),
            None => {
                let size = self.arena.frame_size();
                let fits = packet.length() <= size.saturating_sub(HEADROOM);
                if !fits || !packet.copy_to(area, &self.arena, slot, HEADROOM) {
                    return Err(packet);
                }
                (self.arena.frame(slot), size as usize, HEADROOM as usize)
            }
        };
        // SAFETY: the chunk is this library's until the packet is handed over, and so are the
        // frames while no packet is in flight. There are no references to either.
        let buffer =
            unsafe { PacketBuffer::from_raw(memory, size, start, packet.length() as usize) };
        let Some(mut buffer) = buffer else { return Err(packet) };
        let (decision, reason) = turn.judge(&mut buffer, self.port).decide(self.policy);
        // The casts do not truncate: both are below the size, which is at most 2^24.
        let (start, length) = (buffer.start(), buffer.len() as u32);
        let judged = Judged { decision, reason, length };
        let keep = |packet: &mut Packet| match in_place {
            Some(_) => packet.settle(area, start, length),
            None => packet.copy_from(area, &self.arena, slot, start as u32, length),
        };
        let (verdict, fate) = self.verdict(judged, &mut packet, longest, tally, keep);
        trace.end(area, before, verdict, fate, (length, &packet));
        Ok((packet, fate))
    }

    /// Executes and counts the verdict on a packet. `keep` gives it its new bytes and length, and
    /// returns the number of its descriptors; `None` if it does not fit.
    fn verdict(
        &self,
        judged: Judged,
        packet: &mut Packet,
        longest: u32,
        tally: &mut Tally,
        keep: impl FnOnce(&mut Packet) -> Option<usize>,
    ) -> (Verdict, Fate) {
        let Judged { decision, reason, length } = judged;
        tally.submitted += 1;
        if reason != Reason::Program {
            // A packet that passes is unchanged.
            let passes = decision == Decision::Pass;
            tally.policy += 1;
            tally.policy_dropped += u64::from(!passes);
            let fate = if passes { Fate::Pass(packet.count()) } else { Fate::Drop };
            return (Verdict::Policy { passes, reason }, fate);
        }
        match decision {
            Decision::Pass => {}
            Decision::Redirect(port) if port == self.port => {}
            Decision::Redirect(port) => {
                tally.redirected += 1;
                return (Verdict::Redirected(port), Fate::Drop);
            }
            Decision::Drop => {
                tally.dropped += 1;
                return (Verdict::Dropped, Fate::Drop);
            }
        }
        let fits = length <= longest.max(packet.length());
        let Some(kept) = fits.then(|| keep(packet)).flatten() else {
            tally.unfit += 1;
            return (Verdict::Unfit, Fate::Drop);
        };
        tally.passed += 1;
        (Verdict::Passed, Fate::Pass(kept))
    }
}
