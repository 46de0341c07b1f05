//! A router without an IP stack: it forwards packets, replies to requests and sends ICMP errors.
//!
//! IPv4 (RFC 1812) and IPv6 (RFC 8200) with longest-prefix match; ARP (RFC 826), neighbor
//! discovery (RFC 4861), ICMP (RFC 792) and ICMPv6 (RFC 4443) as far as other nodes can observe it.
//! The router runs no routing protocol: its routes are static.

mod arp;
mod budget;
mod errors;
mod icmp;
mod ipv4;
mod ipv6;
mod ndp;
mod neighbors;
mod routes;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use wire::{ETHERNET, EthernetPacket, Ipv4Packet, Ipv6Packet, Mac, ethertype};

use crate::{Account, Nanos, Packet};
use budget::Budget;
use neighbors::{Expired, Neighbors, Next};
use routes::Prefixes;

/// An interface of a router.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// MAC address.
    pub mac: Mac,
    /// MTU: the largest IP packet that the interface sends.
    pub mtu: u16,
    /// Addresses with their on-link prefixes. The link-local address is added automatically.
    pub addresses: Vec<IpNet>,
    /// MAC address of the only peer on the link, if addresses need no resolution.
    pub only_peer: Option<Mac>,
}

/// A static route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// Destination prefix.
    pub prefix: IpNet,
    /// Outgoing interface.
    pub interface: usize,
    /// Next hop, or `None` if the destination is on-link.
    pub via: Option<IpAddr>,
}

/// Reason why a packet was not forwarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The packet was addressed to the router.
    Taken,
    /// The frame was for another station, or its ethertype is not supported.
    NotForIt,
    /// The headers are inconsistent, or a checksum is invalid.
    Malformed,
    /// The TTL or hop limit is exceeded.
    HopLimit,
    /// No route matches the destination.
    NoRoute,
    /// The next hop does not respond, or its packet queue is full.
    NoNeighbor,
    /// The packet exceeds the MTU of the outgoing link and must not be fragmented.
    TooBig,
}

impl Stop {
    /// All reasons, in declaration order.
    pub const ALL: [Self; 7] = [
        Self::Taken,
        Self::NotForIt,
        Self::Malformed,
        Self::HopLimit,
        Self::NoRoute,
        Self::NoNeighbor,
        Self::TooBig,
    ];

    /// Returns the name of the reason.
    pub fn name(self) -> &'static str {
        match self {
            Self::Taken => "taken",
            Self::NotForIt => "not-for-it",
            Self::Malformed => "malformed",
            Self::HopLimit => "hop-limit",
            Self::NoRoute => "no-route",
            Self::NoNeighbor => "no-neighbor",
            Self::TooBig => "too-big",
        }
    }
}

const STOPS: usize = Stop::ALL.len();

/// Packet counters of a router. `received + made` equals the packets sent, stopped and waiting.
/// Fragments beyond the first one count as made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RouterCounts {
    /// Packets received.
    pub received: u64,
    /// Packets originated: replies, requests and errors.
    pub made: u64,
    /// Packets sent.
    pub sent: u64,
    stopped: [u64; STOPS],
}

impl RouterCounts {
    /// Returns the number of packets stopped for this reason.
    pub fn stopped(&self, stop: Stop) -> u64 {
        self.stopped[stop as usize]
    }

    /// Returns the number of all stopped packets.
    pub fn all_stopped(&self) -> u64 {
        self.stopped.iter().sum()
    }
}

/// A router.
#[derive(Debug, Clone)]
pub struct Router {
    interfaces: Vec<Interface>,
    routes: Vec<Route>,
    prefixes: Prefixes,
    /// Route cache: an uncached longest-prefix match costs one lookup per prefix length.
    ways: [Option<(IpAddr, (usize, IpAddr))>; WAYS],
    neighbors: Neighbors,
    /// Rate limits of ICMP errors, by the interface on which the packet arrived.
    errors: Vec<Budget>,
    /// Rate limits of those about neighbors that do not answer, by the neighbor's interface.
    unreachable: Vec<Budget>,
    counts: RouterCounts,
}

