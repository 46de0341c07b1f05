//! Routes, with SRv6 encapsulations and endpoint behaviours.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use netlink_packet_core::{DecodeError, DefaultNla, NLA_F_NESTED};
use netlink_packet_route::AddressFamily;
use netlink_packet_route::route::{
    RouteAttribute, RouteFlags, RouteMessage, RouteMetric, RouteNextHop, RouteScope, RouteType,
    RouteVia,
};
use nix::errno::Errno;

use crate::attribute::{after, array, each, u32_at};
use crate::seg6::Encap;
use crate::socket::{CREATE, EXCL, REPLACE, bytes};
use crate::{Error, Handle, MAIN_TABLE, PROTOCOL, Request, Result};

/// What becomes of packets that match a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum RouteKind {
    /// They go to a next hop.
    #[default]
    Unicast,
    /// They are dropped silently.
    Blackhole,
    /// They are dropped, and the sender is told.
    Unreachable,
}

/// A neighbour, or just the link it is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NextHop {
    /// The neighbour; absent when the destinations themselves are on the link. One with a link-local
    /// address is on the link whatever addresses the interface has.
    pub via: Option<IpAddr>,
    /// The interface's index.
    pub interface: u32,
}

/// A route. Table, destination and priority identify it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Route {
    /// The routing table.
    pub table: u32,
    /// Which destinations it is for; no bits behind the prefix length.
    pub destination: IpNet,
    /// What becomes of the packets.
    pub kind: RouteKind,
    /// The route's originator (`RTPROT_*`).
    pub protocol: u8,
    /// The route's preference, lower first. For IPv6 the kernel reads 0 as 1024.
    pub priority: u32,
    /// Where the packets go, spread evenly over several; none unless the kind is unicast.
    pub next_hops: Vec<NextHop>,
    /// The MTU towards these destinations; the interface's where absent. Of a route with an
    /// encapsulation the kernel takes the encapsulation's bytes off this.
    pub mtu: Option<u32>,
    /// The source address that local senders get.
    pub source: Option<IpAddr>,
    /// What is done to the packets on the way out.
    pub encap: Option<Encap>,
}

impl Route {
    /// Kaido's route to `destination` in the main table, with the kernel's default priority.
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
            source: None,
            encap: None,
        }
    }
}

/// Adds a route, unless there is one with its table, destination and priority.
pub fn add_route(route: &Route) -> Request {
    Request::of(libc::RTM_NEWROUTE, CREATE | EXCL, &message(route))
}

/// Adds a route in place of the one with its table, destination and priority, if there is one,
/// whatever its originator. A packet meets the old route or the new one, never none: the kernel
/// swaps them. An IPv6 route loses all its old next hops with it.
pub fn replace_route(route: &Route) -> Request {
    Request::of(libc::RTM_NEWROUTE, CREATE | REPLACE, &message(route))
}

/// Deletes the route with this one's table, destination, priority and originator.
pub fn delete_route(route: &Route) -> Request {
    let mut message = identity(route);
    // "Whatever its scope": the scope of an IPv4 route would have to match otherwise.
    message.header.scope = RouteScope::NoWhere;
    Request::of(libc::RTM_DELROUTE, 0, &message)
}

/// What all three requests share.
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
            // As bytes: netlink-packet-route lacks flavours and counters, and takes a TLV for a
            // segment.
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

/// RTA_GATEWAY, or RTA_VIA for an IPv4 route over an IPv6 neighbour.
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
    /// The unicast, blackhole and unreachable routes of both families, of one table and one
    /// originator where given. A route with what [`Route`] cannot express is left out: another
    /// kind of tunnel, next hops with different segment lists, one that is for some sources only.
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
                // A table that has never had a route is no table yet.
                Err(error) if table.is_some() && error.errno() == Some(Errno::ENOENT) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(routes)
    }

    /// All routes that [`Route`] can express, and whether there is one, expressed or not, that makes
    /// a packet's way depend on more than its destination.
    pub fn all_routes(&mut self) -> Result<RouteList> {
        let mut list = RouteList::default();
        for family in [AddressFamily::Inet, AddressFamily::Inet6] {
            let mut message = RouteMessage::default();
            message.header.address_family = family;
            let wanted = |body: &[u8]| {
                list.by_more |= depends_on_more(body)?;
                route(body)
            };
            let kind = libc::RTM_GETROUTE;
            let found = self.socket.dump("list the routes", kind, &bytes(&message), wanted)?;
            list.routes.extend(found);
        }
        Ok(list)
    }

    /// Where a packet to `destination` would go; None when it would go nowhere beyond this
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
            // IPv4's answers for a blackhole and a prohibition.
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
    /// Whether there is a route by source or type of service, or one with several next hops, among
    /// which a packet's flow chooses.
    pub by_more: bool,
}

