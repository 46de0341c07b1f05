//! SRv6 through the lab's own SIDs, with manual steering at a host.

use model::topology::Topology;
use srv6::Sid;
use testkit::Lab;

use crate::kaido;
use crate::topologies::{CHAIN, addresses, decapsulating, end_x, resolved, sid, with_xdp};

/// Steers h1's packets for h2 into a segment list that ends at r3, for both families.
pub(crate) fn steer(lab: &Lab<'_>, topology: &Topology, over: &[Sid]) {
    let lists = decapsulating(topology, "r3");
    for ((family, address), last) in ["-4", "-6"].iter().zip(addresses(topology, "h2")).zip(lists) {
        let segments: Vec<String> = over.iter().chain([&last]).map(Sid::to_string).collect();
        let segments = segments.join(",");
        let route = format!("{address} encap seg6 mode encap segs {segments} dev r1");
        lab.exec("h1", &format!("ip {family} route replace {route}"));
    }
}

/// Paths over End at r1, the adjacency r1 -> r2 or r2 -> r3, and decapsulation at r3.
pub(crate) fn paths(topology: &Topology) -> [Vec<Sid>; 4] {
    let end = |node| sid(topology, node, srv6::function::END);
    [
        vec![],
        vec![end("r1"), end("r2")],
        vec![end_x(topology, "r1", "r2"), end_x(topology, "r2", "r3")],
        vec![end("r1"), end_x(topology, "r2", "r3"), end("r3")],
    ]
}

/// A counter of a node's IPv4 or IPv6 stack.
fn counter(lab: &Lab<'_>, node: &str, name: &str) -> u64 {
    let text = lab.exec(node, &format!("nstat -asz {name}"));
    let line = text.lines().find(|line| line.starts_with(name));
    let value = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
    value.unwrap_or_else(|| panic!("no {name}: {text}"))
}

/// Number of packets that a node has received on an interface.
fn packets(lab: &Lab<'_>, node: &str, interface: &str) -> u64 {
    let file = format!("cat /sys/class/net/{interface}/statistics/rx_packets");
    lab.exec(node, &file).trim().parse().unwrap()
}

#[test]
fn root_hosts_reach_each_other_over_every_kind_of_sid() {
    for text in [CHAIN, &with_xdp(CHAIN)] {
        let kaido = kaido();
        let topology = resolved(text);
        let lab = kaido.lab_up(text);
        let far = addresses(&topology, "h2");
        for path in paths(&topology) {
            steer(&lab, &topology, &path);
            let (before, delivered) =
                (packets(&lab, "r3", "r2"), counter(&lab, "h2", "IpInReceives"));
            lab.ping("h1", &far.each_ref().map(String::as_str));
            assert!(packets(&lab, "r3", "r2") >= before + 2, "{path:?}");
            assert!(counter(&lab, "h2", "IpInReceives") > delivered, "{path:?}");
        }
        // They are indeed sent with SRv6: a packet for a SID that does not exist is dropped by the
        // locator's owner.
        let locator = topology.node("r2").unwrap().locator.unwrap();
        steer(&lab, &topology, &[locator.sid(0x7777)]);
        for address in &far {
            let ping = ["ping", "-c", "1", "-W", "1", address.as_str()];
            assert_ne!(lab.run("h1", &ping).code, Some(0), "{address}");
        }
    }
}

/// With a device MTU of 1,500 bytes, every encapsulated datagram of 1,400 bytes from a host was
/// lost, because it was fragmented after the SRH.
#[test]
fn root_a_full_packet_is_never_fragmented() {
    for text in [CHAIN, &with_xdp(CHAIN)] {
        let kaido = kaido();
        let topology = resolved(text);
        let lab = kaido.lab_up(text);
        for path in paths(&topology) {
            steer(&lab, &topology, &path);
            for (address, largest) in addresses(&topology, "h2").iter().zip([1472, 1452]) {
                for size in [1400, largest] {
                    let line = format!("ping -n -c 3 -i 0.01 -W 3 -M do -s {size} {address}");
                    let text = lab.exec("h1", &line);
                    assert!(text.contains("3 received"), "{path:?} {size}: {text}");
                }
            }
        }
        for node in ["h1", "r1", "r2", "r3", "h2"] {
            for name in
                ["IpFragCreates", "IpFragFails", "Ip6FragCreates", "Ip6FragFails", "Ip6ReasmReqds"]
            {
                assert_eq!(counter(&lab, node, name), 0, "{name} on {node}");
            }
        }
    }
}

/// Incorrect segmentation of encapsulated GSO packets reduces TCP to 0.45 Mbit/s, and segmentation
/// at the host reduces it to a seventh. Each run with SRv6 is compared with a subsequent run
/// without, on unlimited links.
#[test]
fn root_tcp_over_srv6_is_not_crippled_by_segmentation() {
    let kaido = kaido();
    let topology = resolved(CHAIN);
    let lab = kaido.lab_up(CHAIN);
    let far = addresses(&topology, "h2");
    let path = &paths(&topology)[1];
    for (family, address) in ["-4", "-6"].iter().zip(&far) {
        // Other tests run concurrently: use the best of a few pairs.
        let mut ratios = Vec::new();
        while ratios.iter().all(|ratio| *ratio <= 0.5) {
            assert!(ratios.len() < 4, "{address}: SRv6 reaches {ratios:?} of plain routing");
            let plain = crate::rate::tcp(&lab, address, 2);
            steer(&lab, &topology, path);
            let steered = crate::rate::tcp(&lab, address, 2);
            lab.exec("h1", &format!("ip {family} route delete {address}"));
            ratios.push(steered / plain);
        }
        eprintln!("{address}: SRv6 reaches {ratios:.2?} of plain routing");
    }
}
