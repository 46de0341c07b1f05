//! A program attached to one direction of a socket.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use sandbox::process::Hosted;
use sandbox_queue::{Accusation, Answer, Arena, Decision, PacketQueue, Reason, Rings, SwitchEnd};
use xsk_link::{Attach, Tally, Verdict};

use crate::area::Area;
use crate::packet::Packet;
use crate::trace::Trace;

/// Space before each packet, for headers that the program adds.
const HEADROOM: u32 = 256;

/// Time in which a process that polls on another CPU answers a batch.
const POLLS: Duration = Duration::from_micros(20);

/// A program attached to one direction of a socket. Packets are copied into frames that the
/// program's process sees, and back after its verdict, so that the process neither reads other
/// packets of the client nor changes one that the client reads.
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
    /// Time until which packets wait for another process.
    held_until: Option<Instant>,
    /// Time of the last accusation.
    accused: Option<Instant>,
    has_violated: bool,
    /// The program, if this process hosts it.
    host: Option<Arc<Hosted>>,
}

/// Fate of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// This number of its descriptors pass, the first ones. Others have no bytes any more.
    Pass(usize),
    Drop,
    /// The process has crashed: the next one judges it. A packet that is the cause ends when the
    /// tenant is evicted.
    Again,
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
        // This process's own threads judge the packets.
        if self.is_hosted() {
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
        let before = trace.head(area, &packet).map(|head| (packet.length(), head));
        let (verdict, fate) = self.verdict(&answer, &mut packet, area, longest, tally);
        if let Some(before) = before {
            let length = match verdict {
                Verdict::Passed => answer.length,
                _ => packet.length(),
            };
            let after = matches!(fate, Fate::Pass(_)).then(|| (length, packet.first()));
            trace.add(area, before, verdict, after);
        }
        Some((packet, fate))
    }

    /// Executes and counts the verdict on a packet.
    fn verdict(
        &self,
        answer: &Answer,
        packet: &mut Packet,
        area: &Area,
        longest: u32,
        tally: &mut Tally,
    ) -> (Verdict, Fate) {
        tally.submitted += 1;
        if answer.reason != Reason::Program {
            // The client's packet is unchanged.
            let passes = answer.decision == Decision::Pass;
            tally.policy += 1;
            tally.policy_dropped += u64::from(!passes);
            let fate = if passes { Fate::Pass(packet.count()) } else { Fate::Drop };
            return (Verdict::Policy { passes, reason: answer.reason }, fate);
        }
        match answer.decision {
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
        let Answer { slot, start, length, .. } = *answer;
        let fits = length <= longest.max(packet.length());
        let kept = fits.then(|| packet.copy_from(area, &self.arena, slot, start, length));
        let Some(kept) = kept.flatten() else {
            tally.unfit += 1;
            return (Verdict::Unfit, Fate::Drop);
        };
        tally.passed += 1;
        (Verdict::Passed, Fate::Pass(kept))
    }
}
