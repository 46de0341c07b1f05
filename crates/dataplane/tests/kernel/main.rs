//! Policies in the real kernel, with two parallel paths:
//!
//! ```text
//!                       +-- a (fd00:0:a::/48) --+
//!  host 10.0.1.1 -------+                       +------- server 10.9.0.1
//!       fd00:1::1       +-- b (fd00:0:b::/48) --+               fd00:9::1
//! ```
//! All traffic takes `a` unless a policy selects another path.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use dataplane::{Error, Headend, KernelSeg6, normalized};
use ipnet::IpNet;
use model::{Color, Flow, Policy, Protocol};
use netlink::{
    Address, Batch, Encap, Handle, LocalAction, Namespace, NextHop, PROTOCOL, Route, VethEnd,
    add_address, add_route, add_veth, set_up, sysctl,
};
use srv6::{SegmentList, Sid};

const INNER_MTU: u16 = 1500;
const LINK_MTU: u32 = 1800;
/// Interfaces have the same number at both ends: 1x on the host side, 2x on the server side.
const A: u32 = 10;
const B: u32 = 11;
const SERVER_A: u32 = 20;
const SERVER_B: u32 = 21;

struct Net {
    host: Namespace,
    a: Namespace,
    b: Namespace,
    server: Namespace,
}

fn net(text: &str) -> IpNet {
    text.parse().unwrap()
}

fn via(destination: &str, neighbour: &str, interface: u32) -> Route {
    let hop = NextHop { via: Some(neighbour.parse().unwrap()), interface };
    Route::new(net(destination), vec![hop])
}

fn sid(text: &str, action: LocalAction, interface: u32) -> Route {
    let hop = NextHop { via: None, interface };
    Route { encap: Some(Encap::local(action)), ..Route::new(net(text), vec![hop]) }
}

