//! Routes, with SRv6 encapsulations and endpoint behaviours.

use std::net::IpAddr;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use netlink_packet_core::{DecodeError, Parseable};
use netlink_packet_route::AddressFamily;
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteLwEnCapType, RouteMessage, RouteMetric, RouteNextHop,
    RouteScope, RouteType, RouteVia,
};
use nix::errno::Errno;

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
    /// The neighbour; absent when the destinations themselves are on the link.
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
            attributes.push(RouteAttribute::Encap(encap.to_attributes()));
            attributes.push(RouteAttribute::EncapType(encap.kind()));
        }
    };
    match route.next_hops.as_slice() {
        [] => encap(attributes),
        [hop] => {
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
    /// originator where given. A route with what [`Route`] cannot express, such as another kind
    /// of tunnel, is left out.
    pub fn routes(&mut self, table: Option<u32>, protocol: Option<u8>) -> Result<Vec<Route>> {
        let mut routes = Vec::new();
        for family in [AddressFamily::Inet, AddressFamily::Inet6] {
            let mut message = RouteMessage::default();
            message.header.address_family = family;
            message.header.protocol = protocol.unwrap_or(0).into();
            message.attributes.extend(table.map(RouteAttribute::Table));
            let read = |body: &[u8]| {
                let route = route(body)?;
                Ok(route.filter(|route| {
                    table.is_none_or(|table| table == route.table)
                        && protocol.is_none_or(|protocol| protocol == route.protocol)
                }))
            };
            let kind = libc::RTM_GETROUTE;
            match self.socket.dump("list the routes", kind, &bytes(&message), read) {
                Ok(found) => routes.extend(found),
                // A table that has never had a route is no table yet.
                Err(error) if table.is_some() && error.errno() == Some(Errno::ENOENT) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(routes)
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
        match self.socket.get(&operation, libc::RTM_GETROUTE, &bytes(&message), route) {
            Ok(route) => Ok(route.and_then(|route| route.next_hops.first().copied())),
            Err(Error::Kernel { errno: Errno::ENETUNREACH | Errno::EHOSTUNREACH, .. }) => Ok(None),
            // IPv4's answers for a blackhole and a prohibition.
            Err(Error::Kernel { errno: Errno::EINVAL | Errno::EACCES, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Reads a route; None for one that [`Route`] cannot express.
fn route(body: &[u8]) -> Result<Option<Route>, DecodeError> {
    let message = RouteMessage::parse(body)?;
    let header = &message.header;
    let kind = match header.kind {
        RouteType::Unicast => RouteKind::Unicast,
        RouteType::BlackHole => RouteKind::Blackhole,
        RouteType::Unreachable => RouteKind::Unreachable,
        _ => return Ok(None),
    };
    let mut destination = match header.address_family {
        AddressFamily::Inet => IpNet::V4(Ipv4Net::default()),
        AddressFamily::Inet6 => IpNet::V6(Ipv6Net::default()),
        _ => return Ok(None),
    };
    let mut route = Route::new(destination, Vec::new());
    route.kind = kind;
    route.protocol = header.protocol.into();
    route.table = header.table.into();
    route.priority = 0;
    let mut hop = NextHop { via: None, interface: 0 };
    let mut encap = None;
    for attribute in &message.attributes {
        match attribute {
            RouteAttribute::Destination(address) => {
                let Some(address) = ip(address) else { return Ok(None) };
                destination = IpNet::new(address, header.destination_prefix_length)
                    .map_err(|_| DecodeError::from("a prefix is longer than its address"))?;
            }
            RouteAttribute::Table(table) => route.table = *table,
            RouteAttribute::Priority(priority) => route.priority = *priority,
            RouteAttribute::PrefSource(source) => route.source = ip(source),
            RouteAttribute::Metrics(metrics) => {
                route.mtu = metrics.iter().find_map(|metric| match metric {
                    RouteMetric::Mtu(mtu) => Some(*mtu),
                    _ => None,
                });
            }
            RouteAttribute::MultiPath(hops) => {
                for one in hops {
                    let mut hop = NextHop { via: None, interface: one.interface_index };
                    let mut its_encap = None;
                    for attribute in &one.attributes {
                        if !read_hop(attribute, &mut hop, &mut its_encap) {
                            return Ok(None);
                        }
                    }
                    if !route.next_hops.is_empty() && its_encap != encap {
                        return Ok(None);
                    }
                    encap = its_encap;
                    route.next_hops.push(hop);
                }
            }
            attribute => {
                if !read_hop(attribute, &mut hop, &mut encap) {
                    return Ok(None);
                }
            }
        }
    }
    route.destination = destination;
    route.encap = encap;
    if route.kind != RouteKind::Unicast {
        // IPv6 shows them as being on the loopback interface.
        route.next_hops.clear();
    } else if hop.interface != 0 {
        route.next_hops.push(hop);
    }
    Ok(Some(route))
}

/// Reads an attribute of a next hop; false for an encapsulation that [`Encap`] cannot express.
fn read_hop(attribute: &RouteAttribute, hop: &mut NextHop, encap: &mut Option<Encap>) -> bool {
    match attribute {
        RouteAttribute::Gateway(address) => hop.via = ip(address),
        RouteAttribute::Via(RouteVia::Inet6(address)) => hop.via = Some((*address).into()),
        RouteAttribute::Oif(interface) => hop.interface = *interface,
        RouteAttribute::EncapType(RouteLwEnCapType::None) => {}
        RouteAttribute::Encap(attributes) => {
            *encap = Encap::from_attributes(attributes);
            return encap.is_some();
        }
        _ => {}
    }
    true
}

fn ip(address: &RouteAddress) -> Option<IpAddr> {
    match address {
        RouteAddress::Inet(address) => Some((*address).into()),
        RouteAddress::Inet6(address) => Some((*address).into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
