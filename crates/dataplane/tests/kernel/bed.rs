//! The two paths, with policies for them.

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use ipnet::IpNet;
use model::{Color, Flow, Policy, Protocol};
use netlink::{
    Address, Batch, Encap, Handle, LocalAction, Namespace, NextHop, Route, VethEnd, add_address,
    add_route, add_veth, set_up, sysctl,
};
use srv6::{SegmentList, Sid};

pub(crate) const INNER_MTU: u16 = 1500;
const LINK_MTU: u32 = 1800;
/// Interfaces have the same number at both ends: 1x on the host side, 2x on the server side.
const A: u32 = 10;
const B: u32 = 11;
const SERVER_A: u32 = 20;
const SERVER_B: u32 = 21;

/// The namespaces.
pub(crate) struct Net {
    pub(crate) host: Namespace,
    pub(crate) a: Namespace,
    pub(crate) b: Namespace,
    pub(crate) server: Namespace,
}

pub(crate) fn net(text: &str) -> IpNet {
    text.parse().unwrap()
}

fn via(destination: &str, neighbor: &str, interface: u32) -> Route {
    let hop = NextHop { via: Some(neighbor.parse().unwrap()), interface };
    Route::new(net(destination), vec![hop])
}

fn sid(text: &str, action: LocalAction, interface: u32) -> Route {
    let hop = NextHop { via: None, interface };
    Route { encap: Some(Encap::local(action)), ..Route::new(net(text), vec![hop]) }
}

/// Sets up the namespaces.
pub(crate) fn up() -> Net {
    let new = || Namespace::unnamed().unwrap();
    let made = Net { host: new(), a: new(), b: new(), server: new() };
    for namespace in [&made.host, &made.a, &made.b, &made.server] {
        namespace
            .run(|| {
                for (path, value) in [
                    ("ipv4/ip_forward", "1"),
                    ("ipv4/conf/all/rp_filter", "0"),
                    ("ipv4/conf/default/rp_filter", "0"),
                    ("ipv6/conf/all/forwarding", "1"),
                    ("ipv6/conf/all/seg6_enabled", "1"),
                    ("ipv6/conf/default/seg6_enabled", "1"),
                    ("ipv6/conf/default/accept_dad", "0"),
                ] {
                    sysctl::write(path, value).unwrap();
                }
            })
            .unwrap();
    }
    let mut here = Handle::within(&new()).unwrap();
    for (left, right, index, name) in [
        (&made.host, &made.a, A, "host-a"),
        (&made.host, &made.b, B, "host-b"),
        (&made.server, &made.a, SERVER_A, "server-a"),
        (&made.server, &made.b, SERVER_B, "server-b"),
    ] {
        let end =
            |namespace| VethEnd { name, namespace, mtu: LINK_MTU, mac: None, index: Some(index) };
        here.request(name, add_veth(&end(left), &end(right))).unwrap();
    }
    let router = |number: u32, links: [u32; 2], letter: char| {
        let addresses = vec![
            (format!("10.0.{number}.2/24"), links[0]),
            (format!("fd00:{number}::2/64"), links[0]),
            (format!("10.8.{number}.2/24"), links[1]),
            (format!("fd00:8:{number}::2/64"), links[1]),
        ];
        let all = LocalAction::EndDx4 { nh4: [0; 4].into() };
        let routes = vec![
            via("10.9.0.1/32", &format!("10.8.{number}.1"), links[1]),
            via("fd00:9::1/128", &format!("fd00:8:{number}::1"), links[1]),
            sid(&format!("fd00:0:{letter}:1::/128"), LocalAction::End, links[0]),
            sid(&format!("fd00:0:{letter}:d4::/128"), all, links[0]),
            sid(&format!("fd00:0:{letter}:d6::/128"), LocalAction::EndDt6 { table: 254 }, links[0]),
        ];
        (addresses, routes)
    };
    let owned = |list: &[(&str, u32)]| {
        list.iter().map(|(text, interface)| ((*text).to_owned(), *interface)).collect::<Vec<_>>()
    };
    let host = (
        owned(&[("10.0.1.1/24", A), ("fd00:1::1/64", A), ("10.0.2.1/24", B), ("fd00:2::1/64", B)]),
        vec![
            via("10.9.0.1/32", "10.0.1.2", A),
            via("fd00:9::1/128", "fd00:1::2", A),
            via("fd00:0:a::/48", "fd00:1::2", A),
            via("fd00:0:b::/48", "fd00:2::2", B),
        ],
    );
    let server = (
        owned(&[
            ("10.8.1.1/24", SERVER_A),
            ("fd00:8:1::1/64", SERVER_A),
            ("10.8.2.1/24", SERVER_B),
            ("fd00:8:2::1/64", SERVER_B),
            ("10.9.0.1/32", 1),
            ("fd00:9::1/128", 1),
        ]),
        vec![via("10.0.1.0/24", "10.8.1.2", SERVER_A), via("fd00:1::/64", "fd00:8:1::2", SERVER_A)],
    );
    for (namespace, (addresses, routes)) in [
        (&made.host, host),
        (&made.a, router(1, [A, SERVER_A], 'a')),
        (&made.b, router(2, [B, SERVER_B], 'b')),
        (&made.server, server),
    ] {
        let mut handle = Handle::within(namespace).unwrap();
        let mut batch = Batch::new();
        for link in handle.links().unwrap() {
            batch.push(format!("up {}", link.name), set_up(link.index));
        }
        for (address, interface) in addresses {
            let address = Address { interface, net: net(&address) };
            batch.push(format!("address {}", address.net), add_address(address));
        }
        for route in &routes {
            batch.push(format!("route {}", route.destination), add_route(route));
        }
        handle.commit(batch).unwrap();
    }
    // An ARP request lost on a link that is not ready yet is repeated only a second later.
    for namespace in [&made.host, &made.a, &made.b, &made.server] {
        let mut handle = Handle::within(namespace).unwrap();
        let end = Instant::now() + Duration::from_secs(10);
        while !handle.links().unwrap().iter().all(|link| link.index == 1 || link.operational) {
            assert!(Instant::now() < end, "{:?}", handle.links());
            thread::sleep(Duration::from_millis(1));
        }
    }
    made
}