fn up() -> Net {
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

fn list(sids: &[&str]) -> SegmentList {
    SegmentList(sids.iter().map(|sid| Sid(sid.parse().unwrap())).collect())
}

fn flow(dst: &str, protocol: Option<Protocol>, port: Option<u16>) -> Flow {
    let ports = port.map(|port| model::PortRange { first: port, last: port });
    Flow { src: None, dst: net(dst), protocol, src_ports: None, dst_ports: ports, dscp: None }
}

/// Returns a policy for both families to the server, through router `letter`.
fn policy(letter: char) -> Policy {
    Policy {
        color: Color(7001),
        flows: vec![flow("10.9.0.1/32", None, None), flow("fd00:9::1/128", None, None)],
        ipv4: list(&[&format!("fd00:0:{letter}:d4::")]),
        ipv6: list(&[&format!("fd00:0:{letter}:1::"), &format!("fd00:0:{letter}:d6::")]),
        closed: false,
    }
}

/// Returns the number of packets that a router has sent to the server.
fn forwarded(router: &Namespace) -> u64 {
    let links = Handle::within(router).unwrap().links().unwrap();
    links.iter().find(|link| link.name.starts_with("server")).unwrap().stats.tx_packets
}

/// Returns the namespace's rules and routes in the notation of `ip`.
fn shown(namespace: &Namespace) -> String {
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

fn ip(namespace: &Namespace, arguments: &str) {
    let run = || Command::new("ip").args(arguments.split(' ')).status().unwrap().success();
    assert!(namespace.run(run).unwrap(), "ip {arguments}");
}

/// Moves the policy onto b, onto a and away, repeatedly.
fn move_often(host: &Namespace) {
    const MOVES: u32 = 100;
    let mut plane = KernelSeg6::within(host, INNER_MTU).unwrap();
    for number in 0..MOVES {
        match number % 4 {
            0 | 2 => plane.install(&policy('b')).unwrap(),
            1 => plane.install(&policy('a')).unwrap(),
            _ => plane.remove(Color(7001)).unwrap(),
        }
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn root_moving_a_flow_of_datagrams_loses_none() {
    let net = up();
    for to in ["10.9.0.1:7000", "[fd00:9::1]:7000"] {
        let to: SocketAddr = to.parse().unwrap();
        let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let receiver = net.server.run(|| UdpSocket::bind(to).unwrap()).unwrap();
        receiver.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        let sender = net.host.run(|| UdpSocket::bind(any).unwrap()).unwrap();
        // Connected: the socket caches its route and must notice its changes.
        sender.connect(to).unwrap();
        let before = [forwarded(&net.a), forwarded(&net.b)];
        let stop = AtomicBool::new(false);
        let (mut received, sent) = thread::scope(|scope| {
            let receiving = scope.spawn(|| {
                let (mut numbers, mut buffer) = (Vec::new(), [0; 8]);
                while let Ok(8) = receiver.recv(&mut buffer) {
                    numbers.push(u64::from_be_bytes(buffer));
                }
                numbers
            });
            let sending = scope.spawn(|| {
                let mut number = 0u64;
                while !stop.load(Ordering::Relaxed) {
                    sender.send(&number.to_be_bytes()).unwrap();
                    number += 1;
                    thread::sleep(Duration::from_micros(100));
                }
                number
            });
            let stop = StopOnDrop(&stop);
            move_often(&net.host);
            drop(stop);
            (receiving.join().unwrap(), sending.join().unwrap())
        });
        // Packets on two paths may be reordered, but none may be lost or duplicated.
        received.sort_unstable();
        let missing: Vec<_> = (0..sent).filter(|n| received.binary_search(n).is_err()).collect();
        assert!(missing.is_empty(), "{to}: {missing:?} of {sent} are missing");
        assert_eq!(received.len() as u64, sent);
        let over = [forwarded(&net.a) - before[0], forwarded(&net.b) - before[1]];
        assert!(over.iter().all(|count| *count > sent / 10), "{over:?} of {sent}");
    }
}

/// Sets the flag when dropped, including on panic.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn root_an_established_connection_moves() {
    let net = up();
    for to in ["10.9.0.1:7000", "[fd00:9::1]:7000"] {
        let to: SocketAddr = to.parse().unwrap();
        let listener = net.server.run(|| TcpListener::bind(to).unwrap()).unwrap();
        let mut stream = net.host.run(|| TcpStream::connect(to).unwrap()).unwrap();
        let mut accepted = listener.accept().unwrap().0;
        let mut plane = KernelSeg6::within(&net.host, INNER_MTU).unwrap();
        let stop = AtomicBool::new(false);
        let (read, written) = thread::scope(|scope| {
            let reading = scope.spawn(|| {
                let (mut buffer, mut total) = ([0; 65536], 0);
                loop {
                    match accepted.read(&mut buffer).unwrap() {
                        0 => return total,
                        count => total += count,
                    }
                }
            });
            let writing = scope.spawn(|| {
                let mut total = 0;
                while !stop.load(Ordering::Relaxed) {
                    stream.write_all(&[7; 20_000]).unwrap();
                    total += 20_000;
                    thread::sleep(Duration::from_millis(1));
                }
                stream.shutdown(std::net::Shutdown::Write).unwrap();
                total
            });
            // A failed assertion must also stop the writer, or the scope would wait for it.
            let _stop = StopOnDrop(&stop);
            for (letter, on, off) in [('b', &net.b, &net.a), ('a', &net.a, &net.b)] {
                plane.install(&policy(letter)).unwrap();
                thread::sleep(Duration::from_millis(50));
                let before = [forwarded(on), forwarded(off)];
                let end = Instant::now() + Duration::from_secs(10);
                while forwarded(on) - before[0] < 100 {
                    assert!(Instant::now() < end, "{to}: nothing moves onto {letter}");
                    thread::sleep(Duration::from_millis(10));
                }
                // Only neighbour discovery may remain on the other path.
                let left = forwarded(off) - before[1];
                assert!(left < 10, "{to}: {left} packets did not move onto {letter}");
            }
            stop.store(true, Ordering::Relaxed);
            (reading.join().unwrap(), writing.join().unwrap())
        });
        assert_eq!(read, written);
        plane.remove(Color(7001)).unwrap();
    }
}

#[test]
fn root_a_policy_is_read_back_and_goes_without_a_trace() {
    let net = up();
    // Entries of another process, in our table and at our priority.
    ip(&net.host, "rule add pref 7001 to 10.9.0.1 table 7001 protocol static");
    ip(&net.host, "route add 192.0.2.0/24 dev host-a table 7001 proto static");
    ip(&net.host, "-6 route add 2001:db8::/32 dev host-a table 7001 proto static");
    let before = shown(&net.host);
    let mut plane = KernelSeg6::within(&net.host, INNER_MTU).unwrap();
    assert_eq!(plane.installed().unwrap(), []);
    plane.remove(Color(7001)).unwrap();
    assert_eq!(shown(&net.host), before);

    let other = Policy {
        color: Color(7002),
        flows: vec![
            Flow { src: Some(self::net("10.0.1.0/24")), ..flow("10.9.0.0/16", None, None) },
            flow("10.9.0.1/32", Some(Protocol::Icmp), None),
            flow("10.9.0.1/32", Some(Protocol::Udp), Some(53)),
        ],
        ipv4: list(&["fd00:0:a:1::", "fd00:0:b:d4::"]),
        ipv6: SegmentList::default(),
        closed: false,
    };
    for policy in [policy('a'), policy('b'), policy('b'), other.clone()] {
        plane.install(&policy).unwrap();
    }
    let expected = [normalized(&policy('b')), normalized(&other)];
    assert_eq!(plane.installed().unwrap(), expected);
    let state = shown(&net.host);
    let mut restarted = KernelSeg6::within(&net.host, INNER_MTU).unwrap();
    assert_eq!(restarted.installed().unwrap(), expected);
    restarted.install(&other).unwrap();
    assert_eq!(shown(&net.host), state, "installing again changes nothing");

    restarted.remove(Color(7002)).unwrap();
    assert_eq!(restarted.installed().unwrap(), expected[..1]);
    restarted.remove(Color(7001)).unwrap();
    assert_eq!(shown(&net.host), before);
    assert_eq!(restarted.installed().unwrap(), []);
}

#[test]
fn root_flows_of_a_policy_change_in_any_order() {
    let net = up();
    let mut plane = KernelSeg6::within(&net.host, INNER_MTU).unwrap();
    let all = [
        flow("10.9.0.1/32", None, None),
        flow("10.9.0.1/32", Some(Protocol::Tcp), None),
        flow("10.9.0.1/32", Some(Protocol::Tcp), Some(5201)),
        flow("10.9.0.0/16", None, None),
        flow("fd00:9::1/128", Some(Protocol::Udp), Some(5201)),
    ];
    // Every subset, in an order in which consecutive subsets differ widely.
    for step in 0..32u32 {
        let subset = step * 13 % 32;
        let flows = (0..5).filter(|bit| subset >> bit & 1 == 1).map(|bit| all[bit]).collect();
        let wanted = Policy { flows, ..policy('a') };
        plane.install(&wanted).unwrap();
        let expected: Vec<_> = [normalized(&wanted)].into_iter().filter(|_| subset > 0).collect();
        assert_eq!(plane.installed().unwrap(), expected);
        let routes = Handle::within(&net.host).unwrap().routes(Some(7001), Some(PROTOCOL)).unwrap();
        let mut destinations: Vec<_> = wanted.flows.iter().map(|flow| flow.dst).collect();
        destinations.sort();
        destinations.dedup();
        assert_eq!(routes.len(), destinations.len());
        // One segment for IPv4, two for IPv6. The kernel subtracts 40 + 8 + 16 for each.
        for route in routes {
            let expected = if route.destination.addr().is_ipv4() { 1564 } else { 1580 };
            assert_eq!(route.mtu, Some(expected));
        }
    }
}

#[test]
fn root_what_cannot_work_changes_nothing() {
    let net = up();
    let before = shown(&net.host);
    let mut plane = KernelSeg6::within(&net.host, INNER_MTU).unwrap();
    let lost = Policy { ipv6: list(&["fd99::1"]), ..policy('a') };
    let error = plane.install(&lost).unwrap_err();
    assert_eq!(error.to_string(), "color 7001: no route to the first SID fd99::1");
    let empty = Policy { ipv4: SegmentList::default(), ..policy('a') };
    assert!(matches!(plane.install(&empty), Err(Error::NoSegments { .. })));
    let foreign = Policy { color: Color(254), ..policy('a') };
    assert!(matches!(plane.install(&foreign), Err(Error::ForeignColor { .. })));
    assert!(matches!(plane.remove(Color(254)), Err(Error::ForeignColor { .. })));
    assert_eq!(shown(&net.host), before);
}

#[test]
fn root_a_half_installed_policy_shows_and_is_completed() {
    let net = up();
    let mut plane = KernelSeg6::within(&net.host, INNER_MTU).unwrap();
    plane.install(&policy('a')).unwrap();
    ip(&net.host, "rule del pref 7001");
    ip(&net.host, "-6 route flush table 7001");
    let [found] = plane.installed().unwrap().try_into().unwrap();
    assert_eq!(found.flows, [flow("fd00:9::1/128", None, None)]);
    assert_ne!(found, normalized(&policy('a')));
    plane.install(&policy('a')).unwrap();
    assert_eq!(plane.installed().unwrap(), [normalized(&policy('a'))]);
    ip(&net.host, "rule del pref 7001");
    ip(&net.host, "-6 rule del pref 7001");
    assert_eq!(plane.installed().unwrap().len(), 1, "its routes are left, and can be removed");
    plane.remove(Color(7001)).unwrap();
    assert_eq!(plane.installed().unwrap(), []);
}

/// Returns the host's route for TCP to the server's port 5201 or 80, in the notation of `ip`.
fn way(net: &Net, port: u16) -> String {
    let arguments = format!("route get 10.9.0.1 ipproto tcp dport {port}");
    let run = || Command::new("ip").args(arguments.split(' ')).output().unwrap();
    String::from_utf8(net.host.run(run).unwrap().stdout).unwrap()
}

#[test]
fn root_a_closed_policy_has_its_lists_or_no_way() {
    let net = up();
    let before = shown(&net.host);
    let mut plane = KernelSeg6::within(&net.host, INNER_MTU).unwrap();
    let get = || {
        let run = || Command::new("ip").args(["route", "get", "10.9.0.1"]).output().unwrap();
        let done = net.host.run(run).unwrap();
        String::from_utf8([done.stdout, done.stderr].concat()).unwrap()
    };
    let open = policy('a');
    let closed = Policy { closed: true, ..open.clone() };
    let none = Policy { ipv4: list(&[]), ipv6: list(&[]), ..closed.clone() };
    let steps = [(&none, "No route to host"), (&closed, "encap seg6"), (&none, "No route to host")];
    for (policy, way) in steps {
        plane.install(policy).unwrap();
        assert!(get().contains(way), "{way}: {}", get());
        assert_eq!(plane.installed().unwrap(), [normalized(policy)]);
    }
    // A link that goes down removes its routes.
    plane.install(&closed).unwrap();
    ip(&net.host, "route flush table 7001 proto 75 metric 75");
    assert!(get().contains("No route to host"), "{}", get());
    plane.install(&open).unwrap();
    assert!(get().contains("encap seg6"), "{}", get());
    assert_eq!(plane.installed().unwrap(), [normalized(&open)]);
    plane.remove(open.color).unwrap();
    // A list without a route is still closed.
    let lost = Policy { ipv4: list(&["fd00:0:bad::"]), ..closed.clone() };
    let error = plane.install(&lost).unwrap_err();
    assert!(matches!(error, Error::NoRoute { .. }), "{error}");
    assert!(get().contains("No route to host"), "{}", get());
    // An installed list remains if its replacement has no route.
    plane.install(&closed).unwrap();
    plane.install(&lost).unwrap_err();
    assert!(get().contains("encap seg6"), "{}", get());
    plane.remove(open.color).unwrap();
    assert_eq!(shown(&net.host), before);
}

#[test]
fn root_a_narrow_policy_without_a_list_stays_where_a_wider_one_is_steered() {
    let net = up();
    let before = shown(&net.host);
    let mut plane = KernelSeg6::within(&net.host, INNER_MTU).unwrap();
    let wide = Policy { color: Color(9000), ..policy('b') };
    let narrow = |list: SegmentList| Policy {
        color: Color(8000),
        flows: vec![flow("10.9.0.1/32", Some(Protocol::Tcp), Some(5201))],
        ipv4: list,
        ipv6: SegmentList::default(),
        closed: false,
    };
    let bare = narrow(SegmentList::default());
    plane.install(&wide).unwrap();
    assert!(way(&net, 5201).contains("encap seg6"));
    plane.install(&bare).unwrap();
    assert!(!way(&net, 5201).contains("encap") && way(&net, 80).contains("encap seg6"));
    assert_eq!(plane.installed().unwrap(), [normalized(&bare), normalized(&wide)]);
    // Steered by itself, then returned to the IGP.
    plane.install(&narrow(list(&["fd00:0:a:d4::"]))).unwrap();
    assert!(way(&net, 5201).contains("fd00:0:a:d4::"));
    plane.install(&bare).unwrap();
    assert!(!way(&net, 5201).contains("encap"));
    assert_eq!(plane.installed().unwrap(), [normalized(&bare), normalized(&wide)]);
    plane.remove(bare.color).unwrap();
    assert!(way(&net, 5201).contains("encap seg6"));
    plane.remove(wide.color).unwrap();
    assert_eq!(shown(&net.host), before);
}
