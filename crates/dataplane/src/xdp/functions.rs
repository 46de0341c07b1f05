//! The way of service functions' inner packets through the kernel: in by one end of a veth, by a rule
//! to a table whose only route leads out by the other end.
//!
//! What this node itself says to such a packet has a way of its own back (`guards.rs`), or none: a
//! last rule leads ICMP errors to `kaido-out` where no other route leads them anywhere.
//!
//! The rule comes before the one for local addresses: a tenant's packet may be to an address that is
//! this node's as well, and is not for it. Nothing on the way depends on this process, so that packets
//! go on passing the rules when it is gone.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bpf::{FunctionEnds, Held, Srv6};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use netlink::{
    Batch, Errno, FUNCTIONS, Handle, InterfaceRule, Link, Mac, Namespace, NextHop, Offload, Route,
    RouteKind, VethEnd, add_interface_rule, add_neighbour, add_veth, delete_interface_rule,
    delete_link, delete_route, replace_route, set_offload, set_up, sysctl,
};

use super::guards::{self, Guards};
use super::{Forwarding, Kernel, Pins, Xdp, proxies};
use wire::protocol;

use crate::Error;

const INWARDS: &str = "kaido-in";
const OUTWARDS: &str = "kaido-out";
/// Of the end by which packets come in: the programs write it into frames (`end_an_nf.h`).
const MAC: Mac = Mac([0x02, 0x4b, 0x41, 0x49, 0x44, 0x4f]);
/// The most: a port's own counts.
const MTU: u32 = 65535;
/// Nobody's, as tables are numbered: tenants' begin at 76 << 16, and are 2^24 at most.
const TABLE: u32 = (FUNCTIONS as u32) << 24;
/// The preference of what is behind the way out.
const BEHIND: u32 = 4097;
const ALL: [IpNet; 2] = [
    IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::UNSPECIFIED, 0)),
    IpNet::V6(Ipv6Net::new_assert(Ipv6Addr::UNSPECIFIED, 0)),
];
/// The preference of a rule behind the kernel's own, the last of which is 32767.
const LAST: u32 = 32768;
/// What everything is sent to, so that there is one neighbour and not one for each destination; of
/// each family, since to another family's the kernel writes every link header anew.
const NEIGHBOURS: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(169, 254, 0, 1)),
    IpAddr::V6(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1)),
];

/// Without the first two the kernel drops inner packets. With the third it gives those that look like
/// answers to a socket of this node to the socket, before any rule (for both families).
const NEEDED: [(&str, &str); 3] = [
    ("ipv6/conf/all/forwarding", "1"),
    ("ipv4/conf/all/rp_filter", "0"),
    ("ipv4/ip_early_demux", "0"),
];

/// Refuses functions that the kernel has another way for: a packet that no program takes would go
/// by it, past the rules.
pub fn check_functions(wanted: &Forwarding, kernel: &Kernel) -> Result<(), Error> {
    for (sid, _) in wanted.sids.iter().filter(|(_, endpoint)| endpoint.is_function()) {
        let is_within = |net: &IpNet| matches!(net, IpNet::V6(net) if sid.contains(net));
        let route = kernel.routes.iter().find(|route| is_within(&route.destination));
        let address = kernel.addresses.iter().find(|address| is_within(&IpNet::from(**address)));
        let what = match (address, route) {
            (Some(address), _) => format!("this node's address {address}"),
            (None, Some(route)) => format!("a route to {}", route.destination),
            (None, None) => continue,
        };
        return Err(Error::FunctionTaken { sid: *sid, what });
    }
    Ok(())
}

/// The kernel's settings that functions need: below /proc/sys/net, and what each is to be.
pub fn function_settings() -> &'static [(&'static str, &'static str)] {
    &NEEDED
}

/// Whether any SID is End.AN.NF's.
pub(super) fn are_in(forwarding: &Forwarding) -> bool {
    forwarding.sids.values().any(|endpoint| endpoint.netfilter)
}

/// How many SIDs are service functions'.
pub(super) fn count(forwarding: &Forwarding) -> usize {
    forwarding.sids.values().filter(|endpoint| endpoint.is_function()).count()
}

/// Whether the interface is one of the data plane's own.
pub(super) fn is_own(link: &Link) -> bool {
    link.name == INWARDS || link.name == OUTWARDS || proxies::is_own(link)
}

