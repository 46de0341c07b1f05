//! IPv4 forwarding (RFC 1812 section 5.2).

use std::net::IpAddr;

use wire::{Checksum, ETHERNET, Ipv4Packet, protocol};

use super::errors::Problem;
use super::{Arrival, Outbox, Router, Stop, is_not_unicast};
use crate::Packet;

/// Field offsets in the header.
const LENGTH: usize = 2;
const FRAGMENT: usize = 6;
const TTL: usize = 8;
const CHECKSUM: usize = 10;

const MORE_FRAGMENTS: u16 = 0x2000;

impl Router {
    pub(super) fn ipv4(&mut self, arrival: Arrival, packet: Packet, out: &mut Outbox) {
        let Ok(ip) = Ipv4Packet::new_checked(&packet.bytes()[ETHERNET..]) else {
            return self.stop(Stop::Malformed);
        };
        if !ip.checksum_ok() {
            return self.stop(Stop::Malformed);
        }
        let (to, ttl, cuttable) = (IpAddr::V4(ip.dst()), ip.ttl(), !ip.dont_fragment());
        let known = self.known_way(to);
        if known.is_none() && self.is_own(to) {
            return self.taken4(arrival, &packet, out);
        }
        // Broadcast and multicast packets are not forwarded.
        let is_nobody = known.is_none() && is_not_unicast(to);
        if arrival.is_for_many || is_nobody || is_not_unicast(ip.src().into()) {
            return self.stop(Stop::NotForIt);
        }
        if ttl <= 1 {
            self.stop(Stop::HopLimit);
            return self.say(arrival, &packet, Problem::HopLimit, out);
        }
        let Some((interface, hop)) = known.or_else(|| self.way(to)) else {
            self.stop(Stop::NoRoute);
            return self.say(arrival, &packet, Problem::NoRoute, out);
        };
        let mtu = self.interfaces[interface].mtu;
        let is_too_big = packet.network_length() > usize::from(mtu);
        if is_too_big && !cuttable {
            self.stop(Stop::TooBig);
            return self.say(arrival, &packet, Problem::TooBig { mtu }, out);
        }
        let mut packet = packet;
        one_hop_less(&mut packet.bytes_mut()[ETHERNET..]);
        if !is_too_big {
            return self.pass(arrival.now, interface, hop, packet, out);
        }
        let mut pieces = Vec::new();
        packet.split(|mut whole| {
            whole.finish();
            fragment(&whole, mtu, &mut pieces);
        });
        self.counts.made += pieces.len().saturating_sub(1) as u64;
        for piece in pieces {
            self.pass(arrival.now, interface, hop, piece, out);
        }
    }

    /// Handles a packet addressed to the router.
    fn taken4(&mut self, arrival: Arrival, packet: &Packet, out: &mut Outbox) {
        self.stop(Stop::Taken);
        let Ok(ip) = Ipv4Packet::new_checked(&packet.bytes()[ETHERNET..]) else { return };
        match ip.protocol() {
            protocol::ICMP => self.icmp4(arrival, ip.src(), ip.dst(), ip.payload(), out),
            protocol::UDP => self.say(arrival, packet, Problem::NoPort, out),
            _ => self.say(arrival, packet, Problem::NoProtocol, out),
        }
    }
}

/// Decrements the TTL and updates the checksum (RFC 1624).
fn one_hop_less(ip: &mut [u8]) {
    ip[TTL] -= 1;
    let sum = u16::from_be_bytes([ip[CHECKSUM], ip[CHECKSUM + 1]]);
    // The TTL is the high byte of its 16-bit word.
    let (sum, carry) = sum.overflowing_add(0x0100);
    put(ip, CHECKSUM, sum + u16::from(carry));
}

fn put(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

/// Fragments a packet to the MTU (RFC 791 section 3.2). Only the first fragment keeps the options.
fn fragment(packet: &Packet, mtu: u16, pieces: &mut Vec<Packet>) {
    let bytes = packet.bytes();
    let Ok(ip) = Ipv4Packet::new_checked(&bytes[ETHERNET..]) else { return };
    let header = ip.header_len();
    let (start, was_last) = (ip.fragment_offset(), !ip.more_fragments());
    // Fragment offsets are in units of eight bytes.
    let size = (usize::from(mtu).saturating_sub(header) / 8 * 8).max(8);
    let payload = ip.payload();
    let count = payload.len().div_ceil(size);
    for (number, part) in payload.chunks(size).enumerate() {
        let mut frame = bytes[..ETHERNET + header].to_vec();
        frame.extend(part);
        let ip = &mut frame[ETHERNET..];
        put(ip, LENGTH, (header + part.len()) as u16);
        let more = number + 1 < count || !was_last;
        let offset = start + (number * size / 8) as u16;
        put(ip, FRAGMENT, offset | if more { MORE_FRAGMENTS } else { 0 });
        if number > 0 {
            // Replace the options with no-operation options to keep the header length.
            ip[20..header].fill(1);
        }
        put(ip, CHECKSUM, 0);
        let sum = Checksum::default().with(&ip[..header]).finish();
        put(ip, CHECKSUM, sum);
        pieces.extend(Packet::new(&frame));
    }
}