// linux/rtnetlink.h, linux/lwtunnel.h
const RTN_UNICAST: u8 = 1;
const RTN_BLACKHOLE: u8 = 6;
const RTN_UNREACHABLE: u8 = 7;
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
const RTA_PRIORITY: u16 = 6;
const RTA_PREFSRC: u16 = 7;
const RTA_METRICS: u16 = 8;
const RTA_MULTIPATH: u16 = 9;
const RTA_TABLE: u16 = 15;
const RTA_VIA: u16 = 18;
const RTA_ENCAP_TYPE: u16 = 21;
const RTA_ENCAP: u16 = 22;
const RTA_NH_ID: u16 = 30;
const RTAX_MTU: u16 = 2;
/// struct rtmsg: family, lengths of destination and source, TOS, table, originator, scope, type,
/// and 32 bits of flags.
const HEADER: usize = 12;
/// struct rtnexthop: length (u16), flags, weight, interface (u32), and its attributes.
const HOP_HEADER: usize = 8;

/// Whether packets to one destination may go different ways by this route.
fn depends_on_more(body: &[u8]) -> Result<bool, DecodeError> {
    let [_, _, source_length, tos] = array(body, 0)?;
    let (mut several, mut group, mut interface) = (false, false, false);
    for attribute in each(after(body, HEADER)?) {
        match attribute?.kind() {
            RTA_MULTIPATH => several = true,
            RTA_NH_ID => group = true,
            RTA_OIF => interface = true,
            _ => {}
        }
    }
    // Of a group of next hops the kernel may show the number alone.
    Ok(source_length != 0 || tos != 0 || several || group && !interface)
}

/// Reads a route of a table; None for one that [`Route`] cannot express.
pub(crate) fn route(body: &[u8]) -> Result<Option<Route>, DecodeError> {
    let [_, _, source_length, tos] = array(body, 0)?;
    // Only for some sources, or one type of service: not for all packets to the destination.
    if source_length != 0 || tos != 0 { Ok(None) } else { read(body) }
}

/// Reads a route, or the answer to a look-up, which names the source of the packet asked for.
/// From the bytes, because tables are long: an allocation for every attribute would be most of the
/// work.
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
    let (mut table, mut priority, mut mtu, mut source) = (u32::from(table), 0, None, None);
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
            RTA_METRICS => {
                for metric in each(value) {
                    let metric = metric?;
                    if metric.kind() == RTAX_MTU {
                        mtu = Some(u32_at(metric.value(), 0)?);
                    }
                }
            }
            RTA_MULTIPATH => {
                let mut rest = value;
                while !rest.is_empty() {
                    let size = usize::from(u16::from_ne_bytes(array(rest, 0)?));
                    let one = rest
                        .get(..size)
                        .filter(|_| size >= HOP_HEADER)
                        .ok_or("a next hop is cut off")?;
                    let mut hop = Hop { interface: u32_at(one, 4)?, ..Hop::default() };
                    for attribute in each(&one[HOP_HEADER..]) {
                        let attribute = attribute?;
                        hop.read(attribute.kind(), attribute.value())?;
                    }
                    let Some((hop, its_encap)) = hop.finish() else { return Ok(None) };
                    // One encapsulation for all is what a route has here.
                    if !next_hops.is_empty() && its_encap != encap {
                        return Ok(None);
                    }
                    encap = its_encap;
                    next_hops.push(hop);
                    rest = rest.get(size.next_multiple_of(4)..).unwrap_or_default();
                }
            }
            kind => only.read(kind, value)?,
        }
    }
    let Some((hop, its_encap)) = only.finish() else { return Ok(None) };
    encap = encap.or(its_encap);
    if kind != RouteKind::Unicast {
        // IPv6 shows them as being on the loopback interface.
        next_hops.clear();
    } else if hop.interface != 0 {
        next_hops.push(hop);
    }
    let destination = IpNet::new(destination, length)
        .map_err(|_| DecodeError::from("a prefix is longer than its address"))?;
    Ok(Some(Route { table, destination, kind, protocol, priority, next_hops, mtu, source, encap }))
}

/// A next hop's attributes, in whatever order they come.
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
            // An IPv4 route over an IPv6 neighbour.
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

    /// None for what [`NextHop`] and [`Encap`] cannot express.
    fn finish(self) -> Option<(NextHop, Option<Encap>)> {
        let hop = NextHop { via: self.via, interface: self.interface };
        match (self.encap_kind, self.encap) {
            _ if self.strange => None,
            (0, None) => Some((hop, None)),
            (kind, encap) => Some((hop, Some(Encap::from_attributes(kind, &encap?)?))),
        }
    }
}

/// An address, whose family its length tells.
pub(crate) fn address(bytes: &[u8]) -> Result<IpAddr, DecodeError> {
    match bytes.len() {
        4 => array::<4>(bytes, 0).map(IpAddr::from),
        _ => array::<16>(bytes, 0).map(IpAddr::from),
    }
}

#[cfg(test)]
mod tests;
