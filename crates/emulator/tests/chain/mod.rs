//! Two hosts, and routers between them.

use super::*;

pub(crate) const SECOND: Nanos = 1_000_000_000;
pub(crate) const MILLISECOND: Nanos = 1_000_000;
pub(crate) const MTU: u16 = 1500;

pub(crate) fn net(text: &str) -> IpNet {
    text.parse().unwrap()
}

pub(crate) fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

pub(crate) fn delayed(delay: Nanos) -> Settings {
    let impairments = Impairments { delay, ..Impairments::default() };
    Settings { impairments, ..Settings::default() }
}

/// Two hosts at the ends of a chain of routers; each link has a delay of one millisecond.
pub(crate) struct Chain {
    pub(crate) network: Network,
    pub(crate) hosts: [Host; 2],
    pub(crate) routers: Vec<NodeId>,
    pub(crate) links: Vec<LinkId>,
    pub(crate) now: Nanos,
    pub(crate) arrived: [Vec<(Nanos, Vec<u8>)>; 2],
}

/// A host that answers ARP requests and neighbor solicitations for its addresses.
pub(crate) struct Host {
    pub(crate) port: PortId,
    pub(crate) mac: Mac,
    pub(crate) addresses: [IpAddr; 2],
}

pub(crate) fn host_mac(n: u8) -> Mac {
    Mac([2, 0, 0, 0xff, 0, n])
}

impl Chain {
    pub(crate) fn new(count: u8, last_mtu: u16) -> Self {
        let mut network = Network::new(1);
        let hosts = [0, 1].map(|n| Host {
            port: network.port(),
            mac: host_mac(n),
            addresses: [
                address(&format!("10.{}.0.2", n * 200)),
                address(&format!("fd00:{}::2", n * 200)),
            ],
        });
        let mut routers = Vec::new();
        for n in 0..count {
            let side = |left: bool| {
                let (link, end) = if left { (n, 1) } else { (n + 1, 2) };
                // The links at both ends connect to the hosts.
                let (link, end) = match (left, n) {
                    (true, 0) => (0, 1),
                    (false, n) if n + 1 == count => (200, 1),
                    _ => (link, end),
                };
                let is_last = !left && n + 1 == count;
                Interface {
                    mac: Mac([2, 0, 0, 0, n, u8::from(left)]),
                    mtu: if is_last { last_mtu } else { MTU },
                    addresses: vec![
                        net(&format!("10.{link}.0.{}/24", if left { 1 } else { end })),
                        net(&format!("fd00:{link}::{}/64", if left { 1 } else { end })),
                    ],
                    only_peer: None,
                }
            };
            let mut routes = Vec::new();
            if n > 0 {
                let via = |text: String| Some(address(&text));
                let back = via(format!("10.{n}.0.2"));
                routes.push(Route { prefix: net("10.0.0.0/24"), interface: 0, via: back });
                let back = via(format!("fd00:{n}::2"));
                routes.push(Route { prefix: net("fd00:0::/64"), interface: 0, via: back });
            }
            if n + 1 < count {
                let via = |text: String| Some(address(&text));
                let on = via(format!("10.{}.0.1", n + 1));
                routes.push(Route { prefix: net("10.200.0.0/24"), interface: 1, via: on });
                let on = via(format!("fd00:{}::1", n + 1));
                routes.push(Route { prefix: net("fd00:200::/64"), interface: 1, via: on });
            }
            routers.push(network.router(Router::new(vec![side(true), side(false)], routes)));
        }
        let mut links = Vec::new();
        let ends: Vec<(NodeId, usize, usize)> = std::iter::once((hosts[0].port.into(), 0, 0))
            .chain(routers.iter().map(|router| (*router, 0, 1)))
            .chain(std::iter::once((hosts[1].port.into(), 0, 0)))
            .collect();
        for (n, pair) in ends.windows(2).enumerate() {
            let ((a, _, out), (b, into, _)) = (pair[0], pair[1]);
            let settings = delayed(MILLISECOND);
            links.push(network.link(&format!("{n}>"), (a, out), (b, into), settings.clone()));
            links.push(network.link(&format!("{n}<"), (b, into), (a, out), settings));
        }
        Self { network, hosts, routers, links, now: 0, arrived: Default::default() }
    }

    /// Sends an IP packet from a host to its router.
    pub(crate) fn send(&mut self, host: usize, ip: &[u8]) {
        // The first interface of the first router, or the last one of the last router.
        let router = self.routers.len() as u8 - 1;
        let to = if host == 0 { Mac([2, 0, 0, 0, 0, 1]) } else { Mac([2, 0, 0, 0, router, 0]) };
        let Host { port, mac, .. } = self.hosts[host];
        self.network.receive(self.now, port, frame(to, mac, ip));
    }

