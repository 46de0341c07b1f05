//! Path of service functions' inner packets through the kernel: they enter through one end of a veth,
//! and a rule directs them to a table with a single route, which leaves through the other end.
//!
//! Local replies to such a packet are sent by a return policy (`guards.rs`) or dropped: a last rule
//! directs ICMP errors to `kaido-out` if no other route exists for them.
//!
//! The rule precedes the one for local addresses: the destination of a tenant's packet may equal a
//! local address of this node, and such a packet is not for the node. Nothing on the path depends
//! on this process, so that packets still pass the rules after it exits.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bpf::{FunctionEnds, Held, Srv6};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use netlink::{
    Batch, Errno, FUNCTIONS, Handle, InterfaceRule, Mac, Namespace, NextHop, Offload, Route,
    RouteKind, VethEnd, add_interface_rule, add_neighbor, add_veth_with_queues,
    delete_interface_rule, delete_link, delete_route, replace_route, set_offload, set_up, sysctl,
};

use super::devices::{INWARDS, OUTWARDS};
use super::guards::{self, Guards};
use super::queues::queues;
use crate::xdp::pins::Pins;
use wire::protocol;

use crate::Error;
use crate::forwarding::{Endpoint, Forwarding};

/// MAC address of the end where packets enter the kernel. The programs write it into frames
/// (`end_an_nf.h`).
const MAC: Mac = Mac([0x02, 0x4b, 0x41, 0x49, 0x44, 0x4f]);
/// The maximum. The MTU of the port applies.
const MTU: u32 = 65535;
/// A table number that is not in use otherwise: those of tenants start at 76 << 16 and are at most
/// 2^24.
const TABLE: u32 = (FUNCTIONS as u32) << 24;
/// Metric of the fallback routes.
const BEHIND: u32 = 4097;
const ALL: [IpNet; 2] = [
    IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::UNSPECIFIED, 0)),
    IpNet::V6(Ipv6Net::new_assert(Ipv6Addr::UNSPECIFIED, 0)),
];
/// Priority of a rule after those of the kernel, the last of which is 32767.
const LAST: u32 = 32768;
/// Next hops of all packets, so that one neighbor suffices instead of one per destination. There
/// is one per family: for a next hop of the other family, the kernel would rebuild the link-layer header
/// for every packet.
const NEIGHBORS: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(169, 254, 0, 1)),
    IpAddr::V6(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1)),
];

/// Without the first two, the kernel drops inner packets. With the third one enabled, it delivers
/// packets that look like replies to a local socket to that socket, before any rule (for both
/// families).
const NEEDED: [(&str, &str); 3] = [
    ("ipv6/conf/all/forwarding", "1"),
    ("ipv4/conf/all/rp_filter", "0"),
    ("ipv4/ip_early_demux", "0"),
];

/// Returns the kernel settings that functions require: parameter below /proc/sys/net, and value.
pub fn function_settings() -> &'static [(&'static str, &'static str)] {
    &NEEDED
}

/// Returns true if there is a SID with End.AN.NF.
pub(in crate::xdp) fn are_in(forwarding: &Forwarding) -> bool {
    forwarding.sids.values().any(Endpoint::is_netfilter)
}

/// Sets up the path if `wanted` has functions.
pub(in crate::xdp) fn prepare(
    wanted: &Forwarding,
    srv6: &Srv6,
    guards: &mut Guards,
    pins: &Pins,
    handle: &mut Handle,
) -> Result<(), Error> {
    if !are_in(wanted) {
        return Ok(());
    }
    for (key, wanted) in NEEDED {
        let is = sysctl::read(key)?;
        if is != wanted {
            return Err(Error::FunctionSetting { key, wanted, is });
        }
    }
    if !is_there(handle)? {
        add(handle)?;
        // Attached before the interfaces are up, so that no packet passes without the programs.
        srv6.attach_functions(ends(handle)?)?;
        guards.put(srv6, pins, handle)?;
    }
    lead(ends(handle)?, handle)
}

/// Attaches a program to the veth and as egress filters, replacing an earlier program, if `now` has
/// functions.
pub(in crate::xdp) fn attach(
    now: &Forwarding,
    srv6: &Srv6,
    guards: &mut Guards,
    pins: &Pins,
    handle: &mut Handle,
) -> Result<(), Error> {
    if !are_in(now) {
        return Ok(());
    }
    guards.put(srv6, pins, handle)?;
    Ok(srv6.attach_functions(ends(handle)?)?)
}

/// Returns true if the path is intact and every interface has its egress filter, or `now` has no
/// functions.
pub(in crate::xdp) fn are_led(now: &Forwarding, guards: &Guards, handle: &mut Handle) -> bool {
    let led = |handle: &mut Handle| -> Result<bool, Error> {
        let rules = handle.interface_rules(FUNCTIONS)?;
        let routes = handle.routes(Some(TABLE), Some(FUNCTIONS))?;
        // Another process may apply its settings later, when a new interface is announced.
        let checks = sysctl::read(&rp_filter())? != "0";
        let ways = rules.len() == self::rules().len() && routes.len() == 4 && !checks;
        Ok(ways && guards.are_on(&handle.links()?))
    };
    !are_in(now) || led(handle).unwrap_or(false)
}