/// Packets that leave a router, with the outgoing interface.
pub(crate) type Outbox = Vec<(usize, Packet)>;

impl Router {
    /// Creates a router with these interfaces and static routes. On-link prefixes are added
    /// automatically.
    pub fn new(interfaces: Vec<Interface>, routes: Vec<Route>) -> Self {
        let mut router = Self {
            errors: vec![Budget::default(); interfaces.len()],
            unreachable: vec![Budget::default(); interfaces.len()],
            neighbors: Neighbors::new(interfaces.len()),
            interfaces,
            routes: Vec::new(),
            prefixes: Prefixes::default(),
            ways: [None; WAYS],
            counts: RouterCounts::default(),
        };
        for interface in &mut router.interfaces {
            let local = IpNet::from(IpAddr::V6(link_local(interface.mac)));
            interface.addresses.push(local);
        }
        let next_to = router.interfaces.iter().enumerate().flat_map(|(interface, settings)| {
            settings.addresses.iter().map(move |net| Route { prefix: *net, interface, via: None })
        });
        router.routes = next_to.chain(routes).collect();
        router.prefixes = Prefixes::new(router.routes.iter().map(|route| route.prefix));
        router
    }

    /// Returns the packet counters.
    pub fn counts(&self) -> &RouterCounts {
        &self.counts
    }

    /// Returns the number of packets waiting for address resolution.
    pub fn waiting(&self) -> u64 {
        self.neighbors.waiting()
    }

    /// Returns the approximate memory in bytes of the waiting packets.
    pub fn memory(&self) -> u64 {
        self.neighbors.memory()
    }

    /// Compares the packets received or originated with those accounted for.
    pub fn account(&self) -> Account {
        let counts = &self.counts;
        Account {
            entered: counts.received + counts.made,
            accounted: counts.sent + counts.all_stopped() + self.waiting(),
        }
    }

    /// Receives a packet on an interface.
    pub(crate) fn receive(
        &mut self,
        now: Nanos,
        interface: usize,
        packet: Packet,
        out: &mut Outbox,
    ) {
        if packet.count() > 1 && !self.forwards(now, interface, &packet) {
            return packet.split(|one| self.receive(now, interface, one, out));
        }
        self.counts.received += u64::from(packet.count());
        let Ok(ethernet) = EthernetPacket::new_checked(packet.bytes()) else {
            return self.stop(Stop::Malformed);
        };
        let (to, kind) = (ethernet.dst(), ethernet.ethertype());
        let is_for_many = to.0[0] & 1 == 1;
        if !is_for_many && to != self.interfaces[interface].mac {
            return self.stop(Stop::NotForIt);
        }
        let arrival = Arrival { now, interface, is_for_many };
        match kind {
            ethertype::ARP => self.arp(arrival, &packet, out),
            ethertype::IPV4 => self.ipv4(arrival, packet, out),
            ethertype::IPV6 => self.ipv6(arrival, packet, out),
            _ => self.stop(Stop::NotForIt),
        }
    }

    /// Returns the time at which [`Router::advance`] must be called next.
    pub(crate) fn next(&self) -> Option<Nanos> {
        self.neighbors.next()
    }

    /// Retransmits due solicitations, and gives up on neighbors that have not answered.
    pub(crate) fn advance(&mut self, now: Nanos, out: &mut Outbox) {
        for turn in self.neighbors.turns(now) {
            match turn {
                Expired::Solicit((interface, address), who) => {
                    self.ask(interface, address, who, out)
                }
                Expired::Failed((interface, _), packets) => {
                    for packet in packets {
                        self.stop(Stop::NoNeighbor);
                        let arrival = Arrival { now, interface, is_for_many: false };
                        self.send_unreachable(arrival, &packet, out);
                    }
                }
            }
        }
    }

    fn stop(&mut self, stop: Stop) {
        self.counts.stopped[stop as usize] += 1;
    }

    /// Returns true if the address is one of the router's.
    fn is_own(&self, address: IpAddr) -> bool {
        let mut addresses = self.interfaces.iter().flat_map(|interface| &interface.addresses);
        addresses.any(|net| net.addr() == address)
    }

