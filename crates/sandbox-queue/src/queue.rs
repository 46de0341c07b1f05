//! The switch's side of a packet queue.

use std::collections::VecDeque;
use std::time::Instant;

use crate::flights::Flights;
use crate::rings::{Descriptor, Reply, SwitchEnd};
use crate::verdicts::Code;
use crate::{Answer, Arena, Busy, Packet, PacketCounters, Policy, ProtocolViolation, Reason};

/// A queue of packets to a process, which outlives the process: without one, the policy answers.
#[derive(Debug)]
pub struct PacketQueue {
    /// The connection to a process, or the reason that there is none.
    rings: Result<SwitchEnd, Reason>,
    flights: Flights,
    /// Answers that have not been taken.
    ready: VecDeque<Answer>,
    counters: PacketCounters,
    policy: Policy,
    places: usize,
    frame_size: u32,
}

impl PacketQueue {
    /// Creates the queue `number` of an arena, without a process. The frames of an arena are
    /// divided evenly among `queues` queues.
    pub fn new(arena: &Arena, number: u32, queues: u32, places: u32, policy: Policy) -> Self {
        let frames = arena.frames() / queues;
        Self {
            rings: Err(Reason::Restarting),
            flights: Flights::new(number * frames, frames, places),
            ready: VecDeque::new(),
            counters: PacketCounters::default(),
            policy,
            places: places as usize,
            frame_size: arena.frame_size(),
        }
    }

    /// Connects the queue to a process. No packet may be in flight.
    pub fn connect(&mut self, rings: SwitchEnd) {
        debug_assert_eq!(self.flights.len(), 0);
        self.rings = Ok(rings);
    }

    /// Disconnects the queue from its process. The policy answers the packets in flight and all
    /// later ones. Call this when the process can no longer write to their frames.
    pub fn disconnect(&mut self, flying: Reason, later: Reason) {
        self.rings = Err(later);
        while let Some(packet) = self.flights.pop() {
            self.answer_by_policy(packet, flying);
        }
    }

    /// The connection to the process.
    pub fn rings(&self) -> Option<&SwitchEnd> {
        self.rings.as_ref().ok()
    }

    /// Range of the frames that belong to this queue.
    pub fn frames(&self) -> std::ops::Range<u32> {
        self.flights.slots()
    }

    /// Current counters.
    pub fn counters(&self) -> &PacketCounters {
        &self.counters
    }

    /// Number of packets in flight, without answers that have not been taken.
    pub fn flying(&self) -> usize {
        self.flights.len()
    }

    /// Time at which the oldest packet in flight was published to the process.
    pub fn since(&self) -> Option<Instant> {
        self.flights.since()
    }

    /// Submits a packet. The program may write to its frame until there is an answer. The process
    /// does not see it before [`PacketQueue::flush`].
    ///
    /// # Errors
    ///
    /// Fails if the frame is not one of this queue or does not contain the packet, if the frame is
    /// in flight, or if too many packets are in flight.
    pub fn submit(&mut self, packet: Packet) -> Result<(), Busy> {
        let Packet { slot, start, length, port, at } = packet;
        if start.checked_add(length).is_none_or(|end| end > self.frame_size) {
            return Err(Busy::NoPacket);
        }
        if !self.flights.is_free(slot) {
            return Err(match self.flights.slots().contains(&slot) {
                true => Busy::Flying,
                false => Busy::NoPacket,
            });
        }
        // Untaken answers count as well, which bounds the memory of the queue.
        if self.flights.len() + self.ready.len() >= self.places {
            return Err(Busy::Full);
        }
        self.counters.submitted += 1;
        // 64 bits of nanoseconds are 584 years.
        let at_ns = at.map(|at| u64::try_from(at.as_nanos()).unwrap_or(u64::MAX));
        let packet = Descriptor { slot, generation: 0, start, length, port, at_ns };
        match &mut self.rings {
            Ok(rings) => rings.put(self.flights.push(packet)),
            Err(reason) => {
                let reason = *reason;
                self.answer_by_policy(packet, reason);
            }
        }
        Ok(())
    }

    /// Publishes submitted packets and wakes the process if it sleeps.
    pub fn flush(&mut self) {
        if let Ok(rings) = &mut self.rings
            && self.flights.len() > 0
        {
            self.flights.show(Instant::now());
            rings.show();
        }
    }

    /// Processes pending verdicts, and returns their number.
    ///
    /// # Errors
    ///
    /// Fails if the process violates the protocol. The caller has to kill it, and then to
    /// [disconnect](PacketQueue::disconnect) the queue.
    pub fn collect(&mut self) -> Result<u32, ProtocolViolation> {
        let Ok(rings) = &mut self.rings else { return Ok(0) };
        let new = rings.answered().ok_or(ProtocolViolation::Index)?;
        for _ in 0..new {
            let reply = rings.take();
            let packet = *self.flights.front().ok_or(ProtocolViolation::Index)?;
            let answer = check(&packet, reply, self.frame_size, self.policy)?;
            self.flights.pop();
            self.counters.count(&answer);
            self.ready.push_back(answer);
        }
        Ok(new)
    }

    /// Takes the oldest answer.
    pub fn take(&mut self) -> Option<Answer> {
        self.ready.pop_front()
    }

    /// Takes all answers, oldest first.
    pub fn take_all(&mut self, answers: &mut Vec<Answer>) {
        answers.extend(self.ready.drain(..));
    }

    fn answer_by_policy(&mut self, packet: Descriptor, reason: Reason) {
        let Descriptor { slot, start, length, .. } = packet;
        let decision = self.policy.decision();
        let answer = Answer { slot, start, length, decision, clone: None, reason };
        self.counters.count(&answer);
        self.ready.push_back(answer);
    }
}

/// Validates a verdict for the oldest packet.
fn check(
    packet: &Descriptor,
    reply: Reply,
    frame_size: u32,
    policy: Policy,
) -> Result<Answer, ProtocolViolation> {
    let Reply { slot, start, length, .. } = reply;
    if slot != packet.slot {
        return Err(ProtocolViolation::Slot);
    }
    if reply.generation != packet.generation {
        return Err(ProtocolViolation::Generation);
    }
    if start.checked_add(length).is_none_or(|end| end > frame_size) {
        return Err(ProtocolViolation::Length);
    }
    if reply.has_clone > 1 {
        return Err(ProtocolViolation::Verdict);
    }
    let code = Code::decode(reply.verdict, reply.port).ok_or(ProtocolViolation::Verdict)?;
    let (decision, reason) = code.decide(policy);
    let has_clone = reply.has_clone == 1 && reason == Reason::Program;
    let clone = has_clone.then_some(reply.clone_port);
    Ok(Answer { slot, start, length, decision, clone, reason })
}
