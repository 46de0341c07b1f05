//! SRv6 end to end, configured with this crate only:
//!
//! ```text
//!  left ---------------- router ---------------- right
//!  10.0.1.1/24  10.0.1.2/24 10.0.2.2/24   10.0.2.1/24
//!  fd00:a::1/64 fd00:a::2/64 fd00:b::2/64 fd00:b::1/64
//!                fd00:0:1:1::  End
//!                fd00:0:1:d4:: End.DX4 0.0.0.0
//!                fd00:0:1:d6:: End.DT6 254
//! ```
#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use netlink::{
    Address, Batch, Encap, GenericHandle, Handle, LocalAction, Namespace, NextHop, Route, VethEnd,
    add_address, add_route, add_veth, replace_route, set_up, sysctl,
};
use srv6::{EncapMode, SegmentList, Sid};

struct Chain {
    left: Namespace,
    router: Namespace,
    right: Namespace,
}

const MTU: u32 = 1500 + 200;

fn sids(list: &[&str]) -> SegmentList {
    SegmentList(list.iter().map(|sid| Sid(sid.parse().unwrap())).collect())
}

fn via(address: &str, interface: u32) -> Vec<NextHop> {
    vec![NextHop { via: Some(address.parse().unwrap()), interface }]
}

fn encap(destination: &str, list: &[&str]) -> Route {
    let hop = NextHop { via: None, interface: 10 };
    let segments = sids(list);
    let mtu = Some(1500 + u32::from(segments.overhead()));
    let encap = Some(Encap::Seg6 { mode: EncapMode::Encaps, segments });
    let destination: ipnet::IpNet = destination.parse().unwrap();
    Route { encap, mtu, ..Route::new(destination, vec![hop]) }
}

