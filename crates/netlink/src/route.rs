//! Routes, with SRv6 encapsulations and endpoint behaviors.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use netlink_packet_core::{DecodeError, DefaultNla, NLA_F_NESTED};
use netlink_packet_route::AddressFamily;
use netlink_packet_route::route::{
    RouteAttribute, RouteFlags, RouteMessage, RouteMetric, RouteNextHop, RouteScope, RouteType,
    RouteVia,
};
use nix::errno::Errno;

use self::layout::*;
use self::outline::Outline;
use crate::attribute::{after, array, each, u32_at};
use crate::seg6::Encap;
use crate::socket::{CREATE, EXCL, REPLACE, bytes};
use crate::{Error, Handle, MAIN_TABLE, PROTOCOL, Request, Result};

mod layout;
mod outline;

pub use outline::SidRoute;

/// The treatment of packets that match a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum RouteKind {
    /// Forward to a next hop.
    #[default]
    Unicast,
    /// Drop silently.
    Blackhole,
    /// Drop and send an ICMP error to the source.
    Unreachable,
}

/// A next hop: a neighbor, or only the link for on-link destinations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NextHop {
    /// The neighbor; absent if the destinations are on-link. A link-local neighbor is on-link
    /// regardless of the interface's addresses.
    pub via: Option<IpAddr>,
    /// The interface's index.
    pub interface: u32,
}

/// A route, identified by table, destination and priority.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Route {
    /// The routing table.
    pub table: u32,
    /// The destination prefix, without host bits.
    pub destination: IpNet,
    /// The treatment of packets.
    pub kind: RouteKind,
    /// The route's protocol ID (`RTPROT_*`).
    pub protocol: u8,
    /// The route's metric; lower values are preferred. For IPv6 the kernel reads 0 as 1024.
    pub priority: u32,
    /// The next hops, with equal weights; empty unless the kind is unicast.
    pub next_hops: Vec<NextHop>,
    /// The MTU towards these destinations; the interface's if absent. For a route with an
    /// encapsulation, the kernel subtracts the encapsulation's overhead from this value.
    pub mtu: Option<u32>,
    /// True if the kernel also forwards by this MTU (`mtu lock`). Only read, never set.
    pub locks_mtu: bool,
    /// The source address for locally generated packets.
    pub source: Option<IpAddr>,
    /// The encapsulation or endpoint behavior applied to the packets.
    pub encap: Option<Encap>,
}

impl Route {
    /// A Kaido route to `destination` in the main table, with the kernel's default priority.
    pub fn new(destination: impl Into<IpNet>, next_hops: Vec<NextHop>) -> Self {
        let destination = destination.into().trunc();
        Self {
            table: MAIN_TABLE,
            destination,
            kind: RouteKind::Unicast,
            protocol: PROTOCOL,
            priority: if matches!(destination, IpNet::V6(_)) { 1024 } else { 0 },
            next_hops,
            mtu: None,
            locks_mtu: false,
            source: None,
            encap: None,
        }
    }
}

/// Adds a route. Fails if a route with the same table, destination and priority exists.
pub fn add_route(route: &Route) -> Request {
    Request::encode(libc::RTM_NEWROUTE, CREATE | EXCL, &message(route))
}

/// Adds a route, or replaces the one with the same table, destination and priority, whatever its
/// protocol ID. The kernel swaps the routes atomically: every packet sees either the old or the new
/// one. For an IPv6 route, all old next hops are replaced.
pub fn replace_route(route: &Route) -> Request {
    Request::encode(libc::RTM_NEWROUTE, CREATE | REPLACE, &message(route))
}

/// Deletes the route with the same table, destination, priority and protocol ID.
pub fn delete_route(route: &Route) -> Request {
    let mut message = identity(route);
    // RT_SCOPE_NOWHERE matches any scope. Otherwise the scope of an IPv4 route would have to match.
    message.header.scope = RouteScope::NoWhere;
    Request::encode(libc::RTM_DELROUTE, 0, &message)
}

