//! Packets in flight.

use std::collections::VecDeque;
use std::time::Instant;

use crate::rings::Descriptor;

/// State of a frame.
#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    /// Number of packets submitted in this frame, modulo 2^32.
    generation: u32,
    is_flying: bool,
}

/// Packets in flight, oldest first. Verdicts arrive in the same order.
#[derive(Debug)]
pub(crate) struct Flights {
    /// Number of the first frame.
    first: u32,
    slots: Box<[Slot]>,
    queue: VecDeque<Descriptor>,
    /// Batches published to the process: number of the last packet, and time of publication.
    shown: VecDeque<(u64, Instant)>,
    /// Number of packets pushed and popped.
    came: u64,
    went: u64,
}

impl Flights {
    /// Creates the state of `slots` frames from number `first` on, for at most `most` packets.
    pub(crate) fn new(first: u32, slots: u32, most: u32) -> Self {
        Self {
            first,
            slots: vec![Slot::default(); slots as usize].into(),
            queue: VecDeque::with_capacity(most as usize),
            shown: VecDeque::new(),
            came: 0,
            went: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    /// Numbers of the frames.
    pub(crate) fn slots(&self) -> std::ops::Range<u32> {
        self.first..self.first + self.slots.len() as u32
    }

    /// Returns true if the frame exists and its packet is not in flight.
    pub(crate) fn is_free(&self, slot: u32) -> bool {
        let at = slot.checked_sub(self.first);
        at.and_then(|at| self.slots.get(at as usize)).is_some_and(|slot| !slot.is_flying)
    }

    /// Adds a packet in a free frame; returns it with its generation.
    pub(crate) fn push(&mut self, mut packet: Descriptor) -> Descriptor {
        let slot = &mut self.slots[(packet.slot - self.first) as usize];
        slot.generation = slot.generation.wrapping_add(1);
        slot.is_flying = true;
        packet.generation = slot.generation;
        self.queue.push_back(packet);
        self.came += 1;
        packet
    }

    /// Records that all packets so far have been published to the process.
    pub(crate) fn show(&mut self, now: Instant) {
        if self.shown.back().is_none_or(|(to, _)| *to < self.came) {
            self.shown.push_back((self.came, now));
        }
    }

    /// Oldest packet.
    pub(crate) fn front(&self) -> Option<&Descriptor> {
        self.queue.front()
    }

    /// Publication time of the oldest packet.
    pub(crate) fn since(&self) -> Option<Instant> {
        self.shown.front().map(|(_, since)| *since)
    }

    /// Removes the oldest packet.
    pub(crate) fn pop(&mut self) -> Option<Descriptor> {
        let packet = self.queue.pop_front()?;
        self.slots[(packet.slot - self.first) as usize].is_flying = false;
        self.went += 1;
        while self.shown.front().is_some_and(|(to, _)| *to <= self.went) {
            self.shown.pop_front();
        }
        Some(packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_go_in_their_order_and_slots_are_used_once() {
        let mut flights = Flights::new(0, 2, 4);
        let packet =
            |slot| Descriptor { slot, generation: 0, start: 1, length: 2, port: 3, at_ns: None };
        assert!(flights.is_free(1) && !flights.is_free(2));
        assert_eq!(flights.push(packet(1)).generation, 1);
        assert!(!flights.is_free(1) && flights.since().is_none());
        let now = Instant::now();
        flights.show(now);
        flights.show(now);
        assert_eq!(flights.since(), Some(now));
        flights.push(packet(0));
        assert_eq!(flights.pop().map(|packet| packet.slot), Some(1));
        assert_eq!((flights.since(), flights.len()), (None, 1));
        assert_eq!(flights.push(packet(1)).generation, 2);
        assert_eq!(flights.front().map(|packet| packet.slot), Some(0));
    }

    #[test]
    fn frames_of_other_queues_are_not_free() {
        let flights = Flights::new(4, 4, 4);
        let free: Vec<u32> = (0..12).filter(|slot| flights.is_free(*slot)).collect();
        assert_eq!(free, [4, 5, 6, 7]);
    }
}
