//! A learning switch (IEEE 802.1D section 7).

use std::collections::HashMap;

use wire::{EthernetPacket, Mac};

use crate::{Account, Nanos, Packet};

/// Ageing time of a MAC address (section 7.9.2).
const AGE: Nanos = 300_000_000_000;
/// Maximum number of MAC addresses. Frames to any further address are flooded.
const MAX_ADDRESSES: usize = 4096;

/// Frame counters of a switch. `received + copied` equals the frames sent and stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SwitchCounts {
    /// Frames received.
    pub received: u64,
    /// Additional copies of flooded frames.
    pub copied: u64,
    /// Frames sent.
    pub sent: u64,
    /// Frames not forwarded: the destination is on the receiving port, or the frame is malformed.
    pub stopped: u64,
}

/// A learning switch.
#[derive(Debug, Clone)]
pub struct Switch {
    interfaces: usize,
    stations: HashMap<Mac, (usize, Nanos), foldhash::fast::RandomState>,
    /// Time before which no entry can have aged out.
    none_old_until: Nanos,
    counts: SwitchCounts,
}

impl Switch {
    /// Creates a switch with this number of interfaces.
    pub fn new(interfaces: usize) -> Self {
        let (stations, counts) = (HashMap::default(), SwitchCounts::default());
        Self { interfaces, stations, none_old_until: 0, counts }
    }

    /// Returns the frame counters.
    pub fn counts(&self) -> &SwitchCounts {
        &self.counts
    }

    /// Compares the frames received or copied with those accounted for.
    pub fn account(&self) -> Account {
        let counts = &self.counts;
        Account {
            entered: counts.received + counts.copied,
            accounted: counts.sent + counts.stopped,
        }
    }

    /// Learns a new MAC address if there is room.
    fn learn(&mut self, now: Nanos, station: Mac, interface: usize) {
        if self.stations.len() >= MAX_ADDRESSES && now >= self.none_old_until {
            self.stations.retain(|_, (_, since)| now.saturating_sub(*since) < AGE);
            let oldest = self.stations.values().map(|(_, since)| *since).min();
            self.none_old_until = oldest.unwrap_or(now).saturating_add(AGE);
        }
        if self.stations.len() < MAX_ADDRESSES {
            self.stations.insert(station, (interface, now));
        }
    }

    /// Receives a frame on an interface.
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
            match self.stations.get_mut(&from) {
                Some(station) => *station = (interface, now),
                None => self.learn(now, from, interface),
            }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the interfaces that a frame from one station to another leaves by.
    fn goes(switch: &mut Switch, now: Nanos, at: usize, from: u32, to: u32) -> Vec<usize> {
        let mac = |n: u32| [&[2, 0][..], &n.to_be_bytes()].concat();
        let bytes = [mac(to), mac(from), vec![8, 0]].concat();
        let packet = Packet::new(&bytes).expect("it has an Ethernet header");
        let mut out = Vec::new();
        switch.receive(now, at, packet, &mut out);
        out.into_iter().map(|(interface, _)| interface).collect()
    }

    #[test]
    fn as_many_stations_as_there_is_room_for_are_remembered() {
        let (mut switch, nobody, most) = (Switch::new(3), u32::MAX, MAX_ADDRESSES as u32);
        for n in 0..2 * most {
            goes(&mut switch, n.into(), 1, n, nobody);
        }
        assert_eq!(switch.stations.len(), MAX_ADDRESSES);
        let now = 2 * u64::from(most);
        assert_eq!(goes(&mut switch, now, 0, 0, most - 1), [1]);
        assert_eq!(goes(&mut switch, now, 0, 0, most), [1, 2], "it goes everywhere");
        // A known station may move, and a silent one ages out.
        assert_eq!(goes(&mut switch, now, 2, 1, 0), [0]);
        assert_eq!(goes(&mut switch, now + AGE - 1, 2, most, nobody), [0, 1]);
        assert_eq!(switch.stations.len(), 3, "{:?}", switch.stations);
        assert_eq!(goes(&mut switch, now + AGE - 1, 0, 0, most), [2]);
    }
}
