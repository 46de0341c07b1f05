//! IPv6 forwarding (RFC 8200).

use std::net::{IpAddr, Ipv6Addr};

use wire::{ETHERNET, Ipv6Packet, protocol};

use super::errors::Problem;
use super::{Arrival, Outbox, Router, Stop, is_not_unicast};
use crate::Packet;

const HOP_LIMIT: usize = 7;

impl Router {
    pub(super) fn ipv6(&mut self, arrival: Arrival, mut packet: Packet, out: &mut Outbox) {
        let Ok(ip) = Ipv6Packet::new_checked(&packet.bytes()[ETHERNET..]) else {
            return self.stop(Stop::Malformed);
        };
        let (from, to, hops) = (ip.src(), ip.dst(), ip.hop_limit());
        let known = self.known_way(to.into());
        let is_own = known.is_none() && self.is_own(to.into());
        if is_own || (to.is_multicast() && self.listens(arrival.interface, to)) {
            return self.taken6(arrival, &packet, out);
        }
        let is_local = |address: Ipv6Addr| address.is_unicast_link_local();
        let is_of_link = is_local(from) || is_local(to);
        if arrival.is_for_many
            || is_not_unicast(to.into())
            || is_not_unicast(from.into())
            || is_of_link
        {
            return self.stop(Stop::NotForIt);
        }
        if hops <= 1 {
            self.stop(Stop::HopLimit);
            return self.say(arrival, &packet, Problem::HopLimit, out);
        }
        let Some((interface, hop)) = known.or_else(|| self.way(IpAddr::V6(to))) else {
            self.stop(Stop::NoRoute);
            return self.say(arrival, &packet, Problem::NoRoute, out);
        };
        let mtu = self.interfaces[interface].mtu;
        if packet.network_length() > usize::from(mtu) {
            self.stop(Stop::TooBig);
            return self.say(arrival, &packet, Problem::TooBig { mtu }, out);
        }
        packet.bytes_mut()[ETHERNET + HOP_LIMIT] -= 1;
        self.pass(arrival.now, interface, hop, packet, out);
    }

    /// Returns true if the interface is a member of a multicast group: all nodes, all routers, and
    /// the solicited-node groups of its own addresses (RFC 4291 section 2.8).
    fn listens(&self, interface: usize, group: Ipv6Addr) -> bool {
        const ALL: [Ipv6Addr; 2] = [
            Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1),
            Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2),
        ];
        let own = &self.interfaces[interface].addresses;
        ALL.contains(&group)
            || own.iter().any(|net| match net.addr() {
                IpAddr::V6(own) => super::ndp::group_of(own) == group,
                IpAddr::V4(_) => false,
            })
    }

    /// Handles a packet addressed to the router.
    fn taken6(&mut self, arrival: Arrival, packet: &Packet, out: &mut Outbox) {
        self.stop(Stop::Taken);
        let Ok(ip) = Ipv6Packet::new_checked(&packet.bytes()[ETHERNET..]) else { return };
        match ip.next_header() {
            protocol::ICMPV6 => self.icmp6(arrival, packet, out),
            _ if ip.dst().is_multicast() => {}
            protocol::UDP => self.say(arrival, packet, Problem::NoPort, out),
            _ => self.say(arrival, packet, Problem::NoProtocol, out),
        }
    }
}
