//! Creates namespaces, links, addresses, routes and SIDs in the kernel.

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use model::topology::{Backend, Interface, Node, Routing, Topology};
use netlink::{
    Address, Batch, Encap, GenericHandle, Handle, LOOPBACK, LocalAction, Namespace, NextHop,
    Request, Route, RouteKind, Tbf,
};
use pathfinder::{Routes, StaticRoute, routing};
use srv6::function;

use crate::Error;
use crate::life::state::{INFRASTRUCTURE, namespace_path};
use crate::node::frr::Frr;
use crate::node::index::interface_index;
use crate::node::netem;

/// The device of a router's SID routes: a bridge without ports. A SID on a link's device would be
/// removed together with the link. The name cannot collide with a node's: those have no hyphen.
pub(crate) const SID_DEVICE: &str = "sr-local";
const SID_DEVICE_INDEX: u32 = 2;

/// Creates a node's namespace and sets the sysctls that must be set before its first interface
/// exists.
pub(crate) fn namespace(
    directory: &Path,
    node: &Node,
    frr: Option<&Frr>,
) -> Result<Namespace, Error> {
    let path = namespace_path(directory, &node.name);
    let namespace = match frr.filter(|_| node.runs_frr()) {
        Some(frr) => frr.create_namespace(&path)?,
        None => Namespace::create(&path)?,
    };
    let forwarding = if node.is_router() { "1" } else { "0" };
    namespace.run(|| {
        // Packets that the kernel originates would leave through the ports of a switch.
        let disable_ipv6 = if node.is_switch() { "1" } else { "0" };
        for (path, value) in [
            ("ipv6/conf/default/disable_ipv6", disable_ipv6),
            ("ipv4/ip_forward", forwarding),
            ("ipv6/conf/all/forwarding", forwarding),
            // New interfaces inherit "default"; a packet with an SRH needs both (RFC 8754).
            ("ipv6/conf/all/seg6_enabled", "1"),
            ("ipv6/conf/default/seg6_enabled", "1"),
            // Routing may be asymmetric: a reply need not arrive on the request's interface.
            ("ipv4/conf/all/rp_filter", "0"),
            ("ipv4/conf/default/rp_filter", "0"),
            // Addresses are assigned from one plan, so there are no duplicates to detect.
            ("ipv6/conf/default/accept_dad", "0"),
            ("ipv6/conf/default/accept_ra", "0"),
            // Links keep their addresses while they are down.
            ("ipv6/conf/all/keep_addr_on_down", "1"),
            ("ipv6/conf/default/keep_addr_on_down", "1"),
            // Hash equal-cost paths on flows instead of hosts.
            ("ipv4/fib_multipath_hash_policy", "1"),
            ("ipv6/fib_multipath_hash_policy", "1"),
        ] {
            netlink::sysctl::write(path, value)?;
        }
        Ok::<(), netlink::Error>(())
    })??;
    Ok(namespace)
}

/// Creates the namespace of the bridges and of the controller.
pub(crate) fn infrastructure(directory: &Path) -> Result<Namespace, Error> {
    Ok(Namespace::create(namespace_path(directory, INFRASTRUCTURE))?)
}

/// Sets a node's rates and addresses, and its links up. Existing settings are kept.
pub(crate) fn devices(topology: &Topology, at: usize, handle: &mut Handle) -> Result<(), Error> {
    let node = &topology.nodes[at];
    let mut batch = Batch::new();
    if node.locator.is_some() {
        let label = format!("device {SID_DEVICE} of {}", node.name);
        let bridge = netlink::add_bridge(SID_DEVICE, Some(SID_DEVICE_INDEX));
        batch.push(&label, bridge.tolerate(netlink::Errno::EEXIST));
        batch.push(label, netlink::set_up(SID_DEVICE_INDEX));
    }
    let addresses = [node.loopback4.map(IpAddr::V4), node.loopback6.map(IpAddr::V6)];
    for address in addresses.into_iter().flatten() {
        address_request(&mut batch, node, LOOPBACK, IpNet::from(address));
    }
    for (index, interface) in node.interfaces.iter().enumerate() {
        let device = interface_index(index);
        let label = format!("interface {} of {}", interface.name, node.name);
        if interface.backend == Backend::Netem {
            batch.push(&label, netem::request(interface, device));
        }
        if let Some(tbf) = tbf(interface) {
            batch.push(&label, shape(interface, device, &tbf));
        }
        if interface.backend == Backend::Emulator && topology.has_srv6() {
            // The emulator's sockets get no GSO metadata for encapsulated packets.
            batch.push(&label, netlink::set_largest_segments(device, 1));
        }
        batch.push(&label, netlink::set_up(device));
        address_request(&mut batch, node, device, interface.ipv4.into());
        address_request(&mut batch, node, device, interface.ipv6.into());
    }
    Ok(handle.commit(batch)?)
}