    /// Selects a source address of the same family as `like`: of the interface, or of another one
    /// if the interface has none.
    fn source(&self, interface: usize, like: IpAddr) -> Option<IpAddr> {
        let here = &self.interfaces[interface].addresses;
        let all = here.iter().chain(self.interfaces.iter().flat_map(|other| &other.addresses));
        let mut fitting = all.map(IpNet::addr).filter(|own| own.is_ipv4() == like.is_ipv4());
        match like {
            IpAddr::V6(like) if like.is_unicast_link_local() => {
                Some(link_local(self.interfaces[interface].mac).into())
            }
            _ => fitting.find(|own| !matches!(own, IpAddr::V6(own) if own.is_unicast_link_local())),
        }
    }

    /// Returns true if an IP packet only needs forwarding to its next hop. Any other handling is
    /// applied to each segment separately.
    fn forwards(&mut self, now: Nanos, interface: usize, packet: &Packet) -> bool {
        let (mac, ip) = packet.bytes().split_at(ETHERNET);
        let (from, to, hops): (IpAddr, IpAddr, u8) = match u16::from_be_bytes([mac[12], mac[13]]) {
            ethertype::IPV4 => match Ipv4Packet::new_checked(ip) {
                Ok(ip) if ip.checksum_ok() => (ip.src().into(), ip.dst().into(), ip.ttl()),
                _ => return false,
            },
            ethertype::IPV6 => match Ipv6Packet::new_checked(ip) {
                Ok(ip) => (ip.src().into(), ip.dst().into(), ip.hop_limit()),
                Err(_) => return false,
            },
            _ => return false,
        };
        let is_of_link = |ip| matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local());
        let goes_no_further = |ip| is_not_unicast(ip) || is_of_link(ip);
        if hops <= 1
            || mac[..6] != self.interfaces[interface].mac.0
            || self.is_own(to)
            || goes_no_further(from)
            || goes_no_further(to)
        {
            return false;
        }
        let Some((interface, hop)) = self.way(to) else { return false };
        let Interface { mtu, only_peer, .. } = &self.interfaces[interface];
        packet.network_length() <= usize::from(*mtu)
            && (only_peer.is_some() || self.neighbors.is_known(now, (interface, hop)))
    }

    /// Returns the cached route to an address.
    fn known_way(&self, to: IpAddr) -> Option<(usize, IpAddr)> {
        self.ways[place_of(to)].filter(|(known, _)| *known == to).map(|(_, way)| way)
    }

    /// Looks up the interface and next hop for an address. Only addresses of other hosts are
    /// cached, so a cache hit implies that the packet is not for the router.
    fn way(&mut self, to: IpAddr) -> Option<(usize, IpAddr)> {
        if let Some(way) = self.known_way(to) {
            return Some(way);
        }
        let route = &self.routes[self.prefixes.find(to)?];
        let way = (route.interface, route.via.unwrap_or(to));
        if !self.is_own(to) && !is_not_unicast(to) {
            self.ways[place_of(to)] = Some((to, way));
        }
        Some(way)
    }

    /// Sends an IP packet originated by the router.
    fn make(&mut self, now: Nanos, ip: &[u8], to: IpAddr, by: Option<usize>, out: &mut Outbox) {
        let way = match by {
            Some(interface) => Some((interface, to)),
            None => self.way(to),
        };
        let Some((interface, hop)) = way else { return };
        self.counts.made += 1;
        let mut frame = vec![0; ETHERNET - 2];
        frame.extend(ethertype::of_ip(ip).to_be_bytes());
        frame.extend(ip);
        let packet = Packet::new(&frame).expect("it has an Ethernet header");
        self.pass(now, interface, hop, packet, out);
    }

    /// Sends a frame to a neighbor, after address resolution.
    fn pass(
        &mut self,
        now: Nanos,
        interface: usize,
        hop: IpAddr,
        packet: Packet,
        out: &mut Outbox,
    ) {
        let only = self.interfaces[interface].only_peer;
        let known = only.or_else(|| self.neighbors.remembered(now, (interface, hop)));
        if let Some(mac) = known {
            return self.put(interface, mac, packet, out);
        }
        match self.neighbors.send(now, (interface, hop), packet) {
            Next::To { mac, packet, solicits } => {
                self.put(interface, mac, packet, out);
                if solicits {
                    self.ask(interface, hop, Some(mac), out);
                }
            }
            Next::Waits { solicits } => {
                if solicits {
                    self.count_evicted();
                    self.ask(interface, hop, None, out);
                }
            }
            Next::Drop => self.stop(Stop::NoNeighbor),
        }
    }

    /// Counts packets that waited for evicted neighbors.
    fn count_evicted(&mut self) {
        self.counts.stopped[Stop::NoNeighbor as usize] += self.neighbors.take_evicted();
    }

    /// Sends a frame on an interface.
    fn put(&mut self, interface: usize, to: Mac, mut packet: Packet, out: &mut Outbox) {
        let bytes = packet.bytes_mut();
        bytes[..6].copy_from_slice(&to.0);
        bytes[6..12].copy_from_slice(&self.interfaces[interface].mac.0);
        self.counts.sent += u64::from(packet.count());
        out.push((interface, packet));
    }

    /// Solicits the MAC address of an IP address: multicast, or unicast to its last known MAC
    /// address.
    fn ask(&mut self, interface: usize, address: IpAddr, who: Option<Mac>, out: &mut Outbox) {
        match address {
            IpAddr::V4(address) => self.ask4(interface, address, who, out),
            IpAddr::V6(address) => self.ask6(interface, address, who, out),
        }
    }

    /// Handles an advertisement of an IP address's MAC address.
    fn learn(
        &mut self,
        arrival: Arrival,
        address: IpAddr,
        mac: Mac,
        answers: bool,
        out: &mut Outbox,
    ) {
        let Arrival { now, interface, .. } = arrival;
        for packet in self.neighbors.learn(now, (interface, address), mac, answers) {
            self.put(interface, mac, packet, out);
        }
        self.count_evicted();
    }

    /// Builds a frame and sends it on an interface, without address resolution.
    fn put_new(&mut self, interface: usize, to: Mac, kind: u16, payload: &[u8], out: &mut Outbox) {
        self.counts.made += 1;
        let mut frame = vec![0; ETHERNET - 2];
        frame.extend(kind.to_be_bytes());
        frame.extend(payload);
        let packet = Packet::new(&frame).expect("it has an Ethernet header");
        self.put(interface, to, packet, out);
    }
}

