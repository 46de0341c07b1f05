//! A learning switch (IEEE 802.1D section 7).

use std::collections::HashMap;

use wire::{EthernetPacket, Mac};

use crate::{Nanos, Packet};

/// How long a station is remembered (section 7.9.2).
const AGE: Nanos = 300_000_000_000;

/// What a switch has done so far: `received + copied` is what was sent and what went nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SwitchCounts {
    /// Frames that came in.
    pub received: u64,
    /// Frames that it made of others, to send them by more than one interface.
    pub copied: u64,
    /// Frames that went out.
    pub sent: u64,
    /// Frames for somebody behind the interface where they came from.
    pub stopped: u64,
}

/// A switch.
#[derive(Debug, Clone)]
pub struct Switch {
    interfaces: usize,
    stations: HashMap<Mac, (usize, Nanos), foldhash::fast::RandomState>,
    counts: SwitchCounts,
}

impl Switch {
    /// One with so many interfaces.
    pub fn new(interfaces: usize) -> Self {
        Self { interfaces, stations: HashMap::default(), counts: SwitchCounts::default() }
    }

    /// What it has done so far.
    pub fn counts(&self) -> &SwitchCounts {
        &self.counts
    }

    /// What came in or was made here, and what became of it: as much, at every moment.
    pub fn account(&self) -> (u64, u64) {
        let counts = &self.counts;
        (counts.received + counts.copied, counts.sent + counts.stopped)
    }

    /// Takes a frame that came in by an interface.
    pub(crate) fn receive(
        &mut self,
        now: Nanos,
        interface: usize,
        packet: Packet,
        out: &mut Vec<(usize, Packet)>,
    ) {
        let count = u64::from(packet.count());
        self.counts.received += count;
        let Ok(ethernet) = EthernetPacket::new_checked(packet.bytes()) else {
            self.counts.stopped += count;
            return;
        };
        let (from, to) = (ethernet.src(), ethernet.dst());
        if from.0[0] & 1 == 0 {
            self.stations.insert(from, (interface, now));
        }
        let known = self.stations.get(&to).filter(|(_, since)| now.saturating_sub(*since) < AGE);
        let before = out.len();
        match known {
            Some((at, _)) if *at != interface => out.push((*at, packet)),
            Some(_) => {}
            None => {
                let others = (0..self.interfaces).filter(|other| *other != interface);
                out.extend(others.map(|other| (other, packet.clone())));
            }
        }
        match (out.len() - before) as u64 {
            0 => self.counts.stopped += count,
            sent => {
                self.counts.sent += sent * count;
                self.counts.copied += (sent - 1) * count;
            }
        }
    }
}
