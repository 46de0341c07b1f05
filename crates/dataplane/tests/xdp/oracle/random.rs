//! Random frames: mostly valid, with an occasional error in every field.

use std::net::{Ipv4Addr, Ipv6Addr};

use testkit::Random;

use super::network::{BINDING, INSERTING, POLICIES, SIDS};
use super::packets::*;

/// Numbers and choices from a seed.
pub(crate) struct Dice(pub(crate) Random);

impl Dice {
    /// Returns a number below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.0.bits() % bound.max(1) as u64) as usize
    }

    /// Returns true with probability 1/`many`.
    pub(crate) fn one_in(&mut self, many: usize) -> bool {
        self.below(many) == 0
    }

    pub(crate) fn of<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())].clone()
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.0.bits() as u8).collect()
    }

    /// Returns a frame from the left peer to the node.
    pub(crate) fn frame(&mut self) -> Vec<u8> {
        let mut frame = match self.below(8) {
            0..=4 => frame6(&self.endpoints()),
            5 => frame4(&self.tenant4()),
            6 => frame6(&self.tenant6()),
            _ => {
                let (ethertype, length) = (self.of(&[0x0800, 0x86dd, 0x0806]), self.below(80));
                to_node(ethertype, &self.bytes(length))
            }
        };
        if self.one_in(4) {
            self.damage(&mut frame);
        }
        // Limited to the MTU of the peers' links.
        frame.truncate(2014);
        frame
    }

    /// Damages a frame as links and malicious senders do.
    fn damage(&mut self, frame: &mut Vec<u8>) {
        match self.below(8) {
            0 => frame.resize(frame.len().max(60), 0),
            1 => {
                let length = self.below(100);
                let padding = self.bytes(length);
                frame.extend(padding);
            }
            2 | 3 => {
                let at = 14 + self.below(frame.len() - 13);
                frame.truncate(at);
            }
            4 => {
                let tag = self.of(&[0x8100_0000u32, 0x8100_0007, 0x88a8_0064]);
                frame.splice(12..12, tag.to_be_bytes());
            }
            5 => frame[0] ^= self.of(&[1, 4]),
            _ => {
                // In the headers and not in the payload.
                let bound = if self.one_in(2) { 60 } else { 140 }.min(frame.len() - 12);
                let at = 12 + self.below(bound);
                frame[at] = if self.one_in(2) {
                    self.0.bits() as u8
                } else {
                    frame[at] ^ 1 << self.below(8)
                };
            }
        }
    }

    fn address6(&mut self) -> Ipv6Addr {
        let text = match self.below(12) {
            0..=5 => self.of(&["fd00:9::1", "fd00:9::2", "fd00:8::1", "fd00:77::7"]),
            6 | 7 => self.of(&["fd00:a::2", "fd00:b::2", "2001:db8::1", "fd00:3:1::5"]),
            8 => self.of(&["::", "::1", "::7", "::ffff:10.0.0.1", "::10.1.0.1", "100::1"]),
            9 => self.of(&["ff02::1", "ff05::2", "ff0e::1", "ff00::", "ff01::5", "fe80::2"]),
            10 => self.of(&["fec0::1", "fe7f::1", "febf::2", "fd00:dead::1", "fd00:5111::1"]),
            _ => self.of(&["fd00:a::1", "fd00:b::1", "fd00:1::e0", "fd00:1::d4"]),
        };
        text.parse().unwrap()
    }

    fn address4(&mut self) -> Ipv4Addr {
        let text = match self.below(10) {
            0..=6 => self.of(&["10.1.0.1", "10.2.0.1", "10.2.7.7", "192.0.2.1", "10.0.2.2"]),
            7 => self.of(&["0.0.0.0", "0.0.0.1", "127.0.0.1", "169.254.1.1", "10.66.0.1"]),
            8 => self.of(&["224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255"]),
            _ => self.of(&["10.10.1.1", "10.10.5.2", "10.51.0.1", "223.255.255.255"]),
        };
        text.parse().unwrap()
    }

    fn hop_limit(&mut self) -> u8 {
        if self.one_in(6) { self.below(4) as u8 } else { self.of(&[64, 63, 255, 128]) }
    }

    fn length(&mut self) -> usize {
        if self.one_in(8) { 1180 + self.below(640) } else { self.below(80) }
    }

    /// Returns a packet to one of the node's SIDs.
    fn endpoints(&mut self) -> Vec<u8> {
        let sid = self.sid();
        let mut outer = V6::new("fd00:9::1", "::", 43);
        outer.dst = sid;
        (outer.hop_limit, outer.flow) = (self.hop_limit(), self.0.bits() as u32);
        if self.one_in(8) {
            outer.src = self.address6();
        }
        let (mut next_header, mut payload) = self.inner();
        for _ in 0..if self.one_in(12) { 1 + self.below(2) } else { 0 } {
            (next_header, payload) = self.extension(next_header, &payload);
        }
        if !self.one_in(4) {
            payload = self.routing(sid, next_header).with_damage(self, &payload);
            next_header = 43;
        }
        if self.one_in(30) {
            (next_header, payload) = self.extension(next_header, &payload);
        }
        outer.next_header = next_header;
        let mut packet = outer.with(&payload);
        if self.one_in(30) {
            let wrong = self.of(&[0u16, 1, 8, 40, packet.len() as u16, 0xffff]);
            packet[4..6].copy_from_slice(&wrong.to_be_bytes());
        }
        packet
    }

    fn sid(&mut self) -> Ipv6Addr {
        let n = self.below(SIDS.len() + 3);
        let binding = if n == SIDS.len() { INSERTING } else { BINDING };
        let prefix = SIDS.get(n).map_or(binding.0, |sid| sid.0);
        let (text, length) = prefix.split_once('/').unwrap();
        let mut bytes = text.parse::<Ipv6Addr>().unwrap().octets();
        let fixed = length.parse::<usize>().unwrap() / 8;
        for byte in &mut bytes[fixed..] {
            if self.one_in(3) {
                *byte = self.0.bits() as u8;
            }
        }
        if self.one_in(3) {
            bytes[fixed..].fill(0);
        }
        bytes.into()
    }

    fn routing(&mut self, sid: Ipv6Addr, next_header: u8) -> Routing {
        let count = if self.one_in(6) { 1 + self.below(12) } else { 1 + self.below(3) };
        let mut srh = Routing::new(&[], 0, next_header);
        srh.segments = (0..count).map(|_| self.address6()).collect();
        let left = if self.one_in(2) { 0 } else { self.below(count) };
        srh.segments[left] = sid;
        // Reduced: the active segment is not in the list.
        srh.left = if self.one_in(8) { count } else { left } as u8;
        if self.one_in(8) {
            (srh.flags, srh.tag) = (self.0.bits() as u8, self.0.bits() as u16);
        }
        if self.one_in(10) {
            srh.tlvs = self.tlvs();
        }
        srh
    }

    /// Returns padding, an HMAC (RFC 8754 section 2.1.2), or invalid TLVs.
    fn tlvs(&mut self) -> Vec<u8> {
        match self.below(4) {
            0 => vec![4, 6, 0, 0, 0, 0, 0, 0],
            1 => [&[5, 38, 0, 0, 0, 0, 0, 7][..], &self.bytes(32)].concat(),
            2 => vec![0; 8],
            _ => {
                let words = self.below(4);
                self.bytes(8 * words)
            }
        }
    }

    fn extension(&mut self, next_header: u8, payload: &[u8]) -> (u8, Vec<u8>) {
        match self.below(6) {
            0 => (0, [&[next_header, 0, 1, 4, 0, 0, 0, 0], payload].concat()),
            1 => (0, [&[next_header, 0, 5, 2, 0, 0, 1, 0], payload].concat()),
            2 => (60, [&[next_header, 0, 1, 4, 0, 0, 0, 0], payload].concat()),
            3 => (44, [&[next_header, 0, 0, self.below(3) as u8, 0, 0, 0, 1], payload].concat()),
            4 => (51, [&[next_header, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1], payload].concat()),
            _ => (43, [&[next_header, 2, 2, 0, 0, 0, 0, 0], &[7; 16][..], payload].concat()),
        }
    }

    /// Returns an inner packet: next header and bytes.
    fn inner(&mut self) -> (u8, Vec<u8>) {
        match self.below(10) {
            0..=3 => (4, self.ipv4()),
            4..=6 => (41, self.ipv6()),
            7 => {
                let inner = self.ipv4();
                let ethertype = self.of(&[0x0800, 0x86dd, 0x8100, 0x0806, 0x600]);
                (143, ethernet(&[], ethertype, &inner))
            }
            8 => (self.of(&[17, 58, 59, 6, 255]), udp(self.below(60))),
            _ => {
                let length = self.below(60);
                (self.of(&[4, 41, 143]), self.bytes(length))
            }
        }
    }

    fn ipv4(&mut self) -> Vec<u8> {
        let mut v4 = V4::new("10.1.0.1", "10.2.0.1");
        if self.one_in(3) {
            (v4.src, v4.dst) = (self.address4(), self.address4());
        }
        self.finish4(v4)
    }

    fn finish4(&mut self, mut v4: V4) -> Vec<u8> {
        (v4.ttl, v4.tos) = (self.hop_limit(), self.of(&[0, 0, 4, 0xb8, 0xff, 1]));
        v4.protocol = self.of(&[17, 17, 6, 1, 4, 255]);
        if self.one_in(6) {
            v4.fragment = self.of(&[0, 0x2000, 0x2001, 0x0005, 0x8000, 0xffff]);
        }
        if self.one_in(12) {
            let words = 1 + self.below(10);
            v4.options = if self.one_in(2) { vec![1; 4 * words] } else { self.bytes(4 * words) };
        }
        let payload = udp(self.length());
        let mut packet = v4.with(&payload);
        if self.one_in(20) {
            let at = self.of(&[0, 2, 3, 10, 11]);
            packet[at] ^= 1 << self.below(8);
        }
        packet
    }

    fn ipv6(&mut self) -> Vec<u8> {
        let mut v6 = V6::new("fd00:9::9", "fd00:8::9", 17);
        if self.one_in(3) {
            (v6.src, v6.dst) = (self.address6(), self.address6());
        }
        self.finish6(v6)
    }

    fn finish6(&mut self, mut v6: V6) -> Vec<u8> {
        (v6.hop_limit, v6.flow) = (self.hop_limit(), self.0.bits() as u32);
        let mut payload = udp(self.length());
        if self.one_in(8) {
            (v6.next_header, payload) = self.extension(17, &payload);
        }
        let mut packet = v6.with(&payload);
        if self.one_in(20) {
            let at = self.of(&[0, 4, 5]);
            packet[at] ^= 1 << self.below(8);
        }
        packet
    }

    /// Returns a packet that matches a policy.
    fn tenant4(&mut self) -> Vec<u8> {
        let mut v4 = V4::new("10.1.0.1", "10.10.0.9");
        if self.one_in(5) {
            v4.src = self.address4();
        }
        v4.dst = Ipv4Addr::new(10, 10, self.below(POLICIES.len() + 1) as u8, self.0.bits() as u8);
        self.finish4(v4)
    }

    fn tenant6(&mut self) -> Vec<u8> {
        let mut v6 = V6::new("fd00:9::1", "fd00:3::9", 17);
        if self.one_in(5) {
            v6.src = self.address6();
        }
        let n = self.below(POLICIES.len() + 1) as u16;
        v6.dst = Ipv6Addr::from([0xfd00, 3, n, 0, 0, 0, 0, self.0.bits() as u16]);
        self.finish6(v6)
    }
}

impl Routing {
    /// Returns the header followed by `payload`, occasionally with an invalid field.
    fn with_damage(&self, dice: &mut Dice, payload: &[u8]) -> Vec<u8> {
        let mut bytes = self.with(payload);
        if dice.one_in(10) {
            // Length, type, Segments Left, Last Entry.
            let at = dice.of(&[1, 1, 2, 3, 3, 4, 4]);
            bytes[at] = match dice.below(4) {
                0 => bytes[at].wrapping_add(1),
                1 => bytes[at].wrapping_sub(1),
                2 => dice.of(&[0, 1, 2, 3, 4, 127, 128, 254, 255]),
                _ => dice.0.bits() as u8,
            };
        }
        bytes
    }
}