/// Sets the sysctls that the kernel requires before the links are created.
fn prepare(namespace: &Namespace) {
    namespace
        .run(|| {
            for (path, value) in [
                ("ipv4/ip_forward", "1"),
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

fn chain() -> Chain {
    let new = || Namespace::unnamed().unwrap();
    let chain = Chain { left: new(), router: new(), right: new() };
    let mut here = Handle::within(&new()).unwrap();
    let mut batch = Batch::new();
    for namespace in [&chain.left, &chain.router, &chain.right] {
        prepare(namespace);
    }
    let end = |namespace, name, index| VethEnd {
        name,
        namespace,
        mtu: MTU,
        mac: None,
        index: Some(index),
    };
    let pairs = [
        (end(&chain.left, "left-router", 10), end(&chain.router, "router-left", 10)),
        (end(&chain.right, "right-router", 10), end(&chain.router, "router-right", 11)),
    ];
    for (a, b) in &pairs {
        batch.push(format!("veth {}", a.name), add_veth(a, b));
    }
    here.commit(batch).unwrap();
    assert_eq!(here.links().unwrap().len(), 1, "nothing may show up here");

    let net = |text: &str| text.parse::<ipnet::IpNet>().unwrap();
    let local = |sid: &str, action| Route {
        encap: Some(Encap::local(action)),
        ..Route::new(net(sid), vec![NextHop { via: None, interface: 10 }])
    };
    let plan = [
        (
            &chain.left,
            vec![("10.0.1.1/24", 10), ("fd00:a::1/64", 10)],
            vec![
                Route::new(net("fd00:0:1::/48"), via("fd00:a::2", 10)),
                encap("10.0.2.0/24", &["fd00:0:1:1::", "fd00:0:1:d4::"]),
                encap("fd00:b::/64", &["fd00:0:1:1::", "fd00:0:1:d6::"]),
            ],
        ),
        (
            &chain.router,
            vec![
                ("10.0.1.2/24", 10),
                ("fd00:a::2/64", 10),
                ("10.0.2.2/24", 11),
                ("fd00:b::2/64", 11),
            ],
            vec![
                local("fd00:0:1:1::/128", LocalAction::End),
                local("fd00:0:1:d4::/128", LocalAction::EndDx4 { nh4: "0.0.0.0".parse().unwrap() }),
                local("fd00:0:1:d6::/128", LocalAction::EndDt6 { table: netlink::MAIN_TABLE }),
            ],
        ),
        (
            &chain.right,
            vec![("10.0.2.1/24", 10), ("fd00:b::1/64", 10)],
            vec![
                Route::new(net("10.0.1.0/24"), via("10.0.2.2", 10)),
                Route::new(net("fd00:a::/64"), via("fd00:b::2", 10)),
            ],
        ),
    ];
    for (namespace, addresses, routes) in plan {
        let mut handle = Handle::within(namespace).unwrap();
        let mut batch = Batch::new();
        for link in handle.links().unwrap() {
            batch.push(format!("up {}", link.name), set_up(link.index));
        }
        for (address, interface) in addresses {
            let address = Address { interface, net: net(address) };
            batch.push(format!("address {}", address.net), add_address(address));
        }
        for route in &routes {
            batch.push(format!("route {}", route.destination), add_route(route));
        }
        handle.commit(batch).unwrap();
    }
    // An ARP request that is lost on a link that is not operational yet is only repeated a second
    // later.
    for namespace in [&chain.left, &chain.router, &chain.right] {
        let mut handle = Handle::within(namespace).unwrap();
        let end = Instant::now() + Duration::from_secs(10);
        while !handle.links().unwrap().iter().all(|link| link.index == 1 || link.operational) {
            assert!(Instant::now() < end, "{:?}", handle.links());
            thread::sleep(Duration::from_millis(1));
        }
    }
    GenericHandle::within(&chain.left)
        .unwrap()
        .set_tunnel_source("fd00:a::1".parse().unwrap())
        .unwrap();
    chain
}

fn ping(from: &Namespace, to: &str) {
    let arguments = ["-c", "3", "-i", "0.05", "-W", "2", "-w", "4", "-s", "1452", "-M", "do", to];
    let output = from.run(|| Command::new("ping").args(arguments).output().unwrap()).unwrap();
    assert!(output.status.success(), "{to}: {}", String::from_utf8_lossy(&output.stdout));
}

fn sent(namespace: &Namespace) -> u64 {
    Handle::within(namespace).unwrap().link("left-router").unwrap().stats.tx_bytes
}

#[test]
fn root_ping_passes_through_every_behavior_and_is_counted() {
    let chain = chain();
    let (mut handle, before) = (Handle::within(&chain.left).unwrap(), sent(&chain.left));
    ping(&chain.left, "10.0.2.1");
    // 3 times Ethernet, outer IPv6, SRH with two segments, IPv4, ICMP and 1452 bytes.
    let between = sent(&chain.left) - before;
    assert!(between >= 3 * (14 + 40 + 40 + 20 + 8 + 1452), "{between}");
    let before = sent(&chain.left);
    ping(&chain.left, "fd00:b::1");
    assert!(sent(&chain.left) - before >= 3 * (14 + 40 + 40 + 40 + 8 + 1452));

    // No packet passes a SID without a behavior, which proves that the pings above took the
    // segment list's path.
    let broken = encap("10.0.2.0/24", &["fd00:0:1:99::", "fd00:0:1:d4::"]);
    handle.request("replace", replace_route(&broken)).unwrap();
    let arguments = ["-c", "1", "-W", "1", "10.0.2.1"];
    let output = chain.left.run(|| Command::new("ping").args(arguments).output().unwrap()).unwrap();
    assert!(!output.status.success());
}

#[test]
fn root_the_routes_mtu_leaves_exactly_the_inner_mtu() {
    let chain = chain();
    chain
        .left
        .run(|| {
            for (to, headers) in [("10.0.2.1", 28), ("fd00:b::1", 48)] {
                let to = SocketAddr::new(to.parse().unwrap(), 9);
                let any: IpAddr = if to.is_ipv4() { [0; 4].into() } else { [0u16; 8].into() };
                let socket = UdpSocket::bind((any, 0)).unwrap();
                socket.connect(to).unwrap();
                assert_eq!(path_mtu(&socket, to.is_ipv6()), 1500, "{to}");
                // Check with real packets too: exactly this size fits without fragmentation.
                discover(&socket, to.is_ipv6());
                socket.send(&vec![0; 1500 - headers]).unwrap();
                let error = socket.send(&vec![0; 1501 - headers]).unwrap_err();
                assert_eq!(error.raw_os_error(), Some(libc::EMSGSIZE));
            }
        })
        .unwrap();
}

/// The path MTU that the kernel has cached for the peer.
fn path_mtu(socket: &UdpSocket, ipv6: bool) -> i32 {
    let (level, name) =
        if ipv6 { (libc::IPPROTO_IPV6, libc::IPV6_MTU) } else { (libc::IPPROTO_IP, libc::IP_MTU) };
    option(socket, level, name)
}

/// Disables fragmentation.
fn discover(socket: &UdpSocket, ipv6: bool) {
    use std::os::fd::AsRawFd;
    let (level, name, value) = if ipv6 {
        (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_DO)
    } else {
        (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DO)
    };
    // SAFETY: the option value is an int, which lives through the call.
    let result = unsafe {
        let value: *const libc::c_int = &value;
        libc::setsockopt(socket.as_raw_fd(), level, name, value.cast(), 4)
    };
    assert_eq!(result, 0);
}

fn option(socket: &UdpSocket, level: i32, name: i32) -> i32 {
    use std::os::fd::AsRawFd;
    let (mut value, mut length) = (0i32, 4);
    // SAFETY: the option value is an int; it and its length live through the call.
    let result = unsafe {
        let value: *mut i32 = &mut value;
        libc::getsockopt(socket.as_raw_fd(), level, name, value.cast(), &mut length)
    };
    assert_eq!(result, 0);
    value
}

#[test]
fn root_replacing_a_segment_list_loses_no_packet() {
    let chain = chain();
    let receiver = chain.right.run(|| UdpSocket::bind("[::]:7000").unwrap()).unwrap();
    receiver.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    for (destination, to, last) in [
        ("10.0.2.0/24", "10.0.2.1:7000", "fd00:0:1:d4::"),
        ("fd00:b::/64", "[fd00:b::1]:7000", "fd00:0:1:d6::"),
    ] {
        let to: SocketAddr = to.parse().unwrap();
        let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let sender = chain.left.run(|| UdpSocket::bind(any).unwrap()).unwrap();
        let mut handle = Handle::within(&chain.left).unwrap();
        let replacements = AtomicUsize::new(0);
        let (received, sent) = thread::scope(|scope| {
            let receiving = scope.spawn(|| {
                let (mut numbers, mut buffer) = (Vec::new(), [0; 64]);
                while let Ok(length) = receiver.recv(&mut buffer) {
                    numbers.push(u64::from_be_bytes(buffer[..length].try_into().unwrap()));
                }
                numbers
            });
            let sending = scope.spawn(|| {
                let end = Instant::now() + Duration::from_millis(800);
                let mut number = 0u64;
                // A slow machine sends and replaces as often in a longer time.
                while Instant::now() < end
                    || number <= 1000
                    || replacements.load(Ordering::Relaxed) <= 50
                {
                    sender.send_to(&number.to_be_bytes(), to).unwrap();
                    number += 1;
                    thread::sleep(Duration::from_micros(50));
                }
                number
            });
            while !sending.is_finished() {
                let list: &[&str] = match replacements.load(Ordering::Relaxed) % 3 {
                    0 => &["fd00:0:1:1::", "fd00:0:1:1::", last],
                    1 => &[last],
                    _ => &["fd00:0:1:1::", last],
                };
                let route = encap(destination, list);
                handle.request("replace", replace_route(&route)).unwrap();
                replacements.fetch_add(1, Ordering::Relaxed);
                thread::sleep(Duration::from_millis(2));
            }
            (receiving.join().unwrap(), sending.join().unwrap())
        });
        let replaced = replacements.into_inner();
        assert!(replaced > 50 && sent > 1000, "{replaced} {sent}");
        // Each once. The kernel keeps no order between CPUs, and the sender may change its own.
        let mut sorted = received.clone();
        sorted.sort_unstable();
        let is_complete = sorted.into_iter().eq(0..sent);
        assert!(is_complete, "{to}: {} of {sent}, {replaced} replacements", received.len());
    }
}

#[test]
fn root_a_hundred_nodes_come_up_from_a_few_sends() {
    let start = Instant::now();
    let nodes: Vec<_> = (0..100).map(|_| Namespace::unnamed().unwrap()).collect();
    let made = start.elapsed();
    let mut here = Handle::new().unwrap();
    let mut batch = Batch::new();
    for index in 0..100 {
        let end = |namespace, name, index| VethEnd {
            name,
            namespace,
            mtu: MTU,
            mac: None,
            index: Some(index),
        };
        let next = &nodes[(index + 1) % 100];
        let pair = (end(&nodes[index], "right", 10), end(next, "left", 11));
        batch.push(format!("link {index}"), add_veth(&pair.0, &pair.1));
    }
    here.commit(batch).unwrap();
    let linked = start.elapsed();
    for (index, node) in nodes.iter().enumerate() {
        let mut handle = Handle::within(node).unwrap();
        let mut batch = Batch::new();
        for interface in [10, 11] {
            batch.push("up", set_up(interface));
            let net = format!("10.{interface}.{index}.1/24").parse().unwrap();
            batch.push("address", add_address(Address { interface, net }));
        }
        for other in 0..100 {
            let net: ipnet::IpNet = format!("fd00:0:{other:x}::/48").parse().unwrap();
            let hop = NextHop { via: None, interface: 10 };
            batch.push("route", add_route(&Route::new(net, vec![hop])));
        }
        handle.commit(batch).unwrap();
    }
    let routed = start.elapsed();
    println!("100 namespaces {made:?}, 100 links {linked:?}, 10,000 routes {routed:?}");
    let mut handle = Handle::within(&nodes[99]).unwrap();
    assert_eq!(handle.routes(None, Some(netlink::PROTOCOL)).unwrap().len(), 100);
}
