//! ARP (RFC 826).

use std::net::{IpAddr, Ipv4Addr};

use wire::{ETHERNET, Mac, ethertype};

use super::{Arrival, Outbox, Router, Stop};
use crate::Packet;

/// Hardware type, protocol type and address lengths of Ethernet and IPv4.
const KINDS: [u8; 6] = [0, 1, 8, 0, 6, 4];
const REQUEST: u16 = 1;
const REPLY: u16 = 2;
const LENGTH: usize = 28;

impl Router {
    pub(super) fn arp(&mut self, arrival: Arrival, packet: &Packet, out: &mut Outbox) {
        let Some(arp) = packet.bytes()[ETHERNET..].first_chunk::<LENGTH>() else {
            return self.stop(Stop::Malformed);
        };
        if arp[..6] != KINDS {
            return self.stop(Stop::Malformed);
        }
        self.stop(Stop::Taken);
        let operation = u16::from_be_bytes([arp[6], arp[7]]);
        let mac = |at: usize| Mac(arp[at..at + 6].try_into().expect("six bytes"));
        let address = |at: usize| Ipv4Addr::from(*arp[at..].first_chunk().expect("four bytes"));
        let (who, sender, wanted) = (mac(8), address(14), address(24));
        let own = &self.interfaces[arrival.interface].addresses;
        let is_asked = own.iter().any(|net| net.addr() == IpAddr::V4(wanted));
        // An ARP probe has no sender address (RFC 5227).
        if !sender.is_unspecified() {
            self.learn(arrival, sender.into(), who, is_asked, out);
        }
        if operation == REQUEST && is_asked {
            let mac = self.interfaces[arrival.interface].mac;
            let reply = message(REPLY, (mac, wanted), (who, sender));
            self.put_new(arrival.interface, who, ethertype::ARP, &reply, out);
        }
    }

    /// Sends an ARP request for an address: broadcast, or unicast to `who` (RFC 1122 section
    /// 2.3.2.1).
    pub(super) fn ask4(
        &mut self,
        interface: usize,
        address: Ipv4Addr,
        who: Option<Mac>,
        out: &mut Outbox,
    ) {
        let Some(IpAddr::V4(own)) = self.source(interface, address.into()) else { return };
        let mac = self.interfaces[interface].mac;
        let request = message(REQUEST, (mac, own), (Mac([0; 6]), address));
        self.put_new(interface, who.unwrap_or(Mac([0xff; 6])), ethertype::ARP, &request, out);
    }
}

fn message(operation: u16, sender: (Mac, Ipv4Addr), target: (Mac, Ipv4Addr)) -> Vec<u8> {
    let mut arp = KINDS.to_vec();
    arp.extend(operation.to_be_bytes());
    for (mac, address) in [sender, target] {
        arp.extend(mac.0);
        arp.extend(address.octets());
    }
    arp
}