/// The part common to all three requests.
fn identity(route: &Route) -> RouteMessage {
    let mut message = RouteMessage::default();
    let header = &mut message.header;
    header.address_family = family(&route.destination);
    header.destination_prefix_length = route.destination.prefix_len();
    header.protocol = route.protocol.into();
    header.kind = match route.kind {
        RouteKind::Unicast => RouteType::Unicast,
        RouteKind::Blackhole => RouteType::BlackHole,
        RouteKind::Unreachable => RouteType::Unreachable,
    };
    message.attributes = vec![
        RouteAttribute::Destination(route.destination.network().into()),
        RouteAttribute::Table(route.table),
        RouteAttribute::Priority(route.priority),
    ];
    message
}

fn message(route: &Route) -> RouteMessage {
    let mut message = identity(route);
    let ipv4 = matches!(route.destination, IpNet::V4(_));
    let on_link = route.next_hops.iter().all(|hop| hop.via.is_none());
    if ipv4 && route.kind == RouteKind::Unicast && on_link {
        message.header.scope = RouteScope::Link;
    }
    let attributes = &mut message.attributes;
    let encap = |attributes: &mut Vec<RouteAttribute>| {
        if let Some(encap) = &route.encap {
            // Written as bytes: netlink-packet-route lacks flavors and counters, and mistakes a TLV
            // for a segment.
            let other = |kind, value| RouteAttribute::Other(DefaultNla::new(kind, value));
            attributes.push(other(RTA_ENCAP | NLA_F_NESTED, encap.to_attributes()));
            attributes.push(other(RTA_ENCAP_TYPE, encap.kind().to_ne_bytes().to_vec()));
        }
    };
    match route.next_hops.as_slice() {
        [] => encap(attributes),
        [hop] => {
            if matches!(hop.via, Some(IpAddr::V4(via)) if via.is_link_local()) {
                message.header.flags = RouteFlags::Onlink;
            }
            attributes.extend(hop.via.map(|via| gateway(via, ipv4)));
            attributes.push(RouteAttribute::Oif(hop.interface));
            encap(attributes);
        }
        hops => {
            let hops = hops.iter().map(|hop| {
                let mut message = RouteNextHop::default();
                message.interface_index = hop.interface;
                message.attributes.extend(hop.via.map(|via| gateway(via, ipv4)));
                encap(&mut message.attributes);
                message
            });
            attributes.push(RouteAttribute::MultiPath(hops.collect()));
        }
    }
    if let Some(mtu) = route.mtu {
        attributes.push(RouteAttribute::Metrics(vec![RouteMetric::Mtu(mtu)]));
    }
    attributes.extend(route.source.map(|source| RouteAttribute::PrefSource(source.into())));
    message
}

/// RTA_GATEWAY, or RTA_VIA for an IPv4 route with an IPv6 next hop.
fn gateway(via: IpAddr, ipv4: bool) -> RouteAttribute {
    match via {
        IpAddr::V6(via) if ipv4 => RouteAttribute::Via(RouteVia::Inet6(via)),
        via => RouteAttribute::Gateway(via.into()),
    }
}

fn family(net: &IpNet) -> AddressFamily {
    match net {
        IpNet::V4(_) => AddressFamily::Inet,
        IpNet::V6(_) => AddressFamily::Inet6,
    }
}