pub(crate) fn list(sids: &[&str]) -> SegmentList {
    SegmentList(sids.iter().map(|sid| Sid(sid.parse().unwrap())).collect())
}

pub(crate) fn flow(dst: &str, protocol: Option<Protocol>, port: Option<u16>) -> Flow {
    let ports = port.map(|port| model::PortRange { first: port, last: port });
    Flow { src: None, dst: net(dst), protocol, src_ports: None, dst_ports: ports, dscp: None }
}

/// Returns a policy for both families to the server, through router `letter`.
pub(crate) fn policy(letter: char) -> Policy {
    Policy {
        color: Color(7001),
        flows: vec![flow("10.9.0.1/32", None, None), flow("fd00:9::1/128", None, None)],
        ipv4: list(&[&format!("fd00:0:{letter}:d4::")]),
        ipv6: list(&[&format!("fd00:0:{letter}:1::"), &format!("fd00:0:{letter}:d6::")]),
        closed: false,
    }
}

/// Returns the number of packets that a router has sent to the server.
pub(crate) fn forwarded(router: &Namespace) -> u64 {
    let links = Handle::within(router).unwrap().links().unwrap();
    links.iter().find(|link| link.name.starts_with("server")).unwrap().stats.tx_packets
}

/// Returns the namespace's rules and routes in the notation of `ip`.
pub(crate) fn shown(namespace: &Namespace) -> String {
    let show = |arguments: &str| {
        let output = Command::new("ip").args(arguments.split(' ')).output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    };
    namespace
        .run(|| {
            ["-4 rule", "-6 rule", "-4 route show table all", "-6 route show table all"]
                .map(show)
                .join("--\n")
        })
        .unwrap()
}

pub(crate) fn ip(namespace: &Namespace, arguments: &str) {
    let run = || Command::new("ip").args(arguments.split(' ')).status().unwrap().success();
    assert!(namespace.run(run).unwrap(), "ip {arguments}");
}

/// Returns the host's route for TCP to the server's port 5201 or 80, in the notation of `ip`.
pub(crate) fn way(net: &Net, port: u16) -> String {
    let arguments = format!("route get 10.9.0.1 ipproto tcp dport {port}");
    let run = || Command::new("ip").args(arguments.split(' ')).output().unwrap();
    String::from_utf8(net.host.run(run).unwrap().stdout).unwrap()
}
