//! Packets in flight.

use std::collections::VecDeque;
use std::time::Instant;

use super::rings::Descriptor;

/// State of a frame.
#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    /// Number of packets submitted in this frame, modulo 2^32.
    generation: u32,
    is_flying: bool,
}

/// Packets in flight, oldest first. Verdicts arrive in the same order.
#[derive(Debug)]
pub(super) struct Flights {
    slots: Box<[Slot]>,
    queue: VecDeque<Descriptor>,
    /// Batches published to the process: number of the last packet, and time of publication.
    shown: VecDeque<(u64, Instant)>,
    /// Number of packets pushed and popped.
    came: u64,
    went: u64,
}

impl Flights {
    pub(super) fn new(slots: u32, most: u32) -> Self {
        Self {
            slots: vec![Slot::default(); slots as usize].into(),
            queue: VecDeque::with_capacity(most as usize),
            shown: VecDeque::new(),
            came: 0,
            went: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    /// Returns true if the frame exists and its packet is not in flight.
    pub(super) fn is_free(&self, slot: u32) -> bool {
        self.slots.get(slot as usize).is_some_and(|slot| !slot.is_flying)
    }

    /// Adds a packet in a free frame; returns it with its generation.
    pub(super) fn push(&mut self, mut packet: Descriptor) -> Descriptor {
        let slot = &mut self.slots[packet.slot as usize];
        slot.generation = slot.generation.wrapping_add(1);
        slot.is_flying = true;
        packet.generation = slot.generation;
        self.queue.push_back(packet);
        self.came += 1;
        packet
    }

    /// Records that all packets so far have been published to the process.
    pub(super) fn show(&mut self, now: Instant) {
        if self.shown.back().is_none_or(|(to, _)| *to < self.came) {
            self.shown.push_back((self.came, now));
        }
    }

    /// Oldest packet.
    pub(super) fn front(&self) -> Option<&Descriptor> {
        self.queue.front()
    }

    /// Publication time of the oldest packet.
    pub(super) fn since(&self) -> Option<Instant> {
        self.shown.front().map(|(_, since)| *since)
    }

    /// Removes the oldest packet.
    pub(super) fn pop(&mut self) -> Option<Descriptor> {
        let packet = self.queue.pop_front()?;
        self.slots[packet.slot as usize].is_flying = false;
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
        let mut flights = Flights::new(2, 4);
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
}