impl Handle {
    /// The unicast, blackhole and unreachable routes of both families, optionally of one table or
    /// protocol ID. Routes that [`Route`] cannot express are omitted: other tunnel types, next hops
    /// with different segment lists, source-specific routes.
    pub fn routes(&mut self, table: Option<u32>, protocol: Option<u8>) -> Result<Vec<Route>> {
        let mut routes = Vec::new();
        for family in [AddressFamily::Inet, AddressFamily::Inet6] {
            let mut message = RouteMessage::default();
            message.header.address_family = family;
            message.header.protocol = protocol.unwrap_or(0).into();
            message.attributes.extend(table.map(RouteAttribute::Table));
            let wanted = |body: &[u8]| {
                let route = route(body)?;
                Ok(route.filter(|route| {
                    table.is_none_or(|table| table == route.table)
                        && protocol.is_none_or(|protocol| protocol == route.protocol)
                }))
            };
            let kind = libc::RTM_GETROUTE;
            match self.socket.dump("list the routes", kind, &bytes(&message), wanted) {
                Ok(found) => routes.extend(found),
                // A table that has never had a route does not exist yet.
                Err(error) if table.is_some() && error.errno() == Some(Errno::ENOENT) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(routes)
    }

    /// All routes that [`Route`] can express. The flag for routes that forward by more than the
    /// destination, and the list of SIDs, include those that it cannot.
    pub fn all_routes(&mut self) -> Result<RouteList> {
        let mut list = RouteList::default();
        for family in [AddressFamily::Inet, AddressFamily::Inet6] {
            let mut message = RouteMessage::default();
            message.header.address_family = family;
            let wanted = |body: &[u8]| {
                let outline = Outline::parse(body)?;
                list.by_more |= outline.by_more;
                list.locks_mtu |= outline.locks_mtu;
                list.sids.extend(outline.sid);
                route(body)
            };
            let kind = libc::RTM_GETROUTE;
            let found = self.socket.dump("list the routes", kind, &bytes(&message), wanted)?;
            list.routes.extend(found);
        }
        Ok(list)
    }

    /// Looks up the next hop of a packet to `destination`; None if the packet would not leave this
    /// namespace.
    pub fn next_hop(&mut self, destination: IpAddr) -> Result<Option<NextHop>> {
        let mut message = RouteMessage::default();
        let net = IpNet::from(destination);
        message.header.address_family = family(&net);
        message.header.destination_prefix_length = net.prefix_len();
        message.attributes = vec![RouteAttribute::Destination(destination.into())];
        let operation = format!("look up the route to {destination}");
        match self.socket.get(&operation, libc::RTM_GETROUTE, &bytes(&message), read) {
            Ok(route) => Ok(route.and_then(|route| route.next_hops.first().copied())),
            Err(Error::Kernel { errno: Errno::ENETUNREACH | Errno::EHOSTUNREACH, .. }) => Ok(None),
            // The IPv4 errors for blackhole and prohibit routes.
            Err(Error::Kernel { errno: Errno::EINVAL | Errno::EACCES, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// The routes of all tables.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RouteList {
    /// The routes.
    pub routes: Vec<Route>,
    /// True if a route is specific to a source or TOS, or has several next hops, so that the flow
    /// selects the path.
    pub by_more: bool,
    /// True if a route has a locked MTU.
    pub locks_mtu: bool,
    /// The SIDs, also those whose behavior [`Route`] cannot express, such as a BPF program.
    pub sids: Vec<SidRoute>,
}

/// Parses a table entry; None if [`Route`] cannot express it.
pub(crate) fn route(body: &[u8]) -> Result<Option<Route>, DecodeError> {
    let [_, _, source_length, tos] = array(body, 0)?;
    // Source-specific or TOS routes do not cover all packets to the destination.
    if source_length != 0 || tos != 0 { Ok(None) } else { read(body) }
}

/// Parses a route, or the reply to a lookup, which contains the source address of the query. Works
/// on raw bytes because tables are long: allocating each attribute would dominate the run time.
fn read(body: &[u8]) -> Result<Option<Route>, DecodeError> {
    let [family, length, _, _, table, protocol, _, kind] = array(body, 0)?;
    let kind = match kind {
        RTN_UNICAST => RouteKind::Unicast,
        RTN_BLACKHOLE => RouteKind::Blackhole,
        RTN_UNREACHABLE => RouteKind::Unreachable,
        _ => return Ok(None),
    };
    let mut destination: IpAddr = match i32::from(family) {
        libc::AF_INET => Ipv4Addr::UNSPECIFIED.into(),
        libc::AF_INET6 => Ipv6Addr::UNSPECIFIED.into(),
        _ => return Ok(None),
    };
    let (mut table, mut priority, mut source) = (u32::from(table), 0, None);
    let (mut mtu, mut locks_mtu) = (None, false);
    let mut next_hops = Vec::new();
    let mut only = Hop::default();
    let mut encap = None;
    for attribute in each(after(body, HEADER)?) {
        let attribute = attribute?;
        let value = attribute.value();
        match attribute.kind() {
            RTA_DST => destination = address(value)?,
            RTA_TABLE => table = u32_at(value, 0)?,
            RTA_PRIORITY => priority = u32_at(value, 0)?,
            RTA_PREFSRC => source = Some(address(value)?),
            RTA_METRICS => (mtu, locks_mtu) = layout::mtu(value)?,
            RTA_MULTIPATH => {
                for one in hops(value) {
                    let one = one?;
                    let mut hop = Hop { interface: u32_at(one, 4)?, ..Hop::default() };
                    for attribute in each(&one[HOP_HEADER..]) {
                        let attribute = attribute?;
                        hop.read(attribute.kind(), attribute.value())?;
                    }
                    let Some((hop, its_encap)) = hop.finish() else { return Ok(None) };
                    // A [`Route`] has one encapsulation for all next hops.
                    if !next_hops.is_empty() && its_encap != encap {
                        return Ok(None);
                    }
                    encap = its_encap;
                    next_hops.push(hop);
                }
            }
            kind => only.read(kind, value)?,
        }
    }
    let Some((hop, its_encap)) = only.finish() else { return Ok(None) };
    encap = encap.or(its_encap);
    if kind != RouteKind::Unicast {
        // IPv6 reports these routes with the loopback interface.
        next_hops.clear();
    } else if hop.interface != 0 {
        next_hops.push(hop);
    }
    let destination = IpNet::new(destination, length)
        .map_err(|_| DecodeError::from("a prefix is longer than its address"))?;
    Ok(Some(Route {
        table,
        destination,
        kind,
        protocol,
        priority,
        next_hops,
        mtu,
        locks_mtu,
        source,
        encap,
    }))
}

/// Collects a next hop's attributes, in any order.
#[derive(Default)]
struct Hop {
    via: Option<IpAddr>,
    interface: u32,
    encap_kind: u16,
    encap: Option<Vec<u8>>,
    strange: bool,
}

impl Hop {
    fn read(&mut self, kind: u16, value: &[u8]) -> Result<(), DecodeError> {
        match kind {
            RTA_GATEWAY => self.via = Some(address(value)?),
            // An IPv4 route with an IPv6 next hop.
            RTA_VIA => match i32::from(u16::from_ne_bytes(array(value, 0)?)) {
                libc::AF_INET6 => self.via = Some(address(after(value, 2)?)?),
                _ => self.strange = true,
            },
            RTA_OIF => self.interface = u32_at(value, 0)?,
            RTA_ENCAP_TYPE => self.encap_kind = u16::from_ne_bytes(array(value, 0)?),
            RTA_ENCAP => self.encap = Some(value.to_vec()),
            _ => {}
        }
        Ok(())
    }

    /// The next hop; None if [`NextHop`] and [`Encap`] cannot express it.
    fn finish(self) -> Option<(NextHop, Option<Encap>)> {
        let hop = NextHop { via: self.via, interface: self.interface };
        match (self.encap_kind, self.encap) {
            _ if self.strange => None,
            (0, None) => Some((hop, None)),
            (kind, encap) => Some((hop, Some(Encap::from_attributes(kind, &encap?)?))),
        }
    }
}

/// An address; its length determines the family.
pub(crate) fn address(bytes: &[u8]) -> Result<IpAddr, DecodeError> {
    match bytes.len() {
        4 => array::<4>(bytes, 0).map(IpAddr::from),
        _ => array::<16>(bytes, 0).map(IpAddr::from),
    }
}

#[cfg(test)]
mod tests;
