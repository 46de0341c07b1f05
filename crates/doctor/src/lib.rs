//! Probes for the kernel features that Kaido needs, tried in a private namespace.
#![forbid(unsafe_code)]

use std::net::Ipv4Addr;

use ipnet::IpNet;
use netlink::{Encap, Handle, LocalAction, Namespace, NextHop, Route, Rule, Tbf, VethEnd};
use srv6::{EncapMode, Kind};

mod xdp;

/// Result of a probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// The feature.
    pub what: &'static str,
    /// True if it works.
    pub ok: bool,
    /// True if nothing works without it; otherwise only `needed_for` is affected.
    pub required: bool,
    /// The functionality that needs it.
    pub needed_for: &'static str,
    /// The kernel's error, and how to get the feature.
    pub fix: String,
}

const LINK: u32 = 10;
const BRIDGE: u32 = 11;

/// Runs all probes, and removes everything that they create.
pub fn probe() -> Vec<Probe> {
    let Ok(namespace) = Namespace::unnamed() else {
        return vec![Probe {
            what: "network namespaces",
            ok: false,
            required: true,
            needed_for: "everything",
            fix: "run as root; the kernel needs CONFIG_NET_NS".into(),
        }];
    };
    let mut handle = match Handle::within(&namespace) {
        Ok(handle) => handle,
        Err(error) => {
            return vec![Probe {
                what: "netlink",
                ok: false,
                required: true,
                needed_for: "everything",
                fix: error.to_string(),
            }];
        }
    };
    let mut probes = vec![Probe {
        what: "network namespaces",
        ok: true,
        required: true,
        needed_for: "everything",
        fix: String::new(),
    }];
    let end = |name, index| VethEnd {
        name,
        namespace: &namespace,
        mtu: 1500,
        mac: None,
        index: Some(index),
    };
    let veth = netlink::add_veth(&end("a", LINK), &end("b", LINK + 10));
    probes.push(of_netlink("veth", "links", "CONFIG_VETH", handle.request("veth", veth)));
    // The probes below report it themselves if the link is missing or down.
    let _ = handle.request("up", netlink::set_up(LINK));
    let _ = handle.request("up", netlink::set_up(LINK + 10));
    let meter = namespace.run(|| bpf::Meter::attach([LINK as i32]).map(drop));
    let meter = meter
        .map_err(|error| error.to_string())
        .and_then(|tried| tried.map_err(|error| xdp::in_one_line(&error)));
    probes.push(Probe {
        what: "BPF at tc egress",
        ok: meter.is_ok(),
        required: true,
        needed_for: "paths for applications",
        fix: meter.err().unwrap_or_default(),
    });
    let mut add = |what, needed_for, option: &str, tried: Result<(), netlink::Error>| {
        probes.push(of_netlink(what, needed_for, option, tried));
    };
    let bridge = netlink::add_bridge("c", Some(BRIDGE));
    add("bridge", "LANs and SIDs", "CONFIG_BRIDGE", handle.request("bridge", bridge));
    let _ = handle.request("up", netlink::set_up(BRIDGE));
    let tbf = Tbf::new(model::Bandwidth::from_mbps(100), 1500, 1 << 16);
    let tbf = netlink::replace_tbf(LINK, &tbf);
    add("token buckets", "rates", "CONFIG_NET_SCH_TBF", handle.request("tbf", tbf));
    let netem = netlink::try_netem();
    let netem = of_netlink("netem", "links with `engine: netem`", "CONFIG_NET_SCH_NETEM", netem);
    let routers = |kind: Kind, action| {
        let info = kind.info();
        let since = info.kernel.map_or("", |kernel| kernel.since);
        (info.name, "SRv6 routers", since, Encap::local(action))
    };
    let headend = EncapMode::EncapsRed;
    for (what, needed_for, since, encap) in [
        (headend.name(), "paths for applications", headend.since(), seg6(headend)),
        routers(Kind::End, LocalAction::End),
        routers(Kind::EndDx4, LocalAction::EndDx4 { nh4: Ipv4Addr::UNSPECIFIED }),
        routers(Kind::EndDt6, LocalAction::EndDt6 { table: netlink::MAIN_TABLE }),
    ] {
        let option = format!("CONFIG_IPV6_SEG6_LWTUNNEL and Linux {since}");
        let destination: IpNet = "fd00:0:1:1::/128".parse().expect("a prefix");
        let hop = NextHop { via: None, interface: BRIDGE };
        let route = Route { encap: Some(encap), ..Route::new(destination, vec![hop]) };
        let tried = handle.request(what, netlink::replace_route(&route));
        add(what, needed_for, &option, tried);
    }
    let flow = model::Flow {
        src: None,
        dst: "10.0.0.0/8".parse().expect("a prefix"),
        protocol: Some(model::Protocol::Tcp),
        src_ports: None,
        dst_ports: "5201".parse().ok(),
        dscp: None,
    };
    let rule = Rule { priority: 7000, table: 7000, protocol: netlink::PROTOCOL, flow };
    let tried = netlink::add_rule(&rule).and_then(|request| handle.request("rule", request));
    add("policy rules", "paths for applications", "CONFIG_IP_MULTIPLE_TABLES", tried);
    probes.push(Probe { required: false, ..netem });
    // A namespace that could be created can be entered.
    probes.extend(namespace.run(|| xdp::probe(LINK)).unwrap_or_default());
    probes
}

fn of_netlink(
    what: &'static str,
    needed_for: &'static str,
    option: &str,
    tried: Result<(), netlink::Error>,
) -> Probe {
    let missing = |error: &netlink::Error| format!("the kernel needs {option} ({error})");
    let fix = tried.as_ref().err().map(missing).unwrap_or_default();
    Probe { what, ok: tried.is_ok(), required: true, needed_for, fix }
}

fn seg6(mode: EncapMode) -> Encap {
    let segments = srv6::SegmentList(vec![srv6::Sid("fd00:0:2:1::".parse().expect("a SID"))]);
    Encap::Seg6 { mode, segments }
}