/// Installs the routes and SIDs that the lab itself gives a node. Existing ones are replaced, so
/// calling this again restores a link that was down. `up` returns true for interfaces that are up:
/// the kernel rejects routes over the others, which are added when their link is restored.
pub(crate) fn install_routes(
    topology: &Topology,
    at: usize,
    handle: &mut Handle,
    shortest: &[Routes; 2],
    up: impl Fn(u32) -> bool,
) -> Result<(), Error> {
    let mut batch = Batch::new();
    for mut route in routes(topology, at, shortest) {
        // A blackhole route has no next hop to begin with.
        let leads_somewhere = !route.next_hops.is_empty();
        route.next_hops.retain(|hop| up(hop.interface));
        if leads_somewhere && route.next_hops.is_empty() {
            continue;
        }
        let label = format!("route {} on {}", route.destination, topology.nodes[at].name);
        batch.push(label, netlink::replace_route(&route));
    }
    Ok(handle.commit(batch)?)
}

/// Sets a node's SRv6 source address.
pub(crate) fn tunnel_source(node: &Node, namespace: &Namespace) -> Result<(), Error> {
    let mut generic = GenericHandle::within(namespace)?;
    // Without it the kernel selects a source address for every packet.
    let first_link = || node.interfaces.first().map(|interface| interface.ipv6.addr());
    if let Some(source) = node.loopback6.or_else(first_link) {
        generic.set_tunnel_source(source)?;
    }
    Ok(())
}

fn address_request(batch: &mut Batch, node: &Node, interface: u32, address: IpNet) {
    let address = Address { interface, net: address };
    let request = netlink::add_address(address).tolerate(netlink::Errno::EEXIST);
    batch.push(format!("address {} on {}", address.net, node.name), request);
}

/// Token bucket filter of an interface that has a rate.
pub(crate) fn tbf(interface: &Interface) -> Option<Tbf> {
    let rate = interface.rate.filter(|_| interface.backend != Backend::Emulator)?;
    let limit = queue_bytes(interface, rate);
    Some(Tbf::new(rate, u32::from(interface.mtu), limit))
}

/// Installs the token bucket filter on an interface.
pub(crate) fn shape(interface: &Interface, device: u32, tbf: &Tbf) -> Request {
    match interface.backend {
        Backend::Netem => netlink::replace_tbf_below(device, tbf),
        Backend::Kernel | Backend::Emulator => netlink::replace_tbf(device, tbf),
    }
}

/// Removes the token bucket filter.
pub(crate) fn unshape(interface: &Interface, device: u32) -> Request {
    let request = match interface.backend {
        Backend::Netem => netlink::delete_below(device),
        Backend::Kernel | Backend::Emulator => netlink::delete_root(device),
    };
    // It may not exist.
    request.tolerate(netlink::Errno::ENOENT)
}

/// Limit in bytes of the queue of an interface that sends at `rate`.
pub(crate) fn queue_bytes(interface: &Interface, rate: model::Bandwidth) -> u32 {
    u32::try_from(interface.queue.limit_bytes(rate, interface.mtu)).unwrap_or(u32::MAX)
}

