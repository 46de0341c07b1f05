//! ICMP requests to the router itself: echo and neighbor discovery.

use std::net::Ipv4Addr;

use wire::{Checksum, ETHERNET, Ipv6Packet, protocol, transport_checksum};

use super::{Arrival, Outbox, Router};
use crate::Packet;

const ECHO: u8 = 8;
const ECHO_REPLY: u8 = 0;
const ECHO6: u8 = 128;
const ECHO_REPLY6: u8 = 129;

impl Router {
    pub(super) fn icmp4(
        &mut self,
        arrival: Arrival,
        from: Ipv4Addr,
        to: Ipv4Addr,
        icmp: &[u8],
        out: &mut Outbox,
    ) {
        if Checksum::default().with(icmp).finish() != 0 {
            return;
        }
        if let [ECHO, 0, _, _, a, b, c, d, payload @ ..] = icmp {
            let (rest, payload) = (u32::from_be_bytes([*a, *b, *c, *d]), payload.to_vec());
            self.send_icmp4(arrival, (to, from), [ECHO_REPLY, 0], rest, &payload, out);
        }
    }

    pub(super) fn icmp6(&mut self, arrival: Arrival, packet: &Packet, out: &mut Outbox) {
        let Ok(ip) = Ipv6Packet::new_checked(&packet.bytes()[ETHERNET..]) else { return };
        let (from, to, icmp) = (ip.src(), ip.dst(), ip.payload());
        if transport_checksum(from.into(), to.into(), protocol::ICMPV6, icmp) != Some(0) {
            return;
        }
        match icmp {
            [ECHO6, 0, _, _, body @ ..] if !to.is_multicast() => {
                self.send_icmp6(arrival, (to, from), [ECHO_REPLY6, 0], body, 64, out);
            }
            // Accept neighbor discovery from on-link nodes only: a forwarded packet has a lower
            // hop limit (RFC 4861 section 7.1).
            _ if ip.hop_limit() == 255 => self.ndp(arrival, from, icmp, out),
            _ => {}
        }
    }
}
