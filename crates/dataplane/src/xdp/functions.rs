//! The way of service functions' inner packets through the kernel: in by one end of a veth, by a rule
//! to a table whose only route leads out by the other end.
//!
//! The rule comes before the one for local addresses: a tenant's packet may be to an address that is
//! this node's as well, and is not for it. Nothing on the way depends on this process, so that packets
//! go on passing the rules when it is gone.

use bpf::{FunctionEnds, Srv6};
use netlink::{
    Batch, Errno, FUNCTIONS, Handle, InterfaceRule, Mac, Namespace, NextHop, Offload, Route,
    VethEnd, add_interface_rule, add_neighbour, add_veth, delete_interface_rule, delete_link,
    replace_route, set_offload, set_up, sysctl,
};

use super::Forwarding;
use crate::Error;

const INWARDS: &str = "kaido-in";
const OUTWARDS: &str = "kaido-out";
/// Of the end by which packets come in: the programs write it into frames (`end_an_nf.h`).
const MAC: Mac = Mac([0x02, 0x4b, 0x41, 0x49, 0x44, 0x4f]);
/// Whatever fits a port fits here.
const MTU: u32 = 65535;
/// Nobody's, as tables are numbered.
const TABLE: u32 = (FUNCTIONS as u32) << 16;
/// What everything is sent to, so that there is one neighbour and not one for each destination.
const NEIGHBOUR: std::net::Ipv6Addr = std::net::Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);

/// What the kernel drops inner packets without.
const NEEDED: [(&str, &str); 2] =
    [("ipv6/conf/all/forwarding", "1"), ("ipv4/conf/all/rp_filter", "0")];

/// Whether any SID is a service function's.
pub(super) fn are_in(forwarding: &Forwarding) -> bool {
    forwarding.sids.values().any(|endpoint| endpoint.netfilter)
}

/// Makes the way, if there are functions in `wanted`.
pub(super) fn prepare(wanted: &Forwarding, srv6: &Srv6, handle: &mut Handle) -> Result<(), Error> {
    if !are_in(wanted) {
        return Ok(());
    }
    for (key, wanted) in NEEDED {
        let is = sysctl::read(key)?;
        if is != wanted {
            return Err(Error::FunctionSetting { key, wanted, is });
        }
    }
    let ends = veth(handle)?;
    // Before they are up: nothing passes without the programs.
    srv6.attach_functions(ends)?;
    lead(ends, handle)
}

/// Removes the way, if there are no functions any more.
pub(super) fn tidy(now: &Forwarding, handle: &mut Handle) -> Result<(), Error> {
    if are_in(now) || !is_there(handle)? {
        return Ok(());
    }
    let mut batch = Batch::new();
    for ipv6 in [false, true] {
        let request = delete_interface_rule(&rule(ipv6)).tolerate(Errno::ENOENT);
        batch.push("delete the rule of service functions", request);
    }
    // Its routes go with it.
    batch.push("delete the interfaces of service functions", delete_link(INWARDS));
    Ok(handle.commit(batch)?)
}

fn is_there(handle: &mut Handle) -> Result<bool, Error> {
    match handle.link(INWARDS) {
        Ok(_) => Ok(true),
        Err(error) if error.is_not_found() => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// The two ends, made if they are not there.
fn veth(handle: &mut Handle) -> Result<FunctionEnds, Error> {
    if !is_there(handle)? {
        let namespace = Namespace::current()?;
        let end = |name, mac| VethEnd { name, namespace: &namespace, mtu: MTU, mac, index: None };
        let ends = add_veth(&end(INWARDS, Some(MAC)), &end(OUTWARDS, None));
        handle.request("add the interfaces of service functions", ends)?;
    }
    let inwards = handle.link(INWARDS)?.index;
    let outwards = handle.link(OUTWARDS)?.index;
    Ok(FunctionEnds { inwards, outwards })
}

/// Lets packets that come in by the one end leave by the other.
fn lead(ends: FunctionEnds, handle: &mut Handle) -> Result<(), Error> {
    // So that it takes frames from XDP.
    set_offload(INWARDS, Offload::Gro, true)?;
    for name in [INWARDS, OUTWARDS] {
        // No address of their own, and none of the messages that come with one.
        sysctl::write(&format!("ipv6/conf/{name}/addr_gen_mode"), "1")?;
        sysctl::write(&format!("ipv6/conf/{name}/forwarding"), "1")?;
        sysctl::write(&format!("ipv4/conf/{name}/forwarding"), "1")?;
        sysctl::write(&format!("ipv4/conf/{name}/rp_filter"), "0")?;
    }
    // Tenants may have this node's addresses.
    sysctl::write(&format!("ipv4/conf/{INWARDS}/accept_local"), "1")?;
    let mut batch = Batch::new();
    batch.push("set up", set_up(ends.inwards));
    batch.push("set up", set_up(ends.outwards));
    batch.push("neighbour", add_neighbour(ends.outwards, NEIGHBOUR.into(), MAC));
    for all in ["0.0.0.0/0", "::/0"] {
        let hop = NextHop { via: Some(NEIGHBOUR.into()), interface: ends.outwards };
        let net: ipnet::IpNet = all.parse().expect("it is a prefix");
        let route = Route { table: TABLE, protocol: FUNCTIONS, ..Route::new(net, vec![hop]) };
        batch.push("route", replace_route(&route));
    }
    for ipv6 in [false, true] {
        batch.push("rule", add_interface_rule(&rule(ipv6)).tolerate(Errno::EEXIST));
    }
    handle.commit(batch)?;
    handle.put_local_rules_last()?;
    Ok(())
}

fn rule(ipv6: bool) -> InterfaceRule {
    InterfaceRule {
        priority: 0,
        table: TABLE,
        protocol: FUNCTIONS,
        ipv6,
        interface: INWARDS.into(),
    }
}
