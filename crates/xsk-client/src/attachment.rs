//! A program attached to one direction of a socket.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use sandbox::process::Hosted;
use sandbox_queue::{
    Accusation, Answer, Arena, Decision, Packet, PacketQueue, Reason, Rings, SwitchEnd,
};
use xsk::Descriptor;
use xsk_link::{Attach, Tally, Verdict};

use crate::area::Area;
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
    /// The client's descriptor of the packet in each frame.
    held: Box<[Descriptor]>,
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
    Pass,
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
            held: vec![Descriptor::default(); frames.len()].into(),
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

    /// Returns true if the process is slower than a process on another CPU that polls.
    pub(crate) fn is_waiting(&self) -> bool {
        self.queue.since().is_some_and(|since| since.elapsed() > POLLS)
    }

    /// Submits a packet. Returns false if it does not fit into a frame, or lies outside of the
    /// UMEM. There must be [room](Attachment::room).
    pub(crate) fn submit(&mut self, area: &Area, descriptor: Descriptor) -> bool {
        let Descriptor { address, length, options } = descriptor;
        let fits = length <= self.arena.frame_size().saturating_sub(HEADROOM);
        let packet = area.packet(address, length).filter(|_| fits && options == 0);
        let (Some(packet), Some(slot)) = (packet, self.free.last().copied()) else { return false };
        // SAFETY: the packet lies in the client's memory, which the kernel and the client have
        // handed over with the descriptor.
        let bytes = unsafe { std::slice::from_raw_parts(packet.as_ptr(), length as usize) };
        self.arena.write(slot, HEADROOM, bytes);
        let packet = Packet { slot, start: HEADROOM, length, port: self.port, at: None };
        if self.queue.submit(packet).is_err() {
            return false;
        }
        self.free.pop();
        self.held[(slot - self.queue.frames().start) as usize] = descriptor;
        true
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

    /// Takes the next packet, with its new length and bytes if it passes.
    pub(crate) fn take(
        &mut self,
        area: &Area,
        tally: &mut Tally,
        trace: &mut Trace,
    ) -> Option<(Descriptor, Fate)> {
        let answer = self.queue.take()?;
        let slot = answer.slot;
        let mut descriptor = self.held[(slot - self.queue.frames().start) as usize];
        self.free.push(slot);
        if answer.reason == Reason::Crashed {
            return Some((descriptor, Fate::Again));
        }
        let (before, head) = (descriptor, trace.head(area, &descriptor));
        let verdict = self.verdict(&answer, &mut descriptor, area, tally);
        let passes = matches!(verdict, Verdict::Passed | Verdict::Policy { passes: true, .. });
        if let Some(head) = head {
            trace.add(area, (&before, head), verdict, passes.then_some(&descriptor));
        }
        Some((descriptor, if passes { Fate::Pass } else { Fate::Drop }))
    }

    /// Executes and counts the verdict on a packet.
    fn verdict(
        &self,
        answer: &Answer,
        descriptor: &mut Descriptor,
        area: &Area,
        tally: &mut Tally,
    ) -> Verdict {
        tally.submitted += 1;
        if answer.reason != Reason::Program {
            // The client's packet is unchanged.
            let passes = answer.decision == Decision::Pass;
            tally.policy += 1;
            tally.policy_dropped += u64::from(!passes);
            return Verdict::Policy { passes, reason: answer.reason };
        }
        match answer.decision {
            Decision::Pass => {}
            Decision::Redirect(port) if port == self.port => {}
            Decision::Redirect(port) => {
                tally.redirected += 1;
                return Verdict::Redirected(port);
            }
            Decision::Drop => {
                tally.dropped += 1;
                return Verdict::Dropped;
            }
        }
        let Descriptor { address, length: before, .. } = *descriptor;
        let Some(packet) = area.resized(address, before, answer.length) else {
            tally.unfit += 1;
            return Verdict::Unfit;
        };
        // SAFETY: the chunk is this library's until the packet is handed over.
        let bytes =
            unsafe { std::slice::from_raw_parts_mut(packet.as_ptr(), answer.length as usize) };
        self.arena.read(answer.slot, answer.start, bytes);
        descriptor.length = answer.length;
        tally.passed += 1;
        Verdict::Passed
    }
}