/// Removes the path once the last function is gone.
pub(crate) fn tidy(now: &Forwarding, pins: &Pins, handle: &mut Handle) -> Result<(), Error> {
    if are_in(now) || (!is_there(handle)? && pins.guards()?.is_empty()) {
        return Ok(());
    }
    let mut batch = Batch::new();
    // Deleted first: without the rules, packets in flight would take another path.
    let link = delete_link(INWARDS).tolerate(Errno::ENODEV);
    batch.push("delete the interfaces of service functions", link);
    for rule in rules() {
        let request = delete_interface_rule(&rule).tolerate(Errno::ENOENT);
        batch.push("delete the rule of service functions", request);
    }
    for route in fallbacks() {
        let request = delete_route(&route).tolerate(Errno::ESRCH);
        batch.push("delete the last route of service functions", request);
    }
    handle.commit(batch)?;
    Held::forget(&pins.held()).map_err(|source| pins.failed(source))?;
    guards::take_off(pins, handle)
}

fn is_there(handle: &mut Handle) -> Result<bool, Error> {
    match handle.link(INWARDS) {
        Ok(_) => Ok(true),
        Err(error) if error.is_not_found() => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn add(handle: &mut Handle) -> Result<(), Error> {
    let namespace = Namespace::current()?;
    let end = |name, mac| VethEnd { name, namespace: &namespace, mtu: MTU, mac, index: None };
    let ends = add_veth_with_queues(&end(INWARDS, Some(MAC)), &end(OUTWARDS, None), queues());
    Ok(handle.request("add the interfaces of service functions", ends)?)
}

fn ends(handle: &mut Handle) -> Result<FunctionEnds, Error> {
    let inwards = handle.link(INWARDS)?.index;
    let outwards = handle.link(OUTWARDS)?.index;
    Ok(FunctionEnds { inwards, outwards })
}

/// Configures the path from one end to the other.
fn lead(ends: FunctionEnds, handle: &mut Handle) -> Result<(), Error> {
    // An XDP program may have enabled GRO. Packets with different outer headers must not be merged.
    set_offload(INWARDS, Offload::Gro, false)?;
    for name in [INWARDS, OUTWARDS] {
        // Without link-local addresses, and the messages that come with them.
        sysctl::write(&format!("ipv6/conf/{name}/addr_gen_mode"), "1")?;
        sysctl::write(&format!("ipv6/conf/{name}/forwarding"), "1")?;
        sysctl::write(&format!("ipv4/conf/{name}/forwarding"), "1")?;
    }
    sysctl::write(&rp_filter(), "0")?;
    // Tenants may use the node's addresses.
    sysctl::write(&format!("ipv4/conf/{INWARDS}/accept_local"), "1")?;
    let mut batch = Batch::new();
    for route in fallbacks() {
        batch.push("last route", replace_route(&route));
    }
    batch.push("set up", set_up(ends.inwards));
    batch.push("set up", set_up(ends.outwards));
    for (all, neighbor) in ALL.into_iter().zip(NEIGHBORS) {
        batch.push("neighbor", add_neighbor(ends.outwards, neighbor, MAC));
        let hop = NextHop { via: Some(neighbor), interface: ends.outwards };
        let route = Route { table: TABLE, protocol: FUNCTIONS, ..Route::new(all, vec![hop]) };
        batch.push("route", replace_route(&route));
    }
    for rule in rules() {
        batch.push("rule", add_interface_rule(&rule).tolerate(Errno::EEXIST));
    }
    handle.commit(batch)?;
    handle.put_local_rules_last()?;
    Ok(())
}

/// Returns the routes that remain while `kaido-out` is down, which removes its routes.
fn fallbacks() -> [Route; 2] {
    let (kind, table, protocol, priority) = (RouteKind::Unreachable, TABLE, FUNCTIONS, BEHIND);
    ALL.map(|net| Route { kind, table, protocol, priority, ..Route::new(net, Vec::new()) })
}

fn rp_filter() -> String {
    format!("ipv4/conf/{INWARDS}/rp_filter")
}

/// Returns the rules: those for inner packets precede all others, those for local ICMP errors
/// follow all others.
fn rules() -> [InterfaceRule; 4] {
    let rule = |ipv6, priority, interface: &str, ip_protocol| InterfaceRule {
        priority,
        table: TABLE,
        protocol: FUNCTIONS,
        ipv6,
        interface: Some(interface.into()),
        ip_protocol,
        ..InterfaceRule::default()
    };
    [
        rule(false, 0, INWARDS, None),
        rule(true, 0, INWARDS, None),
        rule(false, LAST, "lo", Some(protocol::ICMP)),
        rule(true, LAST, "lo", Some(protocol::ICMPV6)),
    ]
}
