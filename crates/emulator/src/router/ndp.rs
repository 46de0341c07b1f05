//! Neighbor discovery (RFC 4861), limited to address resolution.

use std::net::{IpAddr, Ipv6Addr};

use wire::{Mac, ethertype};

use super::errors::icmp6;
use super::{Arrival, Outbox, Router};

const SOLICITATION: u8 = 135;
const ADVERTISEMENT: u8 = 136;
const SOURCE: u8 = 1;
const TARGET: u8 = 2;
/// Flags of an advertisement: Router, Solicited, Override (section 4.4).
const ROUTER: u8 = 0x80;
const SOLICITED: u8 = 0x40;
const OVERRIDE: u8 = 0x20;

const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

impl Router {
    pub(super) fn ndp(&mut self, arrival: Arrival, from: Ipv6Addr, icmp: &[u8], out: &mut Outbox) {
        let Some((head, options)) = icmp.split_first_chunk::<24>() else { return };
        let target = Ipv6Addr::from(*head[8..].first_chunk().expect("sixteen bytes"));
        let is_own = |net: &ipnet::IpNet| net.addr() == IpAddr::V6(target);
        let is_asked = self.interfaces[arrival.interface].addresses.iter().any(is_own);
        match head[0] {
            SOLICITATION if is_asked => {
                if let Some(mac) = option(options, SOURCE)
                    && !from.is_unspecified()
                {
                    self.learn(arrival, from.into(), mac, true, out);
                }
                self.advertise(arrival, target, from, out);
            }
            ADVERTISEMENT => {
                if let Some(mac) = option(options, TARGET) {
                    self.learn(arrival, target.into(), mac, false, out);
                }
            }
            _ => {}
        }
    }

    /// Advertises an own address. A solicitation for duplicate address detection has no source
    /// address (RFC 4862 section 5.4.3), so its reply goes to all nodes.
    fn advertise(&mut self, arrival: Arrival, own: Ipv6Addr, to: Ipv6Addr, out: &mut Outbox) {
        let mac = self.interfaces[arrival.interface].mac;
        let (to, solicited) = if to.is_unspecified() { (ALL_NODES, 0) } else { (to, SOLICITED) };
        let mut body = vec![ROUTER | solicited | OVERRIDE, 0, 0, 0];
        body.extend(own.octets());
        body.extend([TARGET, 1]);
        body.extend(mac.0);
        if to == ALL_NODES {
            let ip = icmp6(own, to, [ADVERTISEMENT, 0], &body, 255);
            self.put_new(arrival.interface, mac_of_group(to), ethertype::IPV6, &ip, out);
        } else {
            // Reply on the receiving link, regardless of the routes.
            let ip = icmp6(own, to, [ADVERTISEMENT, 0], &body, 255);
            self.make(arrival.now, &ip, to.into(), Some(arrival.interface), out);
        }
    }

    /// Sends a neighbor solicitation: multicast, or unicast to `who` (RFC 4861 section 7.3.3).
    pub(super) fn ask6(
        &mut self,
        interface: usize,
        address: Ipv6Addr,
        who: Option<Mac>,
        out: &mut Outbox,
    ) {
        let Some(IpAddr::V6(own)) = self.source(interface, address.into()) else { return };
        let mut body = vec![0; 4];
        body.extend(address.octets());
        body.extend([SOURCE, 1]);
        body.extend(self.interfaces[interface].mac.0);
        let group = group_of(address);
        let (to, mac) = who.map_or((group, mac_of_group(group)), |mac| (address, mac));
        let ip = icmp6(own, to, [SOLICITATION, 0], &body, 255);
        self.put_new(interface, mac, ethertype::IPV6, &ip, out);
    }
}

/// Returns the solicited-node multicast address (RFC 4291 section 2.7.1).
pub(super) fn group_of(address: Ipv6Addr) -> Ipv6Addr {
    let [.., a, b, c] = address.octets();
    let last = u16::from_be_bytes([b, c]);
    Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00 | u16::from(a), last)
}

/// Returns the MAC address of a multicast group (RFC 2464 section 7).
fn mac_of_group(group: Ipv6Addr) -> Mac {
    let [.., a, b, c, d] = group.octets();
    Mac([0x33, 0x33, a, b, c, d])
}

/// Returns the link-layer address option of this type, if there is one.
fn option(mut options: &[u8], wanted: u8) -> Option<Mac> {
    while let [kind, length, ..] = *options {
        // Reject a length of zero, which would never end (section 6.1).
        let length = usize::from(length).checked_mul(8).filter(|length| *length > 0)?;
        let body = options.get(2..length)?;
        if kind == wanted {
            return body.first_chunk().map(|mac| Mac(*mac));
        }
        options = &options[length..];
    }
    None
}