    /// Processes all events within the next `most` nanoseconds.
    pub(crate) fn settle(&mut self, most: Nanos) {
        let end = self.now + most;
        while let Some(next) = self.network.next().filter(|next| *next <= end) {
            let mut left = Vec::new();
            self.network.advance(next, &mut |port, at, packet| left.push((port, at, packet)));
            self.now = next;
            for (port, at, packet) in left {
                let host = usize::from(port != self.hosts[0].port);
                match self.hosts[host].answer(packet.bytes()) {
                    Some(answer) => self.network.receive(next, port, answer),
                    None => {
                        let ip = packet.bytes()[14..].to_vec();
                        self.arrived[host].push((at, ip));
                    }
                }
            }
        }
        self.now = end;
    }

    /// Returns the IP packets that a host has received since the last call.
    pub(crate) fn got(&mut self, host: usize) -> Vec<Vec<u8>> {
        self.settle(10 * SECOND);
        std::mem::take(&mut self.arrived[host]).into_iter().map(|(_, ip)| ip).collect()
    }
}

impl Host {
    /// Returns the reply to an ARP request or a neighbor solicitation.
    pub(crate) fn answer(&self, frame: &[u8]) -> Option<Packet> {
        let ethernet = EthernetPacket::new_checked(frame).unwrap();
        let asked = ethernet.payload();
        match ethernet.ethertype() {
            ethertype::ARP
                if IpAddr::from(<[u8; 4]>::try_from(&asked[24..28]).unwrap())
                    == self.addresses[0] =>
            {
                let mut reply = vec![0, 1, 8, 0, 6, 4, 0, 2];
                reply.extend(self.mac.0);
                reply.extend(&asked[24..28]);
                reply.extend(&asked[8..18]);
                let mut bytes = ethernet.src().0.to_vec();
                bytes.extend(self.mac.0);
                bytes.extend([8, 6]);
                bytes.extend(reply);
                Some(Packet::new(&bytes).unwrap())
            }
            ethertype::IPV6 if asked[6] == protocol::ICMPV6 && asked[40] == 135 => {
                let IpAddr::V6(own) = self.addresses[1] else { unreachable!() };
                let asker = Ipv6Packet::new_checked(asked).unwrap().src();
                let mut icmp = vec![136, 0, 0, 0, 0x60, 0, 0, 0];
                icmp.extend(own.octets());
                icmp.extend([2, 1]);
                icmp.extend(self.mac.0);
                let sum = transport_checksum(own.into(), asker.into(), 58, &icmp).unwrap();
                icmp[2..4].copy_from_slice(&sum.to_be_bytes());
                let ip = Ipv6 { hop_limit: 255, ..Ipv6::new(own, asker, 58) };
                Some(self::frame(ethernet.src(), self.mac, &ip.around(&icmp).unwrap()))
            }
            _ => None,
        }
    }
}

pub(crate) fn frame(to: Mac, from: Mac, ip: &[u8]) -> Packet {
    let mut bytes = to.0.to_vec();
    bytes.extend(from.0);
    bytes.extend(ethertype::of_ip(ip).to_be_bytes());
    bytes.extend(ip);
    Packet::new(&bytes).unwrap()
}

/// Returns a UDP packet from the first host to the second.
pub(crate) fn datagram(ipv6: bool, hops: u8, length: usize, dont_fragment: bool) -> Vec<u8> {
    let payload: Vec<u8> = (0..length).map(|n| n as u8).collect();
    let udp = Udp::new(1000, 2000).around(&payload).unwrap();
    if ipv6 {
        let ip = Ipv6::new("fd00:0::2".parse().unwrap(), "fd00:200::2".parse().unwrap(), 17);
        Ipv6 { hop_limit: hops, ..ip }.around(&udp).unwrap()
    } else {
        let ip = Ipv4::new("10.0.0.2".parse().unwrap(), "10.200.0.2".parse().unwrap(), 17);
        Ipv4 { ttl: hops, dont_fragment, ..ip }.around(&udp).unwrap()
    }
}

/// Parses an ICMP message into its source, type and code, and body.
pub(crate) fn icmp(ip: &[u8]) -> (IpAddr, [u8; 2], Vec<u8>) {
    if ip[0] >> 4 == 4 {
        let ip = Ipv4Packet::new_checked(ip).unwrap();
        assert!(ip.checksum_ok() && ip.protocol() == protocol::ICMP);
        let body = ip.payload();
        assert_eq!(wire::Checksum::default().with(body).finish(), 0);
        (ip.src().into(), [body[0], body[1]], body[4..].to_vec())
    } else {
        let ip = Ipv6Packet::new_checked(ip).unwrap();
        let (src, dst, body) = (ip.src(), ip.dst(), ip.payload());
        assert_eq!(transport_checksum(src.into(), dst.into(), 58, body), Some(0));
        (src.into(), [body[0], body[1]], body[4..].to_vec())
    }
}
