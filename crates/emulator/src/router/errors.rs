//! ICMP errors for packets that a router cannot forward (RFC 792, RFC 1812 section 4.3, RFC 4443).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use wire::{Checksum, ETHERNET, Ipv4, Ipv4Packet, Ipv6, Ipv6Packet, protocol, transport_checksum};

use super::{Arrival, Outbox, Router, is_not_unicast};
use crate::Packet;

/// Error condition of a packet.
#[derive(Debug, Clone, Copy)]
pub(super) enum Problem {
    HopLimit,
    NoRoute,
    NoHost,
    NoPort,
    NoProtocol,
    TooBig { mtu: u16 },
}

/// Maximum length of an ICMPv4 error (RFC 1812 section 4.3.2.3).
const LONGEST4: usize = 576;
/// Maximum length of an ICMPv6 error: the minimum IPv6 MTU (RFC 4443 section 3.1).
const LONGEST6: usize = 1280;

/// The header of an ICMP error, without the checksum.
#[derive(Debug, Clone, Copy)]
struct Icmp {
    kind: u8,
    code: u8,
    /// The four bytes after the checksum.
    rest: u32,
}

fn icmp(kind: u8, code: u8, rest: u32) -> Icmp {
    Icmp { kind, code, rest }
}

impl Problem {
    /// Returns the ICMP header of the error.
    fn icmp4(self) -> Icmp {
        match self {
            Self::HopLimit => icmp(11, 0, 0),
            Self::NoRoute => icmp(3, 0, 0),
            Self::NoHost => icmp(3, 1, 0),
            Self::NoProtocol => icmp(3, 2, 0),
            Self::NoPort => icmp(3, 3, 0),
            // RFC 1191 section 4.
            Self::TooBig { mtu } => icmp(3, 4, mtu.into()),
        }
    }

    /// Returns the ICMPv6 header of the error.
    fn icmp6(self) -> Icmp {
        match self {
            Self::HopLimit => icmp(3, 0, 0),
            Self::NoRoute => icmp(1, 0, 0),
            Self::NoHost => icmp(1, 3, 0),
            Self::NoPort => icmp(1, 4, 0),
            // Pointer to the Next Header field.
            Self::NoProtocol => icmp(4, 1, 6),
            Self::TooBig { mtu } => icmp(2, 0, mtu.into()),
        }
    }
}

impl Router {
    /// Sends a Host or Address Unreachable error because the next hop does not respond.
    pub(super) fn send_unreachable(&mut self, arrival: Arrival, packet: &Packet, out: &mut Outbox) {
        // The router does not send errors to itself.
        let ip = &packet.bytes()[ETHERNET..];
        let from = match ip.first().map(|first| first >> 4) {
            Some(4) => Ipv4Packet::new_checked(ip).map(|ip| IpAddr::V4(ip.src())).ok(),
            _ => Ipv6Packet::new_checked(ip).map(|ip| IpAddr::V6(ip.src())).ok(),
        };
        if from.is_some_and(|from| !self.is_own(from)) {
            self.say(arrival, packet, Problem::NoHost, out);
        }
    }

    /// Sends an ICMP error to the packet's source, within the rate limit of the interface.
    pub(super) fn say(
        &mut self,
        arrival: Arrival,
        packet: &Packet,
        problem: Problem,
        out: &mut Outbox,
    ) {
        let budget = match problem {
            // `arrival.interface` is the neighbor's.
            Problem::NoHost => &mut self.unreachable[arrival.interface],
            _ => &mut self.errors[arrival.interface],
        };
        if !budget.take(arrival.now) {
            return;
        }
        // Report the first segment on behalf of all.
        let mut first = None;
        packet.clone().split(|mut piece| {
            if first.is_none() {
                piece.finish();
                first = Some(piece);
            }
        });
        let Some(packet) = first else { return };
        let ip = &packet.bytes()[ETHERNET..];
        if ip.first().is_some_and(|first| first >> 4 == 4) {
            self.say4(arrival, ip, problem, out);
        } else {
            self.say6(arrival, ip, problem, out);
        }
    }