/// Makes the way, if there are functions in `wanted`.
pub(super) fn prepare(wanted: &Forwarding, plane: &mut Xdp) -> Result<(), Error> {
    if !are_in(wanted) {
        return Ok(());
    }
    let (srv6, handle) = (plane.tables.program(), &mut plane.handle);
    for (key, wanted) in NEEDED {
        let is = sysctl::read(key)?;
        if is != wanted {
            return Err(Error::FunctionSetting { key, wanted, is });
        }
    }
    if !is_there(handle)? {
        add(handle)?;
        // Before they are up: nothing passes without the programs.
        srv6.attach_functions(ends(handle)?)?;
        plane.guards.put(srv6, &plane.pins, handle)?;
    }
    lead(ends(handle)?, handle)
}

/// Puts a program's own ends and guards in the place of an earlier one's, if there are functions in
/// `now`.
pub(super) fn attach(
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

/// Whether packets still go the way, and no interface is without a guard, if there are functions in
/// `now`.
pub(super) fn are_led(now: &Forwarding, guards: &Guards, handle: &mut Handle) -> bool {
    let led = |handle: &mut Handle| -> Result<bool, Error> {
        let rules = handle.interface_rules(FUNCTIONS)?;
        let routes = handle.routes(Some(TABLE), Some(FUNCTIONS))?;
        // Somebody's settings may come after ours, when a new interface is told of.
        let checks = sysctl::read(&rp_filter())? != "0";
        let ways = rules.len() == self::rules().len() && routes.len() == 4 && !checks;
        Ok(ways && guards.are_on(&handle.links()?))
    };
    !are_in(now) || led(handle).unwrap_or(false)
}

/// Removes the way, if there are no functions any more.
pub(crate) fn tidy(now: &Forwarding, pins: &Pins, handle: &mut Handle) -> Result<(), Error> {
    if are_in(now) || (!is_there(handle)? && pins.guards()?.is_empty()) {
        return Ok(());
    }
    let mut batch = Batch::new();
    // First: what is on its way would go another one without the rules.
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
    let ends = add_veth(&end(INWARDS, Some(MAC)), &end(OUTWARDS, None));
    Ok(handle.request("add the interfaces of service functions", ends)?)
}

fn ends(handle: &mut Handle) -> Result<FunctionEnds, Error> {
    let inwards = handle.link(INWARDS)?.index;
    let outwards = handle.link(OUTWARDS)?.index;
    Ok(FunctionEnds { inwards, outwards })
}

/// Lets packets that come in by the one end leave by the other.
fn lead(ends: FunctionEnds, handle: &mut Handle) -> Result<(), Error> {
    // A program in XDP may have switched it on. What has another outer header is not to be merged.
    set_offload(INWARDS, Offload::Gro, false)?;
    for name in [INWARDS, OUTWARDS] {
        // No address of their own, and none of the messages that come with one.
        sysctl::write(&format!("ipv6/conf/{name}/addr_gen_mode"), "1")?;
        sysctl::write(&format!("ipv6/conf/{name}/forwarding"), "1")?;
        sysctl::write(&format!("ipv4/conf/{name}/forwarding"), "1")?;
    }
    sysctl::write(&rp_filter(), "0")?;
    // Tenants may have this node's addresses.
    sysctl::write(&format!("ipv4/conf/{INWARDS}/accept_local"), "1")?;
    let mut batch = Batch::new();
    for route in fallbacks() {
        batch.push("last route", replace_route(&route));
    }
    batch.push("set up", set_up(ends.inwards));
    batch.push("set up", set_up(ends.outwards));
    for (all, neighbour) in ALL.into_iter().zip(NEIGHBOURS) {
        batch.push("neighbour", add_neighbour(ends.outwards, neighbour, MAC));
        let hop = NextHop { via: Some(neighbour), interface: ends.outwards };
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

/// What is left while the way out is down: it takes its routes along.
fn fallbacks() -> [Route; 2] {
    let (kind, table, protocol, priority) = (RouteKind::Unreachable, TABLE, FUNCTIONS, BEHIND);
    ALL.map(|net| Route { kind, table, protocol, priority, ..Route::new(net, Vec::new()) })
}

fn rp_filter() -> String {
    format!("ipv4/conf/{INWARDS}/rp_filter")
}

/// Inner packets are led before anything else, this node's own ICMP errors where nothing else does.
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