/// Number of entries in the route cache.
const WAYS: usize = 64;

/// Returns the cache slot of an address.
fn place_of(address: IpAddr) -> usize {
    let bits = match address {
        IpAddr::V4(address) => u64::from(address.to_bits()),
        IpAddr::V6(address) => {
            let bits = address.to_bits();
            bits as u64 ^ (bits >> 64) as u64
        }
    };
    // Fibonacci hashing: the high bits depend on all input bits.
    (bits.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as usize
}

/// Reception context of a packet.
#[derive(Debug, Clone, Copy)]
struct Arrival {
    now: Nanos,
    interface: usize,
    /// True if the frame was sent to a broadcast or multicast MAC address.
    is_for_many: bool,
}

/// Derives an interface's link-local address (RFC 4291 appendix A).
fn link_local(mac: Mac) -> Ipv6Addr {
    let Mac([a, b, c, d, e, f]) = mac;
    let middle = u16::from_be_bytes([c, 0xff]);
    let pair = |high, low| u16::from_be_bytes([high, low]);
    Ipv6Addr::new(0xfe80, 0, 0, 0, pair(a ^ 2, b), middle, pair(0xfe, d), pair(e, f))
}

/// Returns true if the address is not a unicast host address, so that no reply can be sent to it.
fn is_not_unicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(a) => {
            a.is_unspecified() || a.is_multicast() || a.is_loopback() || a == Ipv4Addr::BROADCAST
        }
        IpAddr::V6(a) => a.is_unspecified() || a.is_multicast() || a == Ipv6Addr::LOCALHOST,
    }
}