    fn say4(&mut self, arrival: Arrival, packet: &[u8], problem: Problem, out: &mut Outbox) {
        let Ok(ip) = Ipv4Packet::new_checked(packet) else { return };
        let to = ip.src();
        // No errors about ICMP errors, about fragments other than the first, or about packets to a
        // broadcast or multicast address.
        let is_error = ip.protocol() == protocol::ICMP
            && !ip.payload().first().is_some_and(|kind| [0, 8].contains(kind));
        let is_for_many = arrival.is_for_many || is_not_unicast(ip.dst().into());
        if is_error || ip.fragment_offset() > 0 || is_for_many || is_not_unicast(to.into()) {
            return;
        }
        let Some(IpAddr::V4(from)) = self.source(arrival.interface, to.into()) else { return };
        let length = usize::from(ip.total_len()).min(LONGEST4 - 20 - 8);
        let Icmp { kind, code, rest } = problem.icmp4();
        let quoted = packet[..length.min(packet.len())].to_vec();
        self.send_icmp4(arrival, (from, to), [kind, code], rest, &quoted, out);
    }

    pub(super) fn send_icmp4(
        &mut self,
        arrival: Arrival,
        (from, to): (Ipv4Addr, Ipv4Addr),
        kind_and_code: [u8; 2],
        rest: u32,
        payload: &[u8],
        out: &mut Outbox,
    ) {
        let mut icmp = kind_and_code.to_vec();
        icmp.extend([0, 0]);
        icmp.extend(rest.to_be_bytes());
        icmp.extend(payload);
        let sum = Checksum::default().with(&icmp).finish();
        icmp[2..4].copy_from_slice(&sum.to_be_bytes());
        if let Ok(ip) = Ipv4::new(from, to, protocol::ICMP).around(&icmp) {
            self.make(arrival.now, &ip, to.into(), None, out);
        }
    }

    fn say6(&mut self, arrival: Arrival, packet: &[u8], problem: Problem, out: &mut Outbox) {
        let Ok(ip) = Ipv6Packet::new_checked(packet) else { return };
        let to = ip.src();
        let is_error = ip.next_header() == protocol::ICMPV6
            && ip.payload().first().is_some_and(|kind| *kind < 128);
        // Packet Too Big is also sent for multicast packets (RFC 4443 section 2.4).
        let is_for_many = (arrival.is_for_many || ip.dst().is_multicast())
            && !matches!(problem, Problem::TooBig { .. });
        if is_error || is_for_many || is_not_unicast(to.into()) {
            return;
        }
        let Some(IpAddr::V6(from)) = self.source(arrival.interface, to.into()) else { return };
        let Icmp { kind, code, rest } = problem.icmp6();
        let quoted = packet[..packet.len().min(LONGEST6 - 40 - 8)].to_vec();
        let mut body = rest.to_be_bytes().to_vec();
        body.extend(quoted);
        self.send_icmp6(arrival, (from, to), [kind, code], &body, 64, out);
    }

    /// Sends an ICMPv6 message. `body` follows the checksum.
    pub(super) fn send_icmp6(
        &mut self,
        arrival: Arrival,
        (from, to): (Ipv6Addr, Ipv6Addr),
        kind_and_code: [u8; 2],
        body: &[u8],
        hop_limit: u8,
        out: &mut Outbox,
    ) {
        let ip = icmp6(from, to, kind_and_code, body, hop_limit);
        let by = to.is_unicast_link_local().then_some(arrival.interface);
        self.make(arrival.now, &ip, to.into(), by, out);
    }
}

/// Builds an ICMPv6 packet.
pub(super) fn icmp6(
    from: Ipv6Addr,
    to: Ipv6Addr,
    kind_and_code: [u8; 2],
    body: &[u8],
    hop_limit: u8,
) -> Vec<u8> {
    let mut icmp = kind_and_code.to_vec();
    icmp.extend([0, 0]);
    icmp.extend(body);
    let sum = transport_checksum(from.into(), to.into(), protocol::ICMPV6, &icmp);
    icmp[2..4].copy_from_slice(&sum.expect("both are IPv6").to_be_bytes());
    let ip = Ipv6 { hop_limit, ..Ipv6::new(from, to, protocol::ICMPV6) };
    ip.around(&icmp).expect("an ICMPv6 message is short")
}