/// All routes that the lab itself gives a node.
fn routes(topology: &Topology, at: usize, shortest: &[Routes; 2]) -> Vec<Route> {
    let node = &topology.nodes[at];
    if !node.is_router() {
        return default_routes(topology, node);
    }
    let mut routes = Vec::new();
    for (ipv6, shortest) in [false, true].into_iter().zip(shortest) {
        if routing(node, ipv6) == Routing::Static {
            let route = |(prefix, hops): StaticRoute| {
                let hop =
                    |(index, via)| NextHop { via: Some(via), interface: interface_index(index) };
                Route::new(prefix, hops.into_iter().map(hop).collect())
            };
            routes.extend(shortest.static_routes(topology, at).into_iter().map(route));
        }
    }
    routes.extend(sids(topology, at));
    routes
}

/// A host's default route uses the first router on its first link; the other links have a higher
/// metric. The route's MTU is the inner MTU, which leaves room for SRv6 headers.
fn default_routes(topology: &Topology, node: &Node) -> Vec<Route> {
    let mut routes = Vec::new();
    for (index, interface) in node.interfaces.iter().enumerate() {
        let ends = &topology.segments[interface.segment].ends;
        let Some(router) = ends.iter().find(|end| topology.nodes[end.node].is_router()) else {
            continue;
        };
        let router = &topology.nodes[router.node].interfaces[router.interface];
        let gateways = [IpAddr::V4(router.ipv4.addr()), IpAddr::V6(router.ipv6.addr())];
        for gateway in gateways {
            let everything = match gateway {
                IpAddr::V4(_) => IpNet::V4(Ipv4Net::default()),
                IpAddr::V6(_) => IpNet::V6(Ipv6Net::default()),
            };
            let hop = NextHop { via: Some(gateway), interface: interface_index(index) };
            let mut route = Route::new(everything, vec![hop]);
            route.priority += index as u32;
            route.mtu = Some(u32::from(topology.mtu.min(interface.mtu)));
            routes.push(route);
        }
        if topology.has_srv6() {
            // Packets that the host encapsulates exceed the inner MTU by their headers: towards
            // SIDs the device's own MTU applies, or else the host drops every full-sized packet.
            let hop = NextHop {
                via: Some(IpAddr::V6(router.ipv6.addr())),
                interface: interface_index(index),
            };
            let mut route = Route::new(IpNet::V6(topology.srv6_block), vec![hop]);
            route.priority += index as u32;
            routes.push(route);
        }
    }
    routes
}

/// Routes of a router's SIDs, and of its locator, which discards packets for SIDs that do not
/// exist.
fn sids(topology: &Topology, at: usize) -> Vec<Route> {
    let node = &topology.nodes[at];
    let Some(locator) = node.locator else { return Vec::new() };
    let local = |sid: srv6::Sid, interface: u32, action: LocalAction| {
        let hop = NextHop { via: None, interface };
        let mut route = Route::new(IpNet::from(IpAddr::V6(sid.0)), vec![hop]);
        route.encap = Some(Encap::local(action));
        route
    };
    let lookup = LocalAction::EndDx4 { nh4: Ipv4Addr::UNSPECIFIED };
    let main = LocalAction::EndDt6 { table: netlink::MAIN_TABLE };
    let mut routes = vec![
        local(locator.sid(function::END), SID_DEVICE_INDEX, LocalAction::End),
        local(locator.sid(function::END_DX4), SID_DEVICE_INDEX, lookup),
        local(locator.sid(function::END_DT6), SID_DEVICE_INDEX, main),
    ];
    for (index, interface) in node.interfaces.iter().enumerate() {
        for adjacency in &interface.adjacencies {
            let peer = &topology.nodes[adjacency.node].interfaces[adjacency.interface];
            let Some(sid) = node.end_x(adjacency) else { continue };
            let action = LocalAction::EndX { nh6: peer.ipv6.addr(), interface: None };
            routes.push(local(sid, interface_index(index), action));
        }
    }
    if node.ipv6_routing == Routing::Static {
        let mut route = Route::new(IpNet::V6(locator.prefix()), Vec::new());
        route.kind = RouteKind::Blackhole;
        routes.push(route);
    }
    routes
}
